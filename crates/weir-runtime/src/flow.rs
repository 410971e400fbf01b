//! A flow: one execution of an entry point's body, from its inputs to its answer.

use std::future::Future;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker, ready};

use weir_host::{Failure, Value};
use weir_trace::{Detail, EventKind, FlowKey};

use crate::frame::{Ended, Finished, Frame};
use crate::live::{Env, Hold, Live, Tally};

/// A flow. It goes on whenever it is polled; dropping it gives it up and releases all that it holds.
///
/// Where it is through at once it only borrows the program, so that it counts no reference to it.
pub(crate) struct Flow<L: Deref<Target = Live> = Arc<Live>> {
    live: L,
    going: Going,
}

/// A flow apart from its program, to be carried between threads: a count of references to the program would go over and
/// back with each. Who has it has the program too; to be given up, it has to be told so ([`Going::give_up`]).
pub(crate) struct Going {
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

    /// The number that the flow will have in its source, unless another begins before.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.live.entries[self.entry as usize].flows[self.route as usize].1.begun.load(Ordering::Relaxed)
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

    /// The flow, which cannot be kept. To be asked for once.
    pub(crate) fn borrowed(&mut self) -> Flow<&'a Live> {
        let live: &'a Live = self.live;
        let key = live.next_key(self.entry, self.route);
        let mut frame = Frame::take(&live.flow(key).body, false);
        for (slot, input) in frame.slots.iter_mut().zip(&mut *self.inputs) {
            slot.put(input.take());
        }
        self.inputs.clear();
        live.record(Detail::Flows, || EventKind::FlowBegan { flow: key });
        let records_nodes = live.recorder.wants(Detail::Nodes);
        let began_ns = if live.recorder.wants(Detail::Sections) { live.machine.now_ns() } else { 0 };
        Flow { live, going: Going { key, frame: Some(frame), began_ns, records_nodes } }
    }
}

impl Flow<&Live> {
    /// The same flow, which can be kept.
    fn kept(self, live: &Arc<Live>) -> Flow {
        Flow { live: Arc::clone(live), going: self.part() }
    }

    /// The same flow, apart from its program.
    pub(crate) fn part(mut self) -> Going {
        let Going { key, began_ns, records_nodes, .. } = self.going;
        Going { key, frame: self.going.frame.take(), began_ns, records_nodes }
    }
}

impl<L: Deref<Target = Live>> Flow<L> {
    /// Goes on as far as it can.
    ///
    /// # Panics
    /// Panics where the flow is through already.
    pub(crate) fn advance(&mut self, context: &mut Context<'_>) -> Poll<Result<Value, Failure>> {
        match self.going.advance_until(&self.live, usize::MAX, context) {
            Poll::Ready(answer) => Poll::Ready(answer.expect("nothing stops it before its end")),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Goes on as far as it can where it may not hold the thread ([`Hold::Denied`]); yields the answer where it is through.
    /// Another thread goes on with it otherwise. For flows whose body has no atomic step, turn or time limit.
    ///
    /// # Panics
    /// Panics where the flow is through already.
    pub(crate) fn begin(&mut self) -> Option<Result<Value, Failure>> {
        match self.going.go(&self.live, usize::MAX, Hold::Denied, &mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => answer,
            Poll::Pending => None,
        }
    }

    /// Which flow it is.
    pub(crate) fn key(&self) -> FlowKey {
        self.going.key
    }

    /// The flow itself, and its program.
    pub(crate) fn going(&mut self) -> (&Live, &mut Going) {
        (&self.live, &mut self.going)
    }
}

impl Going {
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
        live: &Live,
        until: usize,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Value, Failure>>> {
        self.go(live, until, Hold::Allowed, context)
    }

    /// The same for a flow whose answer nobody wants, which takes longer to hand on than a small flow takes.
    ///
    /// # Panics
    /// Panics where the flow is through already.
    pub(crate) fn advance_unasked(&mut self, live: &Live, until: usize, context: &mut Context<'_>) -> Poll<Option<()>> {
        let finished = ready!(self.run(live, until, Hold::Allowed, context));
        if matches!(finished, Finished::Stretch) {
            return Poll::Ready(None);
        }
        self.release(live);
        match finished {
            Finished::Ended(ended) if ended.how.is_err() => drop(self.failure(live, ended)),
            _ => self.answered(live),
        }
        Poll::Ready(Some(()))
    }

    fn go(
        &mut self,
        live: &Live,
        until: usize,
        hold: Hold,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Value, Failure>>> {
        Poll::Ready(match ready!(self.run(live, until, hold, context)) {
            Finished::Stretch => None,
            Finished::Value(value) => Some(self.end(live, Ok(value))),
            Finished::Ended(ended) => Some(self.end(live, Err(ended))),
        })
    }

    #[inline]
    fn run(&mut self, live: &Live, until: usize, hold: Hold, context: &mut Context<'_>) -> Poll<Finished> {
        let frame = self.frame.as_mut().expect("a flow is not polled after its end");
        let env = Env { live, key: self.key, records_nodes: self.records_nodes, hold };
        let body = &live.flow(self.key).body;
        frame.until = until;
        frame.advance(body, env, None, context)
    }

    fn end(&mut self, live: &Live, finished: Result<Value, Ended>) -> Result<Value, Failure> {
        self.release(live);
        let answer = match finished {
            Ok(value) | Err(Ended { how: Ok(value), .. }) => value,
            Err(ended) => return Err(self.failure(live, ended)),
        };
        self.answered(live);
        Ok(answer)
    }

    /// Notes that it has ended with an answer.
    fn answered(&self, live: &Live) {
        let tally = live.tally(self.key);
        tally.count_ended();
        self.measure(live, tally);
        live.record(Detail::Flows, || EventKind::FlowEnded { flow: self.key });
    }

    #[cold]
    fn failure(&self, live: &Live, mut ended: Ended) -> Failure {
        let how = std::mem::replace(&mut ended.how, Ok(Value::Unit));
        let failure = how.err().map_or_else(|| Failure::function("no failure"), |failure| *failure);
        let tally = live.tally(self.key);
        tally.count(&tally.failed);
        self.measure(live, tally);
        self.record_failure(live, &ended, &failure);
        failure
    }

    /// Notes how long it took.
    fn measure(&self, live: &Live, tally: &Tally) {
        if self.is_watched() && live.recorder.wants(Detail::Sections) {
            tally.took.add(live.machine.now_ns().saturating_sub(self.began_ns));
        }
    }

    fn record_failure(&self, live: &Live, ended: &Ended, failure: &Failure) {
        live.record(Detail::Log, || {
            let flow = live.flow(self.key);
            EventKind::FlowFailed {
                flow: self.key,
                path: format!("{}: {}", flow.name, ended.path(&flow.body)).into(),
                kind: failure.kind.name(),
                message: failure.message.as_str().into(),
            }
        });
    }

    /// Gives the frame back, and announces that the flow will come to no stateful call any more.
    fn release(&mut self, live: &Live) -> bool {
        let Some(frame) = self.frame.take() else { return false };
        Frame::give_back(frame);
        for turn in &live.flow(self.key).turns {
            live.resources.turns[*turn].pass(self.key.sequence);
        }
        true
    }

    /// Gives the flow up, where it is not through: all that it holds is released.
    pub(crate) fn give_up(&mut self, live: &Live) {
        if self.release(live) {
            let tally = live.tally(self.key);
            tally.count(&tally.given_up);
            live.record(Detail::Flows, || EventKind::FlowGivenUp { flow: self.key });
        }
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
        self.going.give_up(&self.live);
    }
}
