//! Buffered offers: sends and receives that no thread or task waits for, because they are asynchronous, or because
//! their synchronisation was dropped after its commit.

use super::closed::Closed;
use super::core::Core;
use super::effects::MatchEffects;
use super::entry::{QueuedValue, ReceiveEntry};
use super::outcome::Received;
use super::state::BufferedSend;
use crate::actions::PostConsumption;
use crate::waiter::Initiator;

impl<T: Send + 'static> Core<T> {
    /// Sends without a waiting owner: when this returns, the value has been received, buffered or queued.
    pub(crate) fn send_buffered(&self, value: T, consumed: PostConsumption<Result<(), Closed>>) {
        let mut effects = MatchEffects::default();
        let mut state = self.lock();
        let outcome = state.send_buffered(QueuedValue { value, consumed }, self.capacity(), &mut effects);
        self.publish_hints(&state);
        drop(state);
        effects.run();
        match outcome {
            BufferedSend::Queued => {}
            BufferedSend::Consumed(consumed) => consumed.run(Ok(())),
            BufferedSend::Refused(item) => item.consumed.run(Err(Closed)),
        }
    }

    /// Like [`Core::send_buffered`] without an action; returns the effects for the caller to run once it has released
    /// its own lock.
    pub(crate) fn send_buffered_deferred(&self, value: T) -> MatchEffects<T> {
        let mut effects = MatchEffects::default();
        let item = QueuedValue::of(value);
        let mut state = self.lock();
        let refused = state.send_buffered(item, self.capacity(), &mut effects);
        self.publish_hints(&state);
        drop(state);
        drop(refused);
        effects
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

    /// Returns a value to the front of the channel, after the synchronisation that received it was dropped.
    pub(crate) fn return_value(&self, value: T) {
        let mut effects = MatchEffects::default();
        let mut state = self.lock();
        let mut value = Some(value);
        state.hand_over(&mut value, Initiator::Private, &mut effects);
        if let Some(value) = value {
            state.buffer.push_front(QueuedValue::of(value));
        }
        self.publish_hints(&state);
        drop(state);
        effects.run();
    }
}
