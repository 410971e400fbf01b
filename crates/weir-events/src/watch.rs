//! Watch channels: the latest value, for any number of receivers.

use std::fmt;
use std::sync::Arc;

use crate::channel::Closed;
use crate::event::{Event, always, guard};
use crate::primitives::SpinLock;
use crate::signal::Signal;

/// Creates a watch channel that holds `value`. A receiver sees the latest value and may miss those before it.
///
/// ```
/// use weir_events::watch;
///
/// let (level, mut seen) = watch(1);
/// assert_eq!((*seen.get(), seen.changed().poll()), (1, None));
/// level.set(2);
/// level.set(3);
/// assert_eq!(seen.changed().sync().map(|value| *value), Ok(3));
/// assert_eq!(seen.get_and_mark(), std::sync::Arc::new(3));
/// assert!(seen.changed().poll().is_none());
/// ```
pub fn watch<T: Send + Sync + 'static>(value: T) -> (WatchSender<T>, WatchReceiver<T>) {
    let version = Version { number: 0, value: Arc::new(value), replaced: Signal::new(), is_last: false };
    let latest = Arc::new(SpinLock::new(version));
    (WatchSender { latest: latest.clone() }, WatchReceiver { latest, seen: 0 })
}

/// The sending side of [`watch`]; dropping it closes the channel.
pub struct WatchSender<T: Send + Sync + 'static> {
    latest: Arc<SpinLock<Version<T>>>,
}

/// A receiver of [`watch`]. A clone has seen the same versions.
pub struct WatchReceiver<T: Send + Sync + 'static> {
    latest: Arc<SpinLock<Version<T>>>,
    /// The number of the version that this receiver has marked as seen.
    seen: u64,
}

/// One version of the value.
struct Version<T> {
    number: u64,
    value: Arc<T>,
    /// Fired when the next version is there, or none will come.
    replaced: Signal,
    is_last: bool,
}

impl<T: Send + Sync + 'static> WatchSender<T> {
    /// Replaces the value and wakes all receivers that wait for a change.
    pub fn set(&self, value: T) {
        let (value, next) = (Arc::new(value), Signal::new());
        let mut latest = self.latest.lock();
        latest.number += 1;
        // Waking and dropping are user code: both follow the lock.
        let old = std::mem::replace(&mut latest.value, value);
        let replaced = std::mem::replace(&mut latest.replaced, next);
        drop(latest);
        replaced.fire();
        drop(old);
    }
}

impl<T: Send + Sync + 'static> WatchReceiver<T> {
    /// Returns the latest value.
    pub fn get(&self) -> Arc<T> {
        self.latest.lock().value.clone()
    }

    /// Returns the latest value and marks it as seen.
    pub fn get_and_mark(&mut self) -> Arc<T> {
        let latest = self.latest.lock();
        self.seen = latest.number;
        latest.value.clone()
    }

    /// Returns an event that takes effect when there is a value that this receiver has not marked as seen, and yields the
    /// latest one; `Closed` if none will come.
    ///
    /// Synchronising it marks nothing: call [`get_and_mark`](WatchReceiver::get_and_mark) before the next wait.
    pub fn changed(&self) -> Event<Result<Arc<T>, Closed>> {
        let (latest, seen) = (self.latest.clone(), self.seen);
        guard(move || {
            let now = latest.lock();
            let (is_new, is_last, replaced) = (now.number > seen, now.is_last, now.replaced.clone());
            drop(now);
            let latest = latest.clone();
            let yields = move || {
                let now = latest.lock();
                if now.number > seen { Ok(now.value.clone()) } else { Err(Closed) }
            };
            match is_new || is_last {
                true => always(()).wrap(move |()| yields()),
                false => replaced.fired().wrap(move |()| yields()),
            }
        })
    }
}

impl<T: Send + Sync + 'static> Clone for WatchReceiver<T> {
    fn clone(&self) -> Self {
        WatchReceiver { latest: self.latest.clone(), seen: self.seen }
    }
}

impl<T: Send + Sync + 'static> Drop for WatchSender<T> {
    fn drop(&mut self) {
        let mut latest = self.latest.lock();
        latest.is_last = true;
        let replaced = latest.replaced.clone();
        drop(latest);
        replaced.fire();
    }
}

impl<T: Send + Sync + 'static> fmt::Debug for WatchSender<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("WatchSender").field("version", &self.latest.lock().number).finish()
    }
}

impl<T: Send + Sync + 'static> fmt::Debug for WatchReceiver<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("WatchReceiver").field("seen", &self.seen).finish_non_exhaustive()
    }
}
