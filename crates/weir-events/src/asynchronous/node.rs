//! What an asynchronous event is: a tree of nodes, each of which can be started or made a branch of a choice.

use std::fmt;
use std::sync::Arc;

use crate::actions::PostConsumption;
use crate::event::Event;

/// An asynchronous communication: starting it yields an `A` at once, its consumption yields a `B` later (the paper's
/// `('a, 'b) AEvent`).
///
/// [`a_sync`](AsyncEvent::a_sync) places the communication on its channel whether anybody is there or not, and returns
/// what the *post-creation* actions ([`s_wrap`](AsyncEvent::s_wrap)) make of it, in the caller. When a peer has
/// consumed it, the *post-consumption* actions ([`a_wrap`](AsyncEvent::a_wrap)) run in an implicit thread.
///
/// What one thread starts on one channel is consumed in the order in which it was started.
///
/// Like an [`Event`] it is a value, and starting it twice is two independent communications. What was started cannot
/// be taken back: for that, make it a branch of a choice with [`a_trans`](AsyncEvent::a_trans).
///
/// An action that panics is reported by the panic hook and counted ([`action_panics`](crate::action_panics)); nothing
/// else is touched by it.
#[must_use = "an asynchronous event does nothing until it is synchronised"]
pub struct AsyncEvent<A, B> {
    pub(crate) node: Arc<dyn AsyncNode<A, B>>,
}

impl<A, B> Clone for AsyncEvent<A, B> {
    fn clone(&self) -> Self {
        AsyncEvent { node: self.node.clone() }
    }
}

impl<A, B> fmt::Debug for AsyncEvent<A, B> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AsyncEvent").finish_non_exhaustive()
    }
}

impl<A, B> AsyncEvent<A, B> {
    pub(crate) fn of(node: impl AsyncNode<A, B> + 'static) -> Self {
        AsyncEvent { node: Arc::new(node) }
    }
}

impl<A: 'static, B: 'static> AsyncEvent<A, B> {
    pub(crate) fn forced(self) -> Self {
        self.node.force_guards().unwrap_or(self)
    }
}

/// One node of an asynchronous event.
pub(crate) trait AsyncNode<A, B>: Send + Sync {
    /// Runs the guards inside; `None` if there are none.
    fn force_guards(&self) -> Option<AsyncEvent<A, B>> {
        None
    }

    /// Starts it: places it on its channel, whatever its state, and returns what its post-creation actions make of it.
    fn start(&self, actions: PostConsumption<B>) -> A;

    /// The synchronous event that takes effect when this one is consumed. Guards must have run.
    fn transform(&self, actions: PostConsumption<B>) -> Event<A>;
}
