//! The effects of a match that remain once the channel's lock is free: waking owners and running actions.
//!
//! Wakers and actions are user code, so none of them may run under a lock.

use super::closed::Closed;
use super::entry::WakeTarget;
use crate::actions::PostConsumption;
use crate::mutants::{Mutant, is_active};

/// The effects of one match: at most one action, and the owners to wake. A receive that refills the buffer may serve
/// more than one.
pub(crate) struct MatchEffects<T> {
    woken: Option<WakeTarget>,
    more_woken: Option<Box<More>>,
    consumed_offer: ConsumedOffer<T>,
}

/// Owners beyond the first. They are rare, so that the common case pays one pointer for them.
struct More(Vec<WakeTarget>);

/// A buffered offer that was consumed, with its actions.
pub(crate) enum ConsumedOffer<T> {
    /// No buffered offer was consumed, or it has no actions.
    Nothing,
    /// An asynchronous send.
    Sent(PostConsumption<Result<(), Closed>>),
    /// An asynchronous receive, and what it received.
    Received(PostConsumption<Result<T, Closed>>, Result<T, Closed>),
}

impl<T> Default for MatchEffects<T> {
    fn default() -> Self {
        MatchEffects { woken: None, more_woken: None, consumed_offer: ConsumedOffer::Nothing }
    }
}

impl<T: 'static> MatchEffects<T> {
    pub(crate) fn wake(&mut self, woken: WakeTarget) {
        match self.woken {
            _ if is_active(Mutant::ForgetToWake) => {}
            None => self.woken = Some(woken),
            Some(_) => self.more_woken.get_or_insert_with(|| Box::new(More(Vec::new()))).0.push(woken),
        }
    }

    pub(crate) fn wake_all(&mut self, woken: Option<WakeTarget>) {
        woken.into_iter().for_each(|woken| self.wake(woken));
    }

    pub(crate) fn set_consumed(&mut self, consumed: ConsumedOffer<T>) {
        self.consumed_offer = consumed;
    }

    pub(crate) fn run(self) {
        if let Some(woken) = self.woken {
            woken.wake();
        }
        if let Some(more) = self.more_woken {
            more.0.into_iter().for_each(WakeTarget::wake);
        }
        match self.consumed_offer {
            ConsumedOffer::Nothing => {}
            ConsumedOffer::Sent(actions) => actions.run(Ok(())),
            ConsumedOffer::Received(actions, received) => actions.run(received),
        }
    }
}

impl WakeTarget {
    #[inline]
    fn wake(self) {
        match self {
            WakeTarget::Task(waker) => waker.wake(),
            WakeTarget::Owner(waiter) => waiter.wake(),
        }
    }
}
