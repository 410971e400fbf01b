//! The work of the scheduler's threads: takes a flow through its segments, from port to port.

use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Waker};

use tokio::runtime::Handle;
use weir_host::{Failure, Value};
use weir_scheduler::{Fusion, PortId, RunOutcome, StdPlatform, Work};
use weir_trace::{Detail, FlowKey};

use super::brevity::BrevityPredictor;
use super::job::{DetachedTasks, FlowJob, JobContext, PooledJob, ResumeCallback, park};
use super::partition::{FlowSegments, SectionPlace, Segment};
use super::placement::PlacedSection;
use super::vectors::{CallVectors, VectorScene};
use super::wakeup_batching::WakeupBatcher;
use crate::blocking_pool::PoolJob;
use crate::flow::FlowState;
use crate::flow_section::{CallQueue, CallSection, NodeSection};
use crate::helpers::SectionThreads;
use crate::instance::{BlockingPlacement, SectionCall};
use crate::object_pool;
use crate::platform::Platform;
use crate::units::{Advanced, Units};

/// Runs segments of flows on the threads of the scheduler.
pub(super) struct SegmentRunner {
    pub(super) segments: Arc<FlowSegments>,
    /// The place of each section of the plan, for flows that move to it inside a body.
    pub(super) planned: Vec<Option<SectionPlace>>,
    pub(super) placed: Arc<Vec<PlacedSection>>,
    /// For each thread pool, its threads; empty if they serve all sections.
    pub(super) section_threads: Vec<Arc<SectionThreads>>,
    pub(super) handle: Handle,
    pub(super) resume_callback: ResumeCallback,
    pub(super) job_context: Arc<JobContext>,
    pub(super) detached_tasks: Arc<DetachedTasks>,
    pub(super) platform: Arc<dyn Platform>,
    pub(super) wakeups: Arc<WakeupBatcher>,
    /// For each port, a prediction of whether flows pass it briefly; `None` if they may block the thread. Answers are
    /// batched only where the prediction is brief.
    pub(super) predictors: Vec<Option<BrevityPredictor>>,
    /// For each port, what is known of running calls of several flows together.
    pub(super) vectors: Vec<CallVectors>,
    /// Set if the threads, the event loop among them, outnumber the processors. Written once, before any flow begins.
    pub(super) oversubscribed: AtomicBool,
    /// The number of calls that threads of other sections have run for flows; their ports take turns.
    pub(super) calls: AtomicU64,
}

/// A flow that takes less than this at a port may delay the answers of the flows before it. Chosen by judgement: the
/// scheduler runs up to 64 flows in a batch, so that the first answer of a batch waits for about a millisecond at most.
const BRIEF_NS: u64 = 20_000;

thread_local! {
    /// The wakers of the tasks that await the answers of this thread's current batch.
    static ANSWERED: RefCell<Vec<Waker>> = const { RefCell::new(Vec::new()) };
}

impl Work for SegmentRunner {
    /// Boxed, because an item is moved several times at each port.
    type Item = Box<PooledJob>;
    type WorkPlatform = StdPlatform;

    fn run(&self, port: PortId, mut pooled: Box<PooledJob>, fusion: &mut impl Fusion) -> RunOutcome<Box<PooledJob>> {
        if let Some(call) = pooled.take_call() {
            self.run_call(call);
            object_pool::give_back(pooled);
            return RunOutcome::Finished;
        }
        self.note_dequeued(pooled.job());
        // Two reads of the clock cost more than a short hop, so only flows whose answers are awaited are measured.
        if !self.oversubscribed.load(Ordering::Relaxed) || pooled.job().task.is_none() {
            return self.pass(port, pooled, fusion);
        }
        let began_ns = self.platform.now_ns();
        let left = self.pass(port, pooled, fusion);
        if let Some(predictor) = &self.predictors[port.0] {
            predictor.record(self.platform.now_ns().saturating_sub(began_ns), BRIEF_NS);
        }
        left
    }

    fn before_batch(&self, port: PortId, items: &mut [Box<PooledJob>]) -> Option<NonZeroUsize> {
        if self.detached_tasks.is_over() {
            return None;
        }
        let (instance, segments, platform) = (&self.job_context.instance, &self.segments, &*self.platform);
        self.vectors[port.0].run_ahead(items, VectorScene { instance, segments, platform })
    }

    fn after_batch(&self) {
        ANSWERED.with_borrow_mut(|answered| {
            if !answered.is_empty() {
                self.wakeups.defer_wakes(answered.drain(..));
            }
        });
    }

