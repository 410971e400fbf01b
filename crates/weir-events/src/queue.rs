//! A first-come-first-served queue with removal of any entry in constant time, by its ticket.
//!
//! An *entry* waits in a *slot* of a slab; its *ticket* is the index of the slot together with a stamp that no other
//! entry of this queue ever gets, so that the ticket of a removed entry is recognised. A *detached* entry has left the
//! order, but keeps its slot until it is fetched.
//!
//! Waiting offers are queued here: most leave at the front, those that lost their choice leave from anywhere.

/// The slot of an entry, and the stamp that identifies the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueTicket {
    pub(crate) place: u32,
    /// Counts from 1.
    pub(crate) stamp: u64,
}

/// A doubly linked list inside a slab, in order of arrival.
pub(crate) struct OfferQueue<E> {
    slots: Vec<QueueSlot<E>>,
    head: u32,
    tail: u32,
    free: u32,
    len: usize,
    /// Number of detached entries.
    detached: usize,
    stamps: u64,
}

struct QueueSlot<E> {
    entry: Option<E>,
    stamp: u64,
    previous: u32,
    next: u32,
}

/// No slot.
const NONE: u32 = u32::MAX;
/// Stands for the previous slot of a detached entry.
const DETACHED: u32 = u32::MAX - 1;

/// An empty queue frees its memory if it once held more entries than this.
const KEPT_PLACES_MAX: usize = 256;

