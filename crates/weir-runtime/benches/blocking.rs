//! Stages that block their threads: how long a stream takes through them, and the rounds of one loop, under each engine.
//!
//! ```sh
//! cargo bench -p weir-runtime --bench blocking            # options: --rounds 5
//! ```
//!
//! A case with one thread for each stage is a pipeline: at best, one stage works on an element while the next works on the
//! element before it. The time of the first result tells whether elements go on before others have passed the stage.

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use test_support::flows::gates::{function, int, library, with_state};
use test_support::flows::stream::Numbers;
use test_support::flows::{Feed, options};
use weir_host::{Call, Function, FunctionCode, Library, Outcome, Passing, Settled, Type, Value, World};
use weir_ir::plan::Plan;
use weir_runtime::{Options, start};

/// A call that blocks its thread.
struct Stage {
    ms: u64,
    has_state: bool,
    /// True if it takes the result of the stage before, and false if it takes the element.
    needs_previous: bool,
}

/// A number of elements through stages, and the time that they take at best.
struct Case {
    name: &'static str,
    elements: i64,
    stages: &'static [Stage],
    threads: usize,
    /// True if the elements are those of one loop in one flow.
    in_loop: bool,
    engines: &'static [&'static str],
}

const WITH_SECTIONS: &[&str] = &["dedicated", "manual", "staged", "elastic"];

const ENGINES: &[&str] = &["event", "pool", "dedicated", "manual", "staged", "elastic"];

/// A stage that takes the result of the one before.
const fn stage(ms: u64) -> Stage {
    Stage { ms, has_state: false, needs_previous: true }
}

const CASES: [Case; 5] = [
    Case {
        name: "30 elements of a stream, two stages of 20 ms",
        elements: 30,
        stages: &[stage(20), stage(20)],
        threads: 1,
        in_loop: false,
        engines: WITH_SECTIONS,
    },
    Case {
        name: "30 rounds of one loop, two stages of 20 ms",
        elements: 30,
        stages: &[stage(20), stage(20)],
        threads: 1,
        in_loop: true,
        engines: WITH_SECTIONS,
    },
    Case {
        name: "1,500 elements of a stream, three calls of 5 ms, 8 threads",
        elements: 1_500,
        stages: &[stage(5), stage(5), stage(5)],
        threads: 8,
        in_loop: false,
        engines: &["elastic", "staged", "pool", "event"],
    },
    Case {
        name: "6 rounds of one loop, 100 ms without state and independent 10 ms with state",
        elements: 6,
        stages: &[stage(100), Stage { ms: 10, has_state: true, needs_previous: false }],
        threads: 8,
        in_loop: true,
        engines: ENGINES,
    },
    Case {
        name: "6 rounds of one loop, 100 ms without state and then 10 ms with state",
        elements: 6,
        stages: &[stage(100), Stage { ms: 10, has_state: true, needs_previous: true }],
        threads: 8,
        in_loop: true,
        engines: ENGINES,
    },
];

