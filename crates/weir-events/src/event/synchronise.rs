//! Synchronising an event: a thread blocks, a task awaits.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::node::Event;
use super::pending::{PendingSync, attempt_unguarded};
use crate::cooperative::poll_within_budget;
use crate::timer_thread::{self, ScheduledTimer};
use crate::waiter::pool;

impl<T: 'static> Event<T> {
    /// Blocks the thread until the event takes effect (the paper's `sync`, §2).
    ///
    /// # Panics
    /// If a guard or a wrap of the event panics; the crate's documentation says what is undone then.
    pub fn sync(&self) -> T {
        match synchronise(self, None) {
            Some(value) => value,
            None => unreachable!("a wait without a deadline ends with a value"),
        }
    }

    /// Blocks like [`Event::sync`], for at most `limit`.
    ///
    /// `None` means that nothing took effect, as if the event had never been synchronised. A match that races with the
    /// limit is never lost: it is returned even if the limit has passed meanwhile.
    pub fn sync_timeout(&self, limit: Duration) -> Option<T> {
        match Instant::now().checked_add(limit) {
            Some(deadline) => synchronise(self, Some(deadline)),
            None => Some(self.sync()),
        }
    }

    /// Takes effect now or not at all. Guards run, and nacks fire if nothing took effect.
    pub fn poll(&self) -> Option<T> {
        PendingSync::begin(self).attempt()
    }

    /// Returns a future of one synchronisation of this event, independent of all others; `event.await` makes one too.
    ///
    /// Cancellation safe: dropping it before a peer has committed withdraws every offer and fires every nack. If a peer
    /// had committed but the future was not polled again, a received value goes back to the front of its channel, and a
    /// sent value stays sent.
    pub fn synchronise(&self) -> Synchronisation<T> {
        Synchronisation { progress: SyncProgress::New(self.clone(), StartMode::Attempt) }
    }
}

fn synchronise<T: 'static>(event: &Event<T>, deadline: Option<Instant>) -> Option<T> {
    let value = attempt_unguarded(event);
    if value.is_some() {
        return value;
    }
    let mut pending = PendingSync::begin(event);
    if event.shape().guarded {
        let value = pending.attempt();
        if value.is_some() {
            return value;
        }
    }
    pending.publish(pool::take());
    while !pending.is_committed() {
        if deadline.is_some_and(|deadline| deadline <= Instant::now()) && pending.give_up() {
            return None;
        }
        pending.wait(deadline);
    }
    Some(pending.conclude())
}

impl<T: 'static> IntoFuture for Event<T> {
    type Output = T;
    type IntoFuture = Synchronisation<T>;

    fn into_future(self) -> Synchronisation<T> {
        Synchronisation { progress: SyncProgress::New(self, StartMode::Attempt) }
    }
}

impl<T: 'static> IntoFuture for &Event<T> {
    type Output = T;
    type IntoFuture = Synchronisation<T>;

    fn into_future(self) -> Synchronisation<T> {
        self.synchronise()
    }
}

/// One synchronisation by a task, on any executor; see [`Event::synchronise`].
#[must_use = "a synchronisation begins when it is first polled"]
pub struct Synchronisation<T: 'static> {
    progress: SyncProgress<T>,
}

enum SyncProgress<T: 'static> {
    New(Event<T>, StartMode),
    /// The timer is dropped first, so that it does not hold the waiter any more when that is put back.
    Waiting(Option<ScheduledTimer>, PendingSync<T>),
    Over,
}

/// The first step of a synchronisation.
enum StartMode {
    /// Tries everything first, which is cheap, and runs the wraps at once if that succeeds.
    Attempt,
    /// Registers all offers first, so that the wraps run only when the synchronisation is concluded.
    Publish,
}

/// A synchronisation holds no reference into itself.
impl<T> Unpin for Synchronisation<T> {}

impl<T: 'static> Future for Synchronisation<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        poll_within_budget(context, |context| match self.get_mut().advance(context) {
            None => Poll::Pending,
            Some(advance) => Poll::Ready(advance.conclude()),
        })
    }
}

/// A synchronisation with a base event that took effect.
pub(crate) enum CommittedSync<T: 'static> {
    /// It took effect at once, and the wraps have run.
    Value(T),
    /// It took effect after registering, and the wraps run when it is concluded.
    Committed(PendingSync<T>),
}

impl<T: 'static> CommittedSync<T> {
    /// Returns the value, after running all wraps.
    pub(crate) fn conclude(self) -> T {
        match self {
            CommittedSync::Value(value) => value,
            CommittedSync::Committed(pending) => pending.conclude(),
        }
    }
}

impl<T: 'static> Synchronisation<T> {
    /// Returns true if the synchronisation has begun and nothing has taken effect yet; a poll would then change nothing
    /// but the waker.
    ///
    /// It costs one atomic load. A task that is polled for many other reasons and keeps its waker can check this first.
    /// If a future is a branch (see [`from_future`](crate::from_future)), only a poll can tell, and this returns
    /// `false`.
    pub fn is_waiting(&self) -> bool {
        matches!(&self.progress, SyncProgress::Waiting(_, pending) if pending.is_waiting())
    }

    /// Creates a synchronisation whose wraps never run inside [`Synchronisation::advance`].
    pub(crate) fn with_deferred_wraps(event: Event<T>) -> Self {
        Synchronisation { progress: SyncProgress::New(event, StartMode::Publish) }
    }

    /// Polls up to the commit.
    pub(crate) fn advance(&mut self, context: &mut Context<'_>) -> Option<CommittedSync<T>> {
        let (mut pending, timer) = match std::mem::replace(&mut self.progress, SyncProgress::Over) {
            SyncProgress::Waiting(timer, pending) => {
                pending.listen(context.waker());
                (pending, timer)
            }
            SyncProgress::Over => panic!("a synchronisation was polled after it was over"),
            SyncProgress::New(event, start_mode) => {
                let may_attempt = matches!(start_mode, StartMode::Attempt);
                if let Some(value) = may_attempt.then(|| attempt_unguarded(&event)).flatten() {
                    return Some(CommittedSync::Value(value));
                }
                let mut pending = PendingSync::begin(&event);
                let may_attempt = may_attempt && event.shape().guarded;
                if let Some(value) = may_attempt.then(|| pending.attempt()).flatten() {
                    return Some(CommittedSync::Value(value));
                }
                pending.publish(pool::take_for_task(context.waker()));
                let timer = pending.timer().map(|(instant, waiter, base)| timer_thread::set(instant, waiter, base));
                (pending, timer)
            }
        };
        if pending.is_committed() {
            return Some(CommittedSync::Committed(pending));
        }
        self.progress = SyncProgress::Waiting(timer, pending);
        None
    }
}
