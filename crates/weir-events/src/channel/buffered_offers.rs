//! Deposits: what is sent or received for nobody who waits, be it asynchronous or the value of a synchronisation that was
//! dropped.

use super::closed::Closed;
use super::core::Core;
use super::effects::MatchEffects;
use super::entry::{QueuedValue, ReceiveEntry};
use super::outcome::Received;
use super::state::BufferedSend;
use crate::actions::PostConsumption;
use crate::waiter::Initiator;

impl<T: Send + 'static> Core<T> {
    /// Sends for nobody who waits: the value is taken, buffered or queued before this returns.
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

    /// Like [`Core::deposit_send`] without an action; what follows from it is left to the caller, who holds a lock.
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

    /// Receives for nobody who waits: the action gets what comes.
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

    /// Gives a value back that was received by a synchronisation which was then dropped: the next receiver gets it.
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