/// The times of a run.
struct Took {
    all: Duration,
    first: Duration,
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let given = arguments.iter().skip_while(|argument| *argument != "--rounds").nth(1);
    let rounds = given.and_then(|rounds| rounds.parse().ok()).unwrap_or(5);
    for case in &CASES {
        println!("{}", case.name);
        for engine in case.engines {
            let mut runs: Vec<Took> = (0..rounds).map(|_| case.run(engine)).collect();
            runs.sort_by_key(|took| took.all);
            let (best, median, worst) = (&runs[0], &runs[runs.len() / 2], &runs[runs.len() - 1]);
            println!(
                "  {engine:<12} {:>7.0} ms ({:.0} to {:.0}), first result after {:.0} ms",
                milliseconds(median.all),
                milliseconds(best.all),
                milliseconds(worst.all),
                milliseconds(median.first)
            );
        }
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

impl Case {
    fn run(&self, engine: &str) -> Took {
        let first = Arc::new(OnceLock::new());
        let mut library = library((0..self.stages.len()).map(|stage| self.stage(stage, &first)));
        if self.in_loop {
            self.run_loop(engine, &mut library, &first)
        } else {
            self.run_stream(engine, &mut library, &first)
        }
    }

    fn run_stream(&self, engine: &str, library: &mut Library, first: &OnceLock<Instant>) -> Took {
        Numbers::given(self.elements).put(library);
        let graph = weir_ir::lower(&self.program("%0", "    "), library);
        let begin = Instant::now();
        start(&graph, library, self.options(engine)).expect("it starts").wait().expect("it ends");
        took(begin, first)
    }

    fn run_loop(&self, engine: &str, library: &mut Library, first: &OnceLock<Instant>) -> Took {
        let feed = Feed::new();
        feed.put(library, "test", "feed");
        let graph = weir_ir::lower(&self.program("%50", "      "), library);
        let running = start(&graph, library, self.options(engine)).expect("it starts");
        let begin = Instant::now();
        feed.run(vec![Value::Int(0)]).expect("no stage fails");
        let took = took(begin, first);
        drop(feed);
        running.wait().expect("it ends");
        took
    }

    /// Returns the program; `element` is what goes through the stages.
    fn program(&self, element: &str, indent: &str) -> weir_ir::expr::Program {
        let mut body = String::new();
        let mut last = element.to_owned();
        for (stage, of) in self.stages.iter().enumerate() {
            let next = format!("%{}", stage + 1);
            let input = if of.needs_previous { &last } else { element };
            body.push_str(&format!("{indent}{next}: Int = call a.stage{stage} at stage{stage} ({input})\n"));
            last = next;
        }
        let elements: Vec<String> = (0..self.elements).map(|element| element.to_string()).collect();
        let body = match self.in_loop {
            false => format!("{body}    yield {last}\n"),
            true => format!(
                "    %40: List(Int) = for {element}: Int in [{}]\n{body}      yield {last}\n    %41: Int = length(%40)\n    \
                 yield %41\n",
                elements.join(", ")
            ),
        };
        let text = format!(
            "entry test from test.feed ordered\n  arguments\n    yield (0,)\n  flow feed (%0 x: Int) -> Int\n{body}"
        );
        weir_ir::parse::expr(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    /// Returns a function that blocks its thread; that of the last stage notes when it first returns.
    fn stage(&self, stage: usize, first: &Arc<OnceLock<Instant>>) -> Function {
        let (first, is_last) = (Arc::clone(first), stage + 1 == self.stages.len());
        let Stage { ms, has_state, .. } = self.stages[stage];
        let blocked = Duration::from_millis(ms);
        let code = FunctionCode::Blocking(Arc::new(move |call: &mut Call<'_>| {
            let (number, first) = (int(call, 0), Arc::clone(&first));
            Ok(Box::new(move || {
                std::thread::sleep(blocked);
                if is_last {
                    first.get_or_init(Instant::now);
                }
                Settled { outcome: Outcome::Value(Value::Int(number)), restored: Vec::new() }
            }))
        }));
        let path = ["a.stage0", "a.stage1", "a.stage2"][stage];
        let function = function(path, &[("x", Type::Int, Passing::Value)], World::Pure, code);
        if has_state { with_state(function) } else { function }
    }

    /// Returns the options: under engines whose sections have threads of their own, each stage is a section.
    fn options(&self, engine: &str) -> Options {
        let section = |stage| format!("[[section]]\nname = \"s{stage}\"\nnodes = [\"stage{stage}\"]\n");
        let sections: String = match engine {
            "manual" | "dedicated" | "staged" if self.threads == 1 => (0..self.stages.len()).map(section).collect(),
            _ => String::new(),
        };
        let plan = Plan::parse(&format!("engine = \"{engine}\"\nthreads = {}\n{sections}", self.threads)).0;
        Options { plan, ..options(engine, self.threads) }
    }
}

fn took(begin: Instant, first: &OnceLock<Instant>) -> Took {
    let all = begin.elapsed();
    Took { all, first: first.get().map_or(all, |first| *first - begin) }
}
