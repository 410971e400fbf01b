//! Histogram of durations with logarithmic buckets, from which any quantile can be read.
//!
//! A bucket is an eighth of an octave wide, so that a quantile is at most 12 % off. Any thread adds to a [`Histogram`]
//! without waiting. [`Durations`] are a copy of its counts, which can be sent, subtracted from later ones and added up.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of buckets in an octave, as a power of two.
const BUCKETS_BITS: u32 = 3;
/// The number of nanoseconds below which each value has its own bucket.
const EXACT_BELOW: u64 = 1 << BUCKETS_BITS;
/// The number of buckets: one for each value below [`EXACT_BELOW`], and eight for each further octave.
const BUCKETS: usize = ((65 - BUCKETS_BITS) << BUCKETS_BITS) as usize;

/// A histogram of durations. It allocates its 4 KiB with the first duration.
#[derive(Default)]
pub struct Histogram {
    /// The number of durations in each bucket. Added to by any thread.
    buckets: OnceLock<Box<[AtomicU64]>>,
    sum_ns: AtomicU64,
}

/// The durations of a histogram at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Durations {
    /// The indices and counts of the buckets that are not empty, in order.
    buckets: Vec<(u16, u64)>,
    sum_ns: u64,
}

impl Histogram {
    /// Adds a duration.
    pub fn add(&self, ns: u64) {
        let buckets = self.buckets.get_or_init(|| (0..BUCKETS).map(|_| AtomicU64::new(0)).collect());
        buckets[bucket(ns)].fetch_add(1, Ordering::Relaxed);
        self.sum_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// Returns the durations that have been added so far.
    #[must_use]
    pub fn durations(&self) -> Durations {
        let buckets = self.buckets.get().into_iter().flatten().zip(0..);
        let counts = buckets.map(|(count, index)| (index, count.load(Ordering::Relaxed)));
        let buckets = counts.filter(|(_, count)| *count > 0).collect();
        Durations { buckets, sum_ns: self.sum_ns.load(Ordering::Relaxed) }
    }
}

impl Durations {
    /// Creates durations from the results of [`Durations::buckets`] and [`Durations::sum_ns`]. Unknown buckets are left
    /// out.
    #[must_use]
    pub fn new(mut buckets: Vec<(u16, u64)>, sum_ns: u64) -> Durations {
        buckets.retain(|(index, count)| usize::from(*index) < BUCKETS && *count > 0);
        buckets.sort_unstable();
        Durations { buckets, sum_ns }
    }

    /// Returns the indices and counts of the buckets that are not empty, in order.
    #[must_use]
    pub fn buckets(&self) -> &[(u16, u64)] {
        &self.buckets
    }

    /// Returns the sum of all durations in nanoseconds.
    #[must_use]
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// Returns the number of durations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// Returns the mean in nanoseconds, or `None` if there are no durations.
    #[must_use]
    pub fn mean_ns(&self) -> Option<u64> {
        self.sum_ns.checked_div(self.count())
    }

    /// Returns the duration in nanoseconds that the part `quantile` (0 to 1) of all durations does not exceed, or
    /// `None` if there are none.
    #[must_use]
    pub fn quantile_ns(&self, quantile: f64) -> Option<u64> {
        let wanted = ((self.count() as f64 * quantile).ceil() as u64).max(1);
        let mut seen = 0_u64;
        let within = self.buckets.iter().find(|(_, count)| {
            seen = seen.saturating_add(*count);
            seen >= wanted
        });
        within.or(self.buckets.last()).map(|(index, _)| middle_ns(*index))
    }

    /// Returns the durations that were added after `earlier` was taken from the same histogram.
    #[must_use]
    pub fn since(&self, earlier: &Durations) -> Durations {
        let before = |index: u16| match earlier.buckets.binary_search_by_key(&index, |bucket| bucket.0) {
            Ok(place) => earlier.buckets[place].1,
            Err(_) => 0,
        };
        let later = self.buckets.iter().map(|(index, count)| (*index, count.saturating_sub(before(*index))));
        let buckets = later.filter(|(_, count)| *count > 0).collect();
        Durations { buckets, sum_ns: self.sum_ns.saturating_sub(earlier.sum_ns) }
    }

    /// Returns these durations and `others` together.
    #[must_use]
    pub fn with(&self, others: &Durations) -> Durations {
        let mut buckets = self.buckets.clone();
        for (index, count) in &others.buckets {
            match buckets.binary_search_by_key(index, |bucket| bucket.0) {
                Ok(place) => buckets[place].1 = buckets[place].1.saturating_add(*count),
                Err(place) => buckets.insert(place, (*index, *count)),
            }
        }
        Durations { buckets, sum_ns: self.sum_ns.saturating_add(others.sum_ns) }
    }
}

/// Returns the bucket of a duration.
fn bucket(ns: u64) -> usize {
    if ns < EXACT_BELOW {
        return ns as usize;
    }
    let octave = ns.ilog2() - BUCKETS_BITS;
    let within = (ns >> octave) - EXACT_BELOW;
    (u64::from(octave + 1) * EXACT_BELOW + within) as usize
}

/// Returns the middle of a bucket in nanoseconds.
fn middle_ns(index: u16) -> u64 {
    let index = u64::from(index);
    if index < EXACT_BELOW {
        return index;
    }
    let octave = (index >> BUCKETS_BITS) - 1;
    let low = (EXACT_BELOW + index % EXACT_BELOW) << octave;
    low + (1 << octave >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(times: &[u64]) -> Durations {
        let histogram = Histogram::default();
        times.iter().for_each(|ns| histogram.add(*ns));
        histogram.durations()
    }

    #[test]
    fn every_duration_has_a_bucket_whose_middle_is_near() {
        for ns in (0..64).flat_map(|bit| [1_u64 << bit, (1 << bit) + (1 << bit) / 3, (1 << bit) - 1]).chain([u64::MAX])
        {
            let middle = middle_ns(bucket(ns) as u16);
            assert!(middle.abs_diff(ns) as f64 <= ns as f64 / 8.0, "{ns} is put with {middle}");
        }
    }

    #[test]
    fn quantiles_are_at_most_an_eighth_off() {
        let all = of(&(1..=1_000).map(|n| n * 1_000).collect::<Vec<_>>());
        let near = |found: Option<u64>, wanted: u64| found.is_some_and(|ns| ns.abs_diff(wanted) <= wanted / 8);
        assert!(near(all.quantile_ns(0.5), 500_000), "{:?}", all.quantile_ns(0.5));
        assert!(near(all.quantile_ns(0.99), 990_000), "{:?}", all.quantile_ns(0.99));
        assert_eq!((all.count(), all.mean_ns()), (1_000, Some(500_500)));
    }

    #[test]
    fn nothing_has_no_quantiles() {
        assert_eq!((of(&[]).quantile_ns(0.5), of(&[]).mean_ns()), (None, None));
    }

    #[test]
    fn what_came_since_and_before_is_all() {
        let (before, all) = (of(&[1, 1, 900]), of(&[1, 1, 900, 5, 900_000]));
        let since = all.since(&before);
        assert_eq!(since, of(&[5, 900_000]));
        assert_eq!(before.with(&since), all);
    }

    #[test]
    fn what_was_sent_comes_to_the_same() {
        let all = of(&[3, 77, 77, 1 << 40]);
        assert_eq!(Durations::new(all.buckets().to_vec(), all.sum_ns()), all);
        assert_eq!(Durations::new(vec![(u16::MAX, 3)], 3).count(), 0);
    }
}
