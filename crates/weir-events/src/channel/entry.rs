//! Who waits in a channel's queues, and the value that goes from one to the other through its place there.
//!
//! All of it is under the channel's lock. Whoever takes an offer holds that lock from before it commits the waiter until the
//! entry is finished. So an owner that sees `COMMITTED` and takes the lock sees what came of it.

use std::sync::Arc;
use std::task::Waker;

use super::closed::Closed;
use crate::actions::PostConsumption;
use crate::mutants::{Mutant, is_active};
use crate::primitives::SpinLock;
use crate::waiter::{Initiator, MatchOutcome, Waiter};

/// A value on its way, and what runs when it is consumed.
pub(crate) struct QueuedValue<T> {
    pub(crate) value: T,
    pub(crate) consumed: PostConsumption<Result<(), Closed>>,
}

/// One base event of a waiter, of a thread or of a task that chooses.
pub(crate) struct Offer {
    pub(crate) waiter: Arc<Waiter>,
    pub(crate) base: usize,
}

/// What an offer sends.
pub(crate) enum Payload<T> {
    Value(T),
    /// What is in the parcel when a peer comes; until then it stays there.
    Parcel(Arc<SpinLock<Option<T>>>),
}

/// Who waits to send.
pub(super) enum SendEntry<T> {
    Offer(Offer, Payload<T>),
    /// A task that waits for nothing else.
    Task(T, Waker),
    Buffered(QueuedValue<T>),
    Finished(SendResult<T>),
}

/// Who waits to receive.
pub(super) enum ReceiveEntry<T> {
    Offer(Offer),
    /// A task that waits for nothing else.
    Task(Waker),
    Buffered(PostConsumption<Result<T, Closed>>),
    /// What came of an offer or a task.
    Finished(Result<T, Closed>),
}

/// Who is to be told.
pub(crate) enum WakeTarget {
    /// The owner of an offer.
    Owner(Arc<Waiter>),
    /// A task that waits for nothing else.
    Task(Waker),
}

/// What came of a sender's offer or task: sent, or refused by the closed channel, with the value unless it is in a parcel.
pub(crate) type SendResult<T> = Result<(), Option<T>>;

impl<T> QueuedValue<T> {
    /// A value whose sender waited for it.
    pub(super) fn of(value: T) -> Self {
        QueuedValue { value, consumed: PostConsumption::none() }
    }
}

impl Offer {
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
    /// Commits the waiter and takes the value, if that lies in a parcel; otherwise it is left in the entry.
    pub(super) fn commit_peer(&self, offer: &Offer, initiator: Initiator<'_>) -> Result<Option<T>, MatchOutcome> {
        let Payload::Parcel(slot) = self else { return offer.commit_peer(initiator).map(|()| None) };
        let mut slot = slot.lock();
        if slot.is_none() {
            // A parcel that was emptied meanwhile: the offer is honest again if it is filled.
            return Err(MatchOutcome::Own);
        }
        let early = if is_active(Mutant::TakeValueBeforeCommit) { slot.take() } else { None };
        offer.commit_peer(initiator)?;
        Ok(early.or_else(|| slot.take()))
    }

    /// The value, unless it lies in a parcel.
    pub(super) fn value(self) -> Option<T> {
        if let Payload::Value(value) = self { Some(value) } else { None }
    }
}

impl<T> SendEntry<T> {
    /// By which a waiting task is told.
    pub(super) fn waker(&mut self) -> Option<&mut Waker> {
        if let SendEntry::Task(_, waker) = self { Some(waker) } else { None }
    }
}

impl<T> ReceiveEntry<T> {
    /// Whom to tell.
    pub(super) fn owner(self) -> Option<WakeTarget> {
        match self {
            ReceiveEntry::Offer(offer) => Some(WakeTarget::Owner(offer.waiter)),
            ReceiveEntry::Task(waker) => Some(WakeTarget::Task(waker)),
            ReceiveEntry::Buffered(_) | ReceiveEntry::Finished(_) => None,
        }
    }

    /// By which a waiting task is told.
    pub(super) fn waker(&mut self) -> Option<&mut Waker> {
        if let ReceiveEntry::Task(waker) = self { Some(waker) } else { None }
    }
}
