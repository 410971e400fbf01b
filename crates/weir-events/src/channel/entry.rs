//! The entries of a channel's queues: waiting senders and receivers, and the values that pass through them.
//!
//! All entries are under the channel's lock. A thread that takes an offer holds that lock from before it commits the
//! waiter until the entry is finished. An owner that sees `COMMITTED` and takes the lock therefore sees the result.

use std::sync::Arc;
use std::task::Waker;

use super::closed::Closed;
use crate::actions::PostConsumption;
use crate::mutants::{Mutant, is_active};
use crate::primitives::SpinLock;
use crate::waiter::{Initiator, MatchOutcome, Waiter};

/// A value in transit, with the actions that run when it is consumed.
pub(crate) struct QueuedValue<T> {
    pub(crate) value: T,
    pub(crate) consumed: PostConsumption<Result<(), Closed>>,
}

/// One base event of a waiter.
pub(crate) struct Offer {
    pub(crate) waiter: Arc<Waiter>,
    pub(crate) base: usize,
    /// Number of received values after which it is due, if it waits for its receipt.
    pub(super) due_at: u64,
}

/// The condition under which an offer to send takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// A receiver or the buffer has the value.
    Buffer,
    /// A receiver has the value.
    Receipt,
}

/// The value of an offer to send.
pub(crate) enum Payload<T> {
    Value(T),
    /// The content of the parcel at the time a peer comes; it stays in the parcel until then.
    Parcel(Arc<SpinLock<Option<T>>>),
}

/// A waiting sender.
pub(super) enum SendEntry<T> {
    Offer(Offer, Payload<T>),
    /// A task that waits for this channel only.
    Task(T, Waker),
    Buffered(QueuedValue<T>),
    Finished(SendResult<T>),
}

/// A waiting receiver.
pub(super) enum ReceiveEntry<T> {
    Offer(Offer),
    /// A task that waits for this channel only.
    Task(Waker),
    Buffered(PostConsumption<Result<T, Closed>>),
    /// The result of an offer or a task.
    Finished(Result<HandedOver<T>, Closed>),
}

/// A value that was handed over to a waiting receiver, which has not fetched it yet.
pub(crate) struct HandedOver<T> {
    pub(super) value: T,
    /// Counts the values that were handed over on this channel: the position of the value, if it is returned.
    pub(super) number: u64,
}

/// The owner of an entry, to be woken.
pub(crate) enum WakeTarget {
    /// The waiter of an offer.
    Owner(Arc<Waiter>),
    /// A task that waits for this channel only.
    Task(Waker),
}

/// Result of a sender's offer or task: `Ok`, or refused by the closed channel, with the value unless it lies in a
/// parcel.
pub(crate) type SendResult<T> = Result<(), Option<T>>;

impl<T> QueuedValue<T> {
    /// A value without actions.
    pub(super) fn of(value: T) -> Self {
        QueuedValue { value, consumed: PostConsumption::none() }
    }
}

impl Offer {
    pub(crate) fn new(waiter: Arc<Waiter>, base: usize) -> Self {
        Offer { waiter, base, due_at: 0 }
    }

    pub(super) fn initiator(&self) -> Initiator<'_> {
        Initiator::Published(&self.waiter, self.base)
    }

    /// Commits the waiter to its base event, on behalf of the initiator.
    pub(super) fn commit_peer(&self, initiator: Initiator<'_>) -> Result<(), MatchOutcome> {
        match initiator.commit_peer(&self.waiter, self.base) {
            MatchOutcome::Committed => Ok(()),
            verdict => Err(verdict),
        }
    }
}

impl<T> Payload<T> {
    /// Commits the waiter, and takes the value if it lies in a parcel; otherwise the value stays in the entry.
    pub(super) fn commit_peer(&self, offer: &Offer, initiator: Initiator<'_>) -> Result<Option<T>, MatchOutcome> {
        let Payload::Parcel(slot) = self else { return offer.commit_peer(initiator).map(|()| None) };
        let mut slot = slot.lock();
        if slot.is_none() {
            // The parcel was emptied meanwhile. The offer stays queued, because it becomes valid again if the parcel is
            // filled.
            return Err(MatchOutcome::Own);
        }
        let early = if is_active(Mutant::TakeValueBeforeCommit) { slot.take() } else { None };
        offer.commit_peer(initiator)?;
        Ok(early.or_else(|| slot.take()))
    }

    /// Returns the value, unless it lies in a parcel.
    pub(super) fn value(self) -> Option<T> {
        if let Payload::Value(value) = self { Some(value) } else { None }
    }
}

impl<T> SendEntry<T> {
    /// Returns the waker of a waiting task.
    pub(super) fn waker(&mut self) -> Option<&mut Waker> {
        if let SendEntry::Task(_, waker) = self { Some(waker) } else { None }
    }
}

impl<T> ReceiveEntry<T> {
    /// Returns the owner to wake.
    pub(super) fn owner(self) -> Option<WakeTarget> {
        match self {
            ReceiveEntry::Offer(offer) => Some(WakeTarget::Owner(offer.waiter)),
            ReceiveEntry::Task(waker) => Some(WakeTarget::Task(waker)),
            ReceiveEntry::Buffered(_) | ReceiveEntry::Finished(_) => None,
        }
    }

    /// Returns the waker of a waiting task.
    pub(super) fn waker(&mut self) -> Option<&mut Waker> {
        if let ReceiveEntry::Task(waker) = self { Some(waker) } else { None }
    }
}
