//! The scheduler: ports, crews, and a thread that steers how many threads each crew has.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use parking_lot::Mutex;

use crate::crew::{Crew, Running, Setting};
use crate::feed::{Bringing, Done, Full};
use crate::inbox::Inbox;
use crate::reach::Reach;
use crate::shared::{NO_CREW, Port, Shared};
use crate::steer;
use crate::work::{PortId, Work};
use crate::worker::Worker;

/// One port: how many items may wait at it, and the crew that serves it, by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// From how many items on it takes no more from a source, and those before it wait.
    pub capacity: usize,
    /// The index of its crew.
    pub crew: usize,
    /// Whether its work never waits for anything. Such ports may be fused: a thread runs them in one go with those before
    /// them, which a thread that is stuck would hold too.
    pub brief: bool,
}

/// What one crew is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The crew's name.
    pub crew: String,
    /// How many threads it should have.
    pub threads: usize,
    /// The most threads that it may have.
    pub threads_max: usize,
    /// How many items it has worked on since the start.
    pub items: u64,
    /// How many items wait at its ports.
    pub waiting: usize,
}

/// What one port is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// The index of its crew.
    pub crew: usize,
    /// How many items wait at it.
    pub waiting: usize,
    /// How many may wait at it.
    pub capacity: usize,
}

/// Ports and the threads that serve them. Dropping it ends the threads; items that are not through are dropped.
pub struct Scheduler<W: Work> {
    shared: Arc<Shared<W>>,
    /// Whether there is one processor only.
    single: bool,
    threads: Mutex<Vec<JoinHandle<()>>>,
    steering: Mutex<Option<steer::Steering>>,
}

impl<W: Work> Scheduler<W> {
    /// Starts the threads, with nobody else busy: see [`Scheduler::start_beside`].
    ///
    /// # Errors
    /// Fails where the machine gives no more threads.
    ///
    /// # Panics
    /// Panics where a port names a crew that is not there, or a capacity or a crew's least number of threads is 0.
    pub fn start(work: W, ports: &[Ports], crews: Vec<Crew>, period: Duration) -> std::io::Result<Self> {
        Scheduler::start_beside(0, work, ports, crews, period)
    }

    /// Starts the threads, where `beside` others are busy with putting items in. `period` is how often crews are steered, 50
    /// to 500 ms.
    ///
    /// # Errors
    /// Fails where the machine gives no more threads.
    ///
    /// # Panics
    /// Panics where a port names a crew that is not there, or a capacity or a crew's least number of threads is 0.
    pub fn start_beside(
        beside: usize,
        work: W,
        ports: &[Ports],
        crews: Vec<Crew>,
        period: Duration,
    ) -> std::io::Result<Self> {
        let served = |crew: usize| ports.iter().filter(|port| port.crew == crew).count();
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let is_steered = crews.iter().any(|crew| crew.control.is_steered());
        let setting = Setting { is_steered, processors };
        let crews = crews.into_iter().enumerate();
        let crews: Vec<Running> = crews.map(|(index, crew)| Running::new(crew, served(index), setting)).collect();
        assert!(ports.iter().all(|port| port.crew < crews.len()), "a port names a crew that is not there");
        let crowded = beside + threads_max(&crews) > processors;
        let port = |ports: &Ports| {
            let Ports { capacity, crew, brief } = *ports;
            // Half empty, so that who waited does not have to wait again at once. Where threads outnumber processors, each
            // of them should do as much as it can once it has one.
            let low = if crowded { 0 } else { capacity / 2 };
            let fuses_in = if brief { crew } else { NO_CREW };
            Port { inbox: Inbox::new(capacity, low), crew, fuses_in, reach: Reach::new() }
        };
        let ports = ports.iter().map(port).collect();
        let shared = Arc::new(Shared::new(work, ports, crews, (processors, crowded)));
        let (threads, steering) = (Mutex::default(), Mutex::default());
        let scheduler = Scheduler { shared, single: processors == 1, threads, steering };
        scheduler.start_threads()?;
        *scheduler.steering.lock() = steer::start(&scheduler.shared, period)?;
        Ok(scheduler)
    }

    fn start_threads(&self) -> std::io::Result<()> {
        for (crew, running) in self.shared.crews.iter().enumerate() {
            let level = running.level.load(Ordering::Relaxed);
            for (seat, state) in running.seats.iter().enumerate() {
                state.suspended.store(seat >= level, Ordering::Release);
                let worker = Worker::new(self.shared.clone(), crew, seat);
                let thread = Builder::new().name(format!("weir-{}-{seat}", running.crew.name));
                let handle = thread.spawn(move || worker.run())?;
                // The seat is new, so that it has no thread yet.
                _ = state.thread.set(handle.thread().clone());
                self.threads.lock().push(handle);
            }
        }
        Ok(())
    }

    /// Puts an item in at a port.
    ///
    /// # Errors
    /// Gives the item back where the port has no room: see [`Scheduler::poll_room`].
    pub fn submit(&self, port: PortId, item: W::Item) -> Result<(), Full<W::Item>> {
        self.shared.submit(port, item)
    }

