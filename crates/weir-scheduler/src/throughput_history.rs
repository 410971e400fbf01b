//! What is known of how throughput follows the level, and which level is to be tried next.
//!
//! Throughput is taken to rise with the level, to be highest somewhere, and to stay or fall from there on (the Streams
//! paper, §4.2). So the best level is looked for by doubling, and then by halving what lies between it and those tried
//! around it, which takes a number of levels that grows as the logarithm of how many there are. Among levels that do not
//! differ, the lowest is best.
//!
//! The lowest level is a case of its own, for one thread needs no queues: it is always tried, and where twice as many threads
//! gain nothing over it, four times as many are tried all the same.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Between levels of this size and more, not every one is tried: those around the best are within a fourth of it.
const COARSE: usize = 4;
/// The difference of two means is a trend beyond so many times what noise leaves open.
const TREND_FACTOR: f64 = 1.5;
/// However noisy it is, a difference of this much is a trend.
const SENSITIVITY_MAX: f64 = 0.15;

/// What was seen of one level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ThroughputRecord {
    /// The mean of its periods.
    pub(crate) throughput: f64,
    /// How many.
    pub(crate) periods: u32,
}

/// What two records are compared by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Significance {
    /// Relative differences up to this one are no trend.
    pub(crate) sensitivity: f64,
    /// The standard deviation of a period, relative to its throughput.
    pub(crate) noise: f64,
}

impl Significance {
    /// Whether one is better than the other by more than the sensitivity and what noise leaves open.
    pub(crate) fn is_better(self, one: ThroughputRecord, other: ThroughputRecord) -> bool {
        let open = (1.0 / f64::from(one.periods) + 1.0 / f64::from(other.periods)).sqrt();
        let trend = (self.noise * TREND_FACTOR * open).min(SENSITIVITY_MAX).max(self.sensitivity);
        one.throughput > other.throughput * (1.0 + trend)
    }
}

/// The records of one load, by level.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ThroughputHistory(BTreeMap<usize, ThroughputRecord>);

impl ThroughputRecord {
    /// Whether the level has only been passed by on the way up, so that it may do better than it did.
    fn is_provisional(self) -> bool {
        self.periods == 1
    }

    /// The same where all throughput has changed by this factor.
    pub(crate) fn scaled(self, factor: f64) -> Self {
        ThroughputRecord { throughput: self.throughput * factor, ..self }
    }
}

impl FromIterator<(usize, ThroughputRecord)> for ThroughputHistory {
    fn from_iter<I: IntoIterator<Item = (usize, ThroughputRecord)>>(records: I) -> Self {
        ThroughputHistory(records.into_iter().collect())
    }
}

impl ThroughputHistory {
    pub(crate) fn get(&self, threads: usize) -> Option<ThroughputRecord> {
        self.0.get(&threads).copied()
    }

    pub(crate) fn insert(&mut self, threads: usize, record: ThroughputRecord) {
        self.0.insert(threads, record);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, ThroughputRecord)> {
        self.0.iter().map(|(threads, record)| (*threads, *record))
    }

    /// The highest throughput.
    pub(crate) fn highest(&self) -> Option<ThroughputRecord> {
        self.0.values().copied().max_by(|a, b| a.throughput.total_cmp(&b.throughput))
    }

    /// The lowest level that is no worse than any other.
    pub(crate) fn best(&self, significance: Significance) -> Option<usize> {
        let most = self.highest()?;
        self.iter().find(|(_, record)| !significance.is_better(most, *record)).map(|(threads, _)| threads)
    }

    /// The level that is to be tried next, of those that there are; `None` where the best one is known.
    pub(crate) fn next_count(
        &self,
        thread_counts: &RangeInclusive<usize>,
        significance: Significance,
    ) -> Option<usize> {
        let best = self.best(significance)?;
        let above = self.above(best, *thread_counts.end());
        let next =
            above.or_else(|| self.below(best, *thread_counts.start())).or_else(|| self.beyond(best, thread_counts));
        let lowest = || self.get(*thread_counts.start()).is_none().then_some(*thread_counts.start());
        let trusted = || self.get(best).is_some_and(ThroughputRecord::is_provisional).then_some(best);
        next.or_else(lowest).or_else(trusted)
    }

