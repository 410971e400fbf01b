//! Jobs: flows in progress under an engine with sections, and the tasks that wake them.
//!
//! A *job* is in one place at a time: with the thread that works on it, in a queue, or parked. Its *task* is shared:
//! wakers hold it to wake the flow, and the event loop holds it to await the answer. A detached flow gets a task only
//! when it has to wait.
//!
//! A *call* stands in the same queues: a plan may name calls in the body of a `for`, which threads of their section run while
//! the flow waits elsewhere.
//!
//! A job holds no counted reference to the state that all flows share ([`JobContext`]), because two threads would write
//! that count with every flow. The threads hold the context through the engine, each task holds a reference of its own,
//! and a thread that drops a job cancels it through the context ([`JobContext::give_up`]).

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::LocalKey;

use parking_lot::Mutex;
use weir_host::{Failure, Value};
use weir_scheduler::PortId;

use super::answer::Reply;
use super::parking::{ParkOutcome, Parking};
use crate::admission::{AdmissionLimiter, Permit};
use crate::blocking_pool::PoolJob;
use crate::flow::FlowState;
use crate::instance::ProgramInstance;
use crate::object_pool::{self, Depot, LocalPool, Pooled};

/// The callback that puts a woken flow back into its port; set once the scheduler exists.
pub(super) type ResumeCallback = Arc<OnceLock<Box<ResumeFn>>>;
type ResumeFn = dyn Fn(PortId, Box<PooledJob>) + Send + Sync;

/// The job context: everything that jobs share.
pub(super) struct JobContext {
    pub(super) instance: Arc<ProgramInstance>,
    /// Limits the flows in progress.
    pub(super) flows: Arc<AdmissionLimiter>,
}

/// A flow in progress, with its current segment.
pub(super) struct FlowJob {
    pub(super) flow: FlowState,
    /// The segment in which the flow continues.
    pub(super) segment: usize,
    /// True once the flow has yielded or waited: it may be cancelled before it is advanced again.
    pub(super) has_yielded: bool,
    pub(super) task: Option<Arc<Task>>,
    /// True while the flow is counted as waiting in the queue of a port.
    pub(super) is_queued: bool,
}

/// A pooled job: a box that holds one job after the other.
#[derive(Default)]
pub(super) enum PooledJob {
    /// It is in the object pool.
    #[default]
    Empty,
    /// A flow.
    Flow(FlowJob),
    /// A call of a flow that is in another section, and waits for it.
    Call(PoolJob),
}

/// The shared part of a flow in progress: wakes its job, and passes its answer on.
pub(super) struct Task {
    /// The job while it waits, and the port at which it continues.
    pub(super) parking: Parking<(Box<PooledJob>, PortId)>,
    reply: Mutex<Reply>,
    resume_callback: ResumeCallback,
    job_context: Arc<JobContext>,
}

thread_local! {
    static POOL: LocalPool<PooledJob> = const { RefCell::new(Vec::new()) };
}
static DEPOT: Depot<PooledJob> = Depot::new();

impl Pooled for PooledJob {
    fn of_thread() -> &'static LocalKey<LocalPool<PooledJob>> {
        &POOL
    }

    fn depot() -> &'static Depot<PooledJob> {
        &DEPOT
    }
}

impl PooledJob {
    /// Boxes a job, and counts its flow as in progress.
    pub(super) fn new(job: FlowJob, job_context: &JobContext) -> Box<PooledJob> {
        job_context.flows.acquire_unguarded();
        let mut pooled = object_pool::take::<PooledJob>();
        *pooled = PooledJob::Flow(job);
        pooled
    }

    /// Boxes a call.
    pub(super) fn of_call(call: PoolJob) -> Box<PooledJob> {
        let mut pooled = object_pool::take::<PooledJob>();
        *pooled = PooledJob::Call(call);
        pooled
    }

    /// Takes out the call, if it is one.
    #[inline]
    pub(super) fn take_call(&mut self) -> Option<PoolJob> {
        if !matches!(self, PooledJob::Call(_)) {
            return None;
        }
        if let PooledJob::Call(call) = std::mem::take(self) { Some(call) } else { None }
    }

    /// Returns the job of a flow.
    #[inline]
    pub(super) fn job(&mut self) -> &mut FlowJob {
        match self {
            PooledJob::Flow(job) => job,
            _ => unreachable!("it is here until it is through"),
        }
    }
}

impl FlowJob {
    /// Returns true if the flow is to be cancelled now, before it is advanced: it has not begun, has yielded or has
    /// waited, and is in no atomic step.
    #[inline]
    pub(super) fn is_to_be_given_up(&mut self, detached_tasks: &DetachedTasks) -> bool {
        (self.segment == 0 || self.has_yielded) && self.is_given_up(detached_tasks) && self.flow.request_give_up()
    }

    fn is_given_up(&self, detached_tasks: &DetachedTasks) -> bool {
        self.task.as_ref().map_or_else(|| detached_tasks.is_over(), |task| task.parking.is_given_up())
    }
}

