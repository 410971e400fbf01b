//! The cases: a number of rounds, or two calls, and what each costs.

use std::hint::black_box;

use rayon::prelude::*;

/// A case: the rounds of one loop, or two independent calls.
pub(crate) struct ParallelCase {
    pub(crate) name: &'static str,
    /// The number of rounds; 0 for two calls.
    pub(crate) rounds: i64,
    /// True if the results are added up, and not kept.
    pub(crate) sums: bool,
    /// The steps of [`work`] in each round or call; 0 for rounds of [`small`].
    pub(crate) steps: i64,
}

/// All cases. A step takes about a nanosecond.
pub(crate) const CASES: &[ParallelCase] = &[
    ParallelCase { name: "2 calls of 100 ms", rounds: 0, sums: false, steps: 100_000_000 },
    ParallelCase { name: "2 rounds of 100 ms", rounds: 2, sums: false, steps: 100_000_000 },
    ParallelCase { name: "1,000 rounds of 1 ms", rounds: 1_000, sums: false, steps: 1_000_000 },
    ParallelCase { name: "a million rounds of 100 ns", rounds: 1_000_000, sums: false, steps: 0 },
    ParallelCase { name: "a million rounds of 100 ns, summed", rounds: 1_000_000, sums: true, steps: 0 },
    ParallelCase { name: "100 rounds of 100 ns", rounds: 100, sums: false, steps: 0 },
];

/// The steps of [`small`].
const SMALL: i64 = 100;

/// Computes for this many steps.
pub(crate) fn work(seed: i64, steps: i64) -> i64 {
    (0..steps).fold(seed | 1, |number, _| black_box(number.wrapping_mul(5)) ^ 1)
}

/// Computes for about 100 ns.
pub(crate) fn small(seed: i64) -> i64 {
    work(seed, SMALL)
}

impl ParallelCase {
    fn round(&self, seed: i64) -> i64 {
        if self.steps == 0 { small(seed) } else { work(seed, self.steps) }
    }

    /// Returns the number of results, after running the rounds or calls with rayon.
    pub(crate) fn with_rayon(&self) -> i64 {
        if self.rounds == 0 {
            return both(rayon::join(|| self.round(1), || self.round(2)));
        }
        if self.sums {
            return black_box((0..self.rounds).into_par_iter().map(|seed| self.round(seed) % 7).sum());
        }
        let results: Vec<i64> = (0..self.rounds).into_par_iter().map(|seed| self.round(seed)).collect();
        black_box(results).len() as i64
    }

    /// Returns the number of results, after running the rounds or calls on this thread.
    pub(crate) fn on_one_thread(&self) -> i64 {
        if self.rounds == 0 {
            return both((self.round(1), self.round(2)));
        }
        if self.sums {
            return black_box((0..self.rounds).map(|seed| self.round(seed) % 7).sum());
        }
        let results: Vec<i64> = (0..self.rounds).map(|seed| self.round(seed)).collect();
        black_box(results).len() as i64
    }
}

/// Returns the number of two results.
fn both(results: (i64, i64)) -> i64 {
    black_box(results);
    2
}
