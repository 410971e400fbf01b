//! How many threads: trust and trend as in the Streams paper (§4.2, Figures 7 and 8), with a memory.
//!
//! A *level* is a number of threads. The throughput of every period is recorded for the level at which it was seen. A
//! *trend* is a difference between levels that means something, and a record is *trusted* until the load changes. The level
//! that is looked for is the lowest one that does better than the one below it and no worse than the one above.
//!
//! Protocol: the level is *visited* until its record can be trusted, then the next one is, which the curve of all records
//! asks for (`curve`). Where it asks for none, the level *settles* on the best one, until the load changes.
//!
//! Differences to the paper, which compares single periods by a sensitivity of 5 %, walks from level to level, and drops all
//! records when one period deviates from the last:
//! * *Doubling and halving* instead of walking: see `curve`.
//! * *Transition*. Queues fill and empty when the level changes, so that the first period tells little. A visit ends with two
//!   periods that agree; at once only where throughput rises and the level goes on to, or where it falls to less than half.
//!   What was passed by is visited again where it is next to the best.
//! * *Noise* is estimated, and a trend is more than what it leaves open: see `noise`.
//! * *Load*. Only several deviating periods in a row are a change. They are none of the load but of the machine, whose
//!   processors are shared, where no other level could be better for it: see [`Change`]. Such levels are not tried again.
//! * *Memory*, which it leaves as future work. When the load changes, what was learned is put aside; when a load comes back,
//!   which shows in the throughput of the current level, so does what was learned.

use crate::curve::{Curve, Measure, Record};
use crate::noise::{Noise, median};

/// How the number of threads is found.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The lowest level.
    pub level_min: usize,
    /// The highest level: at most the number of processors.
    pub level_max: usize,
    /// Relative differences of throughput up to this one are no trend, 0 to 1. The paper's SENS, 0.05.
    pub sensitivity: f64,
}

/// However noisy it is, a record of so many periods is trusted.
const VISIT_MAX: usize = 4;
/// A level with less than this part of the best throughput is not given a second period.
const FAR_WORSE: f64 = 0.5;
/// Periods that differ by so many times the usual deviation do not agree.
const NOISE_FACTOR: f64 = 3.0;
/// However noisy it is, periods that differ by so much do not agree.
const AGREEMENT_MAX: f64 = 0.3;
/// A load that differs by less than this is the same.
const LOAD_SENSITIVITY: f64 = 0.1;
/// A deviation is a change of load when it is seen so many periods in a row: others on a shared machine take its processors
/// for some tenths of a second, and to look for the level anew takes longer than that.
const DEVIATIONS_MAX: usize = 4;
/// The record of the level that was settled on is the mean of so many periods.
const MEAN_PERIODS: u32 = 8;
/// By which power of what the current level gains a lower one could gain: far more, while noise still is little.
const QUEUED_EXPONENT: i32 = 3;
/// So many loads are remembered.
const MEMORY_MAX: usize = 8;

/// Finds the number of threads from the throughput of each period.
#[derive(Clone, Debug)]
pub struct Elasticity {
    settings: Settings,
    level: usize,
    curve: Curve,
    noise: Noise,
    phase: Phase,
    memory: Vec<Load>,
}

/// What periods are for.
#[derive(Clone, Debug)]
enum Phase {
    /// The level is not trusted yet: its periods so far.
    Visiting(Vec<f64>),
    /// The level was found.
    Settled(Settled),
}

/// A level that was found.
#[derive(Clone, Debug)]
struct Settled {
    /// Its throughput when it was found, to which the other levels' records compare.
    found: Record,
    /// Its throughput now, where that has changed, but no other level could be better for it.
    drifted: Option<f64>,
    /// The last periods, as long as they deviate from that.
    deviating: Vec<f64>,
    /// The machine had no processor to spare for a level that should be tried.
    is_held_back: bool,
}

/// What is known of a load.
#[derive(Clone, Debug)]
struct Load {
    curve: Curve,
    level: usize,
    is_held_back: bool,
}

impl Settled {
    fn now(&self) -> f64 {
        self.drifted.unwrap_or(self.found.throughput)
    }

    /// Takes what is no deviation.
    fn confirm(&mut self, throughput: f64) {
        self.deviating.clear();
        if self.drifted.is_none() && self.found.periods < MEAN_PERIODS {
            self.found.periods += 1;
            self.found.throughput += (throughput - self.found.throughput) / f64::from(self.found.periods);
        }
    }

