//! The machinery of all engines that run flows section by section, on the ports and crews of `weir-scheduler`.
//!
//! Protocol of one flow:
//! 1. The loop puts it into the port of its first section, and awaits its answer. An elastic crew of one thread, and on one
//!    processor any crew of one thread, may have the loop do the work itself, which then has the answer at once. Flows of a
//!    stream, whose answer nobody wants, go there in batches (`given`), and are known to nobody but their port.
//! 2. A thread of that section's crew advances it to the section's end, and it goes on to the next port.
//! 3. Where it has to wait, it leaves the port and is *parked*; whatever wakes it puts it back into that port, where on one
//!    processor the loop goes on with it. Others pass it in the meantime: what must keep a source's order has turnstiles for
//!    that.
//! 4. Its answer wakes the loop, together with others where threads outnumber processors (`exchange`). Where the loop has
//!    gone, the flow is given up: before it begins, or where it waits.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use weir_host::{Begun, LocalFuture, Value};
use weir_scheduler::{Fusion, InlineOutcome, PoolSnapshot, PortId, QueueSnapshot, Scheduler, Work};
use weir_trace::EventKind;

use super::brevity::BrevityPredictor;
use super::job::{FlowJob, JobContext, PendingReply, PooledJob, ResumeCallback, Task};
use super::placement::{PlacedSection, Segment, place};
use super::segment_runner::{FlowSegments, SegmentRunner, count_passed, last_fused, next_segment, stop_before};
use super::submission_buffer::SubmissionBuffer;
use super::{Engine, EngineSetup, ThreadingModel};
use crate::admission::AdmissionLimiter;
use crate::flow::{ActiveFlow, DetachedFlow, NewFlow};
use crate::instance::ProgramInstance;

/// An engine that runs sections.
struct SectionEngine {
    scheduler: Arc<Scheduler<SegmentRunner>>,
    segments: Arc<FlowSegments>,
    placed: Arc<Vec<PlacedSection>>,
    job_context: Arc<JobContext>,
    /// Those who await an answer.
    awaited: Arc<AdmissionLimiter>,
    /// Flows whose answer nobody wants, on their way to their first ports.
    submissions: Arc<SubmissionBuffer<Box<PooledJob>>>,
    /// The port that was full when a flow was last refused.
    full: AtomicUsize,
}

