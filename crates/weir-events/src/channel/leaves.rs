//! Sending and receiving as leaves of an event.

use std::sync::Arc;

use super::closed::Closed;
use super::core::Core;
use super::offer::Offer;
use super::outcome::{Received, Sent};
use crate::event::node::{Node, Shape, Stake, recover};
use crate::event::placing::Placing;
use crate::event::settlement::Settlement;
use crate::primitives::Lock;

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
        let offer = Offer::to_send(placing.party, placing.leaf, self.value.clone());
        Some(place_send(&self.channel, offer))
    }

    fn withdraw(&self, _: usize, stake: Stake) {
        self.channel.withdraw_send(&recover(stake));
    }

    /// What was sent has been sent.
    fn retract(&self, _: usize, stake: Option<Stake>) -> bool {
        stake.is_some_and(|stake| recover::<Offer<T>>(stake).was_refused())
    }

    fn redeem(&self, _: usize, stake: Option<Stake>) -> Result<(), Closed> {
        redeem_send::<T>(stake)
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
        let offer = Offer::to_send_parcel(placing.party, placing.leaf, &self.home);
        Some(place_send(&self.channel, offer))
    }

    fn withdraw(&self, _: usize, stake: Stake) {
        self.channel.withdraw_send(&recover(stake));
    }

    /// What was sent has been sent.
    fn retract(&self, _: usize, stake: Option<Stake>) -> bool {
        stake.is_some_and(|stake| recover::<Offer<T>>(stake).was_refused())
    }

    fn redeem(&self, _: usize, stake: Option<Stake>) -> Result<(), Closed> {
        redeem_send::<T>(stake)
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
        let offer = Arc::new(Offer::to_receive(placing.party, placing.leaf));
        self.channel.place_receive(&offer);
        Some(offer)
    }

    fn withdraw(&self, _: usize, stake: Stake) {
        self.channel.withdraw_receive(&recover(stake));
    }

    fn retract(&self, _: usize, stake: Option<Stake>) -> bool {
        stake.into_iter().for_each(|stake| self.channel.retract_receive(&recover(stake)));
        true
    }

    fn redeem(&self, _: usize, stake: Option<Stake>) -> Result<T, Closed> {
        placed::<T>(stake).take().ok_or(Closed)
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

fn place_send<T: Send + 'static>(channel: &Arc<Core<T>>, offer: Offer<T>) -> Stake {
    let offer = Arc::new(offer);
    channel.place_send(&offer);
    offer
}

fn redeem_send<T: Send + 'static>(stake: Option<Stake>) -> Result<(), Closed> {
    if placed::<T>(stake).was_refused() { Err(Closed) } else { Ok(()) }
}

fn placed<T: Send + 'static>(stake: Option<Stake>) -> Arc<Offer<T>> {
    recover(stake.expect("these leaves always place an offer"))
}
