//! A flow: one execution of an entry point's body, from its inputs to its answer.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use weir_host::{Failure, Value};
use weir_trace::{Detail, FlowKey, What};

use crate::frame::{Ended, Finished, Frame};
use crate::live::{Env, Live};

/// A flow. It goes on whenever it is polled; dropping it gives it up and releases all that it holds.
pub(crate) struct Flow {
    live: Arc<Live>,
    key: FlowKey,
    /// Taken when the flow is through.
    frame: Option<Box<Frame>>,
    records_nodes: bool,
}

impl Flow {
    /// A flow at its beginning.
    pub(crate) fn new(live: &Arc<Live>, entry: u32, route: u32, inputs: Vec<Value>) -> Flow {
        let key = live.next_key(entry, route);
        let mut frame = Frame::take(&live.flow(key).body, false);
        for (slot, input) in frame.slots.iter_mut().zip(inputs) {
            *slot = input;
        }
        live.record(Detail::Flows, || What::FlowBegan { flow: key });
        let records_nodes = live.recorder.wants(Detail::Nodes);
        Flow { live: Arc::clone(live), key, frame: Some(frame), records_nodes }
    }

    /// Goes on as far as it can.
    ///
    /// # Panics
    /// Panics where the flow is through already.
    pub(crate) fn advance(&mut self, context: &mut Context<'_>) -> Poll<Result<Value, Failure>> {
        let frame = self.frame.as_mut().expect("a flow is not polled after its end");
        let env = Env { live: &self.live, key: self.key, records_nodes: self.records_nodes };
        let body = &self.live.flow(self.key).body;
        let Poll::Ready(finished) = frame.advance(body, env, None, context) else { return Poll::Pending };
        self.release();
        Poll::Ready(self.answer(finished))
    }

    fn answer(&self, finished: Finished) -> Result<Value, Failure> {
        let answer = match finished {
            Finished::Value(value) | Finished::Ended(Ended { how: Ok(value), .. }) => value,
            Finished::Ended(mut ended) => {
                let how = std::mem::replace(&mut ended.how, Ok(Value::Unit));
                let failure = how.err().map_or_else(|| Failure::function("no failure"), |failure| *failure);
                self.record_failure(&ended, &failure);
                return Err(failure);
            }
        };
        self.live.record(Detail::Flows, || What::FlowEnded { flow: self.key });
        Ok(answer)
    }

    fn record_failure(&self, ended: &Ended, failure: &Failure) {
        self.live.record(Detail::Log, || {
            let flow = self.live.flow(self.key);
            What::FlowFailed {
                flow: self.key,
                path: format!("{}: {}", flow.name, ended.path(&flow.body)).into(),
                kind: failure.kind.name(),
                message: failure.message.as_str().into(),
            }
        });
    }

    /// Gives the frame back, and announces that the flow will come to no stateful call any more.
    fn release(&mut self) -> bool {
        let Some(frame) = self.frame.take() else { return false };
        Frame::give_back(frame);
        for turn in &self.live.flow(self.key).turns {
            self.live.resources.turns[*turn].pass(self.key.sequence);
        }
        true
    }
}

impl Future for Flow {
    type Output = Result<Value, Failure>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.get_mut().advance(context)
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        if self.release() {
            self.live.record(Detail::Flows, || What::FlowGivenUp { flow: self.key });
        }
    }
}