/// Starts an engine; `threading` is for the sections for which the plan names no other.
pub(super) fn start_sections(threading: ThreadingModel, setup: EngineSetup<'_>) -> io::Result<Arc<dyn Engine>> {
    let placement = place(threading, &setup);
    let (segments, placed) = (Arc::new(placement.segments), Arc::new(placement.sections));
    let resume_callback = ResumeCallback::default();
    let job_context =
        Arc::new(JobContext { instance: Arc::clone(setup.instance), flows: AdmissionLimiter::new(setup.flows_max) });
    let work = SegmentRunner {
        segments: Arc::clone(&segments),
        placed: Arc::clone(&placed),
        handle: setup.handle.clone(),
        resume_callback: Arc::clone(&resume_callback),
        job_context: Arc::clone(&job_context),
        one_way_tasks: Arc::default(),
        platform: Arc::clone(setup.platform),
        wakeups: Arc::default(),
        predictors: placement.ports.iter().map(|port| port.nonblocking.then(BrevityPredictor::new)).collect(),
        crowded: AtomicBool::new(false),
    };
    let (ports, crews, period) = (&placement.ports, placement.crews, setup.thread_counts.period());
    // What answers are for keeps the loop as busy as a thread; a stream only waits for room.
    let busy_loops = usize::from(setup.instance.entries.iter().any(|entry| entry.answers));
    let scheduler = Arc::new(Scheduler::start_with_producers(busy_loops, work, ports, crews, period)?);
    scheduler.work().crowded.store(scheduler.is_oversubscribed(), Ordering::Relaxed);
    // Flows do not keep the scheduler.
    let back = Arc::downgrade(&scheduler);
    let resume = move |port, job| {
        let Some(scheduler) = back.upgrade() else { return };
        if !scheduler.is_single_processor() {
            scheduler.resume(port, job);
        } else if scheduler.resume_deferred(port, job) {
            // The loop goes on with it, when it has begun all that it can.
            scheduler.work().wakeups.defer_port(port);
        }
    };
    resume_callback.get_or_init(|| Box::new(resume));
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

impl SectionEngine {
    /// Begins a flow at its first port; `enter` brings it there, and knows whether there is room.
    fn begin_at_first_port(
        &self,
        (entry, route): (usize, usize),
        new_flow: &mut NewFlow<'_>,
        enter: impl FnOnce(PortId, &[Segment], &mut NewFlow<'_>) -> Option<Begun>,
    ) -> Begun {
        if !self.job_context.flows.has_room() {
            return Begun::Full;
        }
        let segments = &self.segments[entry][route];
        let Some(first) = segments.first() else {
            return answered_at_once(new_flow.flow());
        };
        // One loop runs the sources, so that no other flow gets this number.
        let port = first.port_of(new_flow.next_sequence());
        enter(port, segments, new_flow).unwrap_or_else(|| {
            self.full.store(port.0, Ordering::Relaxed);
            Begun::Full
        })
    }

    /// Brings a flow to its first port whose answer is awaited.
    fn submit_awaited(&self, port: PortId, segments: &[Segment], new_flow: &mut NewFlow<'_>) -> Option<Begun> {
        let here = self.scheduler.run_inline(port, |fusion| {
            self.begin_here(segments, new_flow, fusion, advance_awaited, |flow, segment| {
                self.awaited_job(flow, segment)
            })
        });
        if here.is_some() || self.scheduler.room(port) == 0 {
            return here;
        }
        let (job, answer) = self.awaited_job(new_flow.borrow().detach(), 0);
        self.put(port, job);
        Some(answer)
    }

    /// Brings a flow to its first port whose answer nobody wants.
    fn submit_one_way(&self, port: PortId, segments: &[Segment], new_flow: &mut NewFlow<'_>) -> Option<Begun> {
        // What is kept came first.
        let here = self.submissions.is_empty().then(|| {
            self.scheduler.run_inline(port, |fusion| {
                let job = |flow, segment| (self.one_way_job(flow, segment), ());
                self.begin_here(segments, new_flow, fusion, DetachedFlow::advance_one_way, job)
            })
        });
        if here.flatten().is_none() {
            self.submissions.push(&self.scheduler, port, || self.one_way_job(new_flow.borrow().detach(), 0))?;
        }
        Some(Begun::Done(Ok(Value::Unit)))
    }

    /// Begins a flow at its first port on this thread, which goes on with it as far as it may, by `advance`. Where it does
    /// not end here, `job` makes a job of it, at the stretch where it goes on.
    #[inline]
    fn begin_here<R>(
        &self,
        segments: &[Segment],
        new_flow: &mut NewFlow<'_>,
        fusion: &mut impl Fusion,
        advance: impl FnOnce(&mut DetachedFlow, &ProgramInstance, usize, &mut Context<'_>) -> Poll<Option<R>>,
        job: impl FnOnce(DetachedFlow, usize) -> (Box<PooledJob>, R),
    ) -> InlineOutcome<SegmentRunner, R> {
        let mut flow = new_flow.borrow();
        let (instance, detached) = flow.split();
        let to = if segments.len() == 1 { 0 } else { last_fused(segments, 0, detached, fusion) };
        let sequence = detached.key().sequence;
        let port_of = |segment: usize| segments[segment].port_of(sequence);
        let advanced = advance(detached, instance, stop_before(segments, to), &mut Context::from_waker(Waker::noop()));
        if advanced.is_ready() {
            count_passed(&self.placed, &segments[0], detached);
        }
        match advanced {
            Poll::Ready(Some(answer)) => InlineOutcome { answer, remaining: None },
            Poll::Ready(None) => {
                let segment = next_segment(segments, to, detached);
                let (job, answer) = job(flow.detach(), segment);
                InlineOutcome { answer, remaining: Some((port_of(segment), job)) }
            }
            // It waits as one that came through the port: to be found again it has to be a job.
            Poll::Pending => {
                let (job, answer) = job(flow.detach(), 0);
                let remaining = self.scheduler.work().run(port_of(0), job, fusion);
                self.scheduler.work().after_batch();
                InlineOutcome { answer, remaining }
            }
        }
    }

    /// Puts a new flow into its first port. Where a thread could not run beside the loop, it is woken when the loop has
    /// begun all that it can.
    fn put(&self, port: PortId, job: Box<PooledJob>) {
        if !self.scheduler.is_oversubscribed() {
            return self.scheduler.resume(port, job);
        }
        if self.scheduler.resume_deferred(port, job) {
            self.scheduler.work().wakeups.defer_port(port);
        }
    }

    /// A flow as a job, and its answer.
    fn awaited_job(&self, flow: DetachedFlow, segment: usize) -> (Box<PooledJob>, Begun) {
        let task = Arc::new(Task::new(&self.scheduler.work().resume_callback, &self.job_context));
        let job = FlowJob { flow, segment, task: Some(Arc::clone(&task)) };
        let mut awaited = PendingReply::new(task, self.awaited.acquire());
        (
            PooledJob::new(job, &self.job_context),
            Begun::Pending(Box::pin(poll_fn(move |context| awaited.poll(context)))),
        )
    }

    /// A flow as a job whose answer nobody wants.
    fn one_way_job(&self, flow: DetachedFlow, segment: usize) -> Box<PooledJob> {
        PooledJob::new(FlowJob { flow, segment, task: None }, &self.job_context)
    }
}

impl Engine for SectionEngine {
    fn begin(&self, entry: usize, route: usize, new_flow: &mut NewFlow<'_>) -> Begun {
        self.begin_at_first_port((entry, route), new_flow, |port, segments, new_flow| {
            self.submit_awaited(port, segments, new_flow)
        })
    }

    fn give(&self, entry: usize, route: usize, new_flow: &mut NewFlow<'_>) -> Begun {
        self.begin_at_first_port((entry, route), new_flow, |port, segments, new_flow| {
            self.submit_one_way(port, segments, new_flow)
        })
    }

    fn background(&self) -> LocalFuture<()> {
        let (submissions, scheduler) = (Arc::clone(&self.submissions), Arc::clone(&self.scheduler));
        Box::pin(async move {
            let back = Arc::downgrade(&scheduler);
            scheduler.work().wakeups.spawn_dispatcher(move |port| match back.upgrade() {
                Some(scheduler) if scheduler.is_single_processor() => scheduler.schedule_inline(port),
                Some(scheduler) => scheduler.schedule(port),
                None => {}
            });
            submissions.run_flusher(&scheduler).await
        })
    }

    fn room(&self) -> LocalFuture<()> {
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

    fn sections(&self, _live: &ProgramInstance) -> Vec<EventKind> {
        let crews = self.scheduler.pool_snapshots();
        self.placed.iter().filter_map(|section| section_event(section, &self.scheduler, &crews)).collect()
    }

    fn close(&self) {
        self.scheduler.close();
    }

    fn abandon(&self) {
        self.submissions.drain(|kept| self.job_context.give_up(kept));
        self.scheduler.work().one_way_tasks.give_up();
        // To drop it would wait for its threads.
        std::mem::forget(Arc::clone(&self.scheduler));
    }
}

/// What a section is doing; nothing where it has no port.
fn section_event(
    section: &PlacedSection,
    scheduler: &Scheduler<SegmentRunner>,
    crews: &[PoolSnapshot],
) -> Option<EventKind> {
    let queues: Vec<QueueSnapshot> = section.ports.clone().map(|port| scheduler.queue_snapshot(PortId(port))).collect();
    let crew = crews.get(queues.first()?.pool)?;
    Some(EventKind::Section {
        section: Arc::clone(&section.name),
        engine: section.engine,
        pool: crew.name.as_str().into(),
        threads: crew.threads as u64,
        threads_max: crew.threads_max as u64,
        waiting: queues.iter().map(|queue| queue.waiting as u64).sum(),
        waiting_max: queues.iter().map(|queue| queue.capacity as u64).sum(),
        passed: section.passed.load(Ordering::Relaxed),
    })
}

/// Advances a flow whose answer is awaited.
fn advance_awaited(
    flow: &mut DetachedFlow,
    instance: &ProgramInstance,
    until: usize,
    context: &mut Context<'_>,
) -> Poll<Option<Begun>> {
    flow.advance_until(instance, until, context).map(|answer| answer.map(Begun::Done))
}

/// A body without a node.
fn answered_at_once(mut flow: ActiveFlow) -> Begun {
    match flow.advance(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => Begun::Done(answer),
        Poll::Pending => Begun::Pending(Box::pin(flow)),
    }
}
