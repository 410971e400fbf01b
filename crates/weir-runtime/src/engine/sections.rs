//! The machinery of all engines that run flows section by section, on the ports and crews of `weir-scheduler`.
//!
//! Protocol of one flow:
//! 1. The loop puts it into the port of its first section, and awaits its answer.
//! 2. A thread of that section's crew advances it to the section's end, and it goes on to the next port.
//! 3. Where it has to wait, it leaves the port and is *parked*; whatever wakes it puts it back into that port. Others pass
//!    it in the meantime: what must keep a source's order has turnstiles for that.
//! 4. Its answer wakes the loop. Where the loop has gone, the flow is given up: before it begins, or where it waits.

use std::future::poll_fn;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Poll, Wake, Waker};

use parking_lot::Mutex;
use tokio::runtime::Handle;
use weir_host::{Begun, Failure, LocalFuture, Value};
use weir_scheduler::{PortId, Queue, Scheduler, Snapshot, Work};
use weir_trace::What;

use super::layout::{Placed, Stretch, layout};
use super::parking::{Parked, Parking};
use super::{Engine, Setup, Threading};
use crate::crowd::{Crowd, Member};
use crate::flow::Flow;
use crate::live::Live;

/// An engine that runs sections.
struct Sections {
    scheduler: Mutex<Option<Arc<Scheduler<Stretches>>>>,
    stretches: Arc<Cuts>,
    placed: Arc<Vec<Placed>>,
    flows: Arc<Crowd>,
    /// Those who await an answer.
    awaited: Arc<Crowd>,
    /// How many flows have begun, by entry and route: their numbers say which replica is next.
    begun: Vec<Vec<AtomicUsize>>,
    /// The port that was full when a flow was last refused.
    full: AtomicUsize,
}

type Cuts = Vec<Vec<Vec<Stretch>>>;

/// What the scheduler's threads do.
struct Stretches {
    stretches: Arc<Cuts>,
    placed: Arc<Vec<Placed>>,
    handle: Handle,
    scheduler: Arc<OnceLock<Weak<Scheduler<Stretches>>>>,
}

/// A flow on its way.
struct Job {
    flow: Flow,
    /// The stretch that it is in.
    stretch: usize,
    task: Arc<Task>,
    member: Member,
}

/// What is left of a flow where its job is under way or parked.
struct Task {
    /// The job while it waits, and the port at which it goes on.
    parking: Parking<(Box<Job>, PortId)>,
    answer: Mutex<Answering>,
    scheduler: Arc<OnceLock<Weak<Scheduler<Stretches>>>>,
}

#[derive(Default)]
struct Answering {
    answer: Option<Result<Value, Failure>>,
    /// Who awaits the answer.
    asker: Option<Waker>,
}

/// Starts an engine; `threading` is for the sections for which the plan names no other.
pub(super) fn start(threading: Threading, setup: Setup<'_>) -> io::Result<Arc<dyn Engine>> {
    let layout = layout(threading, &setup);
    let (stretches, placed) = (Arc::new(layout.stretches), Arc::new(layout.sections));
    let link = Arc::<OnceLock<_>>::default();
    let work = Stretches {
        stretches: Arc::clone(&stretches),
        placed: Arc::clone(&placed),
        handle: setup.handle.clone(),
        scheduler: Arc::clone(&link),
    };
    let scheduler = Arc::new(Scheduler::start(work, &layout.ports, layout.crews, setup.steering.period())?);
    link.get_or_init(|| Arc::downgrade(&scheduler));
    let begun = stretches.iter().map(|routes| routes.iter().map(|_| AtomicUsize::new(0)).collect()).collect();
    Ok(Arc::new(Sections {
        scheduler: Mutex::new(Some(scheduler)),
        stretches,
        placed,
        flows: Crowd::new(setup.flows_max),
        awaited: Crowd::new(usize::MAX),
        begun,
        full: AtomicUsize::new(0),
    }))
}

impl Sections {
    fn scheduler(&self) -> Option<Arc<Scheduler<Stretches>>> {
        self.scheduler.lock().clone()
    }
}

impl Engine for Sections {
    fn begin(&self, entry: usize, route: usize, make: &mut dyn FnMut() -> Flow) -> Begun {
        let Some(scheduler) = self.scheduler().filter(|_| self.flows.has_room()) else { return Begun::Full };
        let Some(first) = self.stretches[entry][route].first() else {
            return answered_at_once(make());
        };
        let next = self.begun[entry][route].load(Ordering::Relaxed);
        let port = first.port_of(next as u64);
        if !scheduler.has_room(port) {
            self.full.store(port.0, Ordering::Relaxed);
            return Begun::Full;
        }
        // One loop runs the sources, so that nobody else counts in between.
        self.begun[entry][route].store(next + 1, Ordering::Relaxed);
        let link = Arc::clone(&scheduler.work().scheduler);
        let task = Arc::new(Task { parking: Parking::new(), answer: Mutex::default(), scheduler: link });
        let job = Job { flow: make(), stretch: 0, task: Arc::clone(&task), member: self.flows.enter() };
        scheduler.resume(port, Box::new(job));
        let mut awaited = Awaited(task, self.awaited.enter());
        Begun::Going(Box::pin(poll_fn(move |context| awaited.poll(context))))
    }

