//! Throughput history: the records of one load by number of threads, and the search for the best number.
//!
//! The search assumes that throughput rises with the number of threads up to a maximum, and stays or falls from there
//! on (Streams paper, §4.2). It doubles the number while throughput rises, and then bisects the intervals around the
//! best number, so that the number of tries grows with the logarithm of the largest number. Of numbers that do not
//! differ significantly, the smallest is the best.
//!
//! The smallest number is a special case, because one thread needs no queues: it is always tried, and if twice as many
//! threads gain nothing over it, four times as many are tried as well.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// From this number of threads on, not every number is tried: the neighbours of the best one are within a quarter of
/// it. Chosen by judgement: an error of a quarter of the threads costs less than trying them all.
const COARSE: usize = 4;
/// A difference of two means is significant if it exceeds this many standard errors. Chosen by judgement, and checked
/// by the simulations of `thread_count_tests.rs`.
const TREND_FACTOR: f64 = 1.5;
/// A difference of this much is significant, however noisy the periods are. Chosen by judgement, and checked by the
/// same simulations.
const SENSITIVITY_MAX: f64 = 0.15;

/// The record of one number of threads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ThroughputRecord {
    /// The mean throughput of its periods.
    pub(crate) throughput: f64,
    /// The number of its periods.
    pub(crate) periods: u32,
}

/// The test that two records are compared by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Significance {
    /// Relative differences up to this one are not significant.
    pub(crate) sensitivity: f64,
    /// The standard deviation of a period, relative to its throughput.
    pub(crate) noise: f64,
}

impl Significance {
    /// Returns whether `one` is significantly better than `other`.
    pub(crate) fn is_better(self, one: ThroughputRecord, other: ThroughputRecord) -> bool {
        let open = (1.0 / f64::from(one.periods) + 1.0 / f64::from(other.periods)).sqrt();
        let trend = (self.noise * TREND_FACTOR * open).min(SENSITIVITY_MAX).max(self.sensitivity);
        one.throughput > other.throughput * (1.0 + trend)
    }
}

/// The records of one load by number of threads.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ThroughputHistory(BTreeMap<usize, ThroughputRecord>);

impl ThroughputRecord {
    /// Returns whether the record is of a single period on the way up, so that the number may do better than it shows.
    fn is_provisional(self) -> bool {
        self.periods == 1
    }

    /// Returns the record of a load whose throughput is `factor` times as high.
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

    /// Returns the record of the highest throughput.
    pub(crate) fn highest(&self) -> Option<ThroughputRecord> {
        self.0.values().copied().max_by(|a, b| a.throughput.total_cmp(&b.throughput))
    }

    /// Returns the smallest number that is not significantly worse than any other.
    pub(crate) fn best(&self, significance: Significance) -> Option<usize> {
        let most = self.highest()?;
        self.iter().find(|(_, record)| !significance.is_better(most, *record)).map(|(threads, _)| threads)
    }

    /// Returns the number to be tried next, or `None` if the best one is known.
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

    /// Returns the number to be tried above the best one. If the next larger one is no better, a maximum may still lie
    /// between them.
    fn above(&self, best: usize, threads_max: usize) -> Option<usize> {
        match self.0.range(best + 1..).next() {
            Some((above, _)) if above - best > step_size(best) => Some(best.midpoint(*above)),
            Some((above, record)) => record.is_provisional().then_some(*above),
            None => (best < threads_max).then(|| (best * 2).min(threads_max)),
        }
    }

    /// Returns the number to be tried if the smallest one is the best, and only twice as many threads have been tried.
    fn beyond(&self, best: usize, thread_counts: &RangeInclusive<usize>) -> Option<usize> {
        let (last, _) = self.0.last_key_value()?;
        let most = (last * 2).min(*thread_counts.end());
        (best == *thread_counts.start() && *last <= best * 2 && most > *last).then_some(most)
    }

    /// Returns the number to be tried below the best one.
    fn below(&self, best: usize, threads_min: usize) -> Option<usize> {
        match self.0.range(..best).next_back() {
            Some((below, _)) if best - below > step_size(best) => Some(below.midpoint(best)),
            Some((below, record)) => record.is_provisional().then_some(*below),
            None => (best > threads_min).then(|| (best / 2).max(threads_min)),
        }
    }
}

/// Returns the largest distance from the best number at which neighbours need not be tried.
fn step_size(best: usize) -> usize {
    (best / COARSE).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGNIFICANCE: Significance = Significance { sensitivity: 0.05, noise: 0.0 };

    /// Returns the numbers that are tried until the best one is known, and the best one, for the throughput function
    /// `at`.
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
    fn numbers_are_doubled_and_intervals_halved() {
        let (tried, best) = tried(1, 1..=32, |threads| threads.min(11) as f64);
        assert_eq!((tried, best), (vec![1, 2, 4, 8, 16, 32, 24, 20, 12, 14, 10], 12));
    }

    #[test]
    fn if_four_threads_gain_nothing_no_more_are_tried() {
        assert_eq!(tried(1, 1..=32, |_| 1.0), (vec![1, 2, 4], 1));
        assert_eq!(tried(1, 1..=2, |threads| 1.0 / threads as f64), (vec![1, 2], 1));
    }

    #[test]
    fn four_threads_may_pay_for_queues_when_two_do_not() {
        let (_, best) = tried(1, 1..=8, |threads| if threads == 1 { 1.0 } else { 0.4 * threads as f64 });
        assert_eq!(best, 8);
    }

    #[test]
    fn the_best_number_is_found_from_anywhere_in_a_few_tries() {
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
    fn noise_raises_the_significant_difference() {
        let [worse, better] = [1.0, 1.1].map(|throughput| ThroughputRecord { throughput, periods: 2 });
        assert!(SIGNIFICANCE.is_better(better, worse));
        assert!(!Significance { noise: 0.1, ..SIGNIFICANCE }.is_better(better, worse));
        let many = |record: ThroughputRecord| ThroughputRecord { periods: 100, ..record };
        assert!(Significance { noise: 0.1, ..SIGNIFICANCE }.is_better(many(better), many(worse)));
    }
}
