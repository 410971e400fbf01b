//! The threads' part of sections: what is done with a flow at a port, and how its answer gets back.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Poll, Wake, Waker};

use parking_lot::Mutex;
use tokio::runtime::Handle;
use weir_host::{Failure, Value};
use weir_scheduler::{Ahead, PortId, Scheduler, Work};

use super::exchange::Exchange;
use super::layout::{Placed, Stretch};
use super::pace::Pace;
use super::parking::{Parked, Parking};
use crate::crowd::Member;
use crate::flow::Flow;
use crate::machine::Machine;

pub(super) type Cuts = Vec<Vec<Vec<Stretch>>>;
/// How flows find back to the scheduler, which they do not keep.
pub(super) type Link = Arc<OnceLock<Weak<Scheduler<Stretches>>>>;

/// What the scheduler's threads do.
pub(super) struct Stretches {
    pub(super) stretches: Arc<Cuts>,
    pub(super) placed: Arc<Vec<Placed>>,
    pub(super) handle: Handle,
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
pub(super) const BRIEF_NS: u64 = 20_000;
thread_local! {
    /// Those whose answers this thread has in its batch.
    static ANSWERED: RefCell<Vec<Waker>> = const { RefCell::new(Vec::new()) };
}

/// A flow on its way.
pub(super) struct Job {
    pub(super) flow: Flow,
    /// The stretch that it is in.
    pub(super) stretch: usize,
    pub(super) task: Arc<Task>,
    pub(super) member: Member,
}

/// What is left of a flow where its job is under way or parked.
pub(super) struct Task {
    /// The job while it waits, and the port at which it goes on.
    parking: Parking<(Box<Job>, PortId)>,
    answer: Mutex<Answering>,
    scheduler: Link,
}

impl Task {
    /// What is left of a flow that finds back by this link.
    pub(super) fn new(scheduler: Link) -> Arc<Task> {
        Arc::new(Task { parking: Parking::new(), answer: Mutex::default(), scheduler })
    }
}

#[derive(Default)]
struct Answering {
    answer: Option<Result<Value, Failure>>,
    /// Who awaits the answer.
    asker: Option<Waker>,
}

impl Work for Stretches {
    /// Boxed, because it is moved several times at each port.
    type Item = Box<Job>;

