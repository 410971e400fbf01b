//! The base events without a peer: `always` and `never`.

use super::nacks::NackSet;
use super::node::{EventNode, EventShape, Registration};
use super::registration::RegistrationContext;

/// `always(value)`.
pub(crate) struct Always<T>(pub(crate) T);

impl<T: Clone + Send + Sync> EventNode<T> for Always<T> {
    fn shape(&self) -> EventShape {
        EventShape::BASE_EVENT
    }

    fn attempt(&self, _: usize, nacks: &mut NackSet) -> Option<T> {
        nacks.fire_losers();
        Some(self.0.clone())
    }

    fn register(&self, _: usize, context: &mut RegistrationContext<'_>) -> Option<Registration> {
        context.waiter.commit_alone(context.base);
        None
    }

    fn complete(&self, _: usize, _: Option<Registration>) -> T {
        self.0.clone()
    }
}

/// `never()`: has no base event.
pub(crate) struct Never;

impl<T> EventNode<T> for Never {
    fn shape(&self) -> EventShape {
        EventShape { base_events: 0, ..EventShape::BASE_EVENT }
    }

    fn attempt(&self, _: usize, _: &mut NackSet) -> Option<T> {
        None
    }

    fn register(&self, _: usize, _: &mut RegistrationContext<'_>) -> Option<Registration> {
        None
    }

    fn complete(&self, _: usize, _: Option<Registration>) -> T {
        unreachable!("an event without base_events never takes effect")
    }
}
