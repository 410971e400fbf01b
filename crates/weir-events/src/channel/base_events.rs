//! The base events of a channel: sending a clone, sending from a parcel, and receiving.

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

/// Sends a clone of its value.
pub(crate) struct SendClone<T> {
    pub(crate) channel: Arc<Core<T>>,
    pub(crate) value: T,
    pub(crate) delivery: Delivery,
}

/// Sends the value in the parcel, if there is one.
pub(crate) struct SendParcel<T> {
    pub(crate) channel: Arc<Core<T>>,
    pub(crate) slot: Arc<SpinLock<Option<T>>>,
    pub(crate) delivery: Delivery,
}

/// Receives.
pub(crate) struct Receive<T> {
    pub(crate) channel: Arc<Core<T>>,
}

impl<T: Clone + Send + Sync + 'static> EventNode<Result<(), Closed>> for SendClone<T> {
    fn shape(&self) -> EventShape {
        EventShape::BASE_EVENT
    }

    fn attempt(&self, _: usize, nacks: &mut NackSet) -> Option<Result<(), Closed>> {
        // Cloning may be expensive and is user code, which must not run under the channel's lock; the channel is
        // therefore checked before cloning.
        if std::mem::needs_drop::<T>() && !self.channel.would_take(self.delivery) {
            return None;
        }
        finish_send(self.channel.send_by(self.delivery, &mut Some(self.value.clone())), nacks)
    }

    fn register(&self, _: usize, context: &mut RegistrationContext<'_>) -> Option<Registration> {
        self.channel
            .place_send(offer(context), Payload::Value(self.value.clone()), self.delivery)
            .map(Registration::Ticket)
    }

    fn withdraw(&self, _: usize, registration: Registration) {
        self.channel.leave_sending(registration.ticket(), self.delivery);
    }

    fn discard(&self, _: usize, registration: Option<Registration>) {
        registration.into_iter().for_each(|sent| self.channel.leave_sending(sent.ticket(), self.delivery));
    }

    fn complete(&self, _: usize, registration: Option<Registration>) -> Result<(), Closed> {
        self.channel.conclude_send(placed(registration), self.delivery).map_err(|_| Closed)
    }
}

impl<T: Send + 'static> EventNode<Result<(), Closed>> for SendParcel<T> {
    fn shape(&self) -> EventShape {
        EventShape::BASE_EVENT
    }

    fn attempt(&self, _: usize, nacks: &mut NackSet) -> Option<Result<(), Closed>> {
        // The parcel stays locked meanwhile, so that no peer of another synchronisation takes it for empty.
        let sent = self.channel.send_parcel(&self.slot, self.delivery)?;
        finish_send(sent, nacks)
    }

    fn register(&self, _: usize, context: &mut RegistrationContext<'_>) -> Option<Registration> {
        self.channel
            .place_send(offer(context), Payload::Parcel(self.slot.clone()), self.delivery)
            .map(Registration::Ticket)
    }

    fn withdraw(&self, _: usize, registration: Registration) {
        self.channel.leave_sending(registration.ticket(), self.delivery);
    }

    fn discard(&self, _: usize, registration: Option<Registration>) {
        registration.into_iter().for_each(|sent| self.channel.leave_sending(sent.ticket(), self.delivery));
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

    fn discard(&self, _: usize, registration: Option<Registration>) {
        registration.into_iter().for_each(|received| self.channel.leave_receiving(received.ticket()));
    }

    fn complete(&self, _: usize, registration: Option<Registration>) -> Result<T, Closed> {
        self.channel.conclude_receive(placed(registration))
    }
}

fn finish_send(sent: Sent, nacks: &mut NackSet) -> Option<Result<(), Closed>> {
    let outcome = match sent {
        Sent::Done => Ok(()),
        Sent::Closed => Err(Closed),
        Sent::Full | Sent::Taken => return None,
    };
    nacks.fire_losers();
    Some(outcome)
}

fn offer(context: &RegistrationContext<'_>) -> Offer {
    Offer::new(context.waiter.clone(), context.base)
}

fn placed(registration: Option<Registration>) -> QueueTicket {
    registration.expect("a base that took effect was placed").ticket()
}
