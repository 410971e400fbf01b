//! The few primitives that the protocol stands on, taken from the standard library or, under `--cfg loom`, from the
//! model checker.
//!
//! No user code ever runs under one of these locks, so a poisoned lock could only be a bug of this crate; `lock`
//! therefore ignores poison instead of spreading it.

#[cfg(loom)]
use loom::sync::Mutex as RawMutex;
#[cfg(loom)]
pub(crate) use loom::sync::MutexGuard;
#[cfg(loom)]
pub(crate) use loom::sync::atomic::AtomicUsize;
#[cfg(not(loom))]
use std::sync::Mutex as RawMutex;
#[cfg(not(loom))]
pub(crate) use std::sync::MutexGuard;
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::AtomicUsize;

pub(crate) use parker::Parker;

/// A mutual exclusion lock without poison.
pub(crate) struct Mutex<T>(RawMutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Mutex(RawMutex::new(value))
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        #[cfg(not(loom))]
        if let Ok(guard) = self.0.try_lock() {
            return guard;
        }
        self.lock_contended()
    }

    /// What is in it, for whoever has it alone.
    pub(crate) fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Without locking, by whoever has it alone.
    #[cfg(not(loom))]
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// What is done under these locks takes some tens of nanoseconds, and putting a thread to sleep some thousands: so
    /// a thread tries for a while before it sleeps.
    #[cold]
    fn lock_contended(&self) -> MutexGuard<'_, T> {
        let mut backoff = Backoff { step: FIRST_LOCK_STEP };
        while !backoff.is_spent() {
            backoff.pause();
            if let Ok(guard) = self.0.try_lock() {
                return guard;
            }
        }
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(not(loom))]
mod parker {
    use std::thread::{Thread, current, park, park_timeout};
    use std::time::{Duration, Instant};

    /// Lets one thread wait until another wakes it; it may also wake for no reason.
    pub(crate) struct Parker(Thread);

    impl Parker {
        /// For the calling thread.
        pub(crate) fn new() -> Self {
            Parker(current())
        }

        /// Waits, at the longest until the deadline. Only the thread that made the parker may call it.
        pub(crate) fn park(&self, deadline: Option<Instant>) {
            match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                None => park(),
                Some(Duration::ZERO) => {}
                Some(left) => park_timeout(left),
            }
        }

        pub(crate) fn unpark(&self) {
            self.0.unpark();
        }
    }
}

/// loom's `unpark` also wakes a thread that waits for a lock, which then fails; so this is made of a lock and a
/// condition. The model has no clock: a limited wait ends at once.
#[cfg(loom)]
mod parker {
    use loom::sync::{Condvar, Mutex};
    use std::time::Instant;

    pub(crate) struct Parker {
        woken: Mutex<bool>,
        changed: Condvar,
    }

    impl Parker {
        pub(crate) fn new() -> Self {
            Parker { woken: Mutex::new(false), changed: Condvar::new() }
        }

        pub(crate) fn park(&self, deadline: Option<Instant>) {
            if deadline.is_some() {
                return loom::thread::yield_now();
            }
            let mut woken = self.woken.lock().expect("the model stops at a panic");
            while !*woken {
                woken = self.changed.wait(woken).expect("the model stops at a panic");
            }
            *woken = false;
        }

        pub(crate) fn unpark(&self) {
            *self.woken.lock().expect("the model stops at a panic") = true;
            self.changed.notify_one();
        }
    }
}

/// Waiting for something that another thread does within a few instructions, or a few turns of the scheduler.
#[derive(Default)]
pub(crate) struct Backoff {
    step: u32,
}

/// Where a thread begins that found a lock taken: it gives its core away at once, so that the other one can do several
/// things in a row, which is cheaper for both than taking turns.
const FIRST_LOCK_STEP: u32 = SPIN_STEPS + 1;

/// Up to this step a thread burns cycles (2^step pauses); above, it gives its core away.
///
/// What comes, comes within a few hundred nanoseconds or after a turn of the scheduler. Of six settings that
/// `benches/events` compared on two loaded cores, longer burning and more giving away each cost up to half of the
/// throughput of a rendezvous: a core that is given away may come back only after somebody else's whole turn, while a
/// thread that is woken goes first.
const SPIN_STEPS: u32 = 3;

/// After this many steps it is cheaper to park.
const YIELD_STEPS: u32 = 5;

impl Backoff {
    /// One more step of waiting, longer than the one before.
    pub(crate) fn pause(&mut self) {
        if cfg!(loom) || self.step > SPIN_STEPS {
            yield_now();
        } else {
            (0..1u32 << self.step).for_each(|_| std::hint::spin_loop());
        }
        self.step += 1;
    }

    /// Whether it is time to park instead.
    pub(crate) fn is_spent(&self) -> bool {
        cfg!(loom) || self.step > YIELD_STEPS
    }
}

#[cfg(not(loom))]
fn yield_now() {
    std::thread::yield_now();
}

#[cfg(loom)]
fn yield_now() {
    loom::thread::yield_now();
}
