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

use super::given::Given;
use super::job::{Awaited, Carried, Home, Job, Link, Task};
use super::layout::{Placed, Stretch, layout};
use super::pace::Pace;
use super::stretches::{Cuts, Stretches, after, count, fused, until};
use super::{Engine, Setup, Threading};
use crate::crowd::Crowd;
use crate::flow::{Beginning, Flow, Going};
use crate::live::Live;

/// An engine that runs sections.
struct Sections {
    scheduler: Arc<Scheduler<Stretches>>,
    stretches: Arc<Cuts>,
    placed: Arc<Vec<Placed>>,
    home: Arc<Home>,
    /// Those who await an answer.
    awaited: Arc<Crowd>,
    /// Flows whose answer nobody wants, on their way to their first ports.
    given: Arc<Given<Box<Carried>>>,
    /// The port that was full when a flow was last refused.
    full: AtomicUsize,
}

/// Starts an engine; `threading` is for the sections for which the plan names no other.
pub(super) fn start(threading: Threading, setup: Setup<'_>) -> io::Result<Arc<dyn Engine>> {
    let layout = layout(threading, &setup);
    let (stretches, placed) = (Arc::new(layout.stretches), Arc::new(layout.sections));
    let link = Link::default();
    let home = Arc::new(Home { live: Arc::clone(setup.live), flows: Crowd::new(setup.flows_max) });
    let work = Stretches {
        stretches: Arc::clone(&stretches),
        placed: Arc::clone(&placed),
        handle: setup.handle.clone(),
        link: Arc::clone(&link),
        home: Arc::clone(&home),
        unanswered: Arc::default(),
        machine: Arc::clone(setup.machine),
        exchange: Arc::default(),
        paces: layout.ports.iter().map(|port| port.nonblocking.then(Pace::new)).collect(),
        crowded: AtomicBool::new(false),
    };
    let (ports, crews, period) = (&layout.ports, layout.crews, setup.steering.period());
    // What answers are for keeps the loop as busy as a thread; a stream only waits for room.
    let busy_loops = usize::from(setup.live.entries.iter().any(|entry| entry.answers));
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
            scheduler.work().exchange.owe(port);
        }
    };
    link.get_or_init(|| Box::new(resume));
    Ok(Arc::new(Sections {
        scheduler,
        stretches,
        placed,
        given: Arc::default(),
        home,
        awaited: Crowd::new(usize::MAX),
        full: AtomicUsize::new(0),
    }))
}