impl JobContext {
    /// Ends a job with the flow's answer, and returns the waker of the task that awaits it.
    pub(super) fn finish(&self, pooled: Box<PooledJob>, answer: Result<Value, Failure>) -> Option<Waker> {
        let waiter = self.end(pooled).and_then(|task| task.reply.lock().put(answer));
        self.flows.release();
        waiter
    }

    /// Cancels a job, which releases everything that its flow holds.
    pub(super) fn give_up(&self, mut pooled: Box<PooledJob>) {
        pooled.job().flow.give_up(&self.instance);
        drop(self.end(pooled));
        self.flows.release();
    }

    fn end(&self, mut pooled: Box<PooledJob>) -> Option<Arc<Task>> {
        let job = std::mem::take(&mut *pooled);
        object_pool::give_back(pooled);
        if let PooledJob::Flow(job) = job { job.task } else { None }
    }
}

/// Parks a job after a poll that left it waiting. Returns the job if it was woken already; drops it if it was
/// cancelled.
pub(super) fn park(mut pooled: Box<PooledJob>, port: PortId) -> Option<Box<PooledJob>> {
    let task = pooled.job().task.clone().expect("what has waited has a task");
    let is_bound = pooled.job().flow.is_in_step();
    match task.parking.park((pooled, port), is_bound) {
        ParkOutcome::Again((pooled, _)) => return Some(pooled),
        ParkOutcome::GivenUp((pooled, _)) => task.job_context.give_up(pooled),
        ParkOutcome::Waits => {}
    }
    None
}

impl Task {
    pub(super) fn new(resume_callback: &ResumeCallback, job_context: &Arc<JobContext>) -> Task {
        Task {
            parking: Parking::new(),
            reply: Mutex::default(),
            resume_callback: Arc::clone(resume_callback),
            job_context: Arc::clone(job_context),
        }
    }

    /// Cancels the flow: at once if it is parked, otherwise when it would begin or park next.
    fn give_up(&self) {
        let is_bound = |(pooled, _): &mut (Box<PooledJob>, PortId)| pooled.job().flow.is_in_step();
        if let Some((pooled, _)) = self.parking.give_up(is_bound) {
            self.job_context.give_up(pooled);
        }
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        if let (Some((job, port)), Some(resume)) = (self.parking.wake(), self.resume_callback.get()) {
            resume(port, job);
        }
    }
}

/// The event loop's end of an answer, with its permit to await an answer.
pub(super) struct PendingReply(Arc<Task>, #[expect(dead_code, reason = "held, and left when dropped")] Permit);

impl PendingReply {
    pub(super) fn new(task: Arc<Task>, permit: Permit) -> Self {
        PendingReply(task, permit)
    }

    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Value, Failure>> {
        self.0.reply.lock().poll(context)
    }
}

impl Drop for PendingReply {
    fn drop(&mut self) {
        // Cancelling the job releases locks, which may wake other flows; no lock is held here meanwhile.
        self.0.give_up();
    }
}

/// The tasks of detached flows. No event loop awaits these, so that they have to be cancelled here when the drain
/// timeout expires.
#[derive(Default)]
pub(super) struct DetachedTasks {
    /// The tasks that have been made.
    tasks: Mutex<Vec<Weak<Task>>>,
    /// Set when the drain timeout expires: no flow begins any more, and none parks. Written under the lock of `tasks`;
    /// a relaxed read may miss it, and then the flow is cancelled when it would park.
    over: AtomicBool,
}

/// The number of tasks from which the list is swept of those that have ended. Chosen by judgement: below it, the list
/// is too small to matter.
const SWEEP_MIN: usize = 1_024;

impl DetachedTasks {
    /// Returns true if the drain timeout has expired.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Makes the task of a detached flow that has to wait for the first time.
    #[cold]
    pub(super) fn task(&self, resume_callback: &ResumeCallback, job_context: &Arc<JobContext>) -> Arc<Task> {
        let task = Arc::new(Task::new(resume_callback, job_context));
        let mut tasks = self.tasks.lock();
        if self.is_over() {
            task.give_up();
        }
        if tasks.len() >= SWEEP_MIN && tasks.len() == tasks.capacity() {
            tasks.retain(|task| task.strong_count() > 0);
            // Twice the number that is left, so that sweeping takes constant time per task (amortised).
            let left = tasks.len();
            tasks.reserve(left.max(SWEEP_MIN));
        }
        tasks.push(Arc::downgrade(&task));
        task
    }

    /// Cancels all detached flows.
    pub(super) fn give_up(&self) {
        let mut tasks = self.tasks.lock();
        self.over.store(true, Ordering::Relaxed);
        let waiting = std::mem::take(&mut *tasks);
        drop(tasks);
        waiting.iter().filter_map(Weak::upgrade).for_each(|task| task.give_up());
    }
}