    fn before_sleep(&self, pool: usize) {
        self.job_context.instance.helpers.cores.rest();
        self.section_threads.get(pool).into_iter().for_each(|threads| threads.rest());
    }

    fn after_sleep(&self, pool: usize) {
        self.job_context.instance.helpers.cores.begin();
        self.section_threads.get(pool).into_iter().for_each(SectionThreads::begin);
    }

    fn platform(&self) -> &StdPlatform {
        &StdPlatform
    }
}

impl SegmentRunner {
    /// Runs a call of a flow that is in another section.
    #[cold]
    fn run_call(&self, call: PoolJob) {
        let _inside = self.handle.enter();
        self.job_context.instance.at_rest();
        call();
    }

    /// Returns the port at which a call runs for a flow that is in another section, and counts it as passed; `None` if it
    /// blocks, and the threads of its section must not.
    pub(super) fn port_of_call(&self, call: &SectionCall) -> Option<PortId> {
        let CallSection { section, around, queue } = call.section;
        let segments = &self.segments[call.flow.entry as usize][call.flow.route as usize];
        let outer = segments.iter().find(|segment| segment.until > around as usize).map(|segment| &segment.place);
        let place = section.index().map_or(outer, |index| self.planned.get(index)?.as_ref())?;
        if call.blocks && place.blocking == BlockingPlacement::Elsewhere {
            return None;
        }
        if self.job_context.instance.recorder.wants(Detail::Sections) {
            self.placed[place.section].passed.fetch_add(1, Ordering::Relaxed);
        }
        Some(place.port_of(match queue {
            CallQueue::Any => self.calls.fetch_add(1, Ordering::Relaxed),
            CallQueue::OfFlow => call.flow.sequence,
            CallQueue::OfState => 0,
        }))
    }

    /// Takes a flow through the port, and through every following port that needs no queue: the same port again, or one
    /// that may be fused.
    fn pass(&self, port: PortId, mut pooled: Box<PooledJob>, fusion: &mut impl Fusion) -> RunOutcome<Box<PooledJob>> {
        let key = pooled.job().flow.key();
        let segments = &self.segments[key.entry as usize][key.route as usize];
        loop {
            let job = pooled.job();
            let next = self.place_of(job).port_of(key.sequence);
            if next != port {
                self.note_queued(pooled.job());
                return RunOutcome::Next(next, pooled);
            }
            if job.is_to_be_given_up(&self.detached_tasks) {
                self.job_context.give_up(pooled);
                return RunOutcome::Finished;
            }
            let (here, to) = (job.flow.section(), last_fused(segments, job.segment, &job.flow, fusion));
            match self.advance(job, segments, to) {
                Advanced::Ready(None) => {
                    count_passed(&self.placed, self.place_of(job), &job.flow);
                    job.segment = next_segment(segments, to, &job.flow);
                    job.flow.enter_segment();
                }
                Advanced::Ready(Some(answer)) => {
                    count_passed(&self.placed, self.place_of(job), &job.flow);
                    let waiter = self.job_context.finish(pooled, answer);
                    waiter.into_iter().for_each(|waiter| self.wake(port, waiter));
                    return RunOutcome::Finished;
                }
                Advanced::Waits => {
                    // A call that takes long may wait in any segment of the run.
                    job.segment = segment_at(segments, (job.segment, to), &job.flow);
                    let port = self.place_of(job).port_of(key.sequence);
                    match park(pooled, port) {
                        Some(woken) => pooled = woken,
                        None => return RunOutcome::Finished,
                    }
                }
                // It has moved to another section, inside a body.
                Advanced::Yields if job.flow.section() != here => {
                    count_passed(&self.placed, self.place_in((key, job.segment), here), &job.flow);
                    job.segment = segment_at(segments, (job.segment, to), &job.flow);
                    job.has_yielded = true;
                }
                Advanced::Yields => {
                    job.segment = segment_at(segments, (job.segment, to), &job.flow);
                    job.has_yielded = true;
                    self.note_queued(job);
                    return RunOutcome::Yields(self.place_of(job).port_of(key.sequence), pooled);
                }
            }
        }
    }

    /// Notes that a flow is about to enter the queue of its port. Only awaited flows are measured, because only those are
    /// refused; a stream waits until there is room.
    pub(super) fn note_queued(&self, job: &mut FlowJob) {
        if job.task.is_some() {
            job.is_queued = true;
            let section = self.section_of(job);
            self.placed[section].delays.enter(section, job.flow.turns_mut(), &*self.platform);
        }
    }

