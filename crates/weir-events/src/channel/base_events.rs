//! The base events of a channel: sending a clone or the value of a parcel, and receiving.

use std::sync::Arc;

use super::closed::Closed;
use super::core::Core;
use super::entry::{Delivery, Offer, Payload};
use super::outcome::{Received, Sent};
use crate::event::nacks::NackSet;
use crate::event::node::{EventNode, EventShape, Registration};
use crate::event::registration::RegistrationContext;
use crate::primitives::SpinLock;
use crate::queue::QueueTicket;

/// Sends what it offers.
pub(crate) struct SendEvent<T, O> {
    pub(crate) channel: Arc<Core<T>>,
    pub(crate) offered: O,
    pub(crate) delivery: Delivery,
}

/// Sends a clone each time.
pub(crate) struct Cloned<T>(pub(crate) T);

/// Sends the value in the parcel, if there is one.
pub(crate) struct InParcel<T>(pub(crate) Arc<SpinLock<Option<T>>>);

/// The value of an event that sends.
pub(crate) trait Offered<T>: Send + Sync {
    /// Sends now or not at all; `None` if there is nothing to send, or certainly no room.
    fn attempt(&self, channel: &Core<T>, delivery: Delivery) -> Option<Sent>;

    /// Returns the value of an offer to be queued.
    fn payload(&self) -> Payload<T>;
}

/// Receives.
pub(crate) struct Receive<T> {
    pub(crate) channel: Arc<Core<T>>,
}

impl<T: Clone + Send + Sync + 'static> Offered<T> for Cloned<T> {
    fn attempt(&self, channel: &Core<T>, delivery: Delivery) -> Option<Sent> {
        // Cloning may be expensive and is user code, which must not run under the channel's lock; the channel is
        // therefore checked before cloning.
        if std::mem::needs_drop::<T>() && !channel.would_take(delivery) {
            return None;
        }
        Some(channel.send_by(delivery, &mut Some(self.0.clone())))
    }

    fn payload(&self) -> Payload<T> {
        Payload::Value(self.0.clone())
    }
}

impl<T: Send + 'static> Offered<T> for InParcel<T> {
    fn attempt(&self, channel: &Core<T>, delivery: Delivery) -> Option<Sent> {
        // The parcel stays locked meanwhile, so that no peer of another synchronisation takes it for empty.
        channel.send_parcel(&self.0, delivery)
    }

    fn payload(&self) -> Payload<T> {
        Payload::Parcel(self.0.clone())
    }
}

impl<T: Send + 'static, O: Offered<T>> EventNode<Result<(), Closed>> for SendEvent<T, O> {
    fn shape(&self) -> EventShape {
        EventShape::BASE_EVENT
    }

    fn attempt(&self, _: usize, nacks: &mut NackSet) -> Option<Result<(), Closed>> {
        let outcome = match self.offered.attempt(&self.channel, self.delivery)? {
            Sent::Done => Ok(()),
            Sent::Closed => Err(Closed),
            Sent::Full | Sent::Taken => return None,
        };
        nacks.fire_losers();
        Some(outcome)
    }

    fn register(&self, _: usize, context: &mut RegistrationContext<'_>) -> Option<Registration> {
        let placed = self.channel.place_send(offer(context), self.offered.payload(), self.delivery);
        placed.map(Registration::Ticket)
    }

    fn withdraw(&self, _: usize, registration: Registration) {
        self.channel.leave_sending(registration.ticket(), self.delivery);
    }

    fn discard(&self, base: usize, registration: Option<Registration>) {
        registration.into_iter().for_each(|sent| self.withdraw(base, sent));
    }

    fn complete(&self, _: usize, registration: Option<Registration>) -> Result<(), Closed> {
        self.channel.conclude_send(placed(registration), self.delivery).map_err(|_| Closed)
    }
}

impl<T: Send + 'static> EventNode<Result<T, Closed>> for Receive<T> {
    fn shape(&self) -> EventShape {
        EventShape::BASE_EVENT
    }

    fn attempt(&self, _: usize, nacks: &mut NackSet) -> Option<Result<T, Closed>> {
        let outcome = match self.channel.receive() {
            Received::Done(value) => Ok(value),
            Received::Closed => Err(Closed),
            Received::Empty | Received::Taken => return None,
        };
        nacks.fire_losers();
        Some(outcome)
    }

    fn register(&self, _: usize, context: &mut RegistrationContext<'_>) -> Option<Registration> {
        self.channel.place_receive(offer(context)).map(Registration::Ticket)
    }

    fn withdraw(&self, _: usize, registration: Registration) {
        self.channel.leave_receiving(registration.ticket());
    }

    fn discard(&self, base: usize, registration: Option<Registration>) {
        registration.into_iter().for_each(|received| self.withdraw(base, received));
    }

    fn complete(&self, _: usize, registration: Option<Registration>) -> Result<T, Closed> {
        self.channel.conclude_receive(placed(registration))
    }
}

fn offer(context: &RegistrationContext<'_>) -> Offer {
    Offer::new(context.waiter.clone(), context.base)
}

fn placed(registration: Option<Registration>) -> QueueTicket {
    registration.expect("a base that took effect was placed").ticket()
}
