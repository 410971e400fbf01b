//! A flow on its way through sections, and what of it others hold.
//!
//! The *job* is with the thread that works on it, in a queue, or parked. Its *task* is what wakes it, and what awaits its
//! answer. Of a flow whose answer nobody wants there is a task only once it has to wait.
//!
//! A job counts no references to what all flows share, its *home*: two threads would write such a count with every flow. The
//! threads have their home with the sections, a task has its own; and who drops a job gives it up at home ([`JobContext::give_up`]).

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
use crate::flow::DetachedFlow;
use crate::instance::ProgramInstance;
use crate::object_pool::{self, Depot, LocalPool, Pooled};

/// How a flow that was woken finds back to its port: set once there is a scheduler.
pub(super) type ResumeCallback = Arc<OnceLock<Box<ResumeFn>>>;
type ResumeFn = dyn Fn(PortId, Box<PooledJob>) + Send + Sync;

/// What the flows on their way share.
pub(super) struct JobContext {
    pub(super) instance: Arc<ProgramInstance>,
    /// Those on their way.
    pub(super) flows: Arc<AdmissionLimiter>,
}

/// A flow on its way, one of those of its home.
pub(super) struct FlowJob {
    pub(super) flow: DetachedFlow,
    /// The stretch that it is in.
    pub(super) segment: usize,
    pub(super) task: Option<Arc<Task>>,
}

/// What a job is carried in, to be used again.
#[derive(Default)]
pub(super) struct PooledJob(Option<FlowJob>);

/// What is left of a flow where its job is under way or parked.
pub(super) struct Task {
    /// The job while it waits, and the port at which it goes on.
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
    /// The job of a flow that is one more on its way.
    pub(super) fn new(job: FlowJob, job_context: &JobContext) -> Box<PooledJob> {
        job_context.flows.acquire_unguarded();
        let mut pooled = object_pool::take::<PooledJob>();
        pooled.0 = Some(job);
        pooled
    }

    /// The job.
    #[inline]
    pub(super) fn job(&mut self) -> &mut FlowJob {
        self.0.as_mut().expect("it is here until it is through")
    }
}

impl FlowJob {
    /// Whether it is not to begin any more.
    pub(super) fn is_given_up(&self, one_way_tasks: &OneWayTasks) -> bool {
        self.task.as_ref().map_or_else(|| one_way_tasks.is_over(), |task| task.parking.is_given_up())
    }
}

impl JobContext {
    /// Ends a job with the flow's answer, and yields who awaits that, to be woken.
    pub(super) fn finish(&self, pooled: Box<PooledJob>, answer: Result<Value, Failure>) -> Option<Waker> {
        let asker = self.end(pooled).and_then(|task| task.reply.lock().give(answer));
        self.flows.release();
        asker
    }

    /// Gives a job up: all that its flow holds is released.
    pub(super) fn give_up(&self, mut pooled: Box<PooledJob>) {
        pooled.job().flow.give_up(&self.instance);
        drop(self.end(pooled));
        self.flows.release();
    }

    fn end(&self, mut pooled: Box<PooledJob>) -> Option<Arc<Task>> {
        let job = pooled.0.take();
        object_pool::give_back(pooled);
        job.and_then(|job| job.task)
    }
}

/// Parks the job, or gives it back where it was woken already; where nobody awaits it any more, it is given up.
pub(super) fn park(mut pooled: Box<PooledJob>, port: PortId) -> Option<Box<PooledJob>> {
    let task = pooled.job().task.clone().expect("what has waited has a task");
    match task.parking.park((pooled, port)) {
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

    /// Gives the flow up: at once where it is parked, else where it would begin or park.
    fn give_up(&self) {
        if let Some((pooled, _)) = self.parking.give_up() {
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

/// The loop's end of an answer, and its place among those who await one.
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
        // To give the job up releases locks, which may wake others; nothing is locked here meanwhile.
        self.0.give_up();
    }
}

/// The tasks of flows whose answer nobody wants: nobody else would give them up when the program's time is up.
#[derive(Default)]
pub(super) struct OneWayTasks {
    /// Those that have waited.
    tasks: Mutex<Vec<Weak<Task>>>,
    /// The time is up: what has not begun does not, and what begins to wait is given up. Set under the lock.
    over: AtomicBool,
}

/// From how many tasks on those that are through are taken off the list.
const SWEEP_MIN: usize = 1_024;

impl OneWayTasks {
    /// Whether the time is up.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// The task of such a flow, which has to wait for the first time.
    #[cold]
    pub(super) fn task(&self, resume_callback: &ResumeCallback, job_context: &Arc<JobContext>) -> Arc<Task> {
        let task = Arc::new(Task::new(resume_callback, job_context));
        let mut tasks = self.tasks.lock();
        if self.is_over() {
            task.give_up();
        }
        if tasks.len() >= SWEEP_MIN && tasks.len() == tasks.capacity() {
            tasks.retain(|task| task.strong_count() > 0);
            // As many again, so that sweeping costs each task a moment only.
            let left = tasks.len();
            tasks.reserve(left.max(SWEEP_MIN));
        }
        tasks.push(Arc::downgrade(&task));
        task
    }

    /// Gives all of them up.
    pub(super) fn give_up(&self) {
        let mut tasks = self.tasks.lock();
        self.over.store(true, Ordering::Relaxed);
        let waiting = std::mem::take(&mut *tasks);
        drop(tasks);
        waiting.iter().filter_map(Weak::upgrade).for_each(|task| task.give_up());
    }
}
