//! Sending and receiving as leaves of an event.

use std::sync::Arc;

use super::closed::Closed;
use super::core::Core;
use super::entry::{Cargo, Offer};
use super::outcome::{Received, Sent};
use crate::event::node::{Node, Shape, Stake};
use crate::event::placing::Placing;
use crate::event::settlement::Settlement;
use crate::primitives::Lock;
use crate::queue::Ticket;

/// Sends a clone of its value.
pub(crate) struct SendClone<T> {
    pub(crate) channel: Arc<Core<T>>,
    pub(crate) value: T,
}

/// Sends the value that is at home, if there is one.
pub(crate) struct SendParcel<T> {
    pub(crate) channel: Arc<Core<T>>,
    pub(crate) home: Arc<Lock<Option<T>>>,
}

/// Receives.
pub(crate) struct Receive<T> {
    pub(crate) channel: Arc<Core<T>>,
}

impl<T: Clone + Send + Sync + 'static> Node<Result<(), Closed>> for SendClone<T> {
    fn shape(&self) -> Shape {
        Shape::LEAF
    }

    fn attempt(&self, _: usize, settlement: &mut Settlement) -> Option<Result<(), Closed>> {
        // A clone may be dear and is foreign code, which must not run under the channel's lock: so ask before.
        if std::mem::needs_drop::<T>() && !self.channel.would_take() {
            return None;
        }
        settle_sent(self.channel.send(&mut Some(self.value.clone())), settlement)
    }

    fn place(&self, _: usize, placing: &mut Placing<'_>) -> Option<Stake> {
        self.channel.place_send(offer(placing), Cargo::Value(self.value.clone())).map(Stake::Place)
    }

    fn withdraw(&self, _: usize, stake: Stake) {
        self.channel.leave_sending(stake.place());
    }

    /// What was sent has been sent.
    fn retract(&self, _: usize, stake: Option<Stake>) -> bool {
        stake.is_some_and(|stake| self.channel.conclude_send(stake.place()).is_err())
    }

    fn redeem(&self, _: usize, stake: Option<Stake>) -> Result<(), Closed> {
        self.channel.conclude_send(placed(stake)).map_err(|_| Closed)
    }
}

impl<T: Send + 'static> Node<Result<(), Closed>> for SendParcel<T> {
    fn shape(&self) -> Shape {
        Shape::LEAF
    }

    fn attempt(&self, _: usize, settlement: &mut Settlement) -> Option<Result<(), Closed>> {
        // The parcel stays locked meanwhile, so that no peer of another synchronisation takes it for empty.
        let sent = self.channel.send_parcel(&self.home)?;
        settle_sent(sent, settlement)
    }

    fn place(&self, _: usize, placing: &mut Placing<'_>) -> Option<Stake> {
        self.channel.place_send(offer(placing), Cargo::Parcel(self.home.clone())).map(Stake::Place)
    }

    fn withdraw(&self, _: usize, stake: Stake) {
        self.channel.leave_sending(stake.place());
    }

    /// What was sent has been sent.
    fn retract(&self, _: usize, stake: Option<Stake>) -> bool {
        stake.is_some_and(|stake| self.channel.conclude_send(stake.place()).is_err())
    }

    fn redeem(&self, _: usize, stake: Option<Stake>) -> Result<(), Closed> {
        self.channel.conclude_send(placed(stake)).map_err(|_| Closed)
    }
}

impl<T: Send + 'static> Node<Result<T, Closed>> for Receive<T> {
    fn shape(&self) -> Shape {
        Shape::LEAF
    }

    fn attempt(&self, _: usize, settlement: &mut Settlement) -> Option<Result<T, Closed>> {
        let outcome = match self.channel.receive() {
            Received::Done(value) => Ok(value),
            Received::Closed => Err(Closed),
            Received::Empty | Received::Taken => return None,
        };
        settlement.settle();
        Some(outcome)
    }

    fn place(&self, _: usize, placing: &mut Placing<'_>) -> Option<Stake> {
        self.channel.place_receive(offer(placing)).map(Stake::Place)
    }

    fn withdraw(&self, _: usize, stake: Stake) {
        self.channel.leave_receiving(stake.place());
    }

    fn retract(&self, _: usize, stake: Option<Stake>) -> bool {
        stake.into_iter().for_each(|stake| self.channel.leave_receiving(stake.place()));
        true
    }

    fn redeem(&self, _: usize, stake: Option<Stake>) -> Result<T, Closed> {
        self.channel.conclude_receive(placed(stake))
    }
}

fn settle_sent(sent: Sent, settlement: &mut Settlement) -> Option<Result<(), Closed>> {
    let outcome = match sent {
        Sent::Done => Ok(()),
        Sent::Closed => Err(Closed),
        Sent::Full | Sent::Taken => return None,
    };
    settlement.settle();
    Some(outcome)
}

fn offer(placing: &Placing<'_>) -> Offer {
    Offer { party: placing.party.clone(), leaf: placing.leaf }
}

fn placed(stake: Option<Stake>) -> Ticket {
    stake.expect("a leaf that took effect was placed").place()
}
