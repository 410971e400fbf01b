//! The ports of a crew that have work: a queue that any thread puts into and takes from, without a lock.
//!
//! A *place* holds a port and the *lap* in which it was put there, in one word. That word is all that travels from who has
//! work to who looks for some: who looks reads the place that comes next, and not where the queue begins and ends.
//!
//! Protocol:
//! 1. Who puts a port in draws a ticket from `tail`, and writes port and lap into the ticket's place, which releases what
//!    was done before.
//! 2. Who takes one reads the place of the ticket in `head`. Where it holds another lap, there is nothing yet. Else it
//!    moves `head` on, which only one can do for each ticket, and the port is its own.
//! 3. A port is in the queue at most once, and there are no fewer places than ports. So who draws a ticket finds its place
//!    taken: otherwise all places were, and that port as well.
//! 4. Between the two steps of 1 the queue is not empty, but there is nothing to take yet. Who asks whether it is empty
//!    before it sleeps stays awake.

use crossbeam_utils::CachePadded;

use super::sync::{AtomicU64, AtomicUsize, Ordering, SchedulerMutant, is};

/// A queue of ports.
pub(crate) struct ReadyQueue {
    /// As many as a power of two. Written by who has drawn the ticket.
    slots: Box<[AtomicU64]>,
    /// The ticket to be taken next. Written only by those who look for work.
    head: CachePadded<AtomicUsize>,
    /// The ticket to be drawn next. Written only by those who have work.
    tail: CachePadded<AtomicUsize>,
}

/// The bits of a place that hold the port; the others hold the lap.
const PORT_BITS: u32 = 32;

impl ReadyQueue {
    /// A queue for ports with these indices at most, each at most once.
    pub(crate) fn new(ports: usize) -> Self {
        assert!(u32::try_from(ports).is_ok(), "{ports} ports are more than anybody has");
        let slots = (0..ports.next_power_of_two()).map(|_| AtomicU64::new(0)).collect();
        let ticket = || CachePadded::new(AtomicUsize::new(0));
        ReadyQueue { slots, head: ticket(), tail: ticket() }
    }

    /// Puts a port in, which is not in it.
    pub(crate) fn push(&self, port: usize) {
        let ticket = self.tail.fetch_add(1, Ordering::AcqRel);
        let order = if is(SchedulerMutant::RelaxedSlot) { Ordering::Relaxed } else { Ordering::Release };
        self.slot(ticket).store((self.lap(ticket) << PORT_BITS) | port as u64, order);
    }

    /// Takes the port that came first.
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

    /// Whether the ticket is this thread's.
    fn try_take(&self, ticket: usize) -> bool {
        if is(SchedulerMutant::HeadUnchecked) {
            self.head.store(ticket.wrapping_add(1), Ordering::Release);
            return true;
        }
        self.head.compare_exchange(ticket, ticket.wrapping_add(1), Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Whether there is nothing in it, and nobody about to put something in.
    pub(crate) fn is_empty(&self) -> bool {
        self.tail.load(Ordering::Acquire) == self.head.load(Ordering::Acquire)
    }

    fn slot(&self, ticket: usize) -> &AtomicU64 {
        &self.slots[ticket & (self.slots.len() - 1)]
    }

    /// The lap of a ticket, as a place holds it: never that of a place which nobody has written to.
    fn lap(&self, ticket: usize) -> u64 {
        let laps = ticket >> self.slots.len().trailing_zeros();
        (laps as u64 + 1) & u64::from(u32::MAX)
    }
}
