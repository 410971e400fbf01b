//! The section engine: runs flows section by section, on the ports and thread pools of `weir-scheduler`.
//!
//! `manual`, `staged`, `dedicated` and `elastic` are this engine with different [threading models](ThreadingModel).
//!
//! The life of one flow:
//! 1. The event loop submits the flow to the port of its first segment, and awaits its answer. If the scheduler runs an
//!    elastic pool with one thread, or any pool with one thread on a single processor, the loop runs the flow itself
//!    (*caller-runs*), and has the answer at once. Detached flows, whose answer is not awaited, are submitted in
//!    batches ([`SubmissionBuffer`]).
//! 2. A thread of the section's pool takes the flow out of the port's queue and advances it to the end of its segment,
//!    and the flow continues to the port of its next segment.
//! 3. A flow that has to wait leaves its port and is *parked* ([`parking`](super::parking)). Its waker puts it back
//!    into that port; the event loop continues with it where it runs flows itself. Other flows overtake it in the meantime:
//!    calls that must follow the order of their source have ticket gates.
//! 4. The answer wakes the event loop, together with other answers if threads outnumber processors ([`WakeupBatcher`]).
//!    If the event loop no longer awaits the answer, the flow is cancelled before it begins, or at its next wait.
//!
//! [`WakeupBatcher`]: super::wakeup_batching::WakeupBatcher

use std::future::poll_fn;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Waker};

use weir_host::{Begun, LocalFuture, Value};
use weir_scheduler::{Fusion, InlineOutcome, PoolSnapshot, PortId, QueueSnapshot, Scheduler, Work};
use weir_trace::EventKind;

use super::brevity::BrevityPredictor;
use super::job::{FlowJob, JobContext, PendingReply, PooledJob, ResumeCallback, Task};
use super::partition::{FlowSegments, Segment};
use super::placement::{PlacedSection, place};
use super::segment_runner::{SegmentRunner, count_passed, last_fused, next_segment, segment_at, stop_before};
use super::submission_buffer::SubmissionBuffer;
use super::vectors::CallVectors;
use super::{Engine, EngineSetup, ThreadingModel};
use crate::admission::AdmissionLimiter;
use crate::blocking_pool::PoolJob;
use crate::flow::{ActiveFlow, FlowState, Means, NewFlow};
use crate::flow_section::NodeSection;
use crate::helpers::SectionThreads;
use crate::instance::{EntryLoops, ProgramInstance, SectionCall};
use crate::units::{Advanced, QUANTA_ON_LOOP, Units};

/// An engine that runs flows section by section.
struct SectionEngine {
    scheduler: Arc<Scheduler<SegmentRunner>>,
    segments: Arc<FlowSegments>,
    placed: Arc<Vec<PlacedSection>>,
    job_context: Arc<JobContext>,
    /// Answers that event loops await.
    awaited: Arc<AdmissionLimiter>,
    /// Detached flows that have not been submitted to their first ports yet.
    submissions: Arc<SubmissionBuffer<Box<PooledJob>>>,
    /// The port that was full when a flow was last refused; a hint for the wait for room.
    full: AtomicUsize,
}

/// Maximum number of thread pools, and so of sections with threads of their own. Systems refuse more threads at some point,
/// in the middle of the start.
const POOLS_MAX: usize = 4096;

/// Refuses a program with too many sections before any thread starts.
fn check_pools(count: usize) -> io::Result<()> {
    if count <= POOLS_MAX {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "the engine makes {count} sections with threads of their own, and at most {POOLS_MAX} are possible"
    )))
}

