//! Thread count: finds the number of threads of an elastic pool by trust and trend of the measured throughput.
//!
//! The search follows *trust and trend* of the Streams paper (§4.2, Figures 7 and 8). The throughput of a period is
//! recorded for the number of threads with which it was measured. A *trend* is a significant difference between two
//! records. A record is *trusted* until the load changes. The search looks for the smallest number of threads that is
//! significantly better than the next smaller one, and not significantly worse than the next larger one.
//!
//! ```text
//!               record not trusted yet: measure again
//!                      +------+
//!                      v      |
//!    start -------> Visiting(n) -----> Visiting(m), if the history proposes m
//!                      ^      |
//!    load changed,     |      | the history knows the best number
//!    not remembered    |      v
//!                      +--- Settled <---+
//!                              |        | load changed, remembered
//!                              +--------+
//! ```
//!
//! * *Visiting*: the number is measured until its record is trusted. The history then proposes the next one
//!   (`throughput_history`).
//! * *Settled*: the best number is kept until the load changes.
//!
//! Differences from the paper, which compares single periods with a sensitivity of 5 %, changes the number of threads
//! step by step, and drops all records when one period deviates:
//! * *Doubling and halving* instead of steps: see `throughput_history`.
//! * *Transitions.* Queues fill and drain after a change, so that the first period says little. A visit ends with two
//!   periods that agree. It ends after one period if throughput rises and the search continues upwards, or if
//!   throughput falls below half of the best. A record of one period is provisional, and is measured again if it is
//!   next to the best one.
//! * *Noise* is estimated, and a trend has to exceed it: see `measurement_noise`.
//! * *Change of load.* Only several deviating periods in a row are a change. A change for which no other number could
//!   be better is only noted as a drift: see [`ThroughputChange`]. On a shared machine other processes cause such
//!   drifts.
//! * *Memory*, which the paper leaves as future work. When the load changes, its history is stored. When a throughput
//!   at the current number matches a stored history, the search settles on that one at once.
//!
//! The constants below were chosen by judgement, and by simulation in `thread_count_tests.rs`: on 1,000 random machines
//! per test, with up to 4 % noise, the number is found within 20 periods (40 if there may be more than 4 threads) and
//! does not move in the next 300.

use crate::measurement_noise::{MeasurementNoise, median};
use crate::throughput_history::{Significance, ThroughputHistory, ThroughputRecord};

/// Configuration of the search for a number of threads.
#[derive(Clone, Debug, PartialEq)]
pub struct ElasticSettings {
    /// The smallest number of threads.
    pub threads_min: usize,
    /// The largest number of threads: at most the number of processors.
    pub threads_max: usize,
    /// Relative differences of throughput up to this one, 0 to 1, are not significant. The paper's SENS, 0.05.
    pub sensitivity: f64,
}

/// The number of periods after which a visit ends, however noisy they are.
const VISIT_PERIODS_MAX: usize = 4;
/// A number of threads with less than this fraction of the best throughput gets no second period.
const FAR_WORSE: f64 = 0.5;
/// Two periods agree if they differ by at most this many standard deviations.
const NOISE_FACTOR: f64 = 3.0;
/// Two periods disagree if they differ by more than this fraction, however noisy they are.
const AGREEMENT_MAX: f64 = 0.3;
/// Loads that differ by less than this fraction are equal.
const LOAD_SENSITIVITY: f64 = 0.1;
/// The number of deviating periods in a row that make a change of load. Other processes take processors away for some
/// tenths of a second at a time, and a new search takes longer than that.
const DEVIATIONS_MAX: usize = 4;
/// The record of the settled number is the mean of up to this many periods.
const MEAN_PERIODS: u32 = 8;
/// If the throughput at the settled number rises by a factor, that at a smaller number is assumed to rise by at most
/// this power of the factor. A large exponent errs towards searching again.
const QUEUED_EXPONENT: i32 = 3;
/// The number of loads that are remembered.
const MEMORY_MAX: usize = 8;

/// Finds the number of threads from the throughput of each period.
#[derive(Clone, Debug)]
pub struct ThreadCountController {
    settings: ElasticSettings,
    /// The number of threads of the current period.
    threads: usize,
    /// The records of the current load.
    history: ThroughputHistory,
    noise: MeasurementNoise,
    phase: SearchPhase,
    /// Earlier loads, the oldest first.
    memory: Vec<KnownLoad>,
}

/// State of the search.
#[derive(Clone, Debug)]
enum SearchPhase {
    /// The number of threads is not trusted yet. Holds its periods so far.
    Visiting(Vec<f64>),
    /// The best number is known.
    Settled(SettledSearch),
}

/// A search that knows the best number.
#[derive(Clone, Debug)]
struct SettledSearch {
    /// The record of the best number when it was found. The other records compare with it.
    found: ThroughputRecord,
    /// The throughput now, if it has changed without making another number better.
    drifted: Option<f64>,
    /// The last periods, if they deviate from the current throughput, all to the same side.
    deviating: Vec<f64>,
    /// True if a larger number should be tried, but the system has no processors to spare.
    is_limited_by_processors: bool,
}

/// A load that was measured before.
#[derive(Clone, Debug)]
struct KnownLoad {
    history: ThroughputHistory,
    threads: usize,
    is_limited_by_processors: bool,
}

impl SettledSearch {
    /// Returns the throughput that is expected of a period.
    fn current(&self) -> f64 {
        self.drifted.unwrap_or(self.found.throughput)
    }

