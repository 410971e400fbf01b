//! What is left to do after a match, once the channel's lock is free: tell owners, run actions.
//!
//! Wakers and actions are foreign code; none of it may run under a lock.

use super::closed::Closed;
use super::entry::Woken;
use crate::implicit::Then;
use crate::mutants::{Mutant, is_active};

/// The consequences of one match: at most one action, and at most the two owners whom a receive from a buffer that
/// was overfull can serve at once.
pub(crate) struct Effects<T> {
    woken: Option<Woken>,
    more_woken: Option<Box<More>>,
    discharged: Discharge<T>,
}

/// Owners beyond the first: hardly ever any, so that they are not to be looked after where there are none.
struct More(Vec<Woken>);

/// A deposit that was consumed, with its action.
pub(crate) enum Discharge<T> {
    /// None was, or it has no action.
    Nothing,
    /// An asynchronous send.
    Sent(Then<Result<(), Closed>>),
    /// An asynchronous receive, and what it received.
    Received(Then<Result<T, Closed>>, Result<T, Closed>),
}

impl<T> Default for Effects<T> {
    fn default() -> Self {
        Effects { woken: None, more_woken: None, discharged: Discharge::Nothing }
    }
}

impl<T: 'static> Effects<T> {
    pub(crate) fn wake(&mut self, woken: Woken) {
        match self.woken {
            _ if is_active(Mutant::ForgetToWake) => {}
            None => self.woken = Some(woken),
            Some(_) => self.more_woken.get_or_insert_with(|| Box::new(More(Vec::new()))).0.push(woken),
        }
    }

    pub(crate) fn wake_all(&mut self, woken: Option<Woken>) {
        woken.into_iter().for_each(|woken| self.wake(woken));
    }

    pub(crate) fn discharge(&mut self, discharge: Discharge<T>) {
        self.discharged = discharge;
    }

    pub(crate) fn run(self) {
        if let Some(woken) = self.woken {
            woken.wake();
        }
        if let Some(more) = self.more_woken {
            more.0.into_iter().for_each(Woken::wake);
        }
        match self.discharged {
            Discharge::Nothing => {}
            Discharge::Sent(then) => then.run(Ok(())),
            Discharge::Received(then, received) => then.run(received),
        }
    }
}

impl Woken {
    #[inline]
    fn wake(self) {
        match self {
            Woken::Task(waker) => waker.wake(),
            Woken::Owner(party) => party.wake(),
        }
    }
}
