//! The kinds of nodes of asynchronous events, each with its start and its synchronous form.

use std::sync::Arc;

use super::background;
use super::deferred_wraps::DeferredWraps;
use super::node::{AsyncEvent, AsyncNode};
use crate::actions::PostConsumption;
use crate::channel::core::Core;
use crate::channel::entry::Delivery;
use crate::channel::{Channel, Closed, Parcel};
use crate::event::{Event, choose, random_below};

/// `a_send(channel, value)`.
pub(crate) struct AsyncSendClone<T> {
    pub(crate) channel: Channel<T>,
    pub(crate) value: T,
}

impl<T: Clone + Send + Sync + 'static> AsyncNode<(), Result<(), Closed>> for AsyncSendClone<T> {
    fn start(&self, actions: PostConsumption<Result<(), Closed>>) {
        self.channel.core.send_buffered(self.value.clone(), actions);
    }

    fn transform(&self, actions: PostConsumption<Result<(), Closed>>) -> Event<()> {
        self.channel.send_by(self.value.clone(), Delivery::Receipt).wrap(move |sent| actions.run(sent))
    }
}

/// `a_send` of a value that cannot be cloned.
pub(crate) struct AsyncSendParcel<T> {
    pub(crate) channel: Channel<T>,
    pub(crate) parcel: Parcel<T>,
}

impl<T: Send + 'static> AsyncNode<(), Result<(), Closed>> for AsyncSendParcel<T> {
    fn start(&self, actions: PostConsumption<Result<(), Closed>>) {
        if let Some(value) = self.parcel.take() {
            self.channel.core.send_buffered(value, actions);
        }
    }

    fn transform(&self, actions: PostConsumption<Result<(), Closed>>) -> Event<()> {
        self.channel.send_parcel_by(&self.parcel, Delivery::Receipt).wrap(move |sent| actions.run(sent))
    }
}

/// `a_recv(channel)`.
pub(crate) struct AsyncReceive<T> {
    pub(crate) channel: Channel<T>,
}

impl<T: Send + 'static> AsyncNode<(), Result<T, Closed>> for AsyncReceive<T> {
    fn start(&self, actions: PostConsumption<Result<T, Closed>>) {
        let core: &Arc<Core<T>> = &self.channel.core;
        core.receive_to_actions(actions);
    }

    fn transform(&self, actions: PostConsumption<Result<T, Closed>>) -> Event<()> {
        self.channel.recv().wrap(move |received| actions.run(received))
    }
}

/// `s_wrap(event, action)`.
pub(crate) struct CreationWrap<X, B, F> {
    pub(crate) inner: AsyncEvent<X, B>,
    pub(crate) action: Arc<F>,
}

impl<X, A, B, F> AsyncNode<A, B> for CreationWrap<X, B, F>
where
    X: 'static,
    A: 'static,
    B: 'static,
    F: Fn(X) -> A + Send + Sync + 'static,
{
    fn force_guards(&self) -> Option<AsyncEvent<A, B>> {
        let inner = self.inner.node.force_guards()?;
        Some(AsyncEvent::of(CreationWrap { inner, action: self.action.clone() }))
    }

    fn start(&self, actions: PostConsumption<B>) -> A {
        (self.action)(self.inner.node.start(actions))
    }

    fn transform(&self, actions: PostConsumption<B>) -> Event<A> {
        let action = self.action.clone();
        self.inner.node.transform(actions).wrap(move |created| action(created))
    }
}

/// `a_wrap(event, action)`.
pub(crate) struct ConsumptionWrap<A, X, B> {
    pub(crate) inner: AsyncEvent<A, X>,
    pub(crate) action: Arc<dyn Fn(X) -> B + Send + Sync>,
}

impl<A, X, B> AsyncNode<A, B> for ConsumptionWrap<A, X, B>
where
    A: 'static,
    X: Send + 'static,
    B: 'static,
{
    fn force_guards(&self) -> Option<AsyncEvent<A, B>> {
        let inner = self.inner.node.force_guards()?;
        Some(AsyncEvent::of(ConsumptionWrap { inner, action: self.action.clone() }))
    }

    fn start(&self, actions: PostConsumption<B>) -> A {
        self.inner.node.start(actions.after(self.action.clone()))
    }

    fn transform(&self, actions: PostConsumption<B>) -> Event<A> {
        self.inner.node.transform(actions.after(self.action.clone()))
    }
}

/// `a_wrap_async(event, action)`.
pub(crate) struct ConsumptionTask<A, X, F> {
    pub(crate) inner: AsyncEvent<A, X>,
    pub(crate) action: Arc<dyn Fn(X) -> F + Send + Sync>,
}

