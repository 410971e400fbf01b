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

use crate::measurement_noise::{MeasurementNoise, median};
use crate::throughput_history::{Significance, ThroughputHistory, ThroughputRecord};

/// How the number of threads is found.
#[derive(Clone, Debug, PartialEq)]
pub struct ElasticSettings {
    /// The lowest level.
    pub threads_min: usize,
    /// The highest level: at most the number of processors.
    pub threads_max: usize,
    /// Relative differences of throughput up to this one are no trend, 0 to 1. The paper's SENS, 0.05.
    pub sensitivity: f64,
}

/// However noisy it is, a record of so many periods is trusted.
const VISIT_PERIODS_MAX: usize = 4;
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
pub struct ThreadCountController {
    settings: ElasticSettings,
    threads: usize,
    history: ThroughputHistory,
    noise: MeasurementNoise,
    phase: SearchPhase,
    memory: Vec<KnownLoad>,
}

/// What periods are for.
#[derive(Clone, Debug)]
enum SearchPhase {
    /// The level is not trusted yet: its periods so far.
    Visiting(Vec<f64>),
    /// The level was found.
    Settled(SettledSearch),
}

/// A level that was found.
#[derive(Clone, Debug)]
struct SettledSearch {
    /// Its throughput when it was found, to which the other levels' records compare.
    found: ThroughputRecord,
    /// Its throughput now, where that has changed, but no other level could be better for it.
    drifted: Option<f64>,
    /// The last periods, as long as they deviate from that.
    deviating: Vec<f64>,
    /// The machine had no processor to spare for a level that should be tried.
    is_limited_by_processors: bool,
}

/// What is known of a load.
#[derive(Clone, Debug)]
struct KnownLoad {
    history: ThroughputHistory,
    threads: usize,
    is_limited_by_processors: bool,
}

impl SettledSearch {
    fn current(&self) -> f64 {
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
        let now = self.current();
        self.deviating.retain(|other| (*other < now) == (throughput < now));
        self.deviating.push(throughput);
        (self.deviating.len() == DEVIATIONS_MAX).then(|| median(self.deviating.drain(..)))
    }
}

impl ThreadCountController {
    /// Begins at the lowest level.
    ///
    /// # Panics
    /// Panics where the levels are not `1 <= threads_min <= threads_max`.
    #[must_use]
    pub fn new(settings: ElasticSettings) -> Self {
        assert!(
            1 <= settings.threads_min && settings.threads_min <= settings.threads_max,
            "thread_counts of {settings:?}"
        );
        let (threads, phase) = (settings.threads_min, SearchPhase::Visiting(Vec::new()));
        ThreadCountController {
            settings,
            threads,
            history: ThroughputHistory::default(),
            noise: MeasurementNoise::default(),
            phase,
            memory: Vec::new(),
        }
    }

    /// The level.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Takes the throughput of the period that has just ended, in any unit, and gives the level of the next one. The level
    /// is not raised above `threads_free`, for as many threads as the machine has processors to spare (the paper's
    /// `isCPUUsageAcceptable`).
    pub fn observe(&mut self, throughput: f64, threads_free: usize) -> usize {
        match &mut self.phase {
            SearchPhase::Visiting(periods) => {
                periods.push(throughput);
                // The first is one of transition.
                if periods.len() > 1 {
                    self.noise.record(throughput);
                }
                if let Some(record) = self.visit_record() {
                    self.history.insert(self.threads, record);
                    self.advance(threads_free);
                }
            }
            SearchPhase::Settled(_) => {
                self.noise.record(throughput);
                self.observe_settled(throughput, threads_free);
            }
        }
        self.threads
    }

    fn significance(&self) -> Significance {
        Significance { sensitivity: self.settings.sensitivity, noise: self.noise.deviation() }
    }

    /// The level to be tried next, of those up to `threads_max`.
    fn next_untried(&self, threads_max: usize) -> Option<usize> {
        let threads_max = threads_max.max(self.threads).min(self.settings.threads_max);
        self.history.next_count(&(self.settings.threads_min..=threads_max), self.significance())
    }

    /// Whether two periods could be of the same level and load.
    fn agree(&self, one: f64, other: f64, sensitivity: f64) -> bool {
        let tolerance = (self.noise.deviation() * NOISE_FACTOR).min(AGREEMENT_MAX).max(sensitivity);
        (one - other).abs() <= other * tolerance
    }

    /// The record of the level that is visited, where it can be trusted, or where it is to be passed by on the way up.
    fn visit_record(&self) -> Option<ThroughputRecord> {
        let SearchPhase::Visiting(periods) = &self.phase else { return None };
        match periods[..] {
            [first] => self.early_record(first),
            [.., before, last] if self.agree(before, last, self.settings.sensitivity) => {
                Some(ThroughputRecord { throughput: f64::midpoint(before, last), periods: 2 })
            }
            [_, ref later @ ..] if later.len() + 1 == VISIT_PERIODS_MAX => {
                Some(ThroughputRecord { throughput: median(later.iter().copied()), periods: 2 })
            }
            _ => None,
        }
    }

    /// The record of a level whose first period says enough.
    fn early_record(&self, first: f64) -> Option<ThroughputRecord> {
        let most = self.history.highest()?;
        let passing = ThroughputRecord { throughput: first, periods: 1 };
        let is_highest = self.history.iter().all(|(threads, _)| threads < self.threads);
        if is_highest && self.threads < self.settings.threads_max && self.significance().is_better(passing, most) {
            return Some(passing);
        }
        (first < most.throughput * FAR_WORSE).then_some(ThroughputRecord { throughput: first, periods: 2 })
    }