    /// Takes a deviation; what it is that throughput has changed to, once so many have deviated to the same side.
    fn deviate(&mut self, throughput: f64) -> Option<f64> {
        let now = self.now();
        self.deviating.retain(|other| (*other < now) == (throughput < now));
        self.deviating.push(throughput);
        (self.deviating.len() == DEVIATIONS_MAX).then(|| median(self.deviating.drain(..)))
    }
}

impl Elasticity {
    /// Begins at the lowest level.
    ///
    /// # Panics
    /// Panics where the levels are not `1 <= level_min <= level_max`.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        assert!(1 <= settings.level_min && settings.level_min <= settings.level_max, "levels of {settings:?}");
        let (level, phase) = (settings.level_min, Phase::Visiting(Vec::new()));
        Elasticity { settings, level, curve: Curve::default(), noise: Noise::default(), phase, memory: Vec::new() }
    }

    /// The level.
    #[must_use]
    pub fn level(&self) -> usize {
        self.level
    }

    /// Takes the throughput of the period that has just ended, in any unit, and gives the level of the next one. The level
    /// is not raised above `level_free`, for as many threads as the machine has processors to spare (the paper's
    /// `isCPUUsageAcceptable`).
    pub fn next(&mut self, throughput: f64, level_free: usize) -> usize {
        match &mut self.phase {
            Phase::Visiting(periods) => {
                periods.push(throughput);
                // The first is one of transition.
                if periods.len() > 1 {
                    self.noise.note(throughput);
                }
                if let Some(record) = self.visited() {
                    self.curve.insert(self.level, record);
                    self.go_on(level_free);
                }
            }
            Phase::Settled(_) => {
                self.noise.note(throughput);
                self.watch(throughput, level_free);
            }
        }
        self.level
    }

    fn measure(&self) -> Measure {
        Measure { sensitivity: self.settings.sensitivity, noise: self.noise.deviation() }
    }

    /// The level to be tried next, of those up to `level_max`.
    fn untried(&self, level_max: usize) -> Option<usize> {
        let level_max = level_max.max(self.level).min(self.settings.level_max);
        self.curve.next(&(self.settings.level_min..=level_max), self.measure())
    }

    /// Whether two periods could be of the same level and load.
    fn agree(&self, one: f64, other: f64, sensitivity: f64) -> bool {
        let tolerance = (self.noise.deviation() * NOISE_FACTOR).min(AGREEMENT_MAX).max(sensitivity);
        (one - other).abs() <= other * tolerance
    }

    /// The record of the level that is visited, where it can be trusted, or where it is to be passed by on the way up.
    fn visited(&self) -> Option<Record> {
        let Phase::Visiting(periods) = &self.phase else { return None };
        match periods[..] {
            [first] => self.decided(first),
            [.., before, last] if self.agree(before, last, self.settings.sensitivity) => {
                Some(Record { throughput: f64::midpoint(before, last), periods: 2 })
            }
            [_, ref later @ ..] if later.len() + 1 == VISIT_MAX => {
                Some(Record { throughput: median(later.iter().copied()), periods: 2 })
            }
            _ => None,
        }
    }

    /// The record of a level whose first period says enough.
    fn decided(&self, first: f64) -> Option<Record> {
        let most = self.curve.most()?;
        let passing = Record { throughput: first, periods: 1 };
        let is_highest = self.curve.iter().all(|(level, _)| level < self.level);
        if is_highest && self.level < self.settings.level_max && self.measure().is_better(passing, most) {
            return Some(passing);
        }
        (first < most.throughput * FAR_WORSE).then_some(Record { throughput: first, periods: 2 })
    }

    /// Visits the next level, or settles on the best one.
    fn go_on(&mut self, level_free: usize) {
        match self.untried(level_free) {
            Some(level) => self.visit(level),
            None => {
                let best = self.curve.best(self.measure()).unwrap_or(self.level);
                self.settle(best, self.untried(usize::MAX).is_some());
            }
        }
    }

    fn visit(&mut self, level: usize) {
        self.level = level;
        self.noise.cut();
        self.phase = Phase::Visiting(Vec::new());
    }

    fn settle(&mut self, level: usize, is_held_back: bool) {
        let Some(found) = self.curve.get(level) else { return };
        self.level = level;
        self.noise.cut();
        self.phase = Phase::Settled(Settled { found, drifted: None, deviating: Vec::new(), is_held_back });
    }

    /// Sees whether the load has changed, where the level was found.
    fn watch(&mut self, throughput: f64, level_free: usize) {
        let Phase::Settled(settled) = &self.phase else { return };
        let agrees = self.agree(throughput, settled.now(), LOAD_SENSITIVITY);
        let untried = if settled.is_held_back { self.untried(level_free) } else { None };
        let Phase::Settled(settled) = &mut self.phase else { return };
        if !agrees {
            let changed = settled.deviate(throughput);
            changed.into_iter().for_each(|throughput| self.change(throughput, level_free));
        } else {
            settled.confirm(throughput);
            untried.into_iter().for_each(|level| self.visit(level));
        }
    }

    /// Throughput has changed for good.
    fn change(&mut self, throughput: f64, level_free: usize) {
        let Phase::Settled(settled) = &mut self.phase else { return };
        let is_held_back = settled.is_held_back;
        let change = Change {
            level: self.level,
            found: settled.found.throughput.max(f64::MIN_POSITIVE),
            now: throughput,
            sensitivity: self.settings.sensitivity,
        };
        if !is_held_back && !change.could_move(&self.curve) {
            settled.drifted = Some(throughput);
            return;
        }
        let left = change.left_of(&self.curve);
        self.put_aside(is_held_back);
        match self.remembered(throughput) {
            Some(Load { curve, level, is_held_back }) => {
                self.curve = curve;
                self.settle(level, is_held_back);
            }
            None => {
                self.curve = left;
                self.go_on(level_free);
            }
        }
    }

    fn put_aside(&mut self, is_held_back: bool) {
        let curve = std::mem::take(&mut self.curve);
        self.memory.push(Load { curve, level: self.level, is_held_back });
        if self.memory.len() > MEMORY_MAX {
            self.memory.remove(0);
        }
    }

    /// A load of which this throughput is known at this level.
    fn remembered(&mut self, throughput: f64) -> Option<Load> {
        let fits = |load: &Load| {
            let record = load.curve.get(self.level);
            record.is_some_and(|record| self.agree(throughput, record.throughput, LOAD_SENSITIVITY))
        };
        let at = self.memory.iter().rposition(fits)?;
        Some(self.memory.remove(at))
    }
}