    /// Notes that a flow has left the queue of its port.
    fn note_dequeued(&self, job: &mut FlowJob) {
        if job.is_queued {
            let delays = &self.placed[self.section_of(job)].delays;
            delays.leave(job.flow.turns(), &*self.platform);
            job.is_queued = false;
        }
    }

    /// Returns the section in which the flow continues.
    fn section_of(&self, job: &FlowJob) -> usize {
        self.place_of(job).section
    }

    /// Returns the place where the flow continues: in the section of its segment, unless it has moved inside a body.
    fn place_of(&self, job: &FlowJob) -> &SectionPlace {
        self.place_in((job.flow.key(), job.segment), job.flow.section())
    }

    /// Returns the place of a flow that is in this section of this segment.
    pub(super) fn place_in(&self, (key, segment): (FlowKey, usize), section: NodeSection) -> &SectionPlace {
        let outer = || &self.segments[key.entry as usize][key.route as usize][segment].place;
        let planned = section.index().and_then(|index| self.planned.get(index)?.as_ref());
        planned.unwrap_or_else(outer)
    }

    /// Wakes the task that awaits an answer: at once, or with its batch if the next flows at the port are predicted to
    /// be brief.
    fn wake(&self, port: PortId, waiter: Waker) {
        let is_brief = self.predictors[port.0].as_ref().is_some_and(BrevityPredictor::is_brief);
        if is_brief && self.oversubscribed.load(Ordering::Relaxed) {
            ANSWERED.with_borrow_mut(|answered| answered.push(waiter));
        } else {
            self.wakeups.defer_wakes([waiter]);
        }
    }

    /// Advances a flow to the end of the segment `to`. A flow that has to wait is polled again with a waker of its own. One
    /// that yields needs none: it is polled again in any case.
    fn advance(&self, job: &mut FlowJob, segments: &[Segment], to: usize) -> Advanced<Option<Result<Value, Failure>>> {
        let (until, here) = (stop_before(segments, to), job.flow.section());
        let calls_out = segments[to].calls_out || here != NodeSection::OUTER;
        let _inside = calls_out.then(|| self.handle.enter());
        let instance = &self.job_context.instance;
        let blocking = self.place_in((job.flow.key(), to), here).blocking;
        let means = (blocking, &Units::slice(instance.slice));
        // Most segments do not wait, and need neither a task nor a waker.
        let advanced = job.flow.advance_until(instance, until, means, &mut Context::from_waker(Waker::noop()));
        if !matches!(advanced, Advanced::Waits) {
            return advanced;
        }
        let task = job.task.get_or_insert_with(|| self.detached_tasks.task(&self.resume_callback, &self.job_context));
        task.parking.begin();
        job.has_yielded = true;
        let waker = Waker::from(Arc::clone(task));
        job.flow.advance_until(instance, until, means, &mut Context::from_waker(&waker))
    }
}

/// Returns the last segment of the longest run of segments, beginning with `first`, that the thread may run without a
/// queue. No segment of such a run waits, so that a flow is never parked in the middle of one. A watched flow runs
/// segment by segment, so that each can count it.
pub(super) fn last_fused(segments: &[Segment], first: usize, flow: &FlowState, fusion: &mut impl Fusion) -> usize {
    if segments[first].waits || flow.is_watched() {
        return first;
    }
    let (further, sequence) = (segments[first + 1..].iter(), flow.key().sequence);
    first + further.take_while(|segment| !segment.waits && fusion.may_fuse(segment.place.port_of(sequence))).count()
}

/// Returns the step before which a flow stops at the end of the segment `to`. The last segment also ends the flow.
pub(super) fn stop_before(segments: &[Segment], to: usize) -> usize {
    if to + 1 == segments.len() { usize::MAX } else { segments[to].until }
}

/// Returns the segment in which a flow continues after the segment `to`. A switch may have skipped whole segments.
pub(super) fn next_segment(segments: &[Segment], to: usize, flow: &FlowState) -> usize {
    let (at, last) = (flow.at(), segments.len() - 1);
    (to + 1..last).find(|segment| segments[*segment].until > at).unwrap_or(last)
}

/// Returns the segment that holds the next step of a flow that has yielded in a run of these segments.
pub(super) fn segment_at(segments: &[Segment], (first, to): (usize, usize), flow: &FlowState) -> usize {
    let at = flow.at();
    (first..to).find(|segment| segments[*segment].until > at).unwrap_or(to)
}

/// Counts a watched flow that has passed a section.
pub(super) fn count_passed(placed: &[PlacedSection], place: &SectionPlace, flow: &FlowState) {
    if flow.is_watched() {
        placed[place.section].passed.fetch_add(1, Ordering::Relaxed);
    }
}