    fn room(&self) -> LocalFuture<()> {
        let (flows, scheduler) = (Arc::clone(&self.flows), self.scheduler());
        let port = PortId(self.full.load(Ordering::Relaxed));
        Box::pin(async move {
            flows.room().await;
            if let Some(scheduler) = scheduler {
                poll_fn(|context| scheduler.poll_room(port, context)).await;
            }
        })
    }

    fn drained(&self) -> LocalFuture<()> {
        let (flows, awaited) = (Arc::clone(&self.flows), Arc::clone(&self.awaited));
        Box::pin(async move {
            flows.empty().await;
            awaited.empty().await;
        })
    }

    fn sections(&self, _live: &Live) -> Vec<What> {
        let Some(scheduler) = self.scheduler() else { return Vec::new() };
        let crews = scheduler.snapshot();
        self.placed.iter().filter_map(|section| doing(section, &scheduler, &crews)).collect()
    }

    fn close(&self) {
        // Who parks or wakes a flow holds the scheduler for a moment; with no flow left this is the last hold of it.
        drop(self.scheduler.lock().take());
    }

    fn abandon(&self) {
        // To drop it would wait for its threads.
        std::mem::forget(self.scheduler.lock().take());
    }
}

/// What a section is doing; nothing where it has no port.
fn doing(section: &Placed, scheduler: &Scheduler<Stretches>, crews: &[Snapshot]) -> Option<What> {
    let queues: Vec<Queue> = section.ports.clone().map(|port| scheduler.queue(PortId(port))).collect();
    let crew = crews.get(queues.first()?.crew)?;
    Some(What::Section {
        section: Arc::clone(&section.name),
        engine: section.engine,
        crew: crew.crew.as_str().into(),
        threads: crew.threads as u64,
        threads_max: crew.threads_max as u64,
        waiting: queues.iter().map(|queue| queue.waiting as u64).sum(),
        waiting_max: queues.iter().map(|queue| queue.capacity as u64).sum(),
        passed: section.passed.load(Ordering::Relaxed),
    })
}

/// A flow has passed these stretches.
fn count(placed: &[Placed], stretches: &[Stretch], flow: &Flow) {
    if flow.is_watched() {
        stretches.iter().for_each(|stretch| _ = placed[stretch.section].passed.fetch_add(1, Ordering::Relaxed));
    }
}

/// A body without a node.
fn answered_at_once(mut flow: Flow) -> Begun {
    match flow.advance(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => Begun::Done(answer),
        Poll::Pending => Begun::Going(Box::pin(flow)),
    }
}

impl Work for Stretches {
    /// Boxed, because it is moved several times at each port.
    type Item = Box<Job>;

    fn run(&self, port: PortId, mut job: Box<Job>) -> Option<(PortId, Box<Job>)> {
        let key = job.flow.key();
        let stretches = &self.stretches[key.entry as usize][key.route as usize];
        let last = stretches.len() - 1;
        loop {
            let stretch = &stretches[job.stretch];
            let next = stretch.port_of(key.sequence);
            if next != port {
                return Some((next, job));
            }
            if job.stretch == 0 && job.task.parking.is_given_up() {
                return None;
            }
            // The last stretch also ends the flow.
            let until = if job.stretch == last { usize::MAX } else { stretch.until };
            match self.advance(&mut job, until, stretch.calls_out) {
                Poll::Ready(None) => {
                    count(&self.placed, &stretches[job.stretch..=job.stretch], &job.flow);
                    job.stretch += 1;
                    // A switch may have skipped whole stretches.
                    let at = job.flow.at();
                    while job.stretch < last && stretches[job.stretch].until <= at {
                        job.stretch += 1;
                    }
                }
                Poll::Ready(Some(answer)) => {
                    count(&self.placed, &stretches[job.stretch..=job.stretch], &job.flow);
                    finish(*job, answer);
                    return None;
                }
                Poll::Pending => job = park(job, port)?,
            }
        }
    }
}

impl Stretches {
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

fn finish(job: Job, answer: Result<Value, Failure>) {
    let Job { flow, task, member, .. } = job;
    drop(flow);
    let mut state = task.answer.lock();
    state.answer = Some(answer);
    let asker = state.asker.take();
    drop(state);
    asker.into_iter().for_each(Waker::wake);
    drop(member);
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
struct Awaited(Arc<Task>, #[expect(dead_code, reason = "held, and left when dropped")] Member);

impl Awaited {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Value, Failure>> {
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
