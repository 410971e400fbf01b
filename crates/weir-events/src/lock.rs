//! A spin lock that is released with one plain store.
//!
//! Passing a value through a buffer costs little more than its atomic exchanges. A lock that puts threads to sleep
//! needs one exchange to take it and another to release it, because the holder must learn of sleepers. The critical
//! sections of this crate take some tens of nanoseconds and never wait, so no thread sleeps: a thread that finds the
//! lock taken pauses and then yields its core. The holder can thus do several operations in a row, which is cheaper for
//! both than alternating.
//!
//! The protocol:
//! 1. Lock: one compare-and-exchange from free to taken (acquire).
//! 2. Unlock: one store of free (release). A thread that takes the lock thus sees everything done under it before.
//! 3. Contention: after some pauses and yields the holder must have been descheduled. The thread then sleeps, twice as
//!    long each time, so that the holder makes progress even if this thread has a higher priority.
//!
//! No user code ever runs under one of these locks, and a panic under one releases it.

pub(crate) use here::{SpinLock, SpinLockGuard};

#[cfg(not(loom))]
mod here {
    use std::time::Duration;

    /// A mutual exclusion lock for short critical sections.
    pub(crate) struct SpinLock<T>(spin::mutex::SpinMutex<T>);

    /// A taken lock; dropping it releases the lock.
    pub(crate) type SpinLockGuard<'a, T> = spin::mutex::SpinMutexGuard<'a, T>;

    /// Number of processor pauses before the first yield.
    const PAUSES: u32 = 8;
    /// Number of pauses and yields before the first sleep.
    const TURNS_MAX: u32 = PAUSES + 16;
    /// Duration of the first sleep.
    const NAP_MIN: Duration = Duration::from_micros(20);
    /// Longest sleep.
    const NAP_MAX: Duration = Duration::from_millis(1);

    impl<T> SpinLock<T> {
        pub(crate) const fn new(value: T) -> Self {
            SpinLock(spin::mutex::SpinMutex::new(value))
        }

        /// Takes the lock.
        #[inline]
        pub(crate) fn lock(&self) -> SpinLockGuard<'_, T> {
            match self.0.try_lock() {
                Some(held) => held,
                None => self.wait(),
            }
        }

        /// Returns the value without locking, given exclusive access.
        pub(crate) fn get_mut(&mut self) -> &mut T {
            self.0.get_mut()
        }

        #[cold]
        fn wait(&self) -> SpinLockGuard<'_, T> {
            let (mut turns, mut nap) = (0, NAP_MIN);
            loop {
                if turns < PAUSES {
                    turns += 1;
                    std::hint::spin_loop();
                } else if turns < TURNS_MAX {
                    turns += 1;
                    std::thread::yield_now();
                } else {
                    std::thread::sleep(nap);
                    nap = (nap * 2).min(NAP_MAX);
                }
                // Reading before the exchange leaves the cache line with the holder.
                if self.0.is_locked() {
                    continue;
                }
                if let Some(held) = self.0.try_lock() {
                    return held;
                }
            }
        }
    }
}

/// In the model a lock is loom's own, under which threads do sleep.
#[cfg(loom)]
mod here {
    pub(crate) struct SpinLock<T>(loom::sync::Mutex<T>);

    pub(crate) type SpinLockGuard<'a, T> = loom::sync::MutexGuard<'a, T>;

    impl<T> SpinLock<T> {
        pub(crate) fn new(value: T) -> Self {
            SpinLock(loom::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> SpinLockGuard<'_, T> {
            self.0.lock().expect("the model stops at a panic")
        }
    }
}
