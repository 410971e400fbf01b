//! Sending and receiving as leaves of an event.

use std::sync::Arc;

use super::Closed;
use super::core::Core;
use super::offer::Offer;
use super::state::{Received, Sent};
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

    fn place(&self, _: usize, placing: &mut Placing<'_>) -> Option<Arc<dyn Stake>> {
        let offer = Offer::to_send(&self.channel, placing.party, placing.leaf, self.value.clone());
        Some(place_send(&self.channel, offer))
    }

    fn redeem(&self, _: usize, stake: Option<Arc<dyn Stake>>) -> Result<(), Closed> {
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

    fn place(&self, _: usize, placing: &mut Placing<'_>) -> Option<Arc<dyn Stake>> {
        let offer = Offer::to_send_parcel(&self.channel, placing.party, placing.leaf, &self.home);
        Some(place_send(&self.channel, offer))
    }

    fn redeem(&self, _: usize, stake: Option<Arc<dyn Stake>>) -> Result<(), Closed> {
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

    fn place(&self, _: usize, placing: &mut Placing<'_>) -> Option<Arc<dyn Stake>> {
        let offer = Arc::new(Offer::to_receive(&self.channel, placing.party, placing.leaf));
        self.channel.place_receive(&offer);
        Some(offer)
    }

    fn redeem(&self, _: usize, stake: Option<Arc<dyn Stake>>) -> Result<T, Closed> {
        recover::<Offer<T>>(stake).take().ok_or(Closed)
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

fn place_send<T: Send + 'static>(channel: &Arc<Core<T>>, offer: Offer<T>) -> Arc<dyn Stake> {
    let offer = Arc::new(offer);
    channel.place_send(&offer);
    offer
}

fn redeem_send<T: Send + 'static>(stake: Option<Arc<dyn Stake>>) -> Result<(), Closed> {
    let offer = recover::<Offer<T>>(stake);
    if offer.was_refused() { Err(Closed) } else { Ok(()) }
}
