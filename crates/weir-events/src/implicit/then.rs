//! What follows when an asynchronous event is consumed, and where it runs.

use std::sync::Arc;

use super::threads::run;

/// The post-consumption actions of one asynchronous event, `B` being what its consumption yields.
pub(crate) struct Then<B>(Option<Arc<Continuation<B>>>);

/// In a box, so that a [`Then`] is one word: it lies beside each value that is buffered, mostly empty.
struct Continuation<B>(Box<dyn Fn(B, Place) + Send + Sync>);

/// Which thread is running the continuation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The one that consumed the event, which has its own things to do: no foreign code may run here.
    Consumer,
    /// The implicit thread of this event (§4).
    Implicit,
}

impl<B> Clone for Then<B> {
    fn clone(&self) -> Self {
        Then(self.0.clone())
    }
}

impl<B: 'static> Then<B> {
    /// No action: nothing is allocated and no thread is made.
    pub(crate) const fn nothing() -> Self {
        Then(None)
    }

    pub(crate) fn of(continuation: impl Fn(B, Place) + Send + Sync + 'static) -> Self {
        Then(Some(Arc::new(Continuation(Box::new(continuation)))))
    }

    pub(crate) fn is_nothing(&self) -> bool {
        self.0.is_none()
    }

    /// Runs it, from the thread that consumed the event.
    pub(crate) fn run(&self, consumed: B) {
        self.run_at(consumed, Place::Consumer);
    }

    pub(crate) fn run_at(&self, consumed: B, place: Place) {
        if let Some(continuation) = &self.0 {
            (continuation.0)(consumed, place);
        }
    }

    /// `action` before these, in the implicit thread.
    pub(crate) fn after<A: Send + 'static>(self, action: Arc<dyn Fn(A) -> B + Send + Sync>) -> Then<A>
    where
        B: 'static,
    {
        Then::of(move |consumed: A, place| match place {
            Place::Implicit => self.run_at(action(consumed), Place::Implicit),
            Place::Consumer => {
                let (then, action) = (self.clone(), action.clone());
                run(move || then.run_at(action(consumed), Place::Implicit));
            }
        })
    }

    /// `tap` before these, in whichever thread it is; it must not wait and is not foreign code.
    pub(crate) fn tapped(self, tap: Arc<dyn Fn(&B) + Send + Sync>) -> Then<B> {
        Then::of(move |consumed: B, place| {
            tap(&consumed);
            self.run_at(consumed, place);
        })
    }
}