    /// Puts items in until there are no more. Where the crew of their ports is elastic and needs one thread only, the
    /// caller's thread works on them itself; see [`Ports::brief`].
    ///
    /// # Errors
    /// Gives the first item back whose port has no room: see [`Scheduler::poll_room`]. Those after it are not taken.
    pub fn feed(&self, items: &mut impl Iterator<Item = (PortId, W::Item)>) -> Result<(), Full<(PortId, W::Item)>> {
        self.shared.feed(items)
    }

    /// Works on an item at a port right here, as [`Scheduler::feed`] would, without its ever being one: `run` makes it and
    /// runs it. `None` where this thread may not work at the port now; then it was not run. It is no batch: where `run` keeps
    /// something back for [`Work::after_batch`], it has to call that.
    #[inline]
    pub fn bring<R>(&self, port: PortId, run: impl FnOnce(&mut Bringing<'_, W>) -> Done<W, R>) -> Option<R> {
        self.shared.bring_one(port, run)
    }

    /// Puts an item in at a port, beyond its capacity if need be: one that left the port to wait for something and comes
    /// back, and which nobody could give back to.
    pub fn resume(&self, port: PortId, item: W::Item) {
        if self.leave(port, item) {
            self.hand(port);
        }
    }

    /// The same for a batch.
    pub fn resume_all(&self, port: PortId, items: &mut Vec<W::Item>) {
        self.shared.begun(items.len());
        if self.shared.ports[port.0].inbox.put(items).hand {
            self.shared.hand(port.0);
        }
    }

    /// The same, but wakes nobody; where it says so, the port has to be handed over ([`Scheduler::hand`]), and nothing at it
    /// is worked on before.
    #[must_use]
    pub fn leave(&self, port: PortId, item: W::Item) -> bool {
        self.shared.begun(1);
        self.shared.ports[port.0].inbox.put_one(item).hand
    }

    /// Hands a port over to its crew.
    pub fn hand(&self, PortId(port): PortId) {
        self.shared.hand(port);
    }

    /// The same, but works at the port right here first, where this thread may: as [`Scheduler::bring`] for items that are in
    /// the port. Not to be called from what is worked on.
    pub fn visit(&self, PortId(port): PortId) {
        self.shared.visit(port);
    }

    /// Whether there is one processor only, so that threads cannot work beside each other.
    #[must_use]
    pub fn is_single(&self) -> bool {
        self.single
    }

    /// Whether threads outnumber processors, so that who is woken holds up who woke it.
    #[must_use]
    pub fn is_crowded(&self) -> bool {
        self.shared.crowded
    }

    /// How many items a port has room for.
    #[must_use]
    pub fn room(&self, port: PortId) -> usize {
        self.shared.ports[port.0].inbox.room()
    }

    /// Waits until a port has room. A waker is woken once; nothing is reserved.
    pub fn poll_room(&self, port: PortId, context: &Context<'_>) -> Poll<()> {
        let room = self.shared.ports[port.0].inbox.has_room(context.waker());
        if room { Poll::Ready(()) } else { Poll::Pending }
    }

    /// What is done at the ports.
    #[must_use]
    pub fn work(&self) -> &W {
        &self.shared.work
    }

    /// Holds this thread until everything that was put in is through.
    pub fn drain(&self) {
        self.shared.drain();
    }

    /// What a port is doing.
    #[must_use]
    pub fn queue(&self, port: PortId) -> Queue {
        let port = &self.shared.ports[port.0];
        Queue { crew: port.crew, waiting: port.inbox.len(), capacity: port.inbox.capacity() }
    }

    /// Ends the threads, and waits until they have. What they have in hand is done; the rest stays where it is.
    pub fn close(&self) {
        let steering = self.steering.lock().take();
        steering.into_iter().for_each(|steering| steering.end(&self.shared));
        for running in &self.shared.crews {
            for seat in &running.seats {
                seat.ended.store(true, Ordering::Release);
                seat.thread.get().into_iter().for_each(std::thread::Thread::unpark);
            }
            running.idle.wake_all();
        }
        let threads = std::mem::take(&mut *self.threads.lock());
        // A thread that panicked has said so already.
        threads.into_iter().for_each(|thread| _ = thread.join());
    }

    /// What the crews are doing.
    #[must_use]
    pub fn snapshot(&self) -> Vec<Snapshot> {
        let crews = self.shared.crews.iter().enumerate();
        crews
            .map(|(index, running)| Snapshot {
                crew: running.crew.name.clone(),
                threads: running.level.load(Ordering::Relaxed),
                threads_max: running.crew.control.threads_max(),
                items: running.items(),
                waiting: self.shared.waiting(index),
            })
            .collect()
    }
}

/// How many threads there may be.
fn threads_max(crews: &[Running]) -> usize {
    crews.iter().map(|running| running.crew.control.threads_max()).sum()
}

impl<W: Work> Drop for Scheduler<W> {
    fn drop(&mut self) {
        self.close();
    }
}
