//! What the threads of sections do: they take a flow through its stretches, from port to port.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use tokio::runtime::Handle;
use weir_host::{Failure, Value};
use weir_scheduler::{Fusion, PortId, Work};

use super::exchange::Exchange;
use super::job::{Carried, Home, Job, Link, Unanswered, park};
use super::layout::{Placed, Stretch};
use super::pace::Pace;
use crate::flow::Going;
use crate::machine::Machine;

/// The stretches of each flow, by entry and route.
pub(super) type Cuts = Vec<Vec<Vec<Stretch>>>;

/// What the scheduler's threads do.
pub(super) struct Stretches {
    pub(super) stretches: Arc<Cuts>,
    pub(super) placed: Arc<Vec<Placed>>,
    pub(super) handle: Handle,
    pub(super) link: Link,
    pub(super) home: Arc<Home>,
    pub(super) unanswered: Arc<Unanswered>,
    pub(super) machine: Arc<dyn Machine>,
    pub(super) exchange: Arc<Exchange>,
    /// For each port, how long flows take there; `None` where they may hold the thread. Answers are kept for those behind
    /// them only where that is brief.
    pub(super) paces: Vec<Option<Pace>>,
    /// Whether threads outnumber processors, the loop's counted.
    pub(super) crowded: AtomicBool,
}

/// What takes less than this at a port may be waited for by those whose answers are there: a batch of them by about a
/// millisecond.
const BRIEF_NS: u64 = 20_000;

thread_local! {
    /// Those whose answers this thread has in its batch.
    static ANSWERED: RefCell<Vec<Waker>> = const { RefCell::new(Vec::new()) };
}

impl Work for Stretches {
    /// Boxed, because it is moved several times at each port.
    type Item = Box<Carried>;

    fn run(&self, port: PortId, mut carried: Box<Carried>, fusion: &mut impl Fusion) -> Option<(PortId, Box<Carried>)> {
        // Two looks at the clock cost more than a short hop: only for those whose answers somebody awaits.
        if !self.crowded.load(Ordering::Relaxed) || carried.job().task.is_none() {
            return self.pass(port, carried, fusion);
        }
        let began_ns = self.machine.now_ns();
        let left = self.pass(port, carried, fusion);
        if let Some(pace) = &self.paces[port.0] {
            pace.note(self.machine.now_ns().saturating_sub(began_ns), BRIEF_NS);
        }
        left
    }

    fn after_batch(&self) {
        ANSWERED.with_borrow_mut(|answered| {
            if !answered.is_empty() {
                self.exchange.post(answered.drain(..));
            }
        });
    }
}

impl Stretches {
    /// Takes a flow through the port, and through those behind it that may be run in one go.
    fn pass(
        &self,
        port: PortId,
        mut carried: Box<Carried>,
        fusion: &mut impl Fusion,
    ) -> Option<(PortId, Box<Carried>)> {
        let key = carried.job().flow.key();
        let stretches = &self.stretches[key.entry as usize][key.route as usize];
        loop {
            let job = carried.job();
            let next = stretches[job.stretch].port_of(key.sequence);
            if next != port {
                return Some((next, carried));
            }
            if job.stretch == 0 && job.is_given_up(&self.unanswered) {
                self.home.give_up(carried);
                return None;
            }
            let to = fused(stretches, job.stretch, &job.flow, fusion);
            match self.advance(job, until(stretches, to), stretches[to].calls_out) {
                Poll::Ready(None) => {
                    count(&self.placed, &stretches[job.stretch], &job.flow);
                    job.stretch = after(stretches, to, &job.flow);
                }
                Poll::Ready(Some(answer)) => {
                    count(&self.placed, &stretches[job.stretch], &job.flow);
                    let asker = self.home.finish(carried, answer);
                    asker.into_iter().for_each(|asker| self.wake(port, asker));
                    return None;
                }
                Poll::Pending => carried = park(carried, port)?,
            }
        }
    }
}

/// The last stretch of those that the thread may run in one go from this one on. None of them waits, so that none has to
/// be found again. A flow that is watched is counted at each.
pub(super) fn fused(stretches: &[Stretch], first: usize, flow: &Going, fusion: &mut impl Fusion) -> usize {
    if stretches[first].waits || flow.is_watched() {
        return first;
    }
    let (further, sequence) = (stretches[first + 1..].iter(), flow.key().sequence);
    first + further.take_while(|stretch| !stretch.waits && fusion.may_fuse(stretch.port_of(sequence))).count()
}

/// Where a flow stops that goes on to the end of this stretch. The last stretch also ends the flow.
pub(super) fn until(stretches: &[Stretch], to: usize) -> usize {
    if to + 1 == stretches.len() { usize::MAX } else { stretches[to].until }
}

/// The stretch in which a flow goes on after this one. A switch may have skipped whole stretches.
pub(super) fn after(stretches: &[Stretch], to: usize, flow: &Going) -> usize {
    let (at, last) = (flow.at(), stretches.len() - 1);
    (to + 1..last).find(|stretch| stretches[*stretch].until > at).unwrap_or(last)
}

impl Stretches {
    /// Wakes who asked for an answer: at once, unless what is behind the flow at the port is brief.
    fn wake(&self, port: PortId, asker: Waker) {
        let is_brief = self.paces[port.0].as_ref().is_some_and(Pace::is_brief);
        if is_brief && self.crowded.load(Ordering::Relaxed) {
            ANSWERED.with_borrow_mut(|answered| answered.push(asker));
        } else {
            self.exchange.post([asker]);
        }
    }

    fn advance(&self, job: &mut Job, until: usize, calls_out: bool) -> Poll<Option<Result<Value, Failure>>> {
        let _inside = calls_out.then(|| self.handle.enter());
        // Most stretches wait for nothing, and need no waker that wakes.
        let polled = job.flow.advance_until(&self.home.live, until, &mut Context::from_waker(Waker::noop()));
        if polled.is_ready() {
            return polled;
        }
        let task = job.task.get_or_insert_with(|| self.unanswered.task(&self.link, &self.home));
        task.parking.begin();
        let waker = Waker::from(Arc::clone(task));
        job.flow.advance_until(&self.home.live, until, &mut Context::from_waker(&waker))
    }
}

/// A flow has passed this stretch.
pub(super) fn count(placed: &[Placed], stretch: &Stretch, flow: &Going) {
    if flow.is_watched() {
        placed[stretch.section].passed.fetch_add(1, Ordering::Relaxed);
    }
}
