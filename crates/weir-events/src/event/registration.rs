//! What a base event needs to know in order to place its registration, and what it may ask for.

use std::sync::Arc;
use std::time::Instant;

use crate::waiter::Waiter;

/// One synchronisation that is publishing its base events, or looks at some of them again.
pub(crate) struct RegistrationContext<'a> {
    pub(crate) waiter: &'a Arc<Waiter>,
    /// The base event at hand, numbered in the whole tree.
    pub(crate) base: usize,
    pub(crate) wake_requests: &'a mut WakeRequests,
}

/// What the base events asked for besides being found by peers.
#[derive(Default)]
pub(crate) struct WakeRequests {
    /// The base event that takes effect by time alone, earliest first.
    pub(crate) timer: Option<(Instant, usize)>,
    /// Leaves that want to be looked at whenever the waiter is woken.
    pub(crate) watched: Vec<usize>,
}

impl RegistrationContext<'_> {
    /// The base event takes effect at `instant`, if nothing else has by then.
    pub(crate) fn expire_at(&mut self, instant: Instant) {
        if self.wake_requests.timer.is_none_or(|(earliest, _)| instant < earliest) {
            self.wake_requests.timer = Some((instant, self.base));
        }
    }

    /// The base event is looked at again each time the waiter is woken.
    pub(crate) fn recheck_on_wake(&mut self) {
        self.wake_requests.watched.push(self.base);
    }
}
