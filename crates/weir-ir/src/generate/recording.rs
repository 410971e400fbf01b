//! The recording library of generated programs: its functions log their effects.
//!
//! - The modules `a`, `b` and `c` each have a part of the outside world: one number, which `look`s read and `change`s
//!   change. Every change is recorded under the module's name; a function that waits records its beginning and its end,
//!   so that an overlap is visible. Reads are recorded without their order, because they may overlap, and apart from the
//!   effects, because those behind a failure may or may not have begun. A barrier is recorded with the effects on every resource
//!   that has any.
//! - `count.Counter` can only be moved. A shared one records its changes under its number.
//! - `step` has functions with private state.
//!
//! A recording belongs to one execution. If flows run concurrently ([`Recording::of_many`]), they observe each other
//! only through private state, which they access in the order of their source: the parts of the world and shared
//! counters answer as if no flow had changed them, and effects are compared without their order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

/// Counters from this number on are shared, and record their changes.
pub(super) const SHARED_FROM: i64 = 1_000;

/// The blocking calls of an execution that pause: enough to let other threads come between. A program may make thousands.
const PAUSING_MAX: usize = 16;

/// The state of a recording library: the effects of its functions.
#[derive(Clone, Default)]
pub struct Recording {
    log: Arc<Mutex<EffectLog>>,
    seed: u64,
    /// True if flows run concurrently.
    many: bool,
    /// The number of blocking calls.
    blocking: Arc<AtomicUsize>,
}

#[derive(Default)]
struct EffectLog {
    effects: BTreeMap<String, Vec<String>>,
    reads: BTreeSet<String>,
    /// The number that each part of the outside world holds.
    worlds: BTreeMap<&'static str, i64>,
}

impl Recording {
    /// Returns an empty recording. The seed determines how often each asynchronous function yields before it is done.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Recording { seed, ..Recording::default() }
    }

    /// Returns a recording of flows that run concurrently.
    #[must_use]
    pub fn of_many(seed: u64) -> Self {
        Recording { many: true, ..Recording::new(seed) }
    }

    /// Returns the effects on each resource, in their order; those of concurrent flows are sorted.
    #[must_use]
    pub fn effects(&self) -> BTreeMap<String, Vec<String>> {
        let mut effects = self.log.lock().effects.clone();
        if self.many {
            effects.values_mut().for_each(|effects| effects.sort());
        }
        effects
    }

    /// Returns the reads of the outside world, each once.
    #[must_use]
    pub fn reads(&self) -> BTreeSet<String> {
        self.log.lock().reads.clone()
    }

    pub(super) fn write_down(&self, resource: &str, effect: String) {
        self.log.lock().effects.entry(resource.to_owned()).or_default().push(effect);
    }

    /// Writes an effect of a barrier down behind the effects on every resource, before which it may not come.
    pub(super) fn write_down_everywhere(&self, module: &str, effect: &str) {
        self.write_down(module, effect.to_owned());
        if !self.many {
            let mut log = self.log.lock();
            let others = log.effects.iter_mut().filter(|(resource, _)| *resource != module);
            others.for_each(|(_, effects)| effects.push(format!("{module}: {effect}")));
        }
    }

    /// Records a read of a part of the world, and returns the number that it holds.
    pub(super) fn look(&self, module: &'static str, read: String) -> i64 {
        let mut log = self.log.lock();
        log.reads.insert(read);
        log.worlds.get(module).copied().unwrap_or(1)
    }

    /// Changes a part of the world, and returns its new number.
    pub(super) fn change(&self, module: &'static str, by: i64) -> i64 {
        if self.many {
            return by % 1_000;
        }
        let mut log = self.log.lock();
        let world = log.worlds.entry(module).or_insert(1);
        *world = world.wrapping_mul(31).wrapping_add(by) % 1_000;
        *world
    }

    /// Sets a part of the world to a number, and returns it.
    pub(super) fn keep(&self, module: &'static str, x: i64) -> i64 {
        if !self.many {
            self.log.lock().worlds.insert(module, x % 1_000);
        }
        x % 1_000
    }

    /// Returns true if a counter stores what is added to it: a shared one does not if flows run concurrently.
    pub(super) fn keeps(&self, number: i64) -> bool {
        !self.many || number < SHARED_FROM
    }

    /// Returns how often a call with this argument yields before it is done.
    pub(super) fn yields(&self, argument: i64) -> usize {
        super::Random::new(self.seed ^ argument.unsigned_abs()).below(4)
    }

    /// Returns how often a blocking call with this argument pauses before it is done.
    pub(super) fn pauses(&self, argument: i64) -> usize {
        let pauses = self.blocking.fetch_add(1, Ordering::Relaxed) < PAUSING_MAX;
        if pauses { self.yields(argument) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::Recording;

    #[test]
    fn only_the_first_blocking_calls_of_an_execution_pause() {
        let recording = Recording::new(600_043);
        let pauses = |calls: std::ops::Range<i64>| calls.map(|x| recording.pauses(x)).sum::<usize>();
        assert!((1..100).contains(&pauses(0..10_000)));
        assert_eq!(pauses(0..10_000), 0);
    }
}
