//! Ready queue of a pool: a bounded lock-free MPMC queue of the ports that have work.
//!
//! The queue is a ring of *slots*. A slot holds a port and the *lap* in which it was written, in one word. A worker
//! that looks for work reads only the slot at `head`, so that one cache line travels from the producer to the worker.
//!
//! ```text
//!                 head                 tail
//!                  v                    v
//!    slot:  | lap 1 | lap 1 | lap 1 | lap 0 |   lap(ticket) = ticket / slots + 1
//!             taken   ready   ready   empty
//! ```
//!
//! Protocol:
//! 1. *Push.* Add 1 to `tail`, acquire and release; the old value is the ticket. Store port and lap into the ticket's
//!    slot, release.
//! 2. *Pop.* Load `head`, acquire: a ticket. Load its slot, acquire. If the slot holds another lap, the queue is empty,
//!    unless `head` has moved meanwhile. Otherwise advance `head` by a compare-and-exchange, acquire and release on
//!    success, relaxed on failure. The thread that succeeds owns the port.
//! 3. *No overwrite.* A port is in the queue at most once (`PortQueue` schedules it once), and there are at least as
//!    many slots as ports. A pusher therefore finds its slot taken: otherwise all slots would hold ports, and its own
//!    port would be one of them.
//! 4. *Empty check before sleep.* Between the two parts of step 1 the queue is not empty, but nothing can be popped
//!    yet. `is_empty` compares `tail` with `head`, both loaded with acquire, so that a worker that asks before it
//!    sleeps stays awake.
//!
//! These orderings suffice: the release store in step 1 and the acquire load of the slot in step 2 hand over everything
//! that happened before the push, and the compare-and-exchange gives each ticket to one thread. The lap distinguishes a
//! slot that was written for this ticket from one that still holds an earlier lap; it may wrap, because a slot holds
//! the lap of a current ticket or the one before, and the compare-and-exchange fails for a ticket that is not current.

use crossbeam_utils::CachePadded;

use super::sync::{AtomicU64, AtomicUsize, Ordering, SchedulerMutant, is};

/// A lock-free queue of ports.
pub(crate) struct ReadyQueue {
    /// The ring, whose length is a power of two. A slot is written by the thread that holds its ticket.
    slots: Box<[AtomicU64]>,
    /// The next ticket to pop. Written by workers that look for work.
    head: CachePadded<AtomicUsize>,
    /// The next ticket to push. Written by threads that have work.
    tail: CachePadded<AtomicUsize>,
}

/// The number of bits of a slot that hold the port. The others hold the lap.
const PORT_BITS: u32 = 32;

impl ReadyQueue {
    /// Creates a queue for ports with indices below `ports`.
    pub(crate) fn new(ports: usize) -> Self {
        assert!(u32::try_from(ports).is_ok(), "{ports} ports do not fit into {PORT_BITS} bits");
        let slots = (0..ports.next_power_of_two()).map(|_| AtomicU64::new(0)).collect();
        let ticket = || CachePadded::new(AtomicUsize::new(0));
        ReadyQueue { slots, head: ticket(), tail: ticket() }
    }

    /// Appends a port that is not in the queue.
    pub(crate) fn push(&self, port: usize) {
        let ticket = self.tail.fetch_add(1, Ordering::AcqRel);
        let order = if is(SchedulerMutant::RelaxedSlot) { Ordering::Relaxed } else { Ordering::Release };
        self.slot(ticket).store((self.lap(ticket) << PORT_BITS) | port as u64, order);
    }

    /// Takes the first port.
    #[inline]
    pub(crate) fn pop(&self) -> Option<usize> {
        loop {
            let ticket = self.head.load(Ordering::Acquire);
            let word = self.slot(ticket).load(Ordering::Acquire);
            if word >> PORT_BITS == self.lap(ticket) || is(SchedulerMutant::AnyLap) {
                if self.try_take(ticket) {
                    return Some((word & u64::from(u32::MAX)) as usize);
                }
            } else if self.head.load(Ordering::Acquire) == ticket {
                return None;
            }
        }
    }

    /// Takes the ticket. Returns whether this thread got it, and no other.
    fn try_take(&self, ticket: usize) -> bool {
        if is(SchedulerMutant::HeadUnchecked) {
            self.head.store(ticket.wrapping_add(1), Ordering::Release);
            return true;
        }
        self.head.compare_exchange(ticket, ticket.wrapping_add(1), Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Returns whether the queue is empty and no thread is between the two parts of a push.
    pub(crate) fn is_empty(&self) -> bool {
        self.tail.load(Ordering::Acquire) == self.head.load(Ordering::Acquire)
    }

    /// Returns the slot of a ticket.
    fn slot(&self, ticket: usize) -> &AtomicU64 {
        &self.slots[ticket & (self.slots.len() - 1)]
    }

    /// Returns the lap of a ticket as a slot holds it. The first lap is 1; 0 marks a slot that was never written.
    fn lap(&self, ticket: usize) -> u64 {
        let laps = ticket >> self.slots.len().trailing_zeros();
        (laps as u64 + 1) & u64::from(u32::MAX)
    }
}