/// Starts the engine; `threading` is the threading model of the sections for which the plan names no engine.
/// `flows` limits the flows in progress.
pub(super) fn start_sections(
    threading: ThreadingModel,
    setup: &EngineSetup<'_>,
    flows: Arc<AdmissionLimiter>,
) -> io::Result<Arc<dyn Engine>> {
    let placement = place(threading, setup);
    check_pools(placement.pools.len())?;
    let instance = setup.planned.instance;
    let (segments, placed) = (Arc::new(placement.segments), Arc::new(placement.sections));
    let resume_callback = ResumeCallback::default();
    let job_context = Arc::new(JobContext { instance: Arc::clone(instance), flows });
    let section_threads = placement.pools.iter().filter(|_| !threading.shares_threads);
    let work = SegmentRunner {
        segments: Arc::clone(&segments),
        planned: placement.planned,
        placed: Arc::clone(&placed),
        section_threads: section_threads.map(|pool| SectionThreads::new(pool.control.threads_max())).collect(),
        handle: setup.handle.clone(),
        resume_callback: Arc::clone(&resume_callback),
        job_context: Arc::clone(&job_context),
        detached_tasks: Arc::default(),
        platform: Arc::clone(setup.platform),
        wakeups: Arc::default(),
        predictors: placement.ports.iter().map(|port| port.nonblocking.then(BrevityPredictor::new)).collect(),
        vectors: placement.ports.iter().map(|_| CallVectors::default()).collect(),
        oversubscribed: AtomicBool::new(false),
        calls: AtomicU64::new(0),
    };
    let (ports, pools, period) = (&placement.ports, placement.pools, setup.thread_counts.period());
    // A loop that runs flows or passes answers back is as busy as a thread; the loop of a stream mostly waits for room.
    let runs_flows = instance.entries.iter().any(|entry| entry.loops == EntryLoops::Each);
    let passes_answers = instance.entries.iter().any(|entry| entry.answers);
    let busy_loops = if runs_flows { setup.planned.threads } else { usize::from(passes_answers) };
    let scheduler = Arc::new(Scheduler::start_with_producers(busy_loops, work, ports, pools, period)?);
    scheduler.work().oversubscribed.store(scheduler.is_oversubscribed(), Ordering::Relaxed);
    link_to_scheduler(&resume_callback, &scheduler);
    let weak = Arc::downgrade(&scheduler);
    instance.section_calls.get_or_init(|| Box::new(move |call| run_section_call(&weak, call)));
    Ok(Arc::new(SectionEngine {
        scheduler,
        segments,
        placed,
        submissions: Arc::default(),
        job_context,
        awaited: AdmissionLimiter::new(usize::MAX),
        full: AtomicUsize::new(0),
    }))
}

/// Lets woken flows return to the scheduler, which they do not keep alive.
fn link_to_scheduler(resume_callback: &ResumeCallback, scheduler: &Arc<Scheduler<SegmentRunner>>) {
    let weak = Arc::downgrade(scheduler);
    let resume = move |port, mut job: Box<PooledJob>| {
        let Some(scheduler) = weak.upgrade() else { return };
        scheduler.work().note_queued(job.job());
        put_back(&scheduler, port, job);
    };
    resume_callback.get_or_init(|| Box::new(resume));
}

/// Puts a job into a port in which it takes up no room.
fn put_back(scheduler: &Scheduler<SegmentRunner>, port: PortId, job: Box<PooledJob>) {
    if !scheduler.may_run_inline(port) {
        scheduler.resume(port, job);
    } else if scheduler.resume_deferred(port, job) {
        // The event loop continues with it, once it has begun all flows that it can: it has polled what the flow waited for.
        scheduler.work().wakeups.defer_port(port);
    }
}

/// Puts a call into the queue of its section; returns it if the section has no threads for it. The queue is bounded by the
/// number of flows in progress and of the rounds that each has under way.
fn run_section_call(scheduler: &Weak<Scheduler<SegmentRunner>>, call: SectionCall) -> Option<PoolJob> {
    let scheduler = scheduler.upgrade()?;
    match scheduler.work().port_of_call(&call) {
        Some(port) => put_back(&scheduler, port, PooledJob::of_call(call.job)),
        None => return Some(call.job),
    }
    None
}