impl Sections {
    /// Begins a flow at its first port; `enter` brings it there, and knows whether there is room.
    fn start(
        &self,
        (entry, route): (usize, usize),
        beginning: &mut Beginning<'_>,
        enter: impl FnOnce(PortId, &[Stretch], &mut Beginning<'_>) -> Option<Begun>,
    ) -> Begun {
        if !self.home.flows.has_room() {
            return Begun::Full;
        }
        let stretches = &self.stretches[entry][route];
        let Some(first) = stretches.first() else {
            return answered_at_once(beginning.flow());
        };
        // One loop runs the sources, so that no other flow gets this number.
        let port = first.port_of(beginning.next_sequence());
        enter(port, stretches, beginning).unwrap_or_else(|| {
            self.full.store(port.0, Ordering::Relaxed);
            Begun::Full
        })
    }

    /// Brings a flow to its first port whose answer is awaited.
    fn ask(&self, port: PortId, stretches: &[Stretch], beginning: &mut Beginning<'_>) -> Option<Begun> {
        let here = self.scheduler.run_inline(port, |fusion| {
            self.begin_here(stretches, beginning, fusion, advance_asked, |flow, stretch| self.asked(flow, stretch))
        });
        if here.is_some() || self.scheduler.room(port) == 0 {
            return here;
        }
        let (job, answer) = self.asked(beginning.borrowed().part(), 0);
        self.put(port, job);
        Some(answer)
    }

    /// Brings a flow to its first port whose answer nobody wants.
    fn take(&self, port: PortId, stretches: &[Stretch], beginning: &mut Beginning<'_>) -> Option<Begun> {
        // What is kept came first.
        let here = self.given.is_empty().then(|| {
            self.scheduler.run_inline(port, |fusion| {
                let job = |flow, stretch| (self.unasked(flow, stretch), ());
                self.begin_here(stretches, beginning, fusion, Going::advance_unasked, job)
            })
        });
        if here.flatten().is_none() {
            self.given.put(&self.scheduler, port, || self.unasked(beginning.borrowed().part(), 0))?;
        }
        Some(Begun::Done(Ok(Value::Unit)))
    }

    /// Begins a flow at its first port on this thread, which goes on with it as far as it may, by `advance`. Where it does
    /// not end here, `job` makes a job of it, at the stretch where it goes on.
    #[inline]
    fn begin_here<R>(
        &self,
        stretches: &[Stretch],
        beginning: &mut Beginning<'_>,
        fusion: &mut impl Fusion,
        advance: impl FnOnce(&mut Going, &Live, usize, &mut Context<'_>) -> Poll<Option<R>>,
        job: impl FnOnce(Going, usize) -> (Box<Carried>, R),
    ) -> InlineOutcome<Stretches, R> {
        let mut flow = beginning.borrowed();
        let (live, going) = flow.going();
        let to = if stretches.len() == 1 { 0 } else { fused(stretches, 0, going, fusion) };
        let sequence = going.key().sequence;
        let port_of = |stretch: usize| stretches[stretch].port_of(sequence);
        let advanced = advance(going, live, until(stretches, to), &mut Context::from_waker(Waker::noop()));
        if advanced.is_ready() {
            count(&self.placed, &stretches[0], going);
        }
        match advanced {
            Poll::Ready(Some(answer)) => InlineOutcome { answer, remaining: None },
            Poll::Ready(None) => {
                let stretch = after(stretches, to, going);
                let (job, answer) = job(flow.part(), stretch);
                InlineOutcome { answer, remaining: Some((port_of(stretch), job)) }
            }
            // It waits as one that came through the port: to be found again it has to be a job.
            Poll::Pending => {
                let (job, answer) = job(flow.part(), 0);
                let remaining = self.scheduler.work().run(port_of(0), job, fusion);
                self.scheduler.work().after_batch();
                InlineOutcome { answer, remaining }
            }
        }
    }

    /// Puts a new flow into its first port. Where a thread could not run beside the loop, it is woken when the loop has
    /// begun all that it can.
    fn put(&self, port: PortId, job: Box<Carried>) {
        if !self.scheduler.is_oversubscribed() {
            return self.scheduler.resume(port, job);
        }
        if self.scheduler.resume_deferred(port, job) {
            self.scheduler.work().exchange.owe(port);
        }
    }

    /// A flow as a job, and its answer.
    fn asked(&self, flow: Going, stretch: usize) -> (Box<Carried>, Begun) {
        let task = Arc::new(Task::new(&self.scheduler.work().link, &self.home));
        let job = Job { flow, stretch, task: Some(Arc::clone(&task)) };
        let mut awaited = Awaited::new(task, self.awaited.enter());
        (Carried::new(job, &self.home), Begun::Pending(Box::pin(poll_fn(move |context| awaited.poll(context)))))
    }

    /// A flow as a job whose answer nobody wants.
    fn unasked(&self, flow: Going, stretch: usize) -> Box<Carried> {
        Carried::new(Job { flow, stretch, task: None }, &self.home)
    }
}

impl Engine for Sections {
    fn begin(&self, entry: usize, route: usize, beginning: &mut Beginning<'_>) -> Begun {
        self.start((entry, route), beginning, |port, stretches, beginning| self.ask(port, stretches, beginning))
    }

    fn give(&self, entry: usize, route: usize, beginning: &mut Beginning<'_>) -> Begun {
        self.start((entry, route), beginning, |port, stretches, beginning| self.take(port, stretches, beginning))
    }

    fn tended(&self) -> LocalFuture<()> {
        let (given, scheduler) = (Arc::clone(&self.given), Arc::clone(&self.scheduler));
        Box::pin(async move {
            let back = Arc::downgrade(&scheduler);
            scheduler.work().exchange.carry(move |port| match back.upgrade() {
                Some(scheduler) if scheduler.is_single_processor() => scheduler.schedule_inline(port),
                Some(scheduler) => scheduler.schedule(port),
                None => {}
            });
            given.tended(&scheduler).await
        })
    }

    fn room(&self) -> LocalFuture<()> {
        let (flows, scheduler) = (Arc::clone(&self.home.flows), Arc::clone(&self.scheduler));
        let port = PortId(self.full.load(Ordering::Relaxed));
        Box::pin(async move {
            flows.room().await;
            poll_fn(|context| scheduler.poll_room(port, context)).await;
        })
    }

    fn drained(&self) -> LocalFuture<()> {
        let (flows, awaited) = (Arc::clone(&self.home.flows), Arc::clone(&self.awaited));
        Box::pin(async move {
            flows.empty().await;
            awaited.empty().await;
        })
    }

    fn sections(&self, _live: &Live) -> Vec<EventKind> {
        let crews = self.scheduler.pool_snapshots();
        self.placed.iter().filter_map(|section| doing(section, &self.scheduler, &crews)).collect()
    }

    fn close(&self) {
        self.scheduler.close();
    }

    fn abandon(&self) {
        self.given.clear(|kept| self.home.give_up(kept));
        self.scheduler.work().unanswered.give_up();
        // To drop it would wait for its threads.
        std::mem::forget(Arc::clone(&self.scheduler));
    }
}

/// What a section is doing; nothing where it has no port.
fn doing(section: &Placed, scheduler: &Scheduler<Stretches>, crews: &[PoolSnapshot]) -> Option<EventKind> {
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
fn advance_asked(flow: &mut Going, live: &Live, until: usize, context: &mut Context<'_>) -> Poll<Option<Begun>> {
    flow.advance_until(live, until, context).map(|answer| answer.map(Begun::Done))
}

/// A body without a node.
fn answered_at_once(mut flow: Flow) -> Begun {
    match flow.advance(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => Begun::Done(answer),
        Poll::Pending => Begun::Pending(Box::pin(flow)),
    }
}
