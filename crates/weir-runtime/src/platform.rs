//! The platform: the one trait through which the runtime reads clocks, starts threads and draws random numbers.
//!
//! Host functions are not restricted; the runtime itself accesses the system only here, so that a simulation or a test
//! can put another platform under the same engines.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use weir_events::{Event, Signal, always, at, never};

/// The services that the runtime needs of the system that it runs on.
pub trait Platform: Send + Sync {
    /// Returns the time, in nanoseconds since some fixed moment; it never goes back.
    fn now_ns(&self) -> u64;

    /// Starts a thread.
    ///
    /// # Errors
    /// Fails if the system gives no more threads.
    fn thread(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle<()>>;

    /// Returns a random number.
    fn random(&self) -> u64;

    /// Returns an event that takes effect when the time is `instant_ns`, and stays in effect.
    fn at(&self, instant_ns: u64) -> Event<()>;
}

/// The platform of the system that the process runs on.
pub struct SystemPlatform {
    start: Instant,
    seed: AtomicU64,
}

impl SystemPlatform {
    /// Returns the platform; its time begins now.
    #[must_use]
    pub fn new() -> Self {
        SystemPlatform { start: Instant::now(), seed: AtomicU64::new(u64::from(std::process::id())) }
    }
}

impl Default for SystemPlatform {
    fn default() -> Self {
        SystemPlatform::new()
    }
}

impl Platform for SystemPlatform {
    fn now_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn thread(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle<()>> {
        std::thread::Builder::new().name(name.to_owned()).spawn(body)
    }

    fn random(&self) -> u64 {
        next_random(&self.seed)
    }

    fn at(&self, instant_ns: u64) -> Event<()> {
        self.start.checked_add(Duration::from_nanos(instant_ns)).map_or_else(never, at)
    }
}

/// A platform whose time advances only on request, and whose random numbers follow from a seed.
pub struct ScriptedPlatform {
    clock: Mutex<ScriptedClock>,
    seed: AtomicU64,
}

/// The time of a scripted platform, and the pending timers, in the order in which they are due.
#[derive(Default)]
struct ScriptedClock {
    now_ns: u64,
    set: u64,
    alarms: BTreeMap<(u64, u64), Signal>,
}

impl ScriptedPlatform {
    /// Returns a platform at time 0.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        ScriptedPlatform { clock: Mutex::default(), seed: AtomicU64::new(seed) }
    }

    /// Advances the time, and wakes everything that is due by then.
    pub fn pass_ns(&self, ns: u64) {
        let due = self.clock.lock().pass(ns);
        due.values().for_each(|signal| _ = signal.fire());
    }

    /// Advances the time to the moment at which the next timer is due; returns false if there is none.
    pub fn pass_to_next(&self) -> bool {
        let mut clock = self.clock.lock();
        let Some(((next_ns, _), _)) = clock.alarms.first_key_value() else { return false };
        let ns = next_ns.saturating_sub(clock.now_ns);
        let due = clock.pass(ns);
        drop(clock);
        due.values().for_each(|signal| _ = signal.fire());
        true
    }
}

impl ScriptedClock {
    fn pass(&mut self, ns: u64) -> BTreeMap<(u64, u64), Signal> {
        self.now_ns = self.now_ns.saturating_add(ns);
        let later = self.alarms.split_off(&(self.now_ns.saturating_add(1), 0));
        std::mem::replace(&mut self.alarms, later)
    }

    fn alarm(&mut self, instant_ns: u64) -> Event<()> {
        if instant_ns <= self.now_ns {
            return always(());
        }
        let signal = Signal::new();
        self.set += 1;
        self.alarms.insert((instant_ns, self.set), signal.clone());
        signal.fired()
    }
}

impl Platform for ScriptedPlatform {
    fn now_ns(&self) -> u64 {
        self.clock.lock().now_ns
    }

    fn at(&self, instant_ns: u64) -> Event<()> {
        self.clock.lock().alarm(instant_ns)
    }

    fn thread(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle<()>> {
        std::thread::Builder::new().name(name.to_owned()).spawn(body)
    }

    fn random(&self) -> u64 {
        next_random(&self.seed)
    }
}

/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
fn next_random(seed: &AtomicU64) -> u64 {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut mixed = seed.fetch_add(GOLDEN, Ordering::Relaxed).wrapping_add(GOLDEN);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