impl SectionEngine {
    /// Begins a flow at its first port. `submit` submits it there; it returns `None` if the port has no room.
    fn begin_at_first_port(
        &self,
        (entry, route): (usize, usize),
        new_flow: &mut NewFlow<'_>,
        submit: impl FnOnce(PortId, &[Segment], &mut NewFlow<'_>) -> Option<Begun>,
    ) -> Begun {
        if !self.job_context.flows.has_room() {
            return Begun::Full;
        }
        let segments = &self.segments[entry][route];
        let Some(first) = segments.first() else {
            return run_empty_body(new_flow.flow());
        };
        // One event loop runs the sources, so no other flow can take this number in between.
        let port = first.place.port_of(new_flow.next_sequence());
        submit(port, segments, new_flow).unwrap_or_else(|| {
            self.full.store(port.0, Ordering::Relaxed);
            Begun::Full
        })
    }

    /// Submits a flow whose answer is awaited.
    fn submit_awaited(&self, port: PortId, segments: &[Segment], new_flow: &mut NewFlow<'_>) -> Option<Begun> {
        let here = self.scheduler.run_inline(port, |fusion| {
            self.begin_here(segments, new_flow, fusion, advance_awaited, |flow, segment| {
                self.awaited_job(flow, segment)
            })
        });
        if here.is_some() || self.scheduler.room(port) == 0 {
            return here;
        }
        let (job, answer) = self.awaited_job(new_flow.borrow().into_state(), 0);
        self.enqueue(port, job);
        Some(answer)
    }

    /// Submits a detached flow.
    fn submit_detached(&self, port: PortId, segments: &[Segment], new_flow: &mut NewFlow<'_>) -> Option<Begun> {
        // Buffered flows came first, and no flow may overtake them.
        let here = self.submissions.is_empty().then(|| {
            self.scheduler.run_inline(port, |fusion| {
                let job = |flow, segment| (self.detached_job(flow, segment), ());
                self.begin_here(segments, new_flow, fusion, FlowState::advance_detached, job)
            })
        });
        if here.flatten().is_none() {
            self.submissions.push(&self.scheduler, port, || self.detached_job(new_flow.borrow().into_state(), 0))?;
        }
        Some(Begun::Done(Ok(Value::Unit)))
    }

    /// Begins a flow at its first port on the calling thread, and advances it as far as possible by `advance`. If the
    /// flow does not end here, `job` makes it a job that continues in the segment reached.
    #[inline]
    fn begin_here<R>(
        &self,
        segments: &[Segment],
        new_flow: &mut NewFlow<'_>,
        fusion: &mut impl Fusion,
        advance: impl FnOnce(&mut FlowState, &ProgramInstance, usize, Means<'_>, &mut Context<'_>) -> Advanced<Option<R>>,
        job: impl FnOnce(FlowState, usize) -> (Box<PooledJob>, R),
    ) -> InlineOutcome<SegmentRunner, R> {
        let mut flow = new_flow.borrow();
        let (instance, state) = flow.split();
        let to = if segments.len() == 1 { 0 } else { last_fused(segments, 0, state, fusion) };
        let (key, work) = (state.key(), self.scheduler.work());
        let means = (segments[to].place.blocking, &Units::quanta(instance.slice, QUANTA_ON_LOOP));
        let port_of = |segment, section| work.place_in((key, segment), section).port_of(key.sequence);
        let context = &mut Context::from_waker(Waker::noop());
        let advanced = advance(state, instance, stop_before(segments, to), means, context);
        if matches!(advanced, Advanced::Ready(_)) {
            count_passed(&self.placed, &segments[0].place, state);
        }
        match advanced {
            Advanced::Ready(Some(answer)) => InlineOutcome { answer, remaining: None },
            Advanced::Ready(None) => {
                let segment = next_segment(segments, to, state);
                state.enter_segment();
                let (mut job, answer) = job(flow.into_state(), segment);
                work.note_queued(job.job());
                InlineOutcome { answer, remaining: Some((port_of(segment, NodeSection::OUTER), job)) }
            }
            // It must become a job, so that its waker can put it back into a port.
            Advanced::Waits => {
                let segment = segment_at(segments, (0, to), state);
                let port = port_of(segment, state.section());
                let (job, answer) = job(flow.into_state(), segment);
                let remaining = work.run(port, job, fusion).remaining();
                work.after_batch();
                InlineOutcome { answer, remaining }
            }
            Advanced::Yields => {
                let segment = segment_at(segments, (0, to), state);
                let port = port_of(segment, state.section());
                let (mut job, answer) = job(flow.into_state(), segment);
                job.job().has_yielded = true;
                work.note_queued(job.job());
                InlineOutcome { answer, remaining: Some((port, job)) }
            }
        }
    }

    /// Puts a new flow into the queue of its first port. If no thread could run beside the event loop, one is woken only
    /// when the loop has begun all flows that it can.
    fn enqueue(&self, port: PortId, mut job: Box<PooledJob>) {
        self.scheduler.work().note_queued(job.job());
        if !self.scheduler.is_oversubscribed() {
            return self.scheduler.resume(port, job);
        }
        if self.scheduler.resume_deferred(port, job) {
            self.scheduler.work().wakeups.defer_port(port);
        }
    }

    /// Makes a job of a flow whose answer is awaited, and the future of the answer.
    fn awaited_job(&self, flow: FlowState, segment: usize) -> (Box<PooledJob>, Begun) {
        let task = Arc::new(Task::new(&self.scheduler.work().resume_callback, &self.job_context));
        let job = FlowJob { flow, segment, has_yielded: false, task: Some(Arc::clone(&task)), is_queued: false };
        let mut awaited = PendingReply::new(task, self.awaited.acquire());
        (
            PooledJob::new(job, &self.job_context),
            Begun::Pending(Box::pin(poll_fn(move |context| awaited.poll(context)))),
        )
    }

    /// Makes a job of a detached flow.
    fn detached_job(&self, flow: FlowState, segment: usize) -> Box<PooledJob> {
        PooledJob::new(FlowJob { flow, segment, has_yielded: false, task: None, is_queued: false }, &self.job_context)
    }
}

impl Engine for SectionEngine {
    fn begin(&self, entry: usize, route: usize, new_flow: &mut NewFlow<'_>) -> Begun {
        self.begin_at_first_port((entry, route), new_flow, |port, segments, new_flow| {
            self.submit_awaited(port, segments, new_flow)
        })
    }

