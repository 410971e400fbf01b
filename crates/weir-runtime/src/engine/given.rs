//! Flows whose answer nobody wants, on their way to their first ports.
//!
//! A stream gives element after element, and what it gives costs a queue less where it goes in by batches. So:
//! 1. what is given is kept here, by ports;
//! 2. it goes to its port when there is a batch of it, or when the source waits for something or lets others have their
//!    turn: then its event loop comes to [`Given::tended`].

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use weir_scheduler::{PortId, Scheduler, Work};

/// How many are kept for one port.
const BATCH: usize = 64;

/// What is kept.
pub(super) struct Given<T> {
    /// Whether something may be kept. Written under the lock.
    some: AtomicBool,
    inside: Mutex<Inside<T>>,
}

struct Inside<T> {
    ports: Vec<Kept<T>>,
    /// The event loop, to be told that something is kept.
    tender: Option<Waker>,
    /// Whether it was told.
    told: bool,
}

/// What is kept for one port.
struct Kept<T> {
    port: PortId,
    items: Vec<T>,
    /// How many it has room for.
    room: usize,
}

impl<T> Default for Given<T> {
    fn default() -> Self {
        let inside = Inside { ports: Vec::new(), tender: None, told: false };
        Given { some: AtomicBool::new(false), inside: Mutex::new(inside) }
    }
}

impl<T: Send + 'static> Given<T> {
    /// Whether nothing is kept, for the event loop on which items are put in.
    pub(super) fn is_empty(&self) -> bool {
        !self.some.load(Ordering::Relaxed)
    }

    /// Keeps an item for the port; nothing is made where that has no room.
    pub(super) fn put<W: Work<Item = T>>(
        &self,
        scheduler: &Scheduler<W>,
        port: PortId,
        make: impl FnOnce() -> T,
    ) -> Option<()> {
        let mut inside = self.inside.lock();
        let kept = inside.kept(port);
        if kept.items.is_empty() {
            kept.room = scheduler.room(port).min(BATCH);
        }
        if kept.room == 0 {
            return None;
        }
        kept.items.push(make());
        if kept.items.len() >= kept.room {
            kept.hand_over(scheduler);
        }
        self.some.store(true, Ordering::Relaxed);
        inside.tell();
        Some(())
    }

    /// Hands over what is kept whenever the event loop comes by; never ends.
    pub(super) async fn tended<W: Work<Item = T>>(&self, scheduler: &Scheduler<W>) {
        poll_fn(|context| self.tend(scheduler, context)).await
    }

    fn tend<W: Work<Item = T>>(&self, scheduler: &Scheduler<W>, context: &Context<'_>) -> Poll<()> {
        let mut inside = self.inside.lock();
        inside.ports.iter_mut().for_each(|kept| kept.hand_over(scheduler));
        self.some.store(false, Ordering::Relaxed);
        inside.tender = Some(context.waker().clone());
        inside.told = false;
        Poll::Pending
    }

    /// Gives up what is kept.
    pub(super) fn clear(&self, give_up: impl FnMut(T)) {
        let ports = std::mem::take(&mut self.inside.lock().ports);
        ports.into_iter().flat_map(|kept| kept.items).for_each(give_up);
    }
}

impl<T> Inside<T> {
    fn kept(&mut self, port: PortId) -> &mut Kept<T> {
        let at = self.ports.iter().position(|kept| kept.port == port).unwrap_or_else(|| {
            self.ports.push(Kept { port, items: Vec::with_capacity(BATCH), room: 0 });
            self.ports.len() - 1
        });
        &mut self.ports[at]
    }

    /// Has the event loop come by.
    fn tell(&mut self) {
        if !std::mem::replace(&mut self.told, true) {
            self.tender.iter().for_each(Waker::wake_by_ref);
        }
    }
}

impl<T: Send + 'static> Kept<T> {
    fn hand_over<W: Work<Item = T>>(&mut self, scheduler: &Scheduler<W>) {
        if !self.items.is_empty() {
            scheduler.resume_batch(self.port, &mut self.items);
        }
    }
}
