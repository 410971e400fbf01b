//! The few primitives that the protocol stands on, taken from the standard library or, under `--cfg loom`, from the
//! model checker.
//!
//! No user code ever runs under one of these locks, so a poisoned lock could only be a bug of this crate; `lock`
//! therefore ignores poison instead of spreading it.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::AtomicUsize;
#[cfg(loom)]
use loom::sync::{Mutex as RawMutex, MutexGuard};
#[cfg(loom)]
pub(crate) use loom::thread::{Thread, current, park};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::AtomicUsize;
#[cfg(not(loom))]
use std::sync::{Mutex as RawMutex, MutexGuard};
#[cfg(not(loom))]
pub(crate) use std::thread::{Thread, current, park};

use std::time::Duration;

/// A mutual exclusion lock without poison.
pub(crate) struct Mutex<T>(RawMutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Mutex(RawMutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Parks this thread for at most `limit`; may return early.
#[cfg(not(loom))]
pub(crate) fn park_timeout(limit: Duration) {
    std::thread::park_timeout(limit);
}

/// The model has no clock: a limited wait returns at once and is looked at again.
#[cfg(loom)]
pub(crate) fn park_timeout(_limit: Duration) {
    loom::thread::yield_now();
}

/// Waiting for something that another thread does within a few instructions, or a few turns of the scheduler.
#[derive(Default)]
pub(crate) struct Backoff {
    step: u32,
}

/// Below this step a thread burns cycles (2^step of them); above, it gives its core away.
const SPIN_STEPS: u32 = 6;

/// After this many steps it is cheaper to park.
const YIELD_STEPS: u32 = 10;

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
