//! The few primitives that the protocol stands on, or, under `--cfg loom`, what the model checker has in their place.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::AtomicUsize;
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::AtomicUsize;

pub(crate) use crate::lock::{SpinLock, SpinLockGuard};
pub(crate) use parker::Parker;

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