    fn begin_detached(&self, entry: usize, route: usize, new_flow: &mut NewFlow<'_>) -> Begun {
        self.begin_at_first_port((entry, route), new_flow, |port, segments, new_flow| {
            self.submit_detached(port, segments, new_flow)
        })
    }

    fn is_overloaded(&self, entry: usize, route: usize) -> bool {
        let instance = &self.job_context.instance;
        let queues = &instance.entries[entry].flows[route].1.queues;
        let mut segments = self.segments[entry][route].iter();
        segments.any(|segment| self.placed[segment.place.section].delays.is_overloaded(queues, &*instance.platform))
    }

    fn background(&self) -> LocalFuture<()> {
        let (submissions, scheduler) = (Arc::clone(&self.submissions), Arc::clone(&self.scheduler));
        Box::pin(async move {
            let weak = Arc::downgrade(&scheduler);
            scheduler.work().wakeups.spawn_dispatcher(move |port| {
                if let Some(scheduler) = weak.upgrade() {
                    scheduler.schedule_inline(port);
                }
            });
            submissions.run_flusher(&scheduler).await
        })
    }

    fn in_progress(&self) -> &Arc<AdmissionLimiter> {
        &self.job_context.flows
    }

    fn room(&self, _entry: usize) -> LocalFuture<()> {
        let (flows, scheduler) = (Arc::clone(&self.job_context.flows), Arc::clone(&self.scheduler));
        let port = PortId(self.full.load(Ordering::Relaxed));
        Box::pin(async move {
            flows.wait_for_room().await;
            poll_fn(|context| scheduler.poll_room(port, context)).await;
        })
    }

    fn drained(&self) -> LocalFuture<()> {
        let (flows, awaited) = (Arc::clone(&self.job_context.flows), Arc::clone(&self.awaited));
        Box::pin(async move {
            flows.wait_until_empty().await;
            awaited.wait_until_empty().await;
        })
    }

    fn sections(&self, _instance: &ProgramInstance) -> Vec<EventKind> {
        let pools = self.scheduler.pool_snapshots();
        self.placed.iter().filter_map(|section| section_event(section, &self.scheduler, &pools)).collect()
    }

    fn close(&self) {
        self.scheduler.close();
    }

    fn abandon(&self) {
        self.submissions.drain(|job| self.job_context.give_up(job));
        self.scheduler.work().detached_tasks.give_up();
        // Dropping the scheduler would wait for its threads.
        std::mem::forget(Arc::clone(&self.scheduler));
    }
}

/// Returns the trace event of a section; `None` if the section has no port.
fn section_event(
    section: &PlacedSection,
    scheduler: &Scheduler<SegmentRunner>,
    pools: &[PoolSnapshot],
) -> Option<EventKind> {
    let queues: Vec<QueueSnapshot> = section.ports.clone().map(|port| scheduler.queue_snapshot(PortId(port))).collect();
    let pool = pools.get(queues.first()?.pool)?;
    Some(EventKind::Section {
        section: Arc::clone(&section.name),
        engine: section.engine,
        pool: pool.name.as_str().into(),
        threads: pool.threads as u64,
        threads_max: pool.threads_max as u64,
        waiting: queues.iter().map(|queue| queue.waiting as u64).sum(),
        waiting_max: queues.iter().map(|queue| queue.capacity as u64).sum(),
        passed: section.passed.load(Ordering::Relaxed),
    })
}

/// Advances a flow whose answer is awaited; the counterpart of [`FlowState::advance_detached`].
fn advance_awaited(
    flow: &mut FlowState,
    instance: &ProgramInstance,
    until: usize,
    means: Means<'_>,
    context: &mut Context<'_>,
) -> Advanced<Option<Begun>> {
    flow.advance_until(instance, until, means, context).map(|answer| answer.map(Begun::Done))
}

/// Runs a flow whose body has no node, and thus no segment.
fn run_empty_body(mut flow: ActiveFlow) -> Begun {
    match flow.advance(&Units::endless(), &mut Context::from_waker(Waker::noop())) {
        Advanced::Ready(answer) => Begun::Done(answer),
        Advanced::Waits | Advanced::Yields => unreachable!("a body without nodes neither waits nor yields"),
    }
}
