//! Deposits: what is sent or received for nobody who waits, be it asynchronous or the value of a synchronisation that was
//! dropped.

use super::closed::Closed;
use super::core::Core;
use super::effects::Effects;
use super::entry::{Item, ReceiveEntry};
use super::outcome::Received;
use super::state::Deposited;
use crate::implicit::Then;
use crate::party::Seeker;

impl<T: Send + 'static> Core<T> {
    /// Sends for nobody who waits: the value is taken, buffered or queued before this returns.
    pub(crate) fn deposit_send(&self, value: T, consumed: Then<Result<(), Closed>>) {
        let mut effects = Effects::default();
        let mut state = self.lock();
        let outcome = state.deposit_send(Item { value, consumed }, self.capacity(), &mut effects);
        self.note(&state);
        drop(state);
        effects.run();
        match outcome {
            Deposited::Queued => {}
            Deposited::Consumed(consumed) => consumed.run(Ok(())),
            Deposited::Refused(item) => item.consumed.run(Err(Closed)),
        }
    }

    /// Like [`Core::deposit_send`] without an action; what follows from it is left to the caller, who holds a lock.
    pub(crate) fn deposit_quietly(&self, value: T) -> Effects<T> {
        let mut effects = Effects::default();
        let item = Item::of(value);
        let mut state = self.lock();
        let refused = state.deposit_send(item, self.capacity(), &mut effects);
        self.note(&state);
        drop(state);
        drop(refused);
        effects
    }

    /// Receives for nobody who waits: the action gets what comes.
    pub(crate) fn deposit_receive(&self, action: Then<Result<T, Closed>>) {
        let mut effects = Effects::default();
        let mut state = self.lock();
        let outcome = match state.receive(self.capacity(), Seeker::Private, &mut effects) {
            Received::Done(value) => Some((action, Ok(value))),
            Received::Closed => Some((action, Err(Closed))),
            Received::Empty | Received::Taken => {
                state.receivers.push(ReceiveEntry::Deposit(action));
                None
            }
        };
        self.note(&state);
        drop(state);
        effects.run();
        if let Some((action, outcome)) = outcome {
            action.run(outcome);
        }
    }

    /// Gives a value back that was received by a synchronisation which was then dropped: the next receiver gets it.
    pub(crate) fn put_back(&self, value: T) {
        let mut effects = Effects::default();
        let mut state = self.lock();
        let mut value = Some(value);
        state.hand_over(&mut value, Seeker::Private, &mut effects);
        if let Some(value) = value {
            state.buffer.push_front(Item::of(value));
        }
        self.note(&state);
        drop(state);
        effects.run();
    }
}
