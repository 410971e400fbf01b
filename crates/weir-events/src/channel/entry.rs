//! Who waits in a channel's queues, and the value that goes from one to the other through its place there.
//!
//! All of it is under the channel's lock. Whoever takes an offer holds that lock from before it commits the party until the
//! entry is finished. So an owner that sees `COMMITTED` and takes the lock sees what came of it.

use std::sync::Arc;
use std::task::Waker;

use super::closed::Closed;
use crate::implicit::Then;
use crate::mutants::{Mutant, is_active};
use crate::party::{Party, Seeker, Verdict};
use crate::primitives::Lock;

/// A value on its way, and what runs when it is consumed.
pub(crate) struct Item<T> {
    pub(crate) value: T,
    pub(crate) consumed: Then<Result<(), Closed>>,
}

/// One leaf of a party, of a thread or of a task that chooses.
pub(crate) struct Offer {
    pub(crate) party: Arc<Party>,
    pub(crate) leaf: usize,
}

/// What an offer sends.
pub(crate) enum Cargo<T> {
    Value(T),
    /// What is in the parcel when a peer comes; until then it stays there.
    Parcel(Arc<Lock<Option<T>>>),
}

/// Who waits to send.
pub(super) enum SendEntry<T> {
    Offer(Offer, Cargo<T>),
    /// A task that waits for nothing else.
    Task(T, Waker),
    Deposit(Item<T>),
    Finished(Shipped<T>),
}

/// Who waits to receive.
pub(super) enum ReceiveEntry<T> {
    Offer(Offer),
    /// A task that waits for nothing else.
    Task(Waker),
    Deposit(Then<Result<T, Closed>>),
    /// What came of an offer or a task.
    Finished(Result<T, Closed>),
}

/// Who is to be told.
pub(crate) enum Woken {
    /// The owner of an offer.
    Owner(Arc<Party>),
    /// A task that waits for nothing else.
    Task(Waker),
}

/// What came of a sender's offer or task: sent, or refused by the closed channel, with the value unless it is in a parcel.
pub(crate) type Shipped<T> = Result<(), Option<T>>;

impl<T> Item<T> {
    /// A value whose sender waited for it.
    pub(super) fn of(value: T) -> Self {
        Item { value, consumed: Then::nothing() }
    }
}

impl Offer {
    pub(super) fn seeker(&self) -> Seeker<'_> {
        Seeker::Published(&self.party, self.leaf)
    }

    /// Commits the party to its leaf, on behalf of the seeker.
    pub(super) fn seize(&self, seeker: Seeker<'_>) -> Result<(), Verdict> {
        match seeker.seize(&self.party, self.leaf) {
            Verdict::Committed => Ok(()),
            verdict => Err(verdict),
        }
    }
}

impl<T> Cargo<T> {
    /// Commits the party and takes the value, if that lies in a parcel; otherwise it is left in the entry.
    pub(super) fn seize(&self, offer: &Offer, seeker: Seeker<'_>) -> Result<Option<T>, Verdict> {
        let Cargo::Parcel(home) = self else { return offer.seize(seeker).map(|()| None) };
        let mut home = home.lock();
        if home.is_none() {
            // A parcel that was emptied meanwhile: the offer is honest again if it is filled.
            return Err(Verdict::Own);
        }
        let early = if is_active(Mutant::TakeValueBeforeCommit) { home.take() } else { None };
        offer.seize(seeker)?;
        Ok(early.or_else(|| home.take()))
    }

    /// The value, unless it lies in a parcel.
    pub(super) fn value(self) -> Option<T> {
        if let Cargo::Value(value) = self { Some(value) } else { None }
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
    pub(super) fn owner(self) -> Option<Woken> {
        match self {
            ReceiveEntry::Offer(offer) => Some(Woken::Owner(offer.party)),
            ReceiveEntry::Task(waker) => Some(Woken::Task(waker)),
            ReceiveEntry::Deposit(_) | ReceiveEntry::Finished(_) => None,
        }
    }

    /// By which a waiting task is told.
    pub(super) fn waker(&mut self) -> Option<&mut Waker> {
        if let ReceiveEntry::Task(waker) = self { Some(waker) } else { None }
    }
}
