//! The tree behind an asynchronous event; each node can be started or converted into a branch of a choice.

use std::fmt;
use std::sync::Arc;

use crate::actions::PostConsumption;
use crate::event::Event;

/// An asynchronous communication: starting it yields an `A` at once, its consumption yields a `B` later (the paper's
/// `('a, 'b) AEvent`).
///
/// [`a_sync`](AsyncEvent::a_sync) places the communication on its channel, whether a peer waits or not, and returns the
/// result of the *post-creation* actions ([`s_wrap`](AsyncEvent::s_wrap)), which run in the caller. After a peer has
/// consumed it, the *post-consumption* actions ([`a_wrap`](AsyncEvent::a_wrap)) run in an implicit thread.
///
/// Communications that one thread starts on one channel are consumed in the order of their starts.
///
/// Like an [`Event`] it is a value: starting it twice makes two independent communications. A started communication
/// cannot be taken back; to keep that option, make it a branch of a choice with [`a_trans`](AsyncEvent::a_trans).
///
/// If an action panics, the panic hook reports it and [`action_panics`](crate::action_panics) counts it; nothing else
/// is affected.
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
    /// Runs the guards inside and returns the tree without them, or `None` if there are none.
    fn force_guards(&self) -> Option<AsyncEvent<A, B>> {
        None
    }

    /// Places the communication on its channel, whatever state that is in, and returns the result of its post-creation
    /// actions.
    fn start(&self, actions: PostConsumption<B>) -> A;

    /// Returns the synchronous event that takes effect when this one is consumed. Its guards must have run.
    fn transform(&self, actions: PostConsumption<B>) -> Event<A>;
}
