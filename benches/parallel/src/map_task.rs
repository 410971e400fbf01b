//! A map task like that of Hadoop in the thesis (§3.5): records are read into pairs, and each pair is packed, with a dictionary
//! that is private state, and written. It is two nested `for`s, which a plan divides into two stages.
#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

use std::hint::black_box;
use std::sync::mpsc::sync_channel;
use std::thread;

use bench_harness::{BenchResult, median};
use serde_json::{Map, Value as Json, json};

use crate::cases::work;
use crate::milliseconds;
use crate::program::Started;

const PROGRAM: &str = "\
use bench, list

for input in bench.flows(0) {
  let records = list.numbers(0, input / 1000000000)?
  let steps = input % 1000000000
  let written = for number in records {
    let pairs = bench.read(number, steps)
    for pair in pairs {
      let packed = bench.pack(pair, steps)
      bench.write(packed)
    }
  }
  bench.close(written.length())
}
";

/// The pairs of a record.
const PAIRS: i64 = 4;

/// The names of the cases, with their records and the steps of a stage for each record. A step takes about a nanosecond.
const CASES: [(&str, i64, i64); 3] = [
    ("map task, 10,000 records of 20 us", 10_000, 20_000),
    ("map task, 1,000 records of 200 us", 1_000, 200_000),
    ("map task, 100 records of 2 ms", 100, 2_000_000),
];

/// The plans of the task: an engine, and the calls of each section, which has one thread.
const PLANS: [(&str, &str, &[&[&str]]); 6] = [
    ("no plan", "event", &[]),
    ("two sections, manual", "manual", &[&["bench.read"], &["bench.pack", "bench.write"]]),
    ("two sections, dedicated", "dedicated", &[&["bench.read"], &["bench.pack", "bench.write"]]),
    ("pairs in a section, manual", "manual", &[&["bench.pack", "bench.write"]]),
    ("packing in a section, manual", "manual", &[&["bench.pack"]]),
    ("pack, write, manual", "manual", &[&["bench.pack"], &["bench.write"]]),
];

/// Returns the text of the plan with this engine and these sections.
fn plan(engine: &str, sections: &[&[&str]]) -> String {
    let mut plan = format!("engine = {engine:?}\nthreads = 1\n");
    for (index, nodes) in sections.iter().enumerate() {
        plan += &format!("[[section]]\nname = \"s{index}\"\nnodes = {nodes:?}\n");
    }
    plan
}

/// Reads a record into pairs: the first stage.
pub(crate) fn read(record: i64, steps: i64) -> Vec<i64> {
    let line = work(record, steps);
    (0..PAIRS).map(|pair| line ^ pair).collect()
}

/// The dictionary of the second stage.
#[derive(Default)]
pub(crate) struct Dictionary {
    last: i64,
}

impl Dictionary {
    /// Packs a pair.
    pub(crate) fn pack(&mut self, pair: i64, steps: i64) -> i64 {
        self.last = work(self.last ^ pair, steps * 9 / (PAIRS * 10));
        self.last
    }
}

fn write(sum: &mut i64, packed: i64) {
    *sum = sum.wrapping_mul(31) ^ packed;
}

fn one_thread(records: i64, steps: i64) -> i64 {
    let (mut dictionary, mut sum) = (Dictionary::default(), 0);
    for record in 0..records {
        for pair in read(record, steps) {
            write(&mut sum, dictionary.pack(pair, steps));
        }
    }
    black_box(sum)
}

fn slowest_stage(records: i64, steps: i64) -> i64 {
    (0..records).map(|record| black_box(read(record, steps)).len() as i64).sum()
}

/// Two threads with a queue between them.
fn two_threads(records: i64, steps: i64) -> i64 {
    let (sender, receiver) = sync_channel(64);
    thread::scope(|scope| {
        scope.spawn(move || {
            (0..records).map(|record| read(record, steps)).try_for_each(|pairs| sender.send(pairs)).ok();
        });
        let (mut dictionary, mut sum) = (Dictionary::default(), 0);
        for pair in receiver.into_iter().flatten() {
            write(&mut sum, dictionary.pack(pair, steps));
        }
        black_box(sum)
    })
}

/// A way to run a task; it returns a number that depends on the results.
pub(crate) type Run<'a> = Box<dyn Fn() -> BenchResult<i64> + 'a>;

/// Measures the cases whose names begin so, and adds their figures to `all`.
pub(crate) fn measure(beginning: &str, rounds: usize, all: &mut Map<String, Json>) -> BenchResult<()> {
    for &(case, records, steps) in CASES.iter().filter(|(name, ..)| name.starts_with(beginning)) {
        let programs =
            PLANS.map(|(name, engine, sections)| Ok((name, Started::new(PROGRAM, &plan(engine, sections))?)));
        let programs = programs.into_iter().collect::<BenchResult<Vec<_>>>()?;
        let mut contenders: Vec<(&str, Run<'_>)> = vec![
            ("slowest stage alone", Box::new(move || Ok(slowest_stage(records, steps)))),
            ("one thread", Box::new(move || Ok(one_thread(records, steps)))),
            ("two threads by hand", Box::new(move || Ok(two_threads(records, steps)))),
        ];
        for (name, program) in &programs {
            let input = records * 1_000_000_000 + steps;
            contenders.push((name, Box::new(move || program.run(input).map(|()| records))));
        }
        all.insert(case.into(), compare(case, &contenders, rounds)?);
    }
    Ok(())
}

/// Runs contenders in turns, and prints their times relative to the first one, a stage alone, and to the second, one thread.
pub(crate) fn compare(case: &str, contenders: &[(&str, Run<'_>)], rounds: usize) -> BenchResult<Json> {
    let mut times = vec![Vec::new(); contenders.len()];
    for round in 0..=rounds {
        for ((_, run), times) in contenders.iter().zip(&mut times) {
            let time = milliseconds(run)?;
            if round > 0 {
                times.push(time);
            }
        }
    }
    println!("{case}");
    let mut figures = Map::new();
    for ((name, _), of) in contenders.iter().zip(&times) {
        let ratio = |peer: usize| median(of.iter().zip(&times[peer]).map(|(time, peer)| time / peer).collect());
        let (to_stage, to_one) = (ratio(0), ratio(1));
        println!("  {name:<28} {:>9.3} ms, {to_stage:.2} of the stage, {to_one:.2} of one thread", median(of.clone()));
        figures.insert((*name).into(), json!({ "ms": of, "to_stage": to_stage, "to_one_thread": to_one }));
    }
    Ok(Json::Object(figures))
}

pub(crate) mod functions {
    //! The functions that the program calls.

    use super::Dictionary;

    /// Reads a record into pairs.
    #[weir::function(pure)]
    pub(crate) fn read(record: i64, steps: i64) -> Vec<i64> {
        super::read(record, steps)
    }

    /// Packs pairs.
    #[derive(Default)]
    pub(crate) struct Packer(Dictionary);

    #[weir::function(reads)]
    impl Packer {
        /// Packs a pair.
        pub(crate) fn pack(&mut self, pair: i64, steps: i64) -> i64 {
            self.0.pack(pair, steps)
        }
    }

    /// Writes what is packed.
    #[derive(Default)]
    pub(crate) struct Output(i64);

    #[weir::function(reads)]
    impl Output {
        /// Writes a pair.
        pub(crate) fn write(&mut self, packed: i64) {
            super::write(&mut self.0, packed);
        }
    }

    /// Ends the task.
    #[weir::function]
    pub(crate) fn close(written: i64) {
        std::hint::black_box(written);
    }
}