    /// Adds a period that does not deviate to the record.
    fn confirm(&mut self, throughput: f64) {
        self.deviating.clear();
        if self.drifted.is_none() && self.found.periods < MEAN_PERIODS {
            self.found.periods += 1;
            self.found.throughput += (throughput - self.found.throughput) / f64::from(self.found.periods);
        }
    }

    /// Adds a period that deviates. Returns the new throughput once [`DEVIATIONS_MAX`] periods in a row deviate to the
    /// same side.
    fn deviate(&mut self, throughput: f64) -> Option<f64> {
        let now = self.current();
        self.deviating.retain(|other| (*other < now) == (throughput < now));
        self.deviating.push(throughput);
        (self.deviating.len() == DEVIATIONS_MAX).then(|| median(self.deviating.drain(..)))
    }
}

impl ThreadCountController {
    /// Creates a search that begins with the smallest number.
    ///
    /// # Panics
    /// Panics unless `1 <= threads_min <= threads_max`.
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

    /// Returns the number of threads.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Takes the throughput of the period that has just ended, in any unit, and returns the number of threads of the
    /// next one. The number is not raised above `threads_free`, the number of threads for which the system has
    /// processors to spare (the paper's `isCPUUsageAcceptable`).
    pub fn observe(&mut self, throughput: f64, threads_free: usize) -> usize {
        match &mut self.phase {
            SearchPhase::Visiting(periods) => {
                periods.push(throughput);
                // The first period is one of transition.
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

    /// Returns the number to be tried next, up to `threads_max`.
    fn next_untried(&self, threads_max: usize) -> Option<usize> {
        let threads_max = threads_max.max(self.threads).min(self.settings.threads_max);
        self.history.next_count(&(self.settings.threads_min..=threads_max), self.significance())
    }

    /// Returns whether two periods could be of the same number of threads and load.
    fn agree(&self, one: f64, other: f64, sensitivity: f64) -> bool {
        let tolerance = (self.noise.deviation() * NOISE_FACTOR).min(AGREEMENT_MAX).max(sensitivity);
        (one - other).abs() <= other * tolerance
    }

    /// Returns the record of the visited number if it can be trusted, or if it is provisional on the way up.
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

    /// Returns the record of a visited number whose first period says enough.
    fn early_record(&self, first: f64) -> Option<ThroughputRecord> {
        let most = self.history.highest()?;
        let passing = ThroughputRecord { throughput: first, periods: 1 };
        let is_highest = self.history.iter().all(|(threads, _)| threads < self.threads);
        if is_highest && self.threads < self.settings.threads_max && self.significance().is_better(passing, most) {
            return Some(passing);
        }
        (first < most.throughput * FAR_WORSE).then_some(ThroughputRecord { throughput: first, periods: 2 })
    }

    /// Visits the next number, or settles on the best one.
    fn advance(&mut self, threads_free: usize) {
        match self.next_untried(threads_free) {
            Some(threads) => self.visit(threads),
            None => {
                let best = self.history.best(self.significance()).unwrap_or(self.threads);
                self.settle(best, self.next_untried(usize::MAX).is_some());
            }
        }
    }

    /// Begins to measure a number.
    fn visit(&mut self, threads: usize) {
        self.threads = threads;
        self.noise.restart();
        self.phase = SearchPhase::Visiting(Vec::new());
    }

    /// Keeps a number until the load changes.
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

    /// Takes a period while the search is settled, and detects a change of load.
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

    /// Responds to a lasting change of throughput: notes a drift, recalls a load, or searches again.
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

    /// Stores the current load. Forgets the oldest one if there are too many.
    fn remember(&mut self, is_limited_by_processors: bool) {
        let history = std::mem::take(&mut self.history);
        self.memory.push(KnownLoad { history, threads: self.threads, is_limited_by_processors });
        if self.memory.len() > MEMORY_MAX {
            self.memory.remove(0);
        }
    }

    /// Takes the load out of memory that had this throughput with the current number of threads.
    fn recall(&mut self, throughput: f64) -> Option<KnownLoad> {
        let fits = |load: &KnownLoad| {
            let record = load.history.get(self.threads);
            record.is_some_and(|record| self.agree(throughput, record.throughput, LOAD_SENSITIVITY))
        };
        let at = self.memory.iter().rposition(fits)?;
        Some(self.memory.remove(at))
    }
}

/// A lasting change of throughput at the settled number.
#[derive(Clone, Copy)]
struct ThroughputChange {
    threads: usize,
    found: f64,
    now: f64,
    sensitivity: f64,
}

impl ThroughputChange {
    /// Returns whether some other number could be better after the change.
    fn could_change_best(self, history: &ThroughputHistory) -> bool {
        history.iter().any(|(threads, record)| self.could_be_better(threads, record))
    }

    /// Returns whether a number of threads could be better than the settled one after the change. If items become more
    /// expensive or fewer arrive, no number gains. If they become cheaper, every number may gain as much as the settled
    /// one; a smaller one may gain more, if the settled one is limited by its queues, which do not become cheaper.
    fn could_be_better(self, threads: usize, record: ThroughputRecord) -> bool {
        let (ratio, factor) = (record.throughput / self.found, self.now / self.found);
        let at_most = match (factor < 1.0, threads < self.threads) {
            (true, _) => ratio / factor,
            (false, true) => ratio * factor.powi(QUEUED_EXPONENT),
            (false, false) => ratio * factor,
        };
        // Of numbers that do not differ, the smallest is the best.
        let least = if threads < self.threads { 1.0 } else { 1.0 + self.sensitivity };
        threads != self.threads && at_most > least
    }

    /// Returns the records that hold after the change: that of the settled number, and those of numbers that are
    /// certainly worse.
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