    /// Visits the next level, or settles on the best one.
    fn advance(&mut self, threads_free: usize) {
        match self.next_untried(threads_free) {
            Some(threads) => self.visit(threads),
            None => {
                let best = self.history.best(self.significance()).unwrap_or(self.threads);
                self.settle(best, self.next_untried(usize::MAX).is_some());
            }
        }
    }

    fn visit(&mut self, threads: usize) {
        self.threads = threads;
        self.noise.restart();
        self.phase = SearchPhase::Visiting(Vec::new());
    }

    fn settle(&mut self, threads: usize, is_limited_by_processors: bool) {
        let Some(found) = self.history.get(threads) else { return };
        self.threads = threads;
        self.noise.restart();
        self.phase = SearchPhase::Settled(SettledSearch {
            found,
            drifted: None,
            deviating: Vec::new(),
            is_limited_by_processors,
        });
    }

    /// Sees whether the load has changed, where the level was found.
    fn observe_settled(&mut self, throughput: f64, threads_free: usize) {
        let SearchPhase::Settled(settled) = &self.phase else { return };
        let agrees = self.agree(throughput, settled.current(), LOAD_SENSITIVITY);
        let next_untried = if settled.is_limited_by_processors { self.next_untried(threads_free) } else { None };
        let SearchPhase::Settled(settled) = &mut self.phase else { return };
        if !agrees {
            let changed = settled.deviate(throughput);
            changed.into_iter().for_each(|throughput| self.respond_to_change(throughput, threads_free));
        } else {
            settled.confirm(throughput);
            next_untried.into_iter().for_each(|threads| self.visit(threads));
        }
    }

    /// Throughput has changed for good.
    fn respond_to_change(&mut self, throughput: f64, threads_free: usize) {
        let SearchPhase::Settled(settled) = &mut self.phase else { return };
        let is_limited_by_processors = settled.is_limited_by_processors;
        let change = ThroughputChange {
            threads: self.threads,
            found: settled.found.throughput.max(f64::MIN_POSITIVE),
            now: throughput,
            sensitivity: self.settings.sensitivity,
        };
        if !is_limited_by_processors && !change.could_change_best(&self.history) {
            settled.drifted = Some(throughput);
            return;
        }
        let left = change.remaining_history(&self.history);
        self.remember(is_limited_by_processors);
        match self.recall(throughput) {
            Some(KnownLoad { history, threads, is_limited_by_processors }) => {
                self.history = history;
                self.settle(threads, is_limited_by_processors);
            }
            None => {
                self.history = left;
                self.advance(threads_free);
            }
        }
    }

    fn remember(&mut self, is_limited_by_processors: bool) {
        let history = std::mem::take(&mut self.history);
        self.memory.push(KnownLoad { history, threads: self.threads, is_limited_by_processors });
        if self.memory.len() > MEMORY_MAX {
            self.memory.remove(0);
        }
    }

    /// A load of which this throughput is known at this level.
    fn recall(&mut self, throughput: f64) -> Option<KnownLoad> {
        let fits = |load: &KnownLoad| {
            let record = load.history.get(self.threads);
            record.is_some_and(|record| self.agree(throughput, record.throughput, LOAD_SENSITIVITY))
        };
        let at = self.memory.iter().rposition(fits)?;
        Some(self.memory.remove(at))
    }
}

/// A change of throughput at the level that was settled on.
#[derive(Clone, Copy)]
struct ThroughputChange {
    threads: usize,
    found: f64,
    now: f64,
    sensitivity: f64,
}

impl ThroughputChange {
    /// Whether another level could be better for it.
    fn could_change_best(self, history: &ThroughputHistory) -> bool {
        history.iter().any(|(threads, record)| self.could_be_better(threads, record))
    }

    /// How good another level could be, as a part of this one. What makes items dearer or lets fewer come in makes no level
    /// better than it was. What makes them cheaper lets a level gain as much as this one; and a lower one more, where this is
    /// held up by what does not become cheaper, which are its queues.
    fn could_be_better(self, threads: usize, record: ThroughputRecord) -> bool {
        let (ratio, factor) = (record.throughput / self.found, self.now / self.found);
        let at_most = match (factor < 1.0, threads < self.threads) {
            (true, _) => ratio / factor,
            (false, true) => ratio * factor.powi(QUEUED_EXPONENT),
            (false, false) => ratio * factor,
        };
        // Among levels that do not differ, the lowest is best.
        let least = if threads < self.threads { 1.0 } else { 1.0 + self.sensitivity };
        threads != self.threads && at_most > least
    }

    /// What is still known: this level, and of others only that they are worse, if they are for sure.
    fn remaining_history(self, history: &ThroughputHistory) -> ThroughputHistory {
        let factor = self.now / self.found;
        let is_worse = |threads: usize, record: ThroughputRecord| {
            threads != self.threads
                && (threads > self.threads || factor < 1.0)
                && !self.could_be_better(threads, record)
        };
        let worse = history.iter().filter(|(threads, record)| is_worse(*threads, *record));
        let worse = worse.map(|(threads, record)| (threads, record.scaled(factor)));
        let this = ThroughputRecord { throughput: self.now, periods: DEVIATIONS_MAX as u32 };
        worse.chain([(self.threads, this)]).collect()
    }
}

#[cfg(test)]
#[path = "thread_count_tests.rs"]
mod tests;
