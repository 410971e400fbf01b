//! The machinery of all engines that run flows section by section, on the ports and crews of `weir-scheduler`.
//!
//! Protocol of one flow:
//! 1. The loop puts it into the port of its first section, and awaits its answer. An elastic crew of one thread may have
//!    the loop do the work itself, which then has the answer at once.
//! 2. A thread of that section's crew advances it to the section's end, and it goes on to the next port.
//! 3. Where it has to wait, it leaves the port and is *parked*; whatever wakes it puts it back into that port. Others pass
//!    it in the meantime: what must keep a source's order has turnstiles for that.
//! 4. Its answer wakes the loop, together with others where there are more threads than processors ([`Exchange`]). Where the loop has gone, the flow is given up: before it begins, or where it waits.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Poll, Wake, Waker};

use parking_lot::Mutex;
use tokio::runtime::Handle;
use weir_host::{Begun, Failure, LocalFuture, Value};
use weir_scheduler::{Ahead, Done, PortId, Queue, Scheduler, Snapshot, Work};
use weir_trace::What;

use super::exchange::Exchange;
use super::layout::{Placed, Stretch, layout};
use super::pace::Pace;
use super::parking::{Parked, Parking};
use super::{Engine, Setup, Threading};
use crate::crowd::{Crowd, Member};
use crate::flow::Flow;
use crate::live::Live;
use crate::machine::Machine;

/// An engine that runs sections.
struct Sections {
    scheduler: Arc<Scheduler<Stretches>>,
    link: Link,
    stretches: Arc<Cuts>,
    placed: Arc<Vec<Placed>>,
    flows: Arc<Crowd>,
    /// Those who await an answer.
    awaited: Arc<Crowd>,
    /// How many flows have begun, by entry and route: their numbers say which replica is next.
    begun: Vec<Vec<AtomicUsize>>,
    exchange: Arc<Exchange>,
    /// The port that was full when a flow was last refused.
    full: AtomicUsize,
}

type Cuts = Vec<Vec<Vec<Stretch>>>;
/// How flows find back to the scheduler, which they do not keep.
type Link = Arc<OnceLock<Weak<Scheduler<Stretches>>>>;

/// What the scheduler's threads do.
struct Stretches {
    stretches: Arc<Cuts>,
    placed: Arc<Vec<Placed>>,
    handle: Handle,
    machine: Arc<dyn Machine>,
    exchange: Arc<Exchange>,
    /// For each port, how long flows take there. Answers are kept for those behind them only where that is brief.
    paces: Vec<Pace>,
    /// Whether threads outnumber processors, the loop's counted.
    crowded: AtomicBool,
}

/// What takes less than this at a port may be waited for by those whose answers are there: a batch of them by about a
/// millisecond.
const BRIEF_NS: u64 = 20_000;
/// The loop, which puts flows in.
const LOOPS: usize = 1;

thread_local! {
    /// Those whose answers this thread has in its batch.
    static ANSWERED: RefCell<Vec<Waker>> = const { RefCell::new(Vec::new()) };
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
    scheduler: Link,
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
    let link = Link::default();
    let exchange = Arc::<Exchange>::default();
    let work = Stretches {
        stretches: Arc::clone(&stretches),
        placed: Arc::clone(&placed),
        handle: setup.handle.clone(),
        machine: Arc::clone(setup.machine),
        exchange: Arc::clone(&exchange),
        paces: layout.ports.iter().map(|_| Pace::new(BRIEF_NS)).collect(),
        crowded: AtomicBool::new(false),
    };
    let (ports, crews, period) = (&layout.ports, layout.crews, setup.steering.period());
    let scheduler = Arc::new(Scheduler::start_beside(LOOPS, work, ports, crews, period)?);
    scheduler.work().crowded.store(scheduler.is_crowded(), Ordering::Relaxed);
    link.get_or_init(|| Arc::downgrade(&scheduler));
    let begun = stretches.iter().map(|routes| routes.iter().map(|_| AtomicUsize::new(0)).collect()).collect();
    Ok(Arc::new(Sections {
        scheduler,
        link,
        stretches,
        placed,
        flows: Crowd::new(setup.flows_max),
        awaited: Crowd::new(usize::MAX),
        begun,
        exchange,
        full: AtomicUsize::new(0),
    }))
}