/// A change of throughput at the level that was settled on.
#[derive(Clone, Copy)]
struct Change {
    level: usize,
    found: f64,
    now: f64,
    sensitivity: f64,
}

impl Change {
    /// Whether another level could be better for it.
    fn could_move(self, curve: &Curve) -> bool {
        curve.iter().any(|(level, record)| self.could_be_better(level, record))
    }

    /// How good another level could be, as a part of this one. What makes items dearer or lets fewer come in makes no level
    /// better than it was. What makes them cheaper lets a level gain as much as this one; and a lower one more, where this is
    /// held up by what does not become cheaper, which are its queues.
    fn could_be_better(self, level: usize, record: Record) -> bool {
        let (ratio, factor) = (record.throughput / self.found, self.now / self.found);
        let at_most = match (factor < 1.0, level < self.level) {
            (true, _) => ratio / factor,
            (false, true) => ratio * factor.powi(QUEUED_EXPONENT),
            (false, false) => ratio * factor,
        };
        // Among levels that do not differ, the lowest is best.
        let least = if level < self.level { 1.0 } else { 1.0 + self.sensitivity };
        level != self.level && at_most > least
    }

    /// What is still known: this level, and of others only that they are worse, if they are for sure.
    fn left_of(self, curve: &Curve) -> Curve {
        let factor = self.now / self.found;
        let is_worse = |level: usize, record: Record| {
            level != self.level && (level > self.level || factor < 1.0) && !self.could_be_better(level, record)
        };
        let worse = curve.iter().filter(|(level, record)| is_worse(*level, *record));
        let worse = worse.map(|(level, record)| (level, record.scaled(factor)));
        let this = Record { throughput: self.now, periods: DEVIATIONS_MAX as u32 };
        worse.chain([(self.level, this)]).collect()
    }
}

#[cfg(test)]
#[path = "level_tests.rs"]
mod tests;
