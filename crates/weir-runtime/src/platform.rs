//! The machine below: the one trait through which the runtime itself reads clocks, starts threads and draws numbers.
//!
//! What host functions do is their own; the runtime reaches outside only here, so that a simulation or a test can put
//! another machine below the same engines.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use weir_events::{Event, Signal, always, at, never};

/// What the runtime needs of the machine that it runs on.
pub trait Platform: Send + Sync {
    /// The time, in nanoseconds since some fixed moment; never goes back.
    fn now_ns(&self) -> u64;

    /// Starts a thread.
    ///
    /// # Errors
    /// Fails where the system gives no more threads.
    fn thread(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle<()>>;

    /// A random number.
    fn random(&self) -> u64;

    /// An event that takes effect when the time is `instant_ns`, and ever after.
    fn at(&self, instant_ns: u64) -> Event<()>;
}

/// The machine that the process runs on.
pub struct SystemPlatform {
    start: Instant,
    seed: AtomicU64,
}

impl SystemPlatform {
    /// This machine; its time begins now.
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

/// A machine whose time moves only when it is told to, and whose numbers follow from a seed.
pub struct ScriptedPlatform {
    clock: Mutex<ScriptedClock>,
    seed: AtomicU64,
}

/// The time of a scripted machine, and what waits for it, in the order in which it is due.
#[derive(Default)]
struct ScriptedClock {
    now_ns: u64,
    set: u64,
    alarms: BTreeMap<(u64, u64), Signal>,
}

impl ScriptedPlatform {
    /// A machine at time 0.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        ScriptedPlatform { clock: Mutex::default(), seed: AtomicU64::new(seed) }
    }

    /// Moves its time on, and wakes what is due by then.
    pub fn pass_ns(&self, ns: u64) {
        let due = self.clock.lock().pass(ns);
        due.values().for_each(|signal| _ = signal.fire());
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