impl Sections {
    /// Begins a flow at the port on this thread, which goes on with it as far as it may.
    fn begin_here(&self, work: &Stretches, mut flow: Flow, ahead: &mut impl Ahead) -> Done<Stretches, Begun> {
        let key = flow.key();
        let stretches = &self.stretches[key.entry as usize][key.route as usize];
        let to = fused(stretches, 0, &flow, ahead);
        let port_of = |stretch: usize| stretches[stretch].port_of(key.sequence);
        match flow.advance_until(until(stretches, to), &mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Some(answer)) => {
                count(&self.placed, &stretches[0], &flow);
                Done { answer: Begun::Done(answer), left: None }
            }
            Poll::Ready(None) => {
                count(&self.placed, &stretches[0], &flow);
                let stretch = after(stretches, to, &flow);
                let (job, answer) = self.job(flow, stretch);
                Done { answer, left: Some((port_of(stretch), job)) }
            }
            // It waits as one that came through the port: to be found again it has to be a job.
            Poll::Pending => {
                let (job, answer) = self.job(flow, 0);
                Done { answer, left: work.run(port_of(0), job, ahead) }
            }
        }
    }

    /// Puts a new flow into its first port. Where a thread could not run beside the loop, it is woken when the loop has
    /// begun all that it can.
    fn put(&self, port: PortId, job: Box<Job>) {
        if !self.scheduler.is_crowded() {
            return self.scheduler.resume(port, job);
        }
        if self.scheduler.leave(port, job) {
            self.exchange.owe(port);
        }
    }

    /// A flow as a job, and its answer.
    fn job(&self, flow: Flow, stretch: usize) -> (Box<Job>, Begun) {
        let scheduler = Arc::clone(&self.link);
        let task = Arc::new(Task { parking: Parking::new(), answer: Mutex::default(), scheduler });
        let job = Job { flow, stretch, task: Arc::clone(&task), member: self.flows.enter() };
        let link = Arc::clone(&self.link);
        self.exchange.carry(move |port| {
            link.get().and_then(Weak::upgrade).into_iter().for_each(|scheduler| scheduler.hand(port));
        });
        let mut awaited = Awaited(task, self.awaited.enter());
        (Box::new(job), Begun::Going(Box::pin(poll_fn(move |context| awaited.poll(context)))))
    }
}

impl Engine for Sections {
    fn begin(&self, entry: usize, route: usize, make: &mut dyn FnMut() -> Flow) -> Begun {
        if !self.flows.has_room() {
            return Begun::Full;
        }
        let scheduler = &self.scheduler;
        let Some(first) = self.stretches[entry][route].first() else {
            return answered_at_once(make());
        };
        let begun = &self.begun[entry][route];
        let next = begun.load(Ordering::Relaxed);
        let port = first.port_of(next as u64);
        if let Some(here) = scheduler.bring(port, |ahead| self.begin_here(scheduler.work(), make(), ahead)) {
            // One loop runs the sources, so that nobody else counts in between.
            begun.store(next + 1, Ordering::Relaxed);
            return here;
        }
        if !scheduler.has_room(port) {
            self.full.store(port.0, Ordering::Relaxed);
            return Begun::Full;
        }
        begun.store(next + 1, Ordering::Relaxed);
        let (job, answer) = self.job(make(), 0);
        self.put(port, job);
        answer
    }

    fn room(&self) -> LocalFuture<()> {
        let (flows, scheduler) = (Arc::clone(&self.flows), Arc::clone(&self.scheduler));
        let port = PortId(self.full.load(Ordering::Relaxed));
        Box::pin(async move {
            flows.room().await;
            poll_fn(|context| scheduler.poll_room(port, context)).await;
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
        let crews = self.scheduler.snapshot();
        self.placed.iter().filter_map(|section| doing(section, &self.scheduler, &crews)).collect()
    }

    fn close(&self) {
        self.scheduler.close();
    }

    fn abandon(&self) {
        // To drop it would wait for its threads.
        std::mem::forget(Arc::clone(&self.scheduler));
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

/// A flow has passed this stretch.
fn count(placed: &[Placed], stretch: &Stretch, flow: &Flow) {
    if flow.is_watched() {
        placed[stretch.section].passed.fetch_add(1, Ordering::Relaxed);
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

    fn run(&self, port: PortId, job: Box<Job>, ahead: &mut impl Ahead) -> Option<(PortId, Box<Job>)> {
        if !self.crowded.load(Ordering::Relaxed) {
            return self.pass(port, job, ahead);
        }
        let began_ns = self.machine.now_ns();
        let left = self.pass(port, job, ahead);
        self.paces[port.0].note(self.machine.now_ns().saturating_sub(began_ns));
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

/// The last stretch of those that the thread may run in one go from this one on. None of them waits, so that none has to
/// be found again. A flow that is watched is counted at each.
fn fused(stretches: &[Stretch], first: usize, flow: &Flow, ahead: &mut impl Ahead) -> usize {
    if stretches[first].waits || flow.is_watched() {
        return first;
    }
    let (further, sequence) = (stretches[first + 1..].iter(), flow.key().sequence);
    first + further.take_while(|stretch| !stretch.waits && ahead.may_run(stretch.port_of(sequence))).count()
}

/// Where a flow stops that goes on to the end of this stretch. The last stretch also ends the flow.
fn until(stretches: &[Stretch], to: usize) -> usize {
    if to + 1 == stretches.len() { usize::MAX } else { stretches[to].until }
}

/// The stretch in which a flow goes on after this one. A switch may have skipped whole stretches.
fn after(stretches: &[Stretch], to: usize, flow: &Flow) -> usize {
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
        if self.crowded.load(Ordering::Relaxed) && self.paces[port.0].is_brief() {
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
