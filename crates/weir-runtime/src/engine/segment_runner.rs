//! What the threads of sections do: they take a flow through its stretches, from port to port.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use tokio::runtime::Handle;
use weir_host::{Failure, Value};
use weir_scheduler::{Fusion, PortId, Work};

use super::brevity::BrevityPredictor;
use super::job::{FlowJob, JobContext, OneWayTasks, PooledJob, ResumeCallback, park};
use super::placement::{PlacedSection, Segment};
use super::wakeup_batching::WakeupBatcher;
use crate::flow::DetachedFlow;
use crate::platform::Platform;

/// The stretches of each flow, by entry and route.
pub(super) type FlowSegments = Vec<Vec<Vec<Segment>>>;

/// What the scheduler's threads do.
pub(super) struct SegmentRunner {
    pub(super) segments: Arc<FlowSegments>,
    pub(super) placed: Arc<Vec<PlacedSection>>,
    pub(super) handle: Handle,
    pub(super) resume_callback: ResumeCallback,
    pub(super) job_context: Arc<JobContext>,
    pub(super) one_way_tasks: Arc<OneWayTasks>,
    pub(super) platform: Arc<dyn Platform>,
    pub(super) wakeups: Arc<WakeupBatcher>,
    /// For each port, how long flows take there; `None` where they may hold the thread. Answers are kept for those behind
    /// them only where that is brief.
    pub(super) predictors: Vec<Option<BrevityPredictor>>,
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

impl Work for SegmentRunner {
    /// Boxed, because it is moved several times at each port.
    type Item = Box<PooledJob>;

    fn run(
        &self,
        port: PortId,
        mut pooled: Box<PooledJob>,
        fusion: &mut impl Fusion,
    ) -> Option<(PortId, Box<PooledJob>)> {
        // Two looks at the clock cost more than a short hop: only for those whose answers somebody awaits.
        if !self.crowded.load(Ordering::Relaxed) || pooled.job().task.is_none() {
            return self.pass(port, pooled, fusion);
        }
        let began_ns = self.platform.now_ns();
        let left = self.pass(port, pooled, fusion);
        if let Some(predictor) = &self.predictors[port.0] {
            predictor.record(self.platform.now_ns().saturating_sub(began_ns), BRIEF_NS);
        }
        left
    }

    fn after_batch(&self) {
        ANSWERED.with_borrow_mut(|answered| {
            if !answered.is_empty() {
                self.wakeups.defer_wakes(answered.drain(..));
            }
        });
    }
}

impl SegmentRunner {
    /// Takes a flow through the port, and through those behind it that may be run in one go.
    fn pass(
        &self,
        port: PortId,
        mut pooled: Box<PooledJob>,
        fusion: &mut impl Fusion,
    ) -> Option<(PortId, Box<PooledJob>)> {
        let key = pooled.job().flow.key();
        let segments = &self.segments[key.entry as usize][key.route as usize];
        loop {
            let job = pooled.job();
            let next = segments[job.segment].port_of(key.sequence);
            if next != port {
                return Some((next, pooled));
            }
            if job.segment == 0 && job.is_given_up(&self.one_way_tasks) {
                self.job_context.give_up(pooled);
                return None;
            }
            let to = last_fused(segments, job.segment, &job.flow, fusion);
            match self.advance(job, stop_before(segments, to), segments[to].calls_out) {
                Poll::Ready(None) => {
                    count_passed(&self.placed, &segments[job.segment], &job.flow);
                    job.segment = next_segment(segments, to, &job.flow);
                }
                Poll::Ready(Some(answer)) => {
                    count_passed(&self.placed, &segments[job.segment], &job.flow);
                    let asker = self.job_context.finish(pooled, answer);
                    asker.into_iter().for_each(|asker| self.wake(port, asker));
                    return None;
                }
                Poll::Pending => pooled = park(pooled, port)?,
            }
        }
    }
}

/// The last stretch of those that the thread may run in one go from this one on. None of them waits, so that none has to
/// be found again. A flow that is watched is counted at each.
pub(super) fn last_fused(segments: &[Segment], first: usize, flow: &DetachedFlow, fusion: &mut impl Fusion) -> usize {
    if segments[first].waits || flow.is_watched() {
        return first;
    }
    let (further, sequence) = (segments[first + 1..].iter(), flow.key().sequence);
    first + further.take_while(|segment| !segment.waits && fusion.may_fuse(segment.port_of(sequence))).count()
}

/// Where a flow stops that goes on to the end of this stretch. The last stretch also ends the flow.
pub(super) fn stop_before(segments: &[Segment], to: usize) -> usize {
    if to + 1 == segments.len() { usize::MAX } else { segments[to].until }
}

/// The stretch in which a flow goes on after this one. A switch may have skipped whole stretches.
pub(super) fn next_segment(segments: &[Segment], to: usize, flow: &DetachedFlow) -> usize {
    let (at, last) = (flow.at(), segments.len() - 1);
    (to + 1..last).find(|segment| segments[*segment].until > at).unwrap_or(last)
}

impl SegmentRunner {
    /// Wakes who asked for an answer: at once, unless what is behind the flow at the port is brief.
    fn wake(&self, port: PortId, asker: Waker) {
        let is_brief = self.predictors[port.0].as_ref().is_some_and(BrevityPredictor::is_brief);
        if is_brief && self.crowded.load(Ordering::Relaxed) {
            ANSWERED.with_borrow_mut(|answered| answered.push(asker));
        } else {
            self.wakeups.defer_wakes([asker]);
        }
    }

    fn advance(&self, job: &mut FlowJob, until: usize, calls_out: bool) -> Poll<Option<Result<Value, Failure>>> {
        let _inside = calls_out.then(|| self.handle.enter());
        // Most stretches wait for nothing, and need no waker that wakes.
        let polled = job.flow.advance_until(&self.job_context.instance, until, &mut Context::from_waker(Waker::noop()));
        if polled.is_ready() {
            return polled;
        }
        let task = job.task.get_or_insert_with(|| self.one_way_tasks.task(&self.resume_callback, &self.job_context));
        task.parking.begin();
        let waker = Waker::from(Arc::clone(task));
        job.flow.advance_until(&self.job_context.instance, until, &mut Context::from_waker(&waker))
    }
}

/// A flow has passed this stretch.
pub(super) fn count_passed(placed: &[PlacedSection], segment: &Segment, flow: &DetachedFlow) {
    if flow.is_watched() {
        placed[segment.section].passed.fetch_add(1, Ordering::Relaxed);
    }
}
