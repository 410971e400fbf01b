//! The cases: a number of rounds, or two calls, and what each costs.
#![expect(clippy::disallowed_types, reason = "the maps that a program by hand would have")]

use std::collections::HashMap;
use std::hint::black_box;

use rayon::prelude::*;

/// A case: the rounds of one loop, or two independent calls.
pub(crate) struct ParallelCase {
    pub(crate) name: &'static str,
    /// The number of rounds; 0 for two calls.
    pub(crate) rounds: i64,
    pub(crate) results: Results,
    /// The steps of [`work`] in each round or call; 0 for rounds of [`small`].
    pub(crate) steps: i64,
}

/// The use that a case makes of the results of its rounds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Results {
    /// They are kept.
    Kept,
    /// They are added up.
    Summed,
    /// Each number is added to the sum under its key.
    SummedByKey,
    /// Each number is added to the list under its key.
    Grouped,
}

/// All cases. A step takes about a nanosecond.
pub(crate) const CASES: &[ParallelCase] = &[
    ParallelCase { name: "2 calls of 100 ms", rounds: 0, results: Results::Kept, steps: 100_000_000 },
    ParallelCase { name: "2 rounds of 100 ms", rounds: 2, results: Results::Kept, steps: 100_000_000 },
    ParallelCase { name: "1,000 rounds of 1 ms", rounds: 1_000, results: Results::Kept, steps: 1_000_000 },
    ParallelCase { name: "a million rounds of 100 ns", rounds: 1_000_000, results: Results::Kept, steps: 0 },
    ParallelCase { name: "a million rounds of 100 ns, summed", rounds: 1_000_000, results: Results::Summed, steps: 0 },
    ParallelCase {
        name: "a million numbers, summed by key",
        rounds: 1_000_000,
        results: Results::SummedByKey,
        steps: 0,
    },
    ParallelCase { name: "a million numbers, grouped by key", rounds: 1_000_000, results: Results::Grouped, steps: 0 },
    ParallelCase { name: "100 rounds of 100 ns", rounds: 100, results: Results::Kept, steps: 0 },
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
        let rounds = (0..self.rounds).into_par_iter();
        match self.results {
            Results::Kept => {}
            Results::Summed => return black_box(rounds.map(|seed| self.round(seed) % 7).sum()),
            Results::SummedByKey => {
                let sums = rounds.fold(HashMap::new, sum_under).reduce(HashMap::new, |sums, more| {
                    more.into_iter().fold(sums, |mut sums, (key, sum)| {
                        *sums.entry(key).or_insert(0) += sum;
                        sums
                    })
                });
                return black_box(sums).len() as i64;
            }
            Results::Grouped => {
                let groups = rounds.fold(HashMap::new, group_under).reduce(HashMap::new, |groups, more| {
                    more.into_iter().fold(groups, |mut groups, (key, group)| {
                        groups.entry(key).or_insert_with(Vec::new).extend(group);
                        groups
                    })
                });
                return black_box(groups).len() as i64;
            }
        }
        let results: Vec<i64> = (0..self.rounds).into_par_iter().map(|seed| self.round(seed)).collect();
        black_box(results).len() as i64
    }

    /// Returns the number of results, after running the rounds or calls on this thread.
    pub(crate) fn on_one_thread(&self) -> i64 {
        if self.rounds == 0 {
            return both((self.round(1), self.round(2)));
        }
        match self.results {
            Results::Kept => {}
            Results::Summed => return black_box((0..self.rounds).map(|seed| self.round(seed) % 7).sum()),
            Results::SummedByKey => return black_box((0..self.rounds).fold(HashMap::new(), sum_under)).len() as i64,
            Results::Grouped => return black_box((0..self.rounds).fold(HashMap::new(), group_under)).len() as i64,
        }
        let results: Vec<i64> = (0..self.rounds).map(|seed| self.round(seed)).collect();
        black_box(results).len() as i64
    }
}

/// The number of keys.
const KEYS: i64 = 1_000;

fn sum_under(mut sums: HashMap<i64, i64>, number: i64) -> HashMap<i64, i64> {
    *sums.entry(number % KEYS).or_insert(0) += number;
    sums
}

fn group_under(mut groups: HashMap<i64, Vec<i64>>, number: i64) -> HashMap<i64, Vec<i64>> {
    groups.entry(number % KEYS).or_default().push(number);
    groups
}

/// Returns the number of two results.
fn both(results: (i64, i64)) -> i64 {
    black_box(results);
    2
}
