//! `wrap`: applies a function to the value of an event after it has taken effect.

use std::sync::Arc;

use super::guard_context::GuardContext;
use super::nacks::NackSet;
use super::node::{Event, EventNode, EventShape, Registration};
use super::registration::RegistrationContext;

/// `wrap(event, action)`.
pub(crate) struct Wrap<A, F> {
    inner: Event<A>,
    action: Arc<F>,
}

impl<A, F> Wrap<A, F> {
    pub(crate) fn new(inner: Event<A>, action: F) -> Self {
        Wrap { inner, action: Arc::new(action) }
    }
}

impl<A, B, F> EventNode<B> for Wrap<A, F>
where
    A: 'static,
    F: Fn(A) -> B + Send + Sync + 'static,
    B: 'static,
{
    fn shape(&self) -> EventShape {
        EventShape { acts: true, ..self.inner.node.shape() }
    }

    fn force_guards(&self, first: usize, context: &mut GuardContext) -> Option<Event<B>> {
        let inner = self.inner.node.force_guards(first, context)?;
        Some(Event::of(Wrap { inner, action: self.action.clone() }))
    }

    fn attempt(&self, base: usize, nacks: &mut NackSet) -> Option<B> {
        self.inner.node.attempt(base, nacks).map(&*self.action)
    }

    fn register(&self, base: usize, context: &mut RegistrationContext<'_>) -> Option<Registration> {
        self.inner.node.register(base, context)
    }

    fn withdraw(&self, base: usize, registration: Registration) {
        self.inner.node.withdraw(base, registration);
    }

    fn discard(&self, base: usize, registration: Option<Registration>) {
        self.inner.node.discard(base, registration);
    }

    fn complete(&self, base: usize, registration: Option<Registration>) -> B {
        (self.action)(self.inner.node.complete(base, registration))
    }

    fn recheck(&self, base: usize, context: &mut RegistrationContext<'_>) {
        self.inner.node.recheck(base, context);
    }

    fn try_order(&self, first: usize) -> Vec<usize> {
        self.inner.node.try_order(first)
    }
}
