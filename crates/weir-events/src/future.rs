//! A future as a branch of a choice.
//!
//! Several synchronisations may wait for one future; a [`WakerFanOut`] wakes all of them, whichever polled it last.
//! (The other direction needs nothing: an event can be awaited, so it can be a branch of `tokio::select!`, where it
//! loses no value if another branch wins. [`until`] does that for one future and one event.)

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use crate::event::guard;
use crate::event::nacks::NackSet;
use crate::event::node::{EventNode, EventShape, Registration};
use crate::event::registration::RegistrationContext;
use crate::event::{Event, Synchronisation};
use crate::mutants::{Mutant, is_active};
use crate::primitives::SpinLock;

/// Returns an event that takes effect once, when the future is ready; after that it never does again.
///
/// The future is polled only while the event is being synchronised, by the synchronising thread or task. If it loses a
/// choice it keeps its progress, and its result if it became ready at the same moment: the next synchronisation
/// continues from there. It is dropped with the event. For a new future each time, see [`from_future_with`].
pub fn from_future<F>(future: F) -> Event<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let state = FutureState::Running(Box::pin(future));
    Event::of(FutureEvent {
        state: SpinLock::new(state),
        wakers: Arc::new(WakerFanOut { watchers: SpinLock::new(Vec::new()) }),
    })
}

/// Returns an event that runs a new future for each synchronisation, and drops it when the choice is lost.
pub fn from_future_with<F>(make: impl Fn() -> F + Send + Sync + 'static) -> Event<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    guard(move || from_future(make()))
}

/// Awaits a future until an event takes effect: `Ok` with the output of the future, or `Err` with the value of the
/// event.
///
/// The future belongs to this call alone, so unlike the future of [`from_future`] it need be neither `Send` nor
/// `'static`; pass a future that must not be moved as `pin!(future)`. The future is preferred if both are ready, and
/// the event is not synchronised before the future has to wait: a time limit costs nothing if there is nothing to wait
/// for.
///
/// Cancellation safe: if the future is ready first, the synchronisation of the event is withdrawn; if the event takes
/// effect first, the future keeps its progress.
pub fn until<F: Future + Unpin, T: 'static>(future: F, event: &Event<T>) -> Until<'_, F, T> {
    Until { future, event, end: None }
}

/// Future of [`until`].
#[must_use = "a future does nothing until it is polled"]
pub struct Until<'a, F, T: 'static> {
    future: F,
    event: &'a Event<T>,
    /// The synchronisation of the event, once the future has to wait.
    end: Option<Synchronisation<T>>,
}

impl<F: Future + Unpin, T> Future for Until<'_, F, T> {
    type Output = Result<F::Output, T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Poll::Ready(output) = Pin::new(&mut self.future).poll(context) {
            self.end = None;
            return Poll::Ready(Ok(output));
        }
        let event = self.event;
        let end = self.end.get_or_insert_with(|| event.synchronise());
        Pin::new(end).poll(context).map(Err)
    }
}

struct FutureEvent<T> {
    state: SpinLock<FutureState<T>>,
    wakers: Arc<WakerFanOut>,
}

/// The progress of a shared future.
///
/// The future is user code, so it is polled outside the lock: by the synchronisation that finds it `Running`. Another
/// one that comes meanwhile sets `is_wanted`, and the polling one wakes all of them afterwards, because the wake-up
/// that caused the second poll may have come after the first poll began.
enum FutureState<T> {
    Running(Pin<Box<dyn Future<Output = T> + Send>>),
    /// One synchronisation is polling the future.
    Polling {
        is_wanted: bool,
    },
    /// The result, for the first synchronisation that takes it.
    Ready(T),
    /// The result of a committed synchronisation, which has not fetched it yet.
    Claimed(T),
    Over,
}

struct WakerFanOut {
    watchers: SpinLock<Vec<Waker>>,
}

impl Wake for WakerFanOut {
    fn wake(self: Arc<Self>) {
        self.wake_all();
    }
}

impl WakerFanOut {
    fn wake_all(&self) {
        let watchers = std::mem::take(&mut *self.watchers.lock());
        watchers.into_iter().for_each(Waker::wake);
    }

    fn watch(&self, waker: Waker) {
        let mut watchers = self.watchers.lock();
        if !watchers.iter().any(|known| known.will_wake(&waker)) {
            watchers.push(waker);
        }
    }
}

/// The entry of one synchronisation among the wakers.
struct FutureWatch {
    wakers: Arc<WakerFanOut>,
    waker: Waker,
}

impl FutureWatch {
    fn end(&self) {
        let mut watchers = self.wakers.watchers.lock();
        let place = watchers.iter().position(|known| known.will_wake(&self.waker));
        let gone = place.map(|place| watchers.swap_remove(place));
        drop(watchers);
        drop(gone);
    }
}

