//! The scheduler: ports, crews, and a thread that steers how many threads each crew has.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::crew::{Crew, Running};
use crate::inbox::Inbox;
use crate::steer;
use crate::worker::Worker;

/// The index of a port. Items mostly go from lower to higher ones; a port waits for room only in a higher one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub usize);

/// What is done at the ports.
pub trait Work: Send + Sync + 'static {
    /// What goes through them.
    type Item: Send + 'static;

    /// Works on an item at a port, and says where it goes on; `None` where it is through. Of one port, one item is worked
    /// on at a time, in the order in which they were put in. It must not panic; it may block, and is then not counted
    /// among its crew's threads.
    fn run(&self, port: PortId, item: Self::Item) -> Option<(PortId, Self::Item)>;
}

/// One port: how many items may wait at it, and the crew that serves it, by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// From how many items on it takes no more from a source, and those before it wait.
    pub capacity: usize,
    /// The index of its crew.
    pub crew: usize,
}

/// The port has no room: the item comes back.
#[derive(Debug, PartialEq, Eq)]
pub struct Full<T>(pub T);

/// What one crew is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The crew's name.
    pub crew: String,
    /// How many threads it should have.
    pub threads: usize,
    /// How many items it has worked on since the start.
    pub items: u64,
    /// How many items wait at its ports.
    pub waiting: usize,
}

/// A port at work.
pub(crate) struct Port<T> {
    pub(crate) inbox: Inbox<T>,
    pub(crate) crew: usize,
}

/// What all threads share.
pub(crate) struct Shared<W: Work> {
    pub(crate) work: W,
    pub(crate) ports: Vec<Port<W::Item>>,
    pub(crate) crews: Vec<Running>,
    /// How many items have been put in and are not through.
    in_flight: AtomicUsize,
    drained: (Mutex<()>, Condvar),
}

impl<W: Work> Shared<W> {
    pub(crate) fn hand(&self, port: usize) {
        self.crews[self.ports[port].crew].hand(port);
    }

    /// So many items are through.
    pub(crate) fn through(&self, count: usize) {
        if count > 0 && self.in_flight.fetch_sub(count, Ordering::AcqRel) == count {
            // Who waits checks under this lock, so that the last item cannot slip between its check and its wait.
            drop(self.drained.0.lock());
            self.drained.1.notify_all();
        }
    }

    /// How many items wait at the ports of a crew.
    pub(crate) fn waiting(&self, crew: usize) -> usize {
        self.ports.iter().filter(|port| port.crew == crew).map(|port| port.inbox.len()).sum()
    }
}

/// Ports and the threads that serve them. Dropping it ends the threads; items that are not through are dropped.
pub struct Scheduler<W: Work> {
    shared: Arc<Shared<W>>,
    threads: Vec<JoinHandle<()>>,
    steering: Option<steer::Steering>,
}

impl<W: Work> Scheduler<W> {
    /// Starts the threads. `period` is how often crews are steered, 50 to 500 ms.
    ///
    /// # Errors
    /// Fails where the machine gives no more threads.
    ///
    /// # Panics
    /// Panics where a port names a crew that is not there, or a capacity or a crew's least number of threads is 0.
    pub fn start(work: W, ports: &[Ports], crews: Vec<Crew>, period: Duration) -> std::io::Result<Self> {
        let served = |crew: usize| ports.iter().filter(|port| port.crew == crew).count();
        let crews: Vec<Running> =
            crews.into_iter().enumerate().map(|(index, crew)| Running::new(crew, served(index))).collect();
        assert!(ports.iter().all(|port| port.crew < crews.len()), "a port names a crew that is not there");
        let ports = ports.iter().map(|port| Port { inbox: Inbox::new(port.capacity), crew: port.crew }).collect();
        let shared = Arc::new(Shared {
            work,
            ports,
            crews,
            in_flight: AtomicUsize::new(0),
            drained: (Mutex::new(()), Condvar::new()),
        });
        let mut scheduler = Scheduler { shared, threads: Vec::new(), steering: None };
        scheduler.start_threads()?;
        scheduler.steering = steer::start(&scheduler.shared, period)?;
        Ok(scheduler)
    }

    fn start_threads(&mut self) -> std::io::Result<()> {
        for (crew, running) in self.shared.crews.iter().enumerate() {
            let level = running.level.load(Ordering::Relaxed);
            for (seat, state) in running.seats.iter().enumerate() {
                state.suspended.store(seat >= level, Ordering::Release);
                let worker = Worker::new(self.shared.clone(), crew, seat);
                let thread = Builder::new().name(format!("weir-{}-{seat}", running.crew.name));
                let handle = thread.spawn(move || worker.run())?;
                // The seat is new, so that it has no thread yet.
                _ = state.thread.set(handle.thread().clone());
                self.threads.push(handle);
            }
        }
        Ok(())
    }

    /// Puts an item in at a port.
    ///
    /// # Errors
    /// Gives the item back where the port has no room: see [`Scheduler::poll_room`].
    pub fn submit(&self, port: PortId, item: W::Item) -> Result<(), Full<W::Item>> {
        self.shared.in_flight.fetch_add(1, Ordering::AcqRel);
        match self.shared.ports[port.0].inbox.offer(item) {
            Ok(put) => {
                if put.hand {
                    self.shared.hand(port.0);
                }
                Ok(())
            }
            Err(item) => {
                self.shared.through(1);
                Err(Full(item))
            }
        }
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
        let mut guard = self.shared.drained.0.lock();
        while self.shared.in_flight.load(Ordering::Acquire) > 0 {
            self.shared.drained.1.wait(&mut guard);
        }
    }

    /// What the crews are doing.
    #[must_use]
    pub fn snapshot(&self) -> Vec<Snapshot> {
        let crews = self.shared.crews.iter().enumerate();
        crews
            .map(|(index, running)| Snapshot {
                crew: running.crew.name.clone(),
                threads: running.level.load(Ordering::Relaxed),
                items: running.items(),
                waiting: self.shared.waiting(index),
            })
            .collect()
    }
}

impl<W: Work> Drop for Scheduler<W> {
    fn drop(&mut self) {
        drop(self.steering.take());
        for running in &self.shared.crews {
            for seat in &running.seats {
                seat.ended.store(true, Ordering::Release);
                seat.thread.get().into_iter().for_each(std::thread::Thread::unpark);
            }
            running.idle.wake_all();
        }
        // A thread that panicked has said so already.
        self.threads.drain(..).for_each(|thread| _ = thread.join());
    }
}
