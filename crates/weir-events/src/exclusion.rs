//! A semaphore and a mutex whose acquisition is an event, so that it can be a branch of a choice.

use std::fmt;
use std::ops::{Deref, DerefMut};

use crate::channel::Channel;
use crate::event::Event;

/// A counting semaphore; permits are granted first come, first served.
///
/// ```
/// use std::time::Duration;
/// use weir_events::Semaphore;
///
/// let semaphore = Semaphore::new(1);
/// let permit = semaphore.acquire().sync();
/// assert!(semaphore.acquire().within(Duration::from_millis(1)).sync().is_none());
/// drop(permit);
/// assert!(semaphore.acquire().poll().is_some());
/// ```
#[derive(Clone)]
pub struct Semaphore {
    permits: Channel<()>,
}

/// A permit of a [`Semaphore`]; dropping it gives it back.
pub struct SemaphorePermit {
    permits: Channel<()>,
}

/// A mutual exclusion lock around a value; it may be held across waits.
///
/// ```
/// use weir_events::{EventMutex, always, choose_biased};
///
/// let account = EventMutex::new(10);
/// *account.lock().sync() += 5;
/// let held = account.lock().sync();
/// let busy = choose_biased([account.lock().wrap(|balance| Some(*balance)), always(None)]);
/// assert_eq!(busy.sync(), None);
/// drop(held);
/// assert_eq!(busy.sync(), Some(15));
/// ```
pub struct EventMutex<T> {
    /// Holds the value while nobody has the lock.
    value: Channel<Box<T>>,
}

/// The value of an [`EventMutex`]; dropping it releases the lock.
pub struct EventMutexGuard<T: Send + 'static> {
    /// `Some` until it is dropped.
    value: Option<Box<T>>,
    home: Channel<Box<T>>,
}

impl Semaphore {
    /// Creates a semaphore with so many permits.
    pub fn new(permits: usize) -> Self {
        let semaphore = Semaphore { permits: Channel::unbounded() };
        semaphore.add(permits);
        semaphore
    }

    /// Returns an event that acquires a permit.
    ///
    /// Cancellation safe: a synchronisation that does not take effect, or is dropped after its commit, holds no permit.
    pub fn acquire(&self) -> Event<SemaphorePermit> {
        let permits = self.permits.clone();
        self.permits.recv().wrap(move |_| SemaphorePermit { permits: permits.clone() })
    }

    /// Adds permits.
    pub fn add(&self, permits: usize) {
        // Nobody closes the channel of a semaphore.
        (0..permits).for_each(|_| _ = self.permits.post(()));
    }

    /// Returns the number of permits that can be acquired at once.
    pub fn available(&self) -> usize {
        self.permits.len()
    }
}

impl SemaphorePermit {
    /// Gives the permit up for good: the semaphore has one less.
    pub fn forget(self) {
        std::mem::forget(self);
    }
}

impl Drop for SemaphorePermit {
    fn drop(&mut self) {
        _ = self.permits.post(());
    }
}

impl<T: Send + 'static> EventMutex<T> {
    /// Creates an unlocked mutex.
    pub fn new(value: T) -> Self {
        let mutex = EventMutex { value: Channel::rendezvous() };
        // Nobody closes the channel of a mutex.
        _ = mutex.value.post(Box::new(value));
        mutex
    }

    /// Returns an event that locks the mutex, first come, first served.
    ///
    /// Cancellation safe: a synchronisation that does not take effect, or is dropped after its commit, holds no lock.
    pub fn lock(&self) -> Event<EventMutexGuard<T>> {
        let home = self.value.clone();
        self.value.recv().wrap(move |value| EventMutexGuard { value: value.ok(), home: home.clone() })
    }
}

impl<T: Send + 'static> Deref for EventMutexGuard<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_deref().expect("the value is there until the guard is dropped")
    }
}

impl<T: Send + 'static> DerefMut for EventMutexGuard<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_deref_mut().expect("the value is there until the guard is dropped")
    }
}

impl<T: Send + 'static> Drop for EventMutexGuard<T> {
    fn drop(&mut self) {
        self.value.take().into_iter().for_each(|value| _ = self.home.post(value));
    }
}

impl<T> Clone for EventMutex<T> {
    fn clone(&self) -> Self {
        EventMutex { value: self.value.clone() }
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Semaphore").field("available", &self.available()).finish()
    }
}

impl fmt::Debug for SemaphorePermit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SemaphorePermit").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for EventMutex<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("EventMutex").finish_non_exhaustive()
    }
}

impl<T: Send + fmt::Debug + 'static> fmt::Debug for EventMutexGuard<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, formatter)
    }
}
