//! A `for` whose rounds call two functions with private state, in a section each.

use std::hint::black_box;

use bench_harness::BenchResult;
use serde_json::{Map, Value as Json};

use crate::map_task::{Dictionary, Run, compare};
use crate::program::Started;

const PROGRAM: &str = "\
use bench, list

for input in bench.flows(0) {
  let numbers = list.numbers(0, input / 1000000000)?
  let steps = input % 1000000000
  let packed = for number in numbers {
    let once = bench.pack(number, steps)
    bench.pack(once, steps)
  }
  bench.close(packed.length())
}
";

/// The sections of the two calls; the rest has a section, too.
const PLAN: &str = "engine = \"manual\"\nthreads = 1\n\
                    [[section]]\nname = \"s0\"\nnodes = [\"bench.pack\"]\n\
                    [[section]]\nname = \"s1\"\nnodes = [\"bench.pack#2\"]\n";

/// The names of the cases, with their rounds and the steps of a call, which does 9 of 40 of them.
const CASES: [(&str, i64, i64); 3] = [
    ("two states, 20,000 rounds of 2 us each", 20_000, 22_222),
    ("two states, 5,000 rounds of 10 us each", 5_000, 88_889),
    ("two states, 500 rounds of 100 us each", 500, 888_889),
];

/// Runs the calls of one thread after the other, in this many dictionaries.
fn on_one_thread(rounds: i64, steps: i64, calls: usize) -> i64 {
    let mut dictionaries: Vec<Dictionary> = (0..calls).map(|_| Dictionary::default()).collect();
    let mut pack_all = |number| dictionaries.iter_mut().fold(number, |number, of| of.pack(number, steps));
    (0..rounds).fold(0, |sum: i64, number| sum ^ black_box(pack_all(number)))
}

/// Measures the cases whose names begin so, and adds their figures to `all`.
pub(crate) fn measure(beginning: &str, rounds: usize, all: &mut Map<String, Json>) -> BenchResult<()> {
    for &(case, count, steps) in CASES.iter().filter(|(name, ..)| name.starts_with(beginning)) {
        let (no_plan, cut) = (Started::new(PROGRAM, "engine = \"event\"\n")?, Started::new(PROGRAM, PLAN)?);
        let input = count * 1_000_000_000 + steps;
        let contenders: [(&str, Run<'_>); 4] = [
            ("one stage alone", Box::new(move || Ok(on_one_thread(count, steps, 1)))),
            ("one thread", Box::new(move || Ok(on_one_thread(count, steps, 2)))),
            ("no plan", Box::new(|| no_plan.run(input).map(|()| count))),
            ("a section each, manual", Box::new(|| cut.run(input).map(|()| count))),
        ];
        all.insert(case.into(), compare(case, &contenders, rounds)?);
    }
    Ok(())
}
