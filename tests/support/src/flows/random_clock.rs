//! A clock on which calls take random times.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use weir_events::{Event, always, never};
use weir_runtime::Platform;

use crate::random::Random;

/// A time that no program takes.
const NEVER_NS: u64 = 3_600_000_000_000;

/// The longest time, in nanoseconds, by which the clock goes on when it is read.
const STEP_NS: u64 = 1_000_000;

/// A platform whose clock goes on by a random time whenever it is read. Its timers expire at once, but not those of the
/// runtime's own periods.
pub struct RandomClock {
    now_ns: AtomicU64,
    random: AtomicU64,
}

impl RandomClock {
    /// Creates a clock at zero.
    #[must_use]
    pub fn new(seed: u64) -> RandomClock {
        RandomClock { now_ns: AtomicU64::new(0), random: AtomicU64::new(seed) }
    }
}

impl Platform for RandomClock {
    fn now_ns(&self) -> u64 {
        self.now_ns.fetch_add(self.random() % STEP_NS, Ordering::Relaxed)
    }

    fn thread(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle<()>> {
        std::thread::Builder::new().name(name.to_owned()).spawn(body)
    }

    fn random(&self) -> u64 {
        Random::new(self.random.fetch_add(1, Ordering::Relaxed)).below(u64::MAX)
    }

    fn at(&self, instant_ns: u64) -> Event<()> {
        if instant_ns > self.now_ns() + NEVER_NS {
            return never();
        }
        self.now_ns.fetch_max(instant_ns, Ordering::Relaxed);
        always(())
    }
}
