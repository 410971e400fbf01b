//! A flow on its way through sections, and what of it others hold.
//!
//! The *job* is with the thread that works on it, in a queue, or parked. Its *task* is what wakes it, and what awaits its
//! answer. Of a flow whose answer nobody wants there is a task only once it has to wait.
//!
//! A job counts no references to what all flows share, its *home*: two threads would write such a count with every flow. The
//! threads have their home with the sections, a task has its own; and who drops a job gives it up at home ([`Home::give_up`]).

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::LocalKey;

use parking_lot::Mutex;
use weir_host::{Failure, Value};
use weir_scheduler::PortId;

use super::answer::Reply;
use super::parking::{Parked, Parking};
use crate::crowd::{Crowd, Member};
use crate::flow::Going;
use crate::live::Live;
use crate::spare::{self, Boxes, Depot, Spare};

/// How a flow that was woken finds back to its port: set once there is a scheduler.
pub(super) type Link = Arc<OnceLock<Box<Resume>>>;
type Resume = dyn Fn(PortId, Box<Carried>) + Send + Sync;

/// What the flows on their way share.
pub(super) struct Home {
    pub(super) live: Arc<Live>,
    /// Those on their way.
    pub(super) flows: Arc<Crowd>,
}

/// A flow on its way, one of those of its home.
pub(super) struct Job {
    pub(super) flow: Going,
    /// The stretch that it is in.
    pub(super) stretch: usize,
    pub(super) task: Option<Arc<Task>>,
}

/// What a job is carried in, to be used again.
#[derive(Default)]
pub(super) struct Carried(Option<Job>);

/// What is left of a flow where its job is under way or parked.
pub(super) struct Task {
    /// The job while it waits, and the port at which it goes on.
    pub(super) parking: Parking<(Box<Carried>, PortId)>,
    reply: Mutex<Reply>,
    link: Link,
    home: Arc<Home>,
}

thread_local! {
    static SPARE: Boxes<Carried> = const { RefCell::new(Vec::new()) };
}
static DEPOT: Depot<Carried> = Depot::new();

impl Spare for Carried {
    fn of_thread() -> &'static LocalKey<Boxes<Carried>> {
        &SPARE
    }

    fn depot() -> &'static Depot<Carried> {
        &DEPOT
    }
}

impl Carried {
    /// The job of a flow that is one more on its way.
    pub(super) fn new(job: Job, home: &Home) -> Box<Carried> {
        home.flows.add();
        let mut carried = spare::take::<Carried>();
        carried.0 = Some(job);
        carried
    }

    /// The job.
    #[inline]
    pub(super) fn job(&mut self) -> &mut Job {
        self.0.as_mut().expect("it is here until it is through")
    }
}

impl Job {
    /// Whether it is not to begin any more.
    pub(super) fn is_given_up(&self, unanswered: &Unanswered) -> bool {
        self.task.as_ref().map_or_else(|| unanswered.is_over(), |task| task.parking.is_given_up())
    }
}

impl Home {
    /// Ends a job with the flow's answer, and yields who awaits that, to be woken.
    pub(super) fn finish(&self, carried: Box<Carried>, answer: Result<Value, Failure>) -> Option<Waker> {
        let asker = self.end(carried).and_then(|task| task.reply.lock().give(answer));
        self.flows.leave();
        asker
    }

    /// Gives a job up: all that its flow holds is released.
    pub(super) fn give_up(&self, mut carried: Box<Carried>) {
        carried.job().flow.give_up(&self.live);
        drop(self.end(carried));
        self.flows.leave();
    }

    fn end(&self, mut carried: Box<Carried>) -> Option<Arc<Task>> {
        let job = carried.0.take();
        spare::give_back(carried);
        job.and_then(|job| job.task)
    }
}

/// Parks the job, or gives it back where it was woken already; where nobody awaits it any more, it is given up.
pub(super) fn park(mut carried: Box<Carried>, port: PortId) -> Option<Box<Carried>> {
    let task = carried.job().task.clone().expect("what has waited has a task");
    match task.parking.park((carried, port)) {
        Parked::Again((carried, _)) => return Some(carried),
        Parked::GivenUp((carried, _)) => task.home.give_up(carried),
        Parked::Waits => {}
    }
    None
}

impl Task {
    pub(super) fn new(link: &Link, home: &Arc<Home>) -> Task {
        Task { parking: Parking::new(), reply: Mutex::default(), link: Arc::clone(link), home: Arc::clone(home) }
    }

    /// Gives the flow up: at once where it is parked, else where it would begin or park.
    fn give_up(&self) {
        if let Some((carried, _)) = self.parking.give_up() {
            self.home.give_up(carried);
        }
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        if let (Some((job, port)), Some(resume)) = (self.parking.wake(), self.link.get()) {
            resume(port, job);
        }
    }
}

/// The loop's end of an answer, and its place among those who await one.
pub(super) struct Awaited(Arc<Task>, #[expect(dead_code, reason = "held, and left when dropped")] Member);

impl Awaited {
    pub(super) fn new(task: Arc<Task>, member: Member) -> Self {
        Awaited(task, member)
    }

    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Value, Failure>> {
        self.0.reply.lock().poll(context)
    }
}

impl Drop for Awaited {
    fn drop(&mut self) {
        // To give the job up releases locks, which may wake others; nothing is locked here meanwhile.
        self.0.give_up();
    }
}

/// The tasks of flows whose answer nobody wants: nobody else would give them up when the program's time is up.
#[derive(Default)]
pub(super) struct Unanswered {
    /// Those that have waited.
    tasks: Mutex<Vec<Weak<Task>>>,
    /// The time is up: what has not begun does not, and what begins to wait is given up. Set under the lock.
    over: AtomicBool,
}

/// From how many tasks on those that are through are taken off the list.
const SWEPT_MIN: usize = 1_024;

impl Unanswered {
    /// Whether the time is up.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// The task of such a flow, which has to wait for the first time.
    #[cold]
    pub(super) fn task(&self, link: &Link, home: &Arc<Home>) -> Arc<Task> {
        let task = Arc::new(Task::new(link, home));
        let mut tasks = self.tasks.lock();
        if self.is_over() {
            task.give_up();
        }
        if tasks.len() >= SWEPT_MIN && tasks.len() == tasks.capacity() {
            tasks.retain(|task| task.strong_count() > 0);
            // As many again, so that sweeping costs each task a moment only.
            let left = tasks.len();
            tasks.reserve(left.max(SWEPT_MIN));
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
