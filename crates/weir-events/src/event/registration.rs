//! The context in which a base event registers, and the wake-ups that it may request.

use std::sync::Arc;
use std::time::Instant;

use crate::waiter::Waiter;

/// A synchronisation that is registering its base events, or checks some of them again.
pub(crate) struct RegistrationContext<'a> {
    pub(crate) waiter: &'a Arc<Waiter>,
    /// The current base event, numbered in the whole tree.
    pub(crate) base: usize,
    pub(crate) wake_requests: &'a mut WakeRequests,
}

/// The wake-ups that base events requested besides those by peers.
#[derive(Default)]
pub(crate) struct WakeRequests {
    /// The earliest timer, with the base event that takes effect at that instant.
    pub(crate) timer: Option<(Instant, usize)>,
    /// Base events to be checked whenever the waiter is woken.
    pub(crate) watched: Vec<usize>,
}

impl RegistrationContext<'_> {
    /// Lets the base event take effect at `instant`, unless another one has by then.
    pub(crate) fn expire_at(&mut self, instant: Instant) {
        if self.wake_requests.timer.is_none_or(|(earliest, _)| instant < earliest) {
            self.wake_requests.timer = Some((instant, self.base));
        }
    }

    /// Requests a check of the base event at each wake-up of the waiter.
    pub(crate) fn recheck_on_wake(&mut self) {
        self.wake_requests.watched.push(self.base);
    }
}