impl<E> OfferQueue<E> {
    pub(crate) const fn new() -> Self {
        OfferQueue { slots: Vec::new(), head: NONE, tail: NONE, free: NONE, len: 0, detached: 0, stamps: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns true if it holds no entry, not even a detached one.
    pub(crate) fn is_unused(&self) -> bool {
        self.len + self.detached == 0
    }

    /// Appends an entry.
    pub(crate) fn push(&mut self, entry: E) -> QueueTicket {
        self.stamps += 1;
        let slot = QueueSlot { entry: Some(entry), stamp: self.stamps, previous: self.tail, next: NONE };
        let place = self.store(slot);
        match self.tail {
            NONE => self.head = place,
            tail => self.slots[tail as usize].next = place,
        }
        self.tail = place;
        self.len += 1;
        QueueTicket { place, stamp: self.stamps }
    }

    fn store(&mut self, slot: QueueSlot<E>) -> u32 {
        if self.free == NONE {
            let place = u32::try_from(self.slots.len()).expect("memory ends before places do");
            self.slots.push(slot);
            return place;
        }
        let place = self.free;
        self.free = self.slots[place as usize].next;
        self.slots[place as usize] = slot;
        place
    }

    /// Returns the ticket of the first entry.
    pub(crate) fn first(&self) -> Option<QueueTicket> {
        self.ticket(self.head)
    }

    /// Returns the ticket behind this one, which must still be queued.
    pub(crate) fn after(&self, ticket: QueueTicket) -> Option<QueueTicket> {
        self.ticket(self.slots[ticket.place as usize].next)
    }

    fn ticket(&self, place: u32) -> Option<QueueTicket> {
        self.slots.get(place as usize).map(|slot| QueueTicket { place, stamp: slot.stamp })
    }

    /// Returns the entry of a ticket, if it is still there.
    pub(crate) fn get(&self, ticket: QueueTicket) -> Option<&E> {
        self.slots.get(ticket.place as usize).filter(|slot| slot.stamp == ticket.stamp)?.entry.as_ref()
    }

    /// Returns the entry of a ticket for modification, if it is still there.
    pub(crate) fn get_mut(&mut self, ticket: QueueTicket) -> Option<&mut E> {
        self.slots.get_mut(ticket.place as usize).filter(|slot| slot.stamp == ticket.stamp)?.entry.as_mut()
    }

    /// Detaches a queued entry from the order; it keeps its slot.
    pub(crate) fn detach(&mut self, ticket: QueueTicket) -> Option<&mut E> {
        let slot = self.slots.get_mut(ticket.place as usize).filter(|slot| slot.stamp == ticket.stamp)?;
        let (previous, next) = (slot.previous, slot.next);
        slot.previous = DETACHED;
        self.detached += 1;
        self.unlink(previous, next);
        self.slots[ticket.place as usize].entry.as_mut()
    }

    /// Detaches a queued entry, replaces it by its outcome, and returns the entry.
    pub(crate) fn finish(&mut self, ticket: QueueTicket, outcome: E) -> Option<E> {
        self.detach(ticket).map(|entry| std::mem::replace(entry, outcome))
    }

    /// Adds a detached entry.
    pub(crate) fn push_detached(&mut self, entry: E) -> QueueTicket {
        self.stamps += 1;
        self.detached += 1;
        let slot = QueueSlot { entry: Some(entry), stamp: self.stamps, previous: DETACHED, next: NONE };
        QueueTicket { place: self.store(slot), stamp: self.stamps }
    }

    /// Removes the entry of a ticket, if it is still there.
    pub(crate) fn remove(&mut self, ticket: QueueTicket) -> Option<E> {
        let slot = self.slots.get_mut(ticket.place as usize).filter(|slot| slot.stamp == ticket.stamp)?;
        let entry = slot.entry.take()?;
        let (previous, next) = (slot.previous, slot.next);
        slot.next = self.free;
        self.free = ticket.place;
        self.unlink(previous, next);
        self.shrink();
        Some(entry)
    }

    fn unlink(&mut self, previous: u32, next: u32) {
        match previous {
            DETACHED => {
                self.detached -= 1;
                return;
            }
            NONE => self.head = next,
            place => self.slots[place as usize].next = next,
        }
        match next {
            NONE => self.tail = previous,
            place => self.slots[place as usize].previous = previous,
        }
        self.len -= 1;
    }

    fn shrink(&mut self) {
        if self.is_unused() && self.slots.len() > KEPT_PLACES_MAX {
            self.slots = Vec::new();
            self.free = NONE;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pop<E>(queue: &mut OfferQueue<E>) -> Option<E> {
        queue.remove(queue.first()?)
    }

    #[test]
    fn entries_leave_in_order_of_arrival() {
        let mut queue = OfferQueue::new();
        for n in 0..5 {
            queue.push(n);
        }
        assert_eq!(std::iter::from_fn(|| pop(&mut queue)).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn an_entry_leaves_from_the_middle_and_only_once() {
        let mut queue = OfferQueue::new();
        let tickets: Vec<_> = (0..5).map(|n| queue.push(n)).collect();
        assert_eq!(queue.remove(tickets[2]), Some(2));
        assert_eq!(queue.remove(tickets[2]), None);
        assert_eq!(std::iter::from_fn(|| pop(&mut queue)).collect::<Vec<_>>(), [0, 1, 3, 4]);
    }

    #[test]
    fn a_ticket_of_a_place_that_was_given_to_another_is_recognised() {
        let mut queue = OfferQueue::new();
        let old = queue.push('a');
        pop(&mut queue);
        let new = queue.push('b');
        assert_eq!((queue.remove(old), queue.get(new)), (None, Some(&'b')));
    }

    #[test]
    fn an_entry_that_is_aside_is_out_of_order_and_can_be_fetched() {
        let mut queue = OfferQueue::new();
        let tickets: Vec<_> = (0..3).map(|n| queue.push(n)).collect();
        assert_eq!(queue.finish(tickets[1], 10), Some(1));
        assert_eq!((queue.len(), queue.after(tickets[0])), (2, Some(tickets[2])));
        let detached = queue.push_detached(20);
        assert_eq!((queue.remove(tickets[1]), queue.remove(tickets[1])), (Some(10), None));
        assert_eq!((queue.len(), queue.remove(detached)), (2, Some(20)));
        assert_eq!(std::iter::from_fn(|| pop(&mut queue)).collect::<Vec<_>>(), [0, 2]);
    }

    #[test]
    fn memory_of_an_entry_that_is_aside_stays_until_it_is_fetched() {
        let mut queue = OfferQueue::new();
        let tickets: Vec<_> = (0..1000).map(|n| queue.push(n)).collect();
        queue.finish(tickets[500], -1);
        while pop(&mut queue).is_some() {}
        assert_eq!(queue.remove(tickets[500]), Some(-1));
        assert_eq!(queue.slots.capacity(), 0);
    }

    #[test]
    fn memory_of_a_long_queue_is_given_back() {
        let mut queue = OfferQueue::new();
        let tickets: Vec<_> = (0..1000).map(|n| queue.push(n)).collect();
        for ticket in tickets.into_iter().rev() {
            queue.remove(ticket);
        }
        assert!(queue.is_empty() && queue.slots.capacity() == 0);
    }
}
