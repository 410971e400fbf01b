//! `guard`: an event that is created anew for each synchronisation. `with_nack` builds on it.

use super::guard_context::GuardContext;
use super::nacks::NackSet;
use super::node::{Event, EventNode, EventShape, Registration};
use super::registration::RegistrationContext;

/// Returns an event that `make` creates; `make` receives the index of the first base event, and forces the guards
/// inside.
pub(crate) fn guarded<T: 'static>(
    make: impl Fn(usize, &mut GuardContext) -> Event<T> + Send + Sync + 'static,
) -> Event<T> {
    Event::of(GuardedEvent(make))
}

struct GuardedEvent<F>(F);

impl<T: 'static, F: Fn(usize, &mut GuardContext) -> Event<T> + Send + Sync> EventNode<T> for GuardedEvent<F> {
    fn shape(&self) -> EventShape {
        EventShape { guarded: true, acts: true, ..EventShape::BASE_EVENT }
    }

    fn force_guards(&self, first: usize, context: &mut GuardContext) -> Option<Event<T>> {
        Some((self.0)(first, context))
    }

    fn attempt(&self, _: usize, _: &mut NackSet) -> Option<T> {
        unreachable!("guards are forced before anything is tried")
    }

    fn register(&self, _: usize, _: &mut RegistrationContext<'_>) -> Option<Registration> {
        unreachable!("guards are forced before anything is placed")
    }

    fn complete(&self, _: usize, _: Option<Registration>) -> T {
        unreachable!("guards are forced before anything takes effect")
    }
}

/// Forces the guards of an event that a guard has just made.
pub(crate) fn force_made<T: 'static>(event: Event<T>, first: usize, context: &mut GuardContext) -> Event<T> {
    context.enter();
    let forced = event.node.force_guards(first, context).unwrap_or(event);
    context.leave();
    forced
}
