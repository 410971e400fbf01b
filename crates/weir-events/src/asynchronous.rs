//! Asynchronous events: communication that somebody starts and somebody else completes, and that still composes
//! (the paper's §4).
//!
//! Each file imports those named before it here at the most, and none imports this one.

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
    /// Starts the communication and returns without waiting for anybody (`aSync`); only [`s_choose`] waits.
    ///
    /// # Panics
    /// If a guard or a post-creation action does. A communication that was placed by then stays.
    pub fn a_sync(&self) -> A {
        self.clone().forced().node.start(PostConsumption::none())
    }

    /// The same with `action` applied to what starting it yields: a post-creation action, run by the thread that
    /// starts it, after the communication was placed (`sWrap`).
    pub fn s_wrap<C: 'static>(&self, action: impl Fn(A) -> C + Send + Sync + 'static) -> AsyncEvent<C, B> {
        AsyncEvent::of(kinds::CreationWrap { inner: self.clone(), action: Arc::new(action) })
    }

    /// The same with `action` applied to what its consumption yields: a post-consumption action, run by an implicit
    /// thread after the communication was consumed (`aWrap`). It may wait.
    pub fn a_wrap<C: 'static>(&self, action: impl Fn(B) -> C + Send + Sync + 'static) -> AsyncEvent<A, C>
    where
        B: Send,
    {
        AsyncEvent::of(kinds::ConsumptionWrap { inner: self.clone(), action: Arc::new(action) })
    }

    /// The synchronous event that takes effect when this communication is consumed (`aTrans`).
    ///
    /// In a choice it is taken only if it can be consumed. If another branch is taken, nothing of it stays on its
    /// channel and none of its actions runs; if it is taken, the post-creation actions run in the thread that
    /// synchronises and the post-consumption actions in the implicit thread.
    pub fn a_trans(&self) -> Event<A> {
        let event = self.clone();
        guard(move || event.clone().forced().node.transform(PostConsumption::none()))
    }

    /// Starts this communication and yields an event that takes effect when it has been consumed, and then runs
    /// `action` in the thread that synchronises (`callbackEvt`).
    ///
    /// Each start has its own event, to be synchronised once. Never synchronising it holds nothing up. Where the value
    /// is passed on it is cloned, because further post-consumption actions get it too.
    pub fn callback<C: 'static>(&self, action: impl Fn(B) -> C + Send + Sync + 'static) -> AsyncEvent<Event<C>, B>
    where
        B: Clone + Send,
    {
        let event = self.clone();
        let action = Arc::new(action);
        a_guard(move || {
            let local = Channel::<B>::rendezvous();
            let action = action.clone();
            let consumed = local.receive().wrap(move |value| action(value.expect("nobody closes a local channel")));
            let tap = Arc::new(move |value: &B| local.core.send_buffered(value.clone(), PostConsumption::none()));
            AsyncEvent::of(kinds::Tap { inner: event.clone(), tap }).s_wrap(move |_| consumed.clone())
        })
    }
}

/// Sends `value` asynchronously; each start sends a clone (`aSendEvt`). Yields nothing at once, and when the value has
/// been received `Ok`, or `Closed` if the channel was.
pub fn a_send<T: Clone + Send + Sync + 'static>(channel: &Channel<T>, value: T) -> AsyncEvent<(), Result<(), Closed>> {
    AsyncEvent::of(kinds::AsyncSendClone { channel: channel.clone(), value })
}

/// Sends what is in the parcel asynchronously; started with an empty parcel it does nothing.
pub fn a_send_parcel<T: Send + 'static>(
    channel: &Channel<T>,
    parcel: &Parcel<T>,
) -> AsyncEvent<(), Result<(), Closed>> {
    AsyncEvent::of(kinds::AsyncSendParcel { channel: channel.clone(), parcel: parcel.clone() })
}

/// Receives asynchronously (`aRecvEvt`): takes its place on the channel when it is started; what it receives goes to
/// its post-consumption actions. Several started one after the other receive in that order.
pub fn a_receive<T: Send + 'static>(channel: &Channel<T>) -> AsyncEvent<(), Result<T, Closed>> {
    AsyncEvent::of(kinds::AsyncReceive { channel: channel.clone() })
}

/// An asynchronous event that is consumed at once (`aAlwaysEvt`).
pub fn a_always<T: Clone + Send + Sync + 'static>(value: T) -> AsyncEvent<(), T> {
    s_trans(&always(value))
}

/// An asynchronous event that is never consumed (`aNever`).
pub fn a_never<T: Send + 'static>() -> AsyncEvent<(), T> {
    s_trans(&never())
}

/// An asynchronous event made anew each time it is started (`aGuard`).
pub fn a_guard<A: 'static, B: 'static>(
    make: impl Fn() -> AsyncEvent<A, B> + Send + Sync + 'static,
) -> AsyncEvent<A, B> {
    AsyncEvent::of(kinds::AsyncGuard(make))
}

/// Starts one of the branches and returns at once (`aChoose`): one that can be consumed now if there is one, else any.
///
/// The paper asks both for equal chances of all branches and for `choose[aTrans a, aTrans b]` ≡ `aChoose[a, b]`, though
/// `aTrans` takes only what can be consumed (§4.1); this is how that is settled here. A synchronous event inside
/// ([`s_trans`]) is tried first and, if it is then picked, synchronised anew: its guards run for each.
///
/// # Panics
/// When it is started without branches.
pub fn a_choose<A: 'static, B: 'static>(branches: impl IntoIterator<Item = AsyncEvent<A, B>>) -> AsyncEvent<A, B> {
    AsyncEvent::of(AsyncChoose { branches: branches.into_iter().collect(), choice: Choice::AtOnce })
}

/// Waits until one of the branches has been consumed, and then runs that one's actions (`sChoose`).
///
/// Starting it blocks the thread; a task awaits its [`a_trans`](AsyncEvent::a_trans) instead.
pub fn s_choose<A: 'static, B: 'static>(branches: impl IntoIterator<Item = AsyncEvent<A, B>>) -> AsyncEvent<A, B> {
    AsyncEvent::of(AsyncChoose { branches: branches.into_iter().collect(), choice: Choice::WhenConsumed })
}

/// The asynchronous event that synchronises `event` in the background (`sTrans`): its offers are placed when it is
/// started, its wraps run in the implicit thread.
///
/// It waits until something takes effect, however long; close its channels to end it.
pub fn s_trans<B: Send + 'static>(event: &Event<B>) -> AsyncEvent<(), B> {
    AsyncEvent::of(kinds::FromSynchronous(event.clone()))
}

impl<T: Send + 'static> Channel<T> {
    /// See [`a_send`]: sends this very value at once, whether anybody receives or not.
    ///
    /// Costs no allocation beyond the value's place in the channel, and no thread.
    pub fn send_and_go(&self, value: T) {
        self.core.send_buffered(value, PostConsumption::none());
    }
}
