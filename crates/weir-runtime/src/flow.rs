//! A flow: one execution of an entry point's body, from its inputs to its answer.

use std::future::Future;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};

use weir_host::{Failure, Value};
use weir_trace::{Detail, FlowKey, What};

use crate::frame::{Ended, Finished, Frame};
use crate::live::{Env, Hold, Live, Tally};

/// A flow. It goes on whenever it is polled; dropping it gives it up and releases all that it holds.
///
/// Where it is through at once it only borrows the program, so that it counts no reference to it.
pub(crate) struct Flow<L: Deref<Target = Live> = Arc<Live>> {
    live: L,
    key: FlowKey,
    /// Taken when the flow is through.
    frame: Option<Box<Frame>>,
    /// When it began, where somebody watches; 0 where nobody does.
    began_ns: u64,
    records_nodes: bool,
}

/// A flow that is to begin.
pub(crate) struct Beginning<'a> {
    live: &'a Arc<Live>,
    entry: u32,
    route: u32,
    /// They are moved out of their list.
    inputs: &'a mut Vec<Value>,
}

impl<'a> Beginning<'a> {
    /// A flow of this route of this entry point.
    pub(crate) fn new(live: &'a Arc<Live>, entry: u32, route: u32, inputs: &'a mut Vec<Value>) -> Self {
        Beginning { live, entry, route, inputs }
    }

    /// The flow. To be asked for once.
    pub(crate) fn flow(&mut self) -> Flow {
        self.borrowed().kept(self.live)
    }

    /// The flow's answer, or, where it is not through at once, the flow; whoever awaits it polls it again.
    pub(crate) fn run(&mut self) -> Result<Result<Value, Failure>, Flow> {
        let mut flow = self.borrowed();
        match flow.advance(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => Ok(answer),
            Poll::Pending => Err(flow.kept(self.live)),
        }
    }

    /// The flow's answer, or, where it is not through without holding the thread ([`Flow::begin`]), the flow.
    pub(crate) fn run_briefly(&mut self) -> Result<Result<Value, Failure>, Flow> {
        let mut flow = self.borrowed();
        flow.begin().ok_or_else(|| flow.kept(self.live))
    }

    fn borrowed(&mut self) -> Flow<&'a Live> {
        let live: &'a Live = self.live;
        let key = live.next_key(self.entry, self.route);
        let mut frame = Frame::take(&live.flow(key).body, false);
        for (slot, input) in frame.slots.iter_mut().zip(&mut *self.inputs) {
            slot.put(input.take());
        }
        self.inputs.clear();
        live.record(Detail::Flows, || What::FlowBegan { flow: key });
        let records_nodes = live.recorder.wants(Detail::Nodes);
        let began_ns = if live.recorder.wants(Detail::Sections) { live.machine.now_ns() } else { 0 };
        Flow { live, key, frame: Some(frame), began_ns, records_nodes }
    }
}

impl Flow<&Live> {
    /// The same flow, which can be kept.
    fn kept(mut self, live: &Arc<Live>) -> Flow {
        let (key, began_ns, records_nodes) = (self.key, self.began_ns, self.records_nodes);
        Flow { live: Arc::clone(live), key, frame: self.frame.take(), began_ns, records_nodes }
    }
}

impl<L: Deref<Target = Live>> Flow<L> {
    /// Goes on as far as it can.
    ///
    /// # Panics
    /// Panics where the flow is through already.
    pub(crate) fn advance(&mut self, context: &mut Context<'_>) -> Poll<Result<Value, Failure>> {
        match self.advance_until(usize::MAX, context) {
            Poll::Ready(answer) => Poll::Ready(answer.expect("nothing stops it before its end")),
            Poll::Pending => Poll::Pending,
        }
    }

    /// The first step that has not been looked at.
    pub(crate) fn at(&self) -> usize {
        self.frame.as_ref().map_or(usize::MAX, |frame| frame.low)
    }

    /// Whether somebody watched when it began.
    pub(crate) fn is_watched(&self) -> bool {
        self.began_ns > 0
    }

    /// Which flow it is.
    pub(crate) fn key(&self) -> FlowKey {
        self.key
    }

    /// Goes on as far as it can, but not beyond the step `until`; yields `None` where it has come there.
    ///
    /// # Panics
    /// Panics where the flow is through already.
    pub(crate) fn advance_until(
        &mut self,
        until: usize,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Value, Failure>>> {
        self.go(until, Hold::Allowed, context)
    }

    /// Goes on as far as it can where it may not hold the thread ([`Hold::Denied`]); yields the answer where it is through.
    /// Another thread goes on with it otherwise. For flows whose body has no atomic step, turn or time limit.
    ///
    /// # Panics
    /// Panics where the flow is through already.
    pub(crate) fn begin(&mut self) -> Option<Result<Value, Failure>> {
        match self.go(usize::MAX, Hold::Denied, &mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => answer,
            Poll::Pending => None,
        }
    }

    fn go(&mut self, until: usize, hold: Hold, context: &mut Context<'_>) -> Poll<Option<Result<Value, Failure>>> {
        let frame = self.frame.as_mut().expect("a flow is not polled after its end");
        let env = Env { live: &self.live, key: self.key, records_nodes: self.records_nodes, hold };
        let body = &self.live.flow(self.key).body;
        frame.until = until;
        match frame.advance(body, env, None, context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Finished::Stretch) => Poll::Ready(None),
            Poll::Ready(Finished::Value(value)) => Poll::Ready(Some(self.end(Ok(value)))),
            Poll::Ready(Finished::Ended(ended)) => Poll::Ready(Some(self.end(Err(ended)))),
        }
    }

    fn end(&mut self, finished: Result<Value, Ended>) -> Result<Value, Failure> {
        self.release();
        let answer = match finished {
            Ok(value) | Err(Ended { how: Ok(value), .. }) => value,
            Err(ended) => return Err(self.failure(ended)),
        };
        let tally = self.live.tally(self.key);
        tally.ended.fetch_add(1, Ordering::Relaxed);
        self.measure(tally);
        self.live.record(Detail::Flows, || What::FlowEnded { flow: self.key });
        Ok(answer)
    }

    #[cold]
    fn failure(&self, mut ended: Ended) -> Failure {
        let how = std::mem::replace(&mut ended.how, Ok(Value::Unit));
        let failure = how.err().map_or_else(|| Failure::function("no failure"), |failure| *failure);
        let tally = self.live.tally(self.key);
        tally.failed.fetch_add(1, Ordering::Relaxed);
        self.measure(tally);
        self.record_failure(&ended, &failure);
        failure
    }

    /// Notes how long it took.
    fn measure(&self, tally: &Tally) {
        if self.is_watched() && self.live.recorder.wants(Detail::Sections) {
            tally.took.add(self.live.machine.now_ns().saturating_sub(self.began_ns));
        }
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

impl<L: Deref<Target = Live>> Drop for Flow<L> {
    fn drop(&mut self) {
        if self.release() {
            self.live.tally(self.key).given_up.fetch_add(1, Ordering::Relaxed);
            self.live.record(Detail::Flows, || What::FlowGivenUp { flow: self.key });
        }
    }
}
