//! The platform below the scheduler: the one trait through which it reads the clock, numbers threads and counts processors.
//!
//! [`StdPlatform`] is the system that the process runs on. A test can put another one below the same scheduler, and then
//! decides itself how long an item takes.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The services that the scheduler needs of the system.
pub trait SchedulerPlatform: Send + Sync + 'static {
    /// Returns the current time. It never goes back.
    fn now(&self) -> Instant;

    /// Returns the number of the calling thread. It is never 0, and no other thread has or had it.
    fn thread_number(&self) -> usize;

    /// Returns the number of threads that the system runs at once, at least 1.
    fn processors(&self) -> usize;

    /// Returns the time that has passed since `begin`.
    #[inline]
    fn elapsed(&self, begin: Instant) -> Duration {
        self.now().saturating_duration_since(begin)
    }
}

/// The platform of the standard library.
#[derive(Clone, Copy, Debug, Default)]
pub struct StdPlatform;

impl SchedulerPlatform for StdPlatform {
    #[inline]
    fn now(&self) -> Instant {
        Instant::now()
    }

    #[inline]
    fn thread_number(&self) -> usize {
        current_thread_number()
    }

    fn processors(&self) -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }
}

/// The number that the next thread without one receives.
static NEXT: AtomicUsize = AtomicUsize::new(1);

thread_local! {
    /// The number of this thread, or 0 before it has one.
    static NUMBER: Cell<usize> = const { Cell::new(0) };
}

/// Returns the number of this thread.
///
/// Never inlined: code that is inlined into another crate reaches this crate's thread-local variable through an accessor
/// function, which costs more than this call.
#[inline(never)]
fn current_thread_number() -> usize {
    let number = NUMBER.get();
    if number > 0 { number } else { assign_number() }
}

#[cold]
fn assign_number() -> usize {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    NUMBER.set(number);
    number
}
