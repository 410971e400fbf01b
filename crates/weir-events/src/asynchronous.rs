//! Asynchronous events: communication that one thread starts, another completes, and that still composes (the paper's
//! §4).
//!
//! Each file imports at most those declared before it here, and none imports this one.

mod node;

mod background;
mod deferred_wraps;

mod kinds;

use std::sync::Arc;

use crate::actions::PostConsumption;
use crate::channel::{Channel, Closed, Parcel};
use crate::event::{Event, always, guard, never};
use kinds::{AsyncChoose, Choice};

pub use node::AsyncEvent;

impl<A: 'static, B: 'static> AsyncEvent<A, B> {
    /// Starts the communication and returns without waiting (`aSync`). Only [`s_choose`] waits.
    ///
    /// # Panics
    /// If a guard or a post-creation action panics. A communication that was already placed stays placed.
    pub fn a_sync(&self) -> A {
        self.clone().forced().node.start(PostConsumption::none())
    }

    /// Returns this event with a post-creation action: `action` is applied to the value that starting the event yields,
    /// by the thread that starts it, after the communication was placed (`sWrap`).
    pub fn s_wrap<C: 'static>(&self, action: impl Fn(A) -> C + Send + Sync + 'static) -> AsyncEvent<C, B> {
        AsyncEvent::of(kinds::CreationWrap { inner: self.clone(), action: Arc::new(action) })
    }

    /// Returns this event with a post-consumption action: `action` is applied to the value that the consumption yields,
    /// in an implicit thread, after the communication was consumed (`aWrap`). The action may block.
    pub fn a_wrap<C: 'static>(&self, action: impl Fn(B) -> C + Send + Sync + 'static) -> AsyncEvent<A, C>
    where
        B: Send,
    {
        AsyncEvent::of(kinds::ConsumptionWrap { inner: self.clone(), action: Arc::new(action) })
    }

    /// Like [`a_wrap`](AsyncEvent::a_wrap) with an action that is a future: it runs as a task of the executor that
    /// [`set_action_executor`](crate::set_action_executor) was given, or else on an implicit thread.
    ///
    /// Any number of tasks may wait for each other, while threads are limited by the system.
    pub fn a_wrap_async<F>(&self, action: impl Fn(B) -> F + Send + Sync + 'static) -> AsyncEvent<A, F::Output>
    where
        B: Send,
        F: Future + Send + 'static,
        F::Output: 'static,
    {
        AsyncEvent::of(kinds::ConsumptionTask { inner: self.clone(), action: Arc::new(action) })
    }

    /// Returns the synchronous event that takes effect when this communication is consumed (`aTrans`).
    ///
    /// A choice takes this branch only if it can be consumed. If another branch is taken, no offer of this one stays on
    /// its channel and none of its actions runs. If this branch is taken, the post-creation actions run in the
    /// synchronising thread and the post-consumption actions in the implicit thread.
    pub fn a_trans(&self) -> Event<A> {
        let event = self.clone();
        guard(move || event.clone().forced().node.transform(PostConsumption::none()))
    }

    /// Returns an event that starts this communication and yields a second event; that one takes effect when the
    /// communication has been consumed, and then runs `action` in the synchronising thread (`callbackEvt`).
    ///
    /// Each start yields an event of its own, to be synchronised once. Never synchronising it delays nothing. The
    /// consumed value is cloned, because further post-consumption actions receive it too.
    pub fn callback<C: 'static>(&self, action: impl Fn(B) -> C + Send + Sync + 'static) -> AsyncEvent<Event<C>, B>
    where
        B: Clone + Send,
    {
        let event = self.clone();
        let action = Arc::new(action);
        a_guard(move || {
            let local = Channel::<B>::rendezvous();
            let action = action.clone();
            let consumed = local.recv().wrap(move |value| action(value.expect("nobody closes a local channel")));
            let tap = Arc::new(move |value: &B| local.core.send_buffered(value.clone(), PostConsumption::none()));
            AsyncEvent::of(kinds::Tap { inner: event.clone(), tap }).s_wrap(move |_| consumed.clone())
        })
    }
}