impl<A, X, F> AsyncNode<A, F::Output> for ConsumptionTask<A, X, F>
where
    A: 'static,
    X: Send + 'static,
    F: Future + Send + 'static,
    F::Output: 'static,
{
    fn force_guards(&self) -> Option<AsyncEvent<A, F::Output>> {
        let inner = self.inner.node.force_guards()?;
        Some(AsyncEvent::of(ConsumptionTask { inner, action: self.action.clone() }))
    }

    fn start(&self, actions: PostConsumption<F::Output>) -> A {
        self.inner.node.start(actions.after_task(self.action.clone()))
    }

    fn transform(&self, actions: PostConsumption<F::Output>) -> Event<A> {
        self.inner.node.transform(actions.after_task(self.action.clone()))
    }
}

/// Passes the consumed value by reference to `tap`, without a thread; for actions of this crate that never block.
pub(crate) struct Tap<A, B> {
    pub(crate) inner: AsyncEvent<A, B>,
    pub(crate) tap: Arc<dyn Fn(&B) + Send + Sync>,
}

impl<A: 'static, B: 'static> AsyncNode<A, B> for Tap<A, B> {
    fn force_guards(&self) -> Option<AsyncEvent<A, B>> {
        let inner = self.inner.node.force_guards()?;
        Some(AsyncEvent::of(Tap { inner, tap: self.tap.clone() }))
    }

    fn start(&self, actions: PostConsumption<B>) -> A {
        self.inner.node.start(actions.tapped(self.tap.clone()))
    }

    fn transform(&self, actions: PostConsumption<B>) -> Event<A> {
        self.inner.node.transform(actions.tapped(self.tap.clone()))
    }
}

/// `a_guard(make)`.
pub(crate) struct AsyncGuard<F>(pub(crate) F);

impl<A: 'static, B: 'static, F> AsyncNode<A, B> for AsyncGuard<F>
where
    F: Fn() -> AsyncEvent<A, B> + Send + Sync,
{
    fn force_guards(&self) -> Option<AsyncEvent<A, B>> {
        Some((self.0)().forced())
    }

    fn start(&self, _: PostConsumption<B>) -> A {
        unreachable!("guards are forced before anything is started")
    }

    fn transform(&self, _: PostConsumption<B>) -> Event<A> {
        unreachable!("guards are forced before anything is tried")
    }
}

/// Waiting behaviour of a choice of asynchronous events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// `a_choose`: never waits.
    AtOnce,
    /// `s_choose`: waits until a branch was consumed.
    WhenConsumed,
}

/// `a_choose(branches)` and `s_choose(branches)`.
pub(crate) struct AsyncChoose<A, B> {
    pub(crate) branches: Vec<AsyncEvent<A, B>>,
    pub(crate) choice: Choice,
}

impl<A: 'static, B: 'static> AsyncNode<A, B> for AsyncChoose<A, B> {
    fn force_guards(&self) -> Option<AsyncEvent<A, B>> {
        let forced: Vec<_> = self.branches.iter().map(|branch| branch.node.force_guards()).collect();
        if forced.iter().all(Option::is_none) {
            return None;
        }
        let branches = forced.into_iter().zip(&self.branches);
        let branches = branches.map(|(forced, branch)| forced.unwrap_or_else(|| branch.clone())).collect();
        Some(AsyncEvent::of(AsyncChoose { branches, choice: self.choice }))
    }

    fn start(&self, actions: PostConsumption<B>) -> A {
        let consumable = self.transform(actions.clone());
        match self.choice {
            Choice::WhenConsumed => consumable.sync(),
            Choice::AtOnce => consumable.poll().unwrap_or_else(|| {
                assert!(!self.branches.is_empty(), "a_choose of nothing has nothing to return at once");
                self.branches[random_below(self.branches.len())].node.start(actions)
            }),
        }
    }

    fn transform(&self, actions: PostConsumption<B>) -> Event<A> {
        choose(self.branches.iter().map(|branch| branch.node.transform(actions.clone())))
    }
}

/// `s_trans(event)`.
pub(crate) struct FromSynchronous<B: 'static>(pub(crate) Event<B>);

impl<B: Send + 'static> AsyncNode<(), B> for FromSynchronous<B> {
    fn start(&self, actions: PostConsumption<B>) {
        background::start(&self.0, actions);
    }

    fn transform(&self, actions: PostConsumption<B>) -> Event<()> {
        // The wraps of the event are post-consumption actions here, so they belong to the implicit thread.
        Event::of(DeferredWraps { inner: self.0.clone(), actions })
    }
}
