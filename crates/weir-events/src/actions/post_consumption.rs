//! Post-consumption actions: the continuation of an asynchronous event that has been consumed.

use std::sync::Arc;

use super::tasks::spawn;
use super::threads::run;

/// The post-consumption actions of one asynchronous event; `B` is the type that its consumption yields.
pub(crate) struct PostConsumption<B>(Option<Arc<Continuation<B>>>);

/// A boxed closure behind the `Arc`, so that a [`PostConsumption`] is one word wide: every buffered value carries one,
/// and most are empty.
struct Continuation<B>(Box<dyn Fn(B, ActionContext) + Send + Sync>);

/// The kind of thread that runs the continuation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ActionContext {
    /// The thread that consumed the event. It has other work to do, so no user code may run here.
    Consumer,
    /// The implicit thread of the event (§4), where user code may run.
    Implicit,
}

impl<B> Clone for PostConsumption<B> {
    fn clone(&self) -> Self {
        PostConsumption(self.0.clone())
    }
}

impl<B: 'static> PostConsumption<B> {
    /// No actions: allocates nothing and starts no thread.
    pub(crate) const fn none() -> Self {
        PostConsumption(None)
    }

    pub(crate) fn of(continuation: impl Fn(B, ActionContext) + Send + Sync + 'static) -> Self {
        PostConsumption(Some(Arc::new(Continuation(Box::new(continuation)))))
    }

    pub(crate) fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Runs the actions, called by the thread that consumed the event.
    pub(crate) fn run(&self, consumed: B) {
        self.run_at(consumed, ActionContext::Consumer);
    }

    pub(crate) fn run_at(&self, consumed: B, context: ActionContext) {
        if let Some(continuation) = &self.0 {
            (continuation.0)(consumed, context);
        }
    }

    /// Returns actions that first run `action` in the implicit thread, and then these.
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

    /// Returns actions that first run `action` as a task, and then these.
    pub(crate) fn after_task<A, F>(self, action: Arc<dyn Fn(A) -> F + Send + Sync>) -> PostConsumption<A>
    where
        A: Send + 'static,
        F: Future<Output = B> + Send + 'static,
    {
        PostConsumption::of(move |consumed: A, _| {
            let (actions, action) = (self.clone(), action.clone());
            spawn(async move {
                let value = action(consumed).await;
                // The thread belongs to an executor, so an action that blocks must not run here.
                actions.run(value);
            });
        })
    }

    /// Returns actions that first run `tap` in the current thread, and then these. `tap` must not block and must not be
    /// user code.
    pub(crate) fn tapped(self, tap: Arc<dyn Fn(&B) + Send + Sync>) -> PostConsumption<B> {
        PostConsumption::of(move |consumed: B, context| {
            tap(&consumed);
            self.run_at(consumed, context);
        })
    }
}
