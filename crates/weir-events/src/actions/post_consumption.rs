//! What follows when an asynchronous event is consumed, and where it runs.

use std::sync::Arc;

use super::threads::run;

/// The post-consumption actions of one asynchronous event, `B` being what its consumption yields.
pub(crate) struct PostConsumption<B>(Option<Arc<Continuation<B>>>);

/// In a box, so that a [`PostConsumption`] is one word: it lies beside each value that is buffered, mostly empty.
struct Continuation<B>(Box<dyn Fn(B, ActionContext) + Send + Sync>);

/// Which thread is running the continuation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ActionContext {
    /// The one that consumed the event, which has its own things to do: no foreign code may run here.
    Consumer,
    /// The implicit thread of this event (§4).
    Implicit,
}

impl<B> Clone for PostConsumption<B> {
    fn clone(&self) -> Self {
        PostConsumption(self.0.clone())
    }
}

impl<B: 'static> PostConsumption<B> {
    /// No action: nothing is allocated and no thread is made.
    pub(crate) const fn none() -> Self {
        PostConsumption(None)
    }

    pub(crate) fn of(continuation: impl Fn(B, ActionContext) + Send + Sync + 'static) -> Self {
        PostConsumption(Some(Arc::new(Continuation(Box::new(continuation)))))
    }

    pub(crate) fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Runs it, from the thread that consumed the event.
    pub(crate) fn run(&self, consumed: B) {
        self.run_at(consumed, ActionContext::Consumer);
    }

    pub(crate) fn run_at(&self, consumed: B, context: ActionContext) {
        if let Some(continuation) = &self.0 {
            (continuation.0)(consumed, context);
        }
    }

    /// `action` before these, in the implicit thread.
    pub(crate) fn after<A: Send + 'static>(self, action: Arc<dyn Fn(A) -> B + Send + Sync>) -> PostConsumption<A>
    where
        B: 'static,
    {
        PostConsumption::of(move |consumed: A, context| match context {
            ActionContext::Implicit => self.run_at(action(consumed), ActionContext::Implicit),
            ActionContext::Consumer => {
                let (actions, action) = (self.clone(), action.clone());
                run(move || actions.run_at(action(consumed), ActionContext::Implicit));
            }
        })
    }

    /// `tap` before these, in whichever thread it is; it must not wait and is not foreign code.
    pub(crate) fn tapped(self, tap: Arc<dyn Fn(&B) + Send + Sync>) -> PostConsumption<B> {
        PostConsumption::of(move |consumed: B, context| {
            tap(&consumed);
            self.run_at(consumed, context);
        })
    }
}
