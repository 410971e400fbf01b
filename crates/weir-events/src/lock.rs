//! A lock that is let go of with one plain store.
//!
//! A value through a buffer costs hardly more than the atomic exchanges on its way. A lock under which threads sleep until
//! they are woken needs one to be taken and another to be let go of, which is how it learns whether anybody sleeps. What is
//! done under the locks of this crate takes some tens of nanoseconds and never waits, so nobody is woken here: who finds
//! a lock taken pauses for a moment and then gives its core away, so that the other one can do several things in a row, which
//! is cheaper for both than taking turns; and whoever holds it is hardly ever not running.
//!
//! The protocol:
//! 1. Taking: one compare-and-exchange from free to taken (acquire).
//! 2. Letting go: one store of free (release). So whoever takes the lock sees all that was done under it before.
//! 3. Waiting: after some pauses and turns of the scheduler the holder must have lost its core to others. Then a thread naps, for
//!    twice as long each time, so that even where it goes before the holder by its priority, the holder goes on.
//!
//! No user code ever runs under one of these locks, and a panic under one lets go of it.

pub(crate) use here::{SpinLock, SpinLockGuard};

#[cfg(not(loom))]
mod here {
    use std::time::Duration;

    /// A mutual exclusion lock for brief work.
    pub(crate) struct SpinLock<T>(spin::mutex::SpinMutex<T>);

    /// A lock that is taken, until this is dropped.
    pub(crate) type SpinLockGuard<'a, T> = spin::mutex::SpinMutexGuard<'a, T>;

    /// So many pauses of the processor before the first turn of the scheduler.
    const PAUSES: u32 = 8;
    /// So many pauses and turns before the first nap.
    const TURNS_MAX: u32 = PAUSES + 16;
    /// The first nap.
    const NAP_MIN: Duration = Duration::from_micros(20);
    /// The longest nap.
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

        /// Without locking, by whoever has it alone.
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
                // A look before an exchange: what is taken stays in the holder's cache.
                if !self.0.is_locked()
                    && let Some(held) = self.0.try_lock()
                {
                    return held;
                }
            }
        }
    }
}

/// In the model a lock is the checker's own, under which threads do sleep.
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
