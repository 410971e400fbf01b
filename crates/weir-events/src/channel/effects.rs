//! What is left to do after a match, once the channel's lock is free: tell owners, run actions.
//!
//! Wakers and actions are foreign code; none of it may run under a lock.

use super::closed::Closed;
use super::entry::WakeTarget;
use crate::actions::PostConsumption;
use crate::mutants::{Mutant, is_active};

/// The consequences of one match: at most one action, and at most the two owners whom a receive from a buffer that
/// was overfull can serve at once.
pub(crate) struct MatchEffects<T> {
    woken: Option<WakeTarget>,
    more_woken: Option<Box<More>>,
    consumed_offer: ConsumedOffer<T>,
}

/// Owners beyond the first: hardly ever any, so that they are not to be looked after where there are none.
struct More(Vec<WakeTarget>);

/// A buffered offer that was consumed, with its action.
pub(crate) enum ConsumedOffer<T> {
    /// None was, or it has no action.
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
