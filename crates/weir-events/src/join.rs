//! The end of a thread or of a task as an event.

use std::any::Any;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::channel::Channel;
use crate::event::Event;

/// A running thread or task whose end can be a branch of a choice. Dropping it leaves the thread or task running.
///
/// ```
/// use std::time::Duration;
/// use weir_events::{after, choose, spawn_thread};
///
/// let sum = spawn_thread("sum", || (1..=100).sum::<u32>()).unwrap();
/// let sum_in_time = choose([
///     sum.joined().wrap(|ended| ended.ok()),
///     after(Duration::from_secs(10)).wrap(|()| None),
/// ]);
/// assert_eq!(sum_in_time.sync(), Some(5050));
/// ```
pub struct EventJoinHandle<T: 'static> {
    joined: Event<Result<T, JoinError>>,
}

/// The reason for which a thread or a task has no result.
pub enum JoinError {
    /// It panicked, with this payload.
    Panicked(Box<dyn Any + Send>),
    /// Its task was cancelled.
    Cancelled,
    /// Another synchronisation has taken the result.
    Taken,
}

/// Starts a thread whose end is an event.
///
/// # Errors
/// If the system refuses a thread.
pub fn spawn_thread<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<EventJoinHandle<T>> {
    let result = Channel::rendezvous();
    let joined = result.recv().wrap(|outcome| outcome.unwrap_or(Err(JoinError::Taken)));
    let run = move || {
        let outcome = catch_unwind(AssertUnwindSafe(body)).map_err(JoinError::Panicked);
        // Only this thread closes the channel.
        _ = result.post(outcome);
        result.close();
    };
    std::thread::Builder::new().name(name.to_owned()).spawn(run)?;
    Ok(EventJoinHandle { joined })
}

impl<T: 'static> EventJoinHandle<T> {
    /// Returns an event that takes effect when the thread or task has ended, and yields its result once: later
    /// synchronisations yield [`JoinError::Taken`].
    ///
    /// Cancellation safe: a synchronisation that does not take effect leaves the result where it is.
    pub fn joined(&self) -> Event<Result<T, JoinError>> {
        self.joined.clone()
    }
}

/// The task of a tokio runtime, with the feature `tokio`.
#[cfg(feature = "tokio")]
impl<T: Send + 'static> From<tokio::task::JoinHandle<T>> for EventJoinHandle<T> {
    fn from(handle: tokio::task::JoinHandle<T>) -> Self {
        let is_taken = crate::signal::Signal::new();
        let (taken, taker) = (is_taken.fired().wrap(|()| Err(JoinError::Taken)), is_taken);
        let ended = crate::future::from_future(handle).wrap(move |outcome| {
            taker.fire();
            outcome.map_err(|error| error.try_into_panic().map_or(JoinError::Cancelled, JoinError::Panicked))
        });
        EventJoinHandle { joined: crate::event::choose_biased([ended, taken]) }
    }
}

impl<T: 'static> fmt::Debug for EventJoinHandle<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("EventJoinHandle").finish_non_exhaustive()
    }
}

impl fmt::Debug for JoinError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            JoinError::Panicked(_) => "Panicked(..)",
            JoinError::Cancelled => "Cancelled",
            JoinError::Taken => "Taken",
        })
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            JoinError::Panicked(_) => "the thread or task panicked",
            JoinError::Cancelled => "the task was cancelled",
            JoinError::Taken => "the result was taken before",
        })
    }
}

impl std::error::Error for JoinError {}