    fn run(&self, port: PortId, job: Box<Job>, ahead: &mut impl Ahead) -> Option<(PortId, Box<Job>)> {
        if !self.crowded.load(Ordering::Relaxed) {
            return self.pass(port, job, ahead);
        }
        let began_ns = self.machine.now_ns();
        let left = self.pass(port, job, ahead);
        if let Some(pace) = &self.paces[port.0] {
            pace.note(self.machine.now_ns().saturating_sub(began_ns));
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
    fn pass(&self, port: PortId, mut job: Box<Job>, ahead: &mut impl Ahead) -> Option<(PortId, Box<Job>)> {
        let key = job.flow.key();
        let stretches = &self.stretches[key.entry as usize][key.route as usize];
        loop {
            let next = stretches[job.stretch].port_of(key.sequence);
            if next != port {
                return Some((next, job));
            }
            if job.stretch == 0 && job.task.parking.is_given_up() {
                return None;
            }
            let to = fused(stretches, job.stretch, &job.flow, ahead);
            match self.advance(&mut job, until(stretches, to), stretches[to].calls_out) {
                Poll::Ready(None) => {
                    count(&self.placed, &stretches[job.stretch], &job.flow);
                    job.stretch = after(stretches, to, &job.flow);
                }
                Poll::Ready(Some(answer)) => {
                    count(&self.placed, &stretches[job.stretch], &job.flow);
                    self.finish(port, *job, answer);
                    return None;
                }
                Poll::Pending => job = park(job, port)?,
            }
        }
    }
}

/// A flow has passed this stretch.
pub(super) fn count(placed: &[Placed], stretch: &Stretch, flow: &Flow) {
    if flow.is_watched() {
        placed[stretch.section].passed.fetch_add(1, Ordering::Relaxed);
    }
}

/// The last stretch of those that the thread may run in one go from this one on. None of them waits, so that none has to
/// be found again. A flow that is watched is counted at each.
pub(super) fn fused(stretches: &[Stretch], first: usize, flow: &Flow, ahead: &mut impl Ahead) -> usize {
    if stretches[first].waits || flow.is_watched() {
        return first;
    }
    let (further, sequence) = (stretches[first + 1..].iter(), flow.key().sequence);
    first + further.take_while(|stretch| !stretch.waits && ahead.may_run(stretch.port_of(sequence))).count()
}

/// Where a flow stops that goes on to the end of this stretch. The last stretch also ends the flow.
pub(super) fn until(stretches: &[Stretch], to: usize) -> usize {
    if to + 1 == stretches.len() { usize::MAX } else { stretches[to].until }
}

/// The stretch in which a flow goes on after this one. A switch may have skipped whole stretches.
pub(super) fn after(stretches: &[Stretch], to: usize, flow: &Flow) -> usize {
    let (at, last) = (flow.at(), stretches.len() - 1);
    (to + 1..last).find(|stretch| stretches[*stretch].until > at).unwrap_or(last)
}

impl Stretches {
    /// Gives the answer. Who asked is woken at once, unless what is behind this flow at the port is brief.
    fn finish(&self, port: PortId, job: Job, answer: Result<Value, Failure>) {
        let Job { flow, task, member, .. } = job;
        drop(flow);
        let mut state = task.answer.lock();
        state.answer = Some(answer);
        let asker = state.asker.take();
        drop(state);
        let is_brief = self.paces[port.0].as_ref().is_some_and(Pace::is_brief);
        if is_brief && self.crowded.load(Ordering::Relaxed) {
            ANSWERED.with_borrow_mut(|answered| answered.extend(asker));
        } else if let Some(asker) = asker {
            self.exchange.post([asker]);
        }
        drop(member);
    }

    fn advance(&self, job: &mut Job, until: usize, calls_out: bool) -> Poll<Option<Result<Value, Failure>>> {
        let _inside = calls_out.then(|| self.handle.enter());
        // Most stretches wait for nothing, and need no waker that wakes.
        let polled = job.flow.advance_until(until, &mut Context::from_waker(Waker::noop()));
        if polled.is_ready() {
            return polled;
        }
        job.task.parking.begin();
        let waker = Waker::from(Arc::clone(&job.task));
        job.flow.advance_until(until, &mut Context::from_waker(&waker))
    }
}

/// Parks the job, or gives it back where it was woken already; where nobody awaits it any more, it is given up.
fn park(job: Box<Job>, port: PortId) -> Option<Box<Job>> {
    let task = Arc::clone(&job.task);
    match task.parking.park((job, port)) {
        Parked::Again((job, _)) => Some(job),
        Parked::Waits | Parked::GivenUp(_) => None,
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        let Some((job, port)) = self.parking.wake() else { return };
        if let Some(scheduler) = self.scheduler.get().and_then(Weak::upgrade) {
            scheduler.resume(port, job);
        }
    }
}

/// The loop's end of an answer, and its place among those who await one.
pub(super) struct Awaited(Arc<Task>, #[expect(dead_code, reason = "held, and left when dropped")] Member);

impl Awaited {
    /// The end of the answer of this task, for who is one of those who await one.
    pub(super) fn new(task: Arc<Task>, member: Member) -> Self {
        Awaited(task, member)
    }

    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Value, Failure>> {
        let mut state = self.0.answer.lock();
        if let Some(answer) = state.answer.take() {
            return Poll::Ready(answer);
        }
        state.asker = Some(context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Awaited {
    fn drop(&mut self) {
        // Dropping the job releases locks, which may wake others; nothing is locked here meanwhile.
        drop(self.0.parking.give_up());
    }
}
