//! Buffered offers: sends and receives that no thread or task waits for, because they are asynchronous, or because
//! their synchronisation was dropped after its commit.

use super::closed::Closed;
use super::core::Core;
use super::effects::MatchEffects;
use super::entry::{HandedOver, QueuedValue, ReceiveEntry};
use super::outcome::Received;
use super::state::BufferedSend;
use crate::actions::PostConsumption;
use crate::waiter::Initiator;

impl<T: Send + 'static> Core<T> {
    /// Sends without a waiting owner: when this returns, the value has been received, buffered or queued. The actions of
    /// a value that the channel refuses learn that it is closed.
    pub(crate) fn send_buffered(&self, value: T, consumed: PostConsumption<Result<(), Closed>>) {
        if let Err(item) = self.send_item(QueuedValue { value, consumed }) {
            item.consumed.run(Err(Closed));
        }
    }

    /// Sends without a waiting owner or actions.
    ///
    /// # Errors
    /// If the channel is closed; the error returns the value.
    pub(crate) fn post(&self, value: T) -> Result<(), T> {
        self.send_item(QueuedValue::of(value)).map_err(|item| item.value)
    }

    fn send_item(&self, item: QueuedValue<T>) -> Result<(), QueuedValue<T>> {
        let (outcome, effects) = self.send_item_deferred(item);
        effects.run();
        match outcome {
            BufferedSend::Queued => {}
            BufferedSend::Consumed(consumed) => consumed.run(Ok(())),
            BufferedSend::Refused(item) => return Err(item),
        }
        Ok(())
    }

    /// Like [`Core::post`], for a caller that holds a lock of its own: returns what the caller must drop and run once it
    /// has released that.
    pub(crate) fn post_deferred(&self, value: T) -> (BufferedSend<T>, MatchEffects<T>) {
        self.send_item_deferred(QueuedValue::of(value))
    }

    fn send_item_deferred(&self, item: QueuedValue<T>) -> (BufferedSend<T>, MatchEffects<T>) {
        let mut effects = MatchEffects::default();
        let mut state = self.lock();
        let outcome = state.send_buffered(item, self.capacity(), &mut effects);
        self.publish_hints(&state);
        drop(state);
        (outcome, effects)
    }

    /// Receives without a waiting owner: the received value goes to the action.
    pub(crate) fn receive_to_actions(&self, action: PostConsumption<Result<T, Closed>>) {
        let mut effects = MatchEffects::default();
        let mut state = self.lock();
        let outcome = match state.receive(self.capacity(), Initiator::Private, &mut effects) {
            Received::Done(value) => Some((action, Ok(value))),
            Received::Closed => Some((action, Err(Closed))),
            Received::Empty | Received::Taken => {
                state.receivers.push(ReceiveEntry::Buffered(action));
                None
            }
        };
        self.publish_hints(&state);
        drop(state);
        effects.run();
        if let Some((action, outcome)) = outcome {
            action.run(outcome);
        }
    }

    /// Returns a value to its position, after the synchronisation that received it was dropped. A receiver that waits
    /// gets it at once.
    pub(crate) fn return_value(&self, handed_over: HandedOver<T>) {
        let HandedOver { value, number } = handed_over;
        let mut effects = MatchEffects::default();
        let mut state = self.lock();
        let mut value = Some(value);
        state.hand_over(&mut value, Initiator::Private, &mut effects);
        if let Some(value) = value {
            state.return_to_position(HandedOver { value, number });
        }
        self.publish_hints(&state);
        drop(state);
        effects.run();
    }
}
