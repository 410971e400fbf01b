//! The machinery of all engines that run flows section by section, on the ports and crews of `weir-scheduler`.
//!
//! Protocol of one flow:
//! 1. The loop puts it into the port of its first section, and awaits its answer. An elastic crew of one thread may have
//!    the loop do the work itself, which then has the answer at once.
//! 2. A thread of that section's crew advances it to the section's end, and it goes on to the next port.
//! 3. Where it has to wait, it leaves the port and is *parked*; whatever wakes it puts it back into that port. Others pass
//!    it in the meantime: what must keep a source's order has turnstiles for that.
//! 4. Its answer wakes the loop, together with others where threads outnumber processors ([`Exchange`]). Where the loop has
//!    gone, the flow is given up: before it begins, or where it waits.

use std::future::poll_fn;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use weir_host::{Begun, LocalFuture};
use weir_scheduler::{Ahead, Done, PortId, Queue, Scheduler, Snapshot, Work};
use weir_trace::What;

use super::exchange::Exchange;
use super::layout::{Placed, layout};
use super::pace::Pace;
use super::stretches::{Awaited, BRIEF_NS, Cuts, Job, Link, Stretches, Task, after, count, fused, until};
use super::{Engine, Setup, Threading};
use crate::crowd::Crowd;
use crate::flow::Flow;
use crate::live::Live;

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
        paces: layout.ports.iter().map(|port| port.brief.then(|| Pace::new(BRIEF_NS))).collect(),
        crowded: AtomicBool::new(false),
    };
    let (ports, crews, period) = (&layout.ports, layout.crews, setup.steering.period());
    // What answers are for keeps the loop as busy as a thread; a stream only waits for room.
    let busy_loops = usize::from(setup.live.entries.iter().any(|entry| entry.answers));
    let scheduler = Arc::new(Scheduler::start_beside(busy_loops, work, ports, crews, period)?);
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
        let task = Task::new(scheduler);
        let job = Job { flow, stretch, task: Arc::clone(&task), member: self.flows.enter() };
        let link = Arc::clone(&self.link);
        self.exchange.carry(move |port| {
            link.get().and_then(Weak::upgrade).into_iter().for_each(|scheduler| scheduler.hand(port));
        });
        let mut awaited = Awaited::new(task, self.awaited.enter());
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

/// A body without a node.
fn answered_at_once(mut flow: Flow) -> Begun {
    match flow.advance(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => Begun::Done(answer),
        Poll::Pending => Begun::Going(Box::pin(flow)),
    }
}
