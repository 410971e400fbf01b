//! An event whose wraps run in the implicit thread: the synchronous side of `a_trans(s_trans(event))`.

use std::sync::Arc;
use std::time::Instant;

use crate::actions::{self, ActionContext, PostConsumption};
use crate::event::Event;
use crate::event::guard_context::GuardContext;
use crate::event::nacks::NackSet;
use crate::event::node::{EventNode, EventShape, Registration};
use crate::event::registration::{RegistrationContext, WakeRequests};
use crate::waiter::Waiter;

/// Takes effect when `inner` does, and leaves its wraps and the actions to an implicit thread.
pub(crate) struct DeferredWraps<B> {
    pub(crate) inner: Event<B>,
    pub(crate) actions: PostConsumption<B>,
}

impl<B: Send + 'static> DeferredWraps<B> {
    fn finish(&self, base: usize, registration: Option<Registration>) {
        if self.actions.is_none() && !self.inner.node.shape().acts {
            self.inner.node.complete(base, registration);
            return;
        }
        let (inner, actions) = (self.inner.clone(), self.actions.clone());
        actions::run(move || actions.run_at(inner.node.complete(base, registration), ActionContext::Implicit));
    }
}

impl<B: Send + 'static> EventNode<()> for DeferredWraps<B> {
    fn shape(&self) -> EventShape {
        EventShape { acts: true, ..self.inner.node.shape() }
    }

    fn force_guards(&self, first: usize, context: &mut GuardContext) -> Option<Event<()>> {
        let inner = self.inner.node.force_guards(first, context)?;
        Some(Event::of(DeferredWraps { inner, actions: self.actions.clone() }))
    }

    /// Registers `inner` for a moment instead of attempting it, because an attempt would run its wraps in this thread.
    fn attempt(&self, base: usize, nacks: &mut NackSet) -> Option<()> {
        let waiter = Arc::new(Waiter::of_thread());
        let mut wake_requests = WakeRequests::default();
        let registration = self
            .inner
            .node
            .register(base, &mut RegistrationContext { waiter: &waiter, base, wake_requests: &mut wake_requests });
        if wake_requests.timer.is_some_and(|(instant, _)| instant <= Instant::now()) {
            waiter.commit_alone(base);
        }
        if waiter.abandon() {
            if let Some(registration) = registration {
                self.inner.node.withdraw(base, registration);
            }
            return None;
        }
        nacks.fire_losers();
        self.finish(base, registration);
        Some(())
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

    fn complete(&self, base: usize, registration: Option<Registration>) {
        self.finish(base, registration);
    }

    fn recheck(&self, base: usize, context: &mut RegistrationContext<'_>) {
        self.inner.node.recheck(base, context);
    }

    fn try_order(&self, first: usize) -> Vec<usize> {
        self.inner.node.try_order(first)
    }
}