/// A future outside its state while it is polled. If the poll panics, the future has ended and all waiting
/// synchronisations are woken.
struct PollingGuard<'a, T: Send + 'static>(&'a FutureEvent<T>);

impl<T: Send + 'static> Drop for PollingGuard<'_, T> {
    fn drop(&mut self) {
        self.0.finish_poll(FutureState::Over);
    }
}

impl<T: Send + 'static> FutureEvent<T> {
    /// Polls the future if it is present and no other synchronisation is polling it.
    fn advance(&self) {
        let mut state = self.state.lock();
        match &mut *state {
            FutureState::Running(_) => {}
            FutureState::Polling { is_wanted } => return *is_wanted = true,
            FutureState::Ready(_) | FutureState::Claimed(_) | FutureState::Over => return,
        }
        let running = std::mem::replace(&mut *state, FutureState::Polling { is_wanted: false });
        drop(state);
        let FutureState::Running(mut future) = running else { return };
        let guard = PollingGuard(self);
        let waker = Waker::from(self.wakers.clone());
        let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
        std::mem::forget(guard);
        self.finish_poll(match polled {
            Poll::Ready(value) => FutureState::Ready(value),
            Poll::Pending => FutureState::Running(future),
        });
    }

    fn finish_poll(&self, next: FutureState<T>) {
        let polling = std::mem::replace(&mut *self.state.lock(), next);
        let is_wanted = matches!(polling, FutureState::Polling { is_wanted: true });
        if is_wanted && !is_active(Mutant::ForgetWantedPoll) {
            self.wakers.wake_all();
        }
    }

    /// Takes the result, for a synchronisation that has published nothing.
    fn take_ready(&self) -> Option<T> {
        self.take(|state| matches!(state, FutureState::Ready(_)))
    }

    /// Takes the result, for the committed synchronisation.
    fn take_claimed(&self) -> Option<T> {
        self.take(|state| matches!(state, FutureState::Claimed(_)))
    }

    fn take(&self, is_due: impl Fn(&FutureState<T>) -> bool) -> Option<T> {
        let mut state = self.state.lock();
        if !is_due(&state) {
            return None;
        }
        match std::mem::replace(&mut *state, FutureState::Over) {
            FutureState::Ready(value) | FutureState::Claimed(value) => Some(value),
            _ => None,
        }
    }

    /// Commits the waiter if the result is available, and keeps the result for it. A waiter that was committed to
    /// another base event leaves the result to the others, who have to be woken for it.
    fn claim(&self, context: &RegistrationContext<'_>) {
        let mut state = self.state.lock();
        if !matches!(&*state, FutureState::Ready(_)) {
            return;
        }
        if !context.waiter.commit_alone(context.base) {
            drop(state);
            return self.wakers.wake_all();
        }
        if let FutureState::Ready(value) = std::mem::replace(&mut *state, FutureState::Over) {
            *state = FutureState::Claimed(value);
        }
    }
}

impl<T: Send + 'static> EventNode<T> for FutureEvent<T> {
    fn shape(&self) -> EventShape {
        EventShape { acts: true, ..EventShape::BASE_EVENT }
    }

    fn attempt(&self, _: usize, nacks: &mut NackSet) -> Option<T> {
        self.advance();
        let value = self.take_ready()?;
        nacks.fire_losers();
        Some(value)
    }

    fn register(&self, base: usize, context: &mut RegistrationContext<'_>) -> Option<Registration> {
        context.recheck_on_wake();
        self.recheck(base, context);
        Some(Registration::Own(Box::new(FutureWatch {
            wakers: self.wakers.clone(),
            waker: Waker::from(context.waiter.clone()),
        })))
    }

    fn withdraw(&self, _: usize, registration: Registration) {
        registration.recover::<FutureWatch>().end();
    }

    /// Leaves the result to the next synchronisation.
    fn discard(&self, base: usize, registration: Option<Registration>) {
        registration.into_iter().for_each(|registration| self.withdraw(base, registration));
        if let Some(value) = self.take_claimed() {
            *self.state.lock() = FutureState::Ready(value);
            self.wakers.wake_all();
        }
    }

    fn complete(&self, base: usize, registration: Option<Registration>) -> T {
        self.withdraw(base, registration.expect("a future places a watch"));
        self.take_claimed().expect("the waiter was committed because the result was there")
    }

    fn recheck(&self, _: usize, context: &mut RegistrationContext<'_>) {
        self.wakers.watch(Waker::from(context.waiter.clone()));
        self.advance();
        self.claim(context);
    }
}
