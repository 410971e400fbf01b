//! A waiting offer to send or to receive, and the value that travels through it.
//!
//! Who may touch the slot: the owner before it queues the offer and after the party is resolved; in between only the
//! peer that commits the party, which holds the slot's lock from before its commit until the value is exchanged. So an
//! owner that sees `COMMITTED` and takes the lock sees the exchange.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::task::Waker;

use super::outcome::Sent;
use crate::mutants::{Mutant, is_active};
use crate::party::{Party, Seeker, Verdict};
use crate::primitives::Lock;
use crate::queue::Ticket;

/// One leaf's offer on one channel.
pub(crate) struct Offer<T> {
    party: Owner,
    leaf: usize,
    /// Where the value to send lies, if not in the slot. Its lock takes the slot's place.
    parcel: Option<Home<T>>,
    place: Place,
    slot: Lock<Slot<T>>,
}

/// Whose offer it is.
enum Owner {
    /// One of several of a choice, or of a thread.
    Shared(Arc<Party>),
    /// The only one of a task, which is one piece of memory with its party; the slot has the waker.
    Own(Party),
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

/// Whom a peer has to tell of its commit, where the party does not know.
pub(super) type Told = Option<Waker>;

/// Where the value of a parcel lies.
type Home<T> = Arc<Lock<Option<T>>>;

struct Slot<T> {
    /// To send: the value until it is taken, unless it lies in a parcel. To receive: the value once it has come;
    /// none after the commit: the channel was closed.
    value: Option<T>,
    /// A send that the closed channel refused.
    is_refused: bool,
    /// Whom to tell, where the party is the offer's own: a lock less than if the party had it.
    waker: Option<Waker>,
}

impl<T> Offer<T> {
    pub(crate) fn party(&self) -> &Party {
        match &self.party {
            Owner::Shared(party) => party,
            Owner::Own(party) => party,
        }
    }

    /// What [`Offer::take`] gives, of an offer that nobody else holds any more.
    pub(crate) fn into_value(self) -> Option<T> {
        self.slot.into_inner().value
    }

    /// The only offer of a task: to receive, or to send what is then put in.
    pub(crate) fn of_task(waker: Waker) -> Self {
        let slot = Slot { value: None, is_refused: false, waker: Some(waker) };
        Offer::new(Owner::Own(Party::told_elsewhere()), 0, slot, None)
    }

    pub(crate) fn to_receive(party: &Arc<Party>, leaf: usize) -> Self {
        Offer::new(Owner::Shared(party.clone()), leaf, Slot::of(None), None)
    }

    pub(crate) fn to_send(party: &Arc<Party>, leaf: usize, value: T) -> Self {
        Offer::new(Owner::Shared(party.clone()), leaf, Slot::of(Some(value)), None)
    }

    /// Sends what is in the parcel when a peer comes; the value stays there until then.
    pub(crate) fn to_send_parcel(party: &Arc<Party>, leaf: usize, parcel: &Home<T>) -> Self {
        Offer::new(Owner::Shared(party.clone()), leaf, Slot::of(None), Some(parcel.clone()))
    }

    fn new(party: Owner, leaf: usize, slot: Slot<T>, parcel: Option<Home<T>>) -> Self {
        Offer { party, leaf, parcel, place: Place::none(), slot: Lock::new(slot) }
    }

    /// Owner, a task whose only offer it is, on each poll and before it looks at the word: says whom to tell.
    pub(crate) fn listen(&self, waker: &Waker) {
        let mut slot = self.slot.lock();
        if slot.waker.as_ref().is_some_and(|known| known.will_wake(waker)) {
            return;
        }
        drop(slot);
        // A waker is foreign code, to be cloned and dropped outside the lock.
        let waker = waker.clone();
        slot = self.slot.lock();
        let known = slot.waker.replace(waker);
        drop(slot);
        drop(known);
    }
}

impl<T> Slot<T> {
    fn of(value: Option<T>) -> Self {
        Slot { value, is_refused: false, waker: None }
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
    pub(crate) fn deliver(&self, value: &mut Option<T>, seeker: Seeker<'_>) -> Result<Told, Verdict> {
        let mut slot = self.slot.lock();
        match seeker.seize(self.party(), self.leaf) {
            Verdict::Committed => {
                slot.value = value.take();
                Ok(slot.waker.take())
            }
            verdict => Err(verdict),
        }
    }

    /// Peer: commits this sender and takes its value.
    pub(crate) fn collect(&self, seeker: Seeker<'_>) -> Result<(T, Told), Verdict> {
        match &self.parcel {
            Some(parcel) => self.collect_from(&mut parcel.lock(), seeker).map(|value| (value, None)),
            None => {
                let mut slot = self.slot.lock();
                let value = self.collect_from(&mut slot.value, seeker)?;
                Ok((value, slot.waker.take()))
            }
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
    pub(crate) fn refuse(&self) -> Result<Told, Verdict> {
        let mut slot = self.slot.lock();
        match Seeker::Private.seize(self.party(), self.leaf) {
            Verdict::Committed => {
                slot.is_refused = true;
                Ok(slot.waker.take())
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
