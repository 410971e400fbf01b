//! A waiting offer to send or to receive, and the value that travels through it.
//!
//! Who may touch the slot: the owner before it queues the offer and after the party is resolved; in between only the
//! peer that commits the party, which holds the slot's lock from before its commit until the value is exchanged. So an
//! owner that sees `COMMITTED` and takes the lock sees the exchange.

use std::any::Any;
use std::sync::Arc;

use super::core::Core;
use crate::event::node::Stake;
use crate::mutants::{Mutant, is_active};
use crate::party::{Party, Seeker, Verdict};
use crate::primitives::Mutex;
use crate::queue::Ticket;

/// One leaf's offer on one channel.
pub(crate) struct Offer<T> {
    party: Arc<Party>,
    leaf: usize,
    side: Side,
    channel: Arc<Core<T>>,
    slot: Mutex<Slot<T>>,
}

/// What an offer wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Send,
    Receive,
}

struct Slot<T> {
    /// To send: the value until it is taken. To receive: the value once it has come. Neither after the commit: the
    /// channel was closed.
    value: Option<T>,
    ticket: Option<Ticket>,
    /// Where a value that must be given back returns to; unused while the offer waits.
    home: Option<Arc<Mutex<Option<T>>>>,
}

impl<T: Send + 'static> Offer<T> {
    pub(crate) fn new(channel: &Arc<Core<T>>, party: &Arc<Party>, leaf: usize, side: Side, value: Option<T>) -> Self {
        let slot = Mutex::new(Slot { value, ticket: None, home: None });
        Offer { party: party.clone(), leaf, side, channel: channel.clone(), slot }
    }

    /// A value that is lent: if it is not sent it goes back home.
    pub(crate) fn lent(self, home: Arc<Mutex<Option<T>>>) -> Self {
        self.slot.lock().home = Some(home);
        self
    }

    pub(crate) fn party(&self) -> &Arc<Party> {
        &self.party
    }

    pub(crate) fn leaf(&self) -> usize {
        self.leaf
    }

    pub(crate) fn set_ticket(&self, ticket: Ticket) {
        self.slot.lock().ticket = Some(ticket);
    }

    /// The value: of a sender that was not served, of a receiver that was.
    pub(crate) fn take(&self) -> Option<T> {
        self.slot.lock().value.take()
    }

    /// Owner: puts the value of a match that it found itself.
    pub(crate) fn put(&self, value: T) {
        self.slot.lock().value = Some(value);
    }

    /// Peer: commits this receiver and hands it the value; gives the value back otherwise.
    pub(crate) fn deliver(&self, value: T, seeker: Seeker<'_>) -> Result<(), (Verdict, T)> {
        let mut slot = self.slot.lock();
        match seeker.seize(&self.party, self.leaf) {
            Verdict::Committed => {
                slot.value = Some(value);
                Ok(())
            }
            verdict => Err((verdict, value)),
        }
    }

    /// Peer: commits this sender and takes its value.
    pub(crate) fn collect(&self, seeker: Seeker<'_>) -> Result<T, Verdict> {
        let mut slot = self.slot.lock();
        let early = if is_active(Mutant::TakeValueBeforeCommit) { slot.value.take() } else { None };
        match seeker.seize(&self.party, self.leaf) {
            Verdict::Committed => Ok(early.or_else(|| slot.value.take()).expect("a waiting sender holds its value")),
            verdict => Err(verdict),
        }
    }

    /// Owner: takes the offer out of its queue, if it is still there.
    pub(crate) fn leave_queue(&self) {
        let ticket = self.slot.lock().ticket.take();
        if let Some(ticket) = ticket {
            self.channel.remove(self.side, ticket);
        }
    }

    /// Owner, after the commit of a sender: whether the channel was closed. The value goes back home.
    pub(crate) fn was_refused(&self) -> bool {
        let refused = self.slot.lock().value.is_some();
        self.go_home();
        refused
    }

    fn go_home(&self) {
        let mut slot = self.slot.lock();
        if let (Some(home), Some(value)) = (slot.home.take(), slot.value.take()) {
            drop(slot);
            *home.lock() = Some(value);
        }
    }
}

impl<T: Send + 'static> Stake for Offer<T> {
    fn withdraw(&self) {
        self.leave_queue();
        if self.side == Side::Send {
            self.go_home();
        }
    }

    fn retract(&self) -> bool {
        match self.side {
            Side::Send => {
                self.go_home();
                false
            }
            Side::Receive => {
                let value = self.take();
                if is_active(Mutant::DropWithoutReturn) {
                    return true;
                }
                if let Some(value) = value {
                    self.channel.put_back(value);
                }
                true
            }
        }
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}
