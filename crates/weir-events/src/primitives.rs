//! The synchronisation primitives of the protocol, or loom's replacements under `--cfg loom`.

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

    /// Blocks one thread until another one wakes it; spurious wake-ups are possible.
    pub(crate) struct Parker(Thread);

    impl Parker {
        /// Creates a parker of the calling thread.
        pub(crate) fn new() -> Self {
            Parker(current())
        }

        /// Blocks until woken or until the deadline. Only the thread that created the parker may call it.
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
/// condition variable. The model has no clock: a wait with a deadline ends at once.
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