    /// The level to be tried above the best one. That the next one is no better may be because a peak lies between them.
    fn above(&self, best: usize, threads_max: usize) -> Option<usize> {
        match self.0.range(best + 1..).next() {
            Some((above, _)) if above - best > step_size(best) => Some(best.midpoint(*above)),
            Some((above, record)) => record.is_provisional().then_some(*above),
            None => (best < threads_max).then(|| (best * 2).min(threads_max)),
        }
    }

    /// The level to be tried where the lowest one is best, and only twice as many threads were tried besides.
    fn beyond(&self, best: usize, thread_counts: &RangeInclusive<usize>) -> Option<usize> {
        let (last, _) = self.0.last_key_value()?;
        let most = (last * 2).min(*thread_counts.end());
        (best == *thread_counts.start() && *last <= best * 2 && most > *last).then_some(most)
    }

    /// The level to be tried below the best one.
    fn below(&self, best: usize, threads_min: usize) -> Option<usize> {
        match self.0.range(..best).next_back() {
            Some((below, _)) if best - below > step_size(best) => Some(below.midpoint(best)),
            Some((below, record)) => record.is_provisional().then_some(*below),
            None => (best > threads_min).then(|| (best / 2).max(threads_min)),
        }
    }
}

/// How far levels that are tried may lie from the best one.
fn step_size(best: usize) -> usize {
    (best / COARSE).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGNIFICANCE: Significance = Significance { sensitivity: 0.05, noise: 0.0 };

    /// The levels that are tried where throughput is as `at` says, up to the best one.
    fn tried(first: usize, thread_counts: RangeInclusive<usize>, at: impl Fn(usize) -> f64) -> (Vec<usize>, usize) {
        let (mut history, mut tried, mut next) = (ThroughputHistory::default(), Vec::new(), Some(first));
        while let Some(threads) = next {
            tried.push(threads);
            history.insert(threads, ThroughputRecord { throughput: at(threads), periods: 2 });
            next = history.next_count(&thread_counts, SIGNIFICANCE);
        }
        (tried, history.best(SIGNIFICANCE).unwrap())
    }

    #[test]
    fn levels_are_doubled_and_what_lies_between_is_halved() {
        let (tried, best) = tried(1, 1..=32, |threads| threads.min(11) as f64);
        assert_eq!((tried, best), (vec![1, 2, 4, 8, 16, 32, 24, 20, 12, 14, 10], 12));
    }

    #[test]
    fn where_four_threads_gain_nothing_no_more_are_tried() {
        assert_eq!(tried(1, 1..=32, |_| 1.0), (vec![1, 2, 4], 1));
        assert_eq!(tried(1, 1..=2, |threads| 1.0 / threads as f64), (vec![1, 2], 1));
    }

    #[test]
    fn queues_that_two_threads_do_not_make_up_for_four_may() {
        let (_, best) = tried(1, 1..=8, |threads| if threads == 1 { 1.0 } else { 0.4 * threads as f64 });
        assert_eq!(best, 8);
    }

    #[test]
    fn from_anywhere_the_best_level_is_found_in_a_few_tries() {
        for first in 1..=64 {
            for peak in 1..=64_usize {
                let at = |threads: usize| threads.min(peak) as f64 * 0.9_f64.powi(threads.saturating_sub(peak) as i32);
                let (tried, best) = tried(first, 1..=64, at);
                let most = at(peak);
                assert!(at(best) > most * 0.75, "peak {peak} from {first}: {best} after {tried:?}");
                assert!(tried.len() <= 20, "peak {peak} from {first}: {tried:?}");
            }
        }
    }

    #[test]
    fn noise_widens_what_is_no_difference() {
        let [worse, better] = [1.0, 1.1].map(|throughput| ThroughputRecord { throughput, periods: 2 });
        assert!(SIGNIFICANCE.is_better(better, worse));
        assert!(!Significance { noise: 0.1, ..SIGNIFICANCE }.is_better(better, worse));
        let many = |record: ThroughputRecord| ThroughputRecord { periods: 100, ..record };
        assert!(Significance { noise: 0.1, ..SIGNIFICANCE }.is_better(many(better), many(worse)));
    }
}
