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
pub(crate) struct Record {
    /// The mean of its periods.
    pub(crate) throughput: f64,
    /// How many.
    pub(crate) periods: u32,
}

/// What two records are compared by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measure {
    /// Relative differences up to this one are no trend.
    pub(crate) sensitivity: f64,
    /// The standard deviation of a period, relative to its throughput.
    pub(crate) noise: f64,
}

impl Measure {
    /// Whether one is better than the other by more than the sensitivity and what noise leaves open.
    pub(crate) fn is_better(self, one: Record, other: Record) -> bool {
        let open = (1.0 / f64::from(one.periods) + 1.0 / f64::from(other.periods)).sqrt();
        let trend = (self.noise * TREND_FACTOR * open).min(SENSITIVITY_MAX).max(self.sensitivity);
        one.throughput > other.throughput * (1.0 + trend)
    }
}

/// The records of one load, by level.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Curve(BTreeMap<usize, Record>);

impl Record {
    /// Whether the level has only been passed by on the way up, so that it may do better than it did.
    fn is_passed_by(self) -> bool {
        self.periods == 1
    }

    /// The same where all throughput has changed by this factor.
    pub(crate) fn scaled(self, factor: f64) -> Self {
        Record { throughput: self.throughput * factor, ..self }
    }
}

impl FromIterator<(usize, Record)> for Curve {
    fn from_iter<I: IntoIterator<Item = (usize, Record)>>(records: I) -> Self {
        Curve(records.into_iter().collect())
    }
}

impl Curve {
    pub(crate) fn get(&self, level: usize) -> Option<Record> {
        self.0.get(&level).copied()
    }

    pub(crate) fn insert(&mut self, level: usize, record: Record) {
        self.0.insert(level, record);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, Record)> {
        self.0.iter().map(|(level, record)| (*level, *record))
    }

    /// The highest throughput.
    pub(crate) fn most(&self) -> Option<Record> {
        self.0.values().copied().max_by(|a, b| a.throughput.total_cmp(&b.throughput))
    }

    /// The lowest level that is no worse than any other.
    pub(crate) fn best(&self, measure: Measure) -> Option<usize> {
        let most = self.most()?;
        self.iter().find(|(_, record)| !measure.is_better(most, *record)).map(|(level, _)| level)
    }

    /// The level that is to be tried next, of those that there are; `None` where the best one is known.
    pub(crate) fn next(&self, levels: &RangeInclusive<usize>, measure: Measure) -> Option<usize> {
        let best = self.best(measure)?;
        let above = self.above(best, *levels.end());
        let next = above.or_else(|| self.below(best, *levels.start())).or_else(|| self.beyond(best, levels));
        let lowest = || self.get(*levels.start()).is_none().then_some(*levels.start());
        let trusted = || self.get(best).is_some_and(Record::is_passed_by).then_some(best);
        next.or_else(lowest).or_else(trusted)
    }

    /// The level to be tried above the best one. That the next one is no better may be because a peak lies between them.
    fn above(&self, best: usize, level_max: usize) -> Option<usize> {
        match self.0.range(best + 1..).next() {
            Some((above, _)) if above - best > step(best) => Some(best.midpoint(*above)),
            Some((above, record)) => record.is_passed_by().then_some(*above),
            None => (best < level_max).then(|| (best * 2).min(level_max)),
        }
    }

    /// The level to be tried where the lowest one is best, and only twice as many threads were tried besides.
    fn beyond(&self, best: usize, levels: &RangeInclusive<usize>) -> Option<usize> {
        let (last, _) = self.0.last_key_value()?;
        let most = (last * 2).min(*levels.end());
        (best == *levels.start() && *last <= best * 2 && most > *last).then_some(most)
    }

    /// The level to be tried below the best one.
    fn below(&self, best: usize, level_min: usize) -> Option<usize> {
        match self.0.range(..best).next_back() {
            Some((below, _)) if best - below > step(best) => Some(below.midpoint(best)),
            Some((below, record)) => record.is_passed_by().then_some(*below),
            None => (best > level_min).then(|| (best / 2).max(level_min)),
        }
    }
}

/// How far levels that are tried may lie from the best one.
fn step(best: usize) -> usize {
    (best / COARSE).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEASURE: Measure = Measure { sensitivity: 0.05, noise: 0.0 };

    /// The levels that are tried where throughput is as `at` says, up to the best one.
    fn tried(first: usize, levels: RangeInclusive<usize>, at: impl Fn(usize) -> f64) -> (Vec<usize>, usize) {
        let (mut curve, mut tried, mut next) = (Curve::default(), Vec::new(), Some(first));
        while let Some(level) = next {
            tried.push(level);
            curve.insert(level, Record { throughput: at(level), periods: 2 });
            next = curve.next(&levels, MEASURE);
        }
        (tried, curve.best(MEASURE).unwrap())
    }

    #[test]
    fn levels_are_doubled_and_what_lies_between_is_halved() {
        let (tried, best) = tried(1, 1..=32, |level| level.min(11) as f64);
        assert_eq!((tried, best), (vec![1, 2, 4, 8, 16, 32, 24, 20, 12, 14, 10], 12));
    }

    #[test]
    fn where_four_threads_gain_nothing_no_more_are_tried() {
        assert_eq!(tried(1, 1..=32, |_| 1.0), (vec![1, 2, 4], 1));
        assert_eq!(tried(1, 1..=2, |level| 1.0 / level as f64), (vec![1, 2], 1));
    }

    #[test]
    fn queues_that_two_threads_do_not_make_up_for_four_may() {
        let (_, best) = tried(1, 1..=8, |level| if level == 1 { 1.0 } else { 0.4 * level as f64 });
        assert_eq!(best, 8);
    }

    #[test]
    fn from_anywhere_the_best_level_is_found_in_a_few_tries() {
        for first in 1..=64 {
            for peak in 1..=64_usize {
                let at = |level: usize| level.min(peak) as f64 * 0.9_f64.powi(level.saturating_sub(peak) as i32);
                let (tried, best) = tried(first, 1..=64, at);
                let most = at(peak);
                assert!(at(best) > most * 0.75, "peak {peak} from {first}: {best} after {tried:?}");
                assert!(tried.len() <= 20, "peak {peak} from {first}: {tried:?}");
            }
        }
    }

    #[test]
    fn noise_widens_what_is_no_difference() {
        let [worse, better] = [1.0, 1.1].map(|throughput| Record { throughput, periods: 2 });
        assert!(MEASURE.is_better(better, worse));
        assert!(!Measure { noise: 0.1, ..MEASURE }.is_better(better, worse));
        let many = |record: Record| Record { periods: 100, ..record };
        assert!(Measure { noise: 0.1, ..MEASURE }.is_better(many(better), many(worse)));
    }
}
