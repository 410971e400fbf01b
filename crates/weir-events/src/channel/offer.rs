//! A waiting offer to send or to receive, and the value that travels through it.
//!
//! Who may touch the slot: the owner before it queues the offer and after the party is resolved; in between only the
//! peer that commits the party, which holds the slot's lock from before its commit until the value is exchanged. So an
//! owner that sees `COMMITTED` and takes the lock sees the exchange.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};

use super::outcome::Sent;
use crate::mutants::{Mutant, is_active};
use crate::party::{Party, Seeker, Verdict};
use crate::primitives::Lock;
use crate::queue::Ticket;

/// One leaf's offer on one channel.
pub(crate) struct Offer<T> {
    party: Arc<Party>,
    leaf: usize,
    /// Where the value to send lies, if not in the slot. Its lock takes the slot's place.
    parcel: Option<Home<T>>,
    place: Place,
    slot: Lock<Slot<T>>,
}

/// Where the offer is queued. Only the owner writes and reads it, one thread after the other, so that it needs no lock and
/// no order among other things: a peer that takes the offer knows the ticket from the queue.
struct Place {
    place: AtomicUsize,
    stamp: AtomicU64,
}

/// A stamp that no ticket has.
const UNQUEUED: u64 = 0;

impl Place {
    fn none() -> Self {
        Place { place: AtomicUsize::new(0), stamp: AtomicU64::new(UNQUEUED) }
    }

    fn set(&self, ticket: Ticket) {
        self.place.store(ticket.place, Relaxed);
        self.stamp.store(ticket.stamp, Relaxed);
    }

    fn take(&self) -> Option<Ticket> {
        let ticket = Ticket { place: self.place.load(Relaxed), stamp: self.stamp.load(Relaxed) };
        self.stamp.store(UNQUEUED, Relaxed);
        (ticket.stamp != UNQUEUED).then_some(ticket)
    }
}

/// Where the value of a parcel lies.
type Home<T> = Arc<Lock<Option<T>>>;

struct Slot<T> {
    /// To send: the value until it is taken, unless it lies in a parcel. To receive: the value once it has come;
    /// none after the commit: the channel was closed.
    value: Option<T>,
    /// A send that the closed channel refused.
    is_refused: bool,
}

impl<T> Offer<T> {
    pub(crate) fn party(&self) -> &Party {
        &self.party
    }

    pub(crate) fn to_receive(party: &Arc<Party>, leaf: usize) -> Self {
        Offer::new(party, leaf, Slot::of(None), None)
    }

    pub(crate) fn to_send(party: &Arc<Party>, leaf: usize, value: T) -> Self {
        Offer::new(party, leaf, Slot::of(Some(value)), None)
    }

    /// Sends what is in the parcel when a peer comes; the value stays there until then.
    pub(crate) fn to_send_parcel(party: &Arc<Party>, leaf: usize, parcel: &Home<T>) -> Self {
        Offer::new(party, leaf, Slot::of(None), Some(parcel.clone()))
    }

    fn new(party: &Arc<Party>, leaf: usize, slot: Slot<T>, parcel: Option<Home<T>>) -> Self {
        Offer { party: party.clone(), leaf, parcel, place: Place::none(), slot: Lock::new(slot) }
    }
}

impl<T> Slot<T> {
    fn of(value: Option<T>) -> Self {
        Slot { value, is_refused: false }
    }
}

impl<T: Send + 'static> Offer<T> {
    pub(crate) fn leaf(&self) -> usize {
        self.leaf
    }

    pub(crate) fn set_ticket(&self, ticket: Ticket) {
        self.place.set(ticket);
    }

    /// The value: of a sender that was not served, of a receiver that was.
    pub(crate) fn take(&self) -> Option<T> {
        self.slot.lock().value.take()
    }

    /// Owner: puts in the value of a match that it found itself, or that it goes to wait with.
    pub(crate) fn put(&self, value: T) {
        self.slot.lock().value = Some(value);
    }

    /// Owner of a sender: what it tries with its value under the channel's lock, where it waits if that comes to nothing.
    ///
    /// The value's lock is held until the outcome is known: a peer that finds another offer of the same parcel meanwhile
    /// must not take the parcel for empty.
    pub(crate) fn place(&self, attempt: impl FnOnce(&mut Option<T>) -> (Sent, Option<Ticket>)) {
        let ticket = match &self.parcel {
            Some(parcel) => {
                let (sent, ticket) = attempt(&mut parcel.lock());
                if sent == Sent::Closed {
                    self.slot.lock().is_refused = true;
                }
                ticket
            }
            None => {
                let mut slot = self.slot.lock();
                let (sent, ticket) = attempt(&mut slot.value);
                slot.is_refused = sent == Sent::Closed;
                ticket
            }
        };
        if let Some(ticket) = ticket {
            self.place.set(ticket);
        }
    }

    /// Peer: commits this receiver and hands it the value, which stays where it is if that fails.
    pub(crate) fn deliver(&self, value: &mut Option<T>, seeker: Seeker<'_>) -> Result<(), Verdict> {
        let mut slot = self.slot.lock();
        match seeker.seize(self.party(), self.leaf) {
            Verdict::Committed => {
                slot.value = value.take();
                Ok(())
            }
            verdict => Err(verdict),
        }
    }

    /// Peer: commits this sender and takes its value.
    pub(crate) fn collect(&self, seeker: Seeker<'_>) -> Result<T, Verdict> {
        match &self.parcel {
            Some(parcel) => self.collect_from(&mut parcel.lock(), seeker),
            None => self.collect_from(&mut self.slot.lock().value, seeker),
        }
    }

    /// With the lock of the value held, wherever it lies.
    fn collect_from(&self, value: &mut Option<T>, seeker: Seeker<'_>) -> Result<T, Verdict> {
        if value.is_none() {
            // A parcel that was emptied meanwhile: the offer is honest again if it is filled.
            return Err(Verdict::Own);
        }
        let early = if is_active(Mutant::TakeValueBeforeCommit) { value.take() } else { None };
        match seeker.seize(self.party(), self.leaf) {
            Verdict::Committed => Ok(early.or_else(|| value.take()).expect("the value was there under the lock")),
            verdict => Err(verdict),
        }
    }

    /// The channel's closing: commits whoever waits.
    pub(crate) fn refuse(&self) -> Result<(), Verdict> {
        let mut slot = self.slot.lock();
        match Seeker::Private.seize(self.party(), self.leaf) {
            Verdict::Committed => {
                slot.is_refused = true;
                Ok(())
            }
            verdict => Err(verdict),
        }
    }

    /// Owner, after the commit of a sender: whether the channel was closed.
    pub(crate) fn was_refused(&self) -> bool {
        self.slot.lock().is_refused
    }

    /// Owner: its place in the queue, if it was given one; once.
    pub(crate) fn take_ticket(&self) -> Option<Ticket> {
        self.place.take()
    }
}
