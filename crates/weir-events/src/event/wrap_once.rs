//! `wrap_once`: an action that runs at most once, and may therefore consume what it has captured.

use std::sync::Arc;

use super::base::Never;
use super::guard::{force_made, guarded};
use super::node::Event;
use super::wrap::Wrap;
use crate::primitives::SpinLock;

/// An action that waits for the synchronisation that takes effect.
type ActionSlot<F> = Arc<SpinLock<Option<F>>>;

/// The action while one synchronisation may run it; an action that did not run goes back for the next one.
struct Lease<F> {
    action: SpinLock<Option<F>>,
    slot: ActionSlot<F>,
}

impl<F> Drop for Lease<F> {
    fn drop(&mut self) {
        let action = self.action.lock().take();
        if action.is_some() {
            *self.slot.lock() = action;
        }
    }
}

/// Returns `event` with an action that runs at most once.
pub(super) fn wrap_once<A, B, F>(event: Event<A>, action: F) -> Event<B>
where
    A: 'static,
    B: 'static,
    F: FnOnce(A) -> B + Send + 'static,
{
    let slot = Arc::new(SpinLock::new(Some(action)));
    guarded(move |first, context| {
        let Some(action) = slot.lock().take() else { return Event::of(Never) };
        let lease = Lease { action: SpinLock::new(Some(action)), slot: slot.clone() };
        let run = move |value| {
            let action = lease.action.lock().take();
            action.expect("one synchronisation takes effect once")(value)
        };
        force_made(Event::of(Wrap::new(event.clone(), run)), first, context)
    })
}