/// Sends `value` asynchronously; each start sends a clone (`aSendEvt`). Starting it yields `()`; its consumption yields
/// `Ok` if the value was received, or `Closed` if the channel was closed.
pub fn a_send<T: Clone + Send + Sync + 'static>(channel: &Channel<T>, value: T) -> AsyncEvent<(), Result<(), Closed>> {
    AsyncEvent::of(kinds::AsyncSendClone { channel: channel.clone(), value })
}

/// Sends the value in the parcel asynchronously; a start with an empty parcel does nothing.
pub fn a_send_parcel<T: Send + 'static>(
    channel: &Channel<T>,
    parcel: &Parcel<T>,
) -> AsyncEvent<(), Result<(), Closed>> {
    AsyncEvent::of(kinds::AsyncSendParcel { channel: channel.clone(), parcel: parcel.clone() })
}

/// Receives asynchronously (`aRecvEvt`): starting it queues a receiver on the channel, and the received value goes to
/// its post-consumption actions. Receivers are served in the order in which they were started.
pub fn a_recv<T: Send + 'static>(channel: &Channel<T>) -> AsyncEvent<(), Result<T, Closed>> {
    AsyncEvent::of(kinds::AsyncReceive { channel: channel.clone() })
}

/// Returns an asynchronous event that is consumed at once (`aAlwaysEvt`).
pub fn a_always<T: Clone + Send + Sync + 'static>(value: T) -> AsyncEvent<(), T> {
    s_trans(&always(value))
}

/// Returns an asynchronous event that is never consumed (`aNever`).
pub fn a_never<T: Send + 'static>() -> AsyncEvent<(), T> {
    s_trans(&never())
}

/// Returns an asynchronous event that `make` creates anew at each start (`aGuard`).
pub fn a_guard<A: 'static, B: 'static>(
    make: impl Fn() -> AsyncEvent<A, B> + Send + Sync + 'static,
) -> AsyncEvent<A, B> {
    AsyncEvent::of(kinds::AsyncGuard(make))
}

/// Starts one of the branches and returns at once (`aChoose`): a branch that can be consumed now if there is one,
/// otherwise any.
///
/// The paper demands equal chances for all branches and also `choose[aTrans a, aTrans b]` ≡ `aChoose[a, b]`, although
/// `aTrans` selects only branches that can be consumed (§4.1). This implementation prefers the branches that can be
/// consumed and gives equal chances among them. A synchronous event inside ([`s_trans`]) is tried first and, if it is
/// picked without being ready, synchronised anew, so its guards run twice.
///
/// # Panics
/// If it is started without branches.
pub fn a_choose<A: 'static, B: 'static>(branches: impl IntoIterator<Item = AsyncEvent<A, B>>) -> AsyncEvent<A, B> {
    AsyncEvent::of(AsyncChoose { branches: branches.into_iter().collect(), choice: Choice::AtOnce })
}

/// Waits until one of the branches has been consumed, and then runs the actions of that branch (`sChoose`).
///
/// Starting it blocks the thread; a task awaits its [`a_trans`](AsyncEvent::a_trans) instead.
pub fn s_choose<A: 'static, B: 'static>(branches: impl IntoIterator<Item = AsyncEvent<A, B>>) -> AsyncEvent<A, B> {
    AsyncEvent::of(AsyncChoose { branches: branches.into_iter().collect(), choice: Choice::WhenConsumed })
}

/// Returns the asynchronous event that synchronises `event` in the background (`sTrans`): starting it places the
/// offers, and the wraps run in the implicit thread.
///
/// It waits without a limit; close its channels to end it.
pub fn s_trans<B: Send + 'static>(event: &Event<B>) -> AsyncEvent<(), B> {
    AsyncEvent::of(kinds::FromSynchronous(event.clone()))
}
