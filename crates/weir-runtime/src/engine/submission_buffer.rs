//! Flows whose answer nobody wants, on their way to their first ports.
//!
//! A stream gives element after element, and what it gives costs a queue less where it goes in by batches. So:
//! 1. what is given is kept here, by ports;
//! 2. it goes to its port when there is a batch of it, or when the source waits for something or lets others have their
//!    turn: then its event loop comes to [`SubmissionBuffer::run_flusher`].

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use weir_scheduler::{PortId, Scheduler, Work};

/// How many are kept for one port.
const BATCH: usize = 64;

/// What is kept.
pub(super) struct SubmissionBuffer<T> {
    /// Whether something may be kept. Written under the lock.
    is_nonempty: AtomicBool,
    state: Mutex<BufferState<T>>,
}

struct BufferState<T> {
    ports: Vec<PortBuffer<T>>,
    /// The event loop, to be told that something is kept.
    flusher: Option<Waker>,
    /// Whether it was told.
    is_notified: bool,
}

/// What is kept for one port.
struct PortBuffer<T> {
    port: PortId,
    items: Vec<T>,
    /// How many it has room for.
    room: usize,
}

impl<T> Default for SubmissionBuffer<T> {
    fn default() -> Self {
        let state = BufferState { ports: Vec::new(), flusher: None, is_notified: false };
        SubmissionBuffer { is_nonempty: AtomicBool::new(false), state: Mutex::new(state) }
    }
}

impl<T: Send + 'static> SubmissionBuffer<T> {
    /// Whether nothing is kept, for the event loop on which items are put in.
    pub(super) fn is_empty(&self) -> bool {
        !self.is_nonempty.load(Ordering::Relaxed)
    }

    /// Keeps an item for the port; nothing is made where that has no room.
    pub(super) fn push<W: Work<Item = T>>(
        &self,
        scheduler: &Scheduler<W>,
        port: PortId,
        make: impl FnOnce() -> T,
    ) -> Option<()> {
        let mut state = self.state.lock();
        let buffer = state.buffer(port);
        if buffer.items.is_empty() {
            buffer.room = scheduler.room(port).min(BATCH);
        }
        if buffer.room == 0 {
            return None;
        }
        buffer.items.push(make());
        if buffer.items.len() >= buffer.room {
            buffer.flush(scheduler);
        }
        self.is_nonempty.store(true, Ordering::Relaxed);
        state.notify();
        Some(())
    }

    /// Hands over what is kept whenever the event loop comes by; never ends.
    pub(super) async fn run_flusher<W: Work<Item = T>>(&self, scheduler: &Scheduler<W>) {
        poll_fn(|context| self.poll_flush(scheduler, context)).await
    }

    fn poll_flush<W: Work<Item = T>>(&self, scheduler: &Scheduler<W>, context: &Context<'_>) -> Poll<()> {
        let mut state = self.state.lock();
        state.ports.iter_mut().for_each(|buffer| buffer.flush(scheduler));
        self.is_nonempty.store(false, Ordering::Relaxed);
        state.flusher = Some(context.waker().clone());
        state.is_notified = false;
        Poll::Pending
    }

    /// Gives up what is kept.
    pub(super) fn drain(&self, give_up: impl FnMut(T)) {
        let ports = std::mem::take(&mut self.state.lock().ports);
        ports.into_iter().flat_map(|buffer| buffer.items).for_each(give_up);
    }
}

impl<T> BufferState<T> {
    fn buffer(&mut self, port: PortId) -> &mut PortBuffer<T> {
        let at = self.ports.iter().position(|buffer| buffer.port == port).unwrap_or_else(|| {
            self.ports.push(PortBuffer { port, items: Vec::with_capacity(BATCH), room: 0 });
            self.ports.len() - 1
        });
        &mut self.ports[at]
    }

    /// Has the event loop come by.
    fn notify(&mut self) {
        if !std::mem::replace(&mut self.is_notified, true) {
            self.flusher.iter().for_each(Waker::wake_by_ref);
        }
    }
}

impl<T: Send + 'static> PortBuffer<T> {
    fn flush<W: Work<Item = T>>(&mut self, scheduler: &Scheduler<W>) {
        if !self.items.is_empty() {
            scheduler.resume_batch(self.port, &mut self.items);
        }
    }
}
