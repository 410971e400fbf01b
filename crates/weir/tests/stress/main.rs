//! Stress test: random graphs under random plans, with randomly changing thread counts, compared with the reference
//! evaluator.
//!
//! ```sh
//! WEIR_STRESS_SECONDS=600 cargo test -p weir --test stress --release -- --nocapture
//! ```
//!
//! | variable | meaning |
//! |---|---|
//! | `WEIR_STRESS_SECONDS` | duration of the test |
//! | `WEIR_STRESS_FROM` | first seed |
//! | `WEIR_STRESS_TIMES` | number of runs of each seed; an error that only some schedules show needs several |
//!
//! A seed determines everything but the schedule: the graph (operators with many inputs, nested `for`, calls that wait,
//! block or have state, shared values, steps, races), the inputs, the plan (engines, sections that flows re-enter,
//! queues of length one, replicas), and the changes of thread counts. Each case runs twice: its flows one after the
//! other, comparing all effects; and many concurrently, meeting in private state and shared values. A failure or a hang
//! is shrunk to a program that a person can read.

#![expect(clippy::print_stderr, reason = "whoever waits for a long run is told how it stands")]

mod run;
mod setting;

use std::cell::Cell;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use run::{Begin, execute};
use setting::Setting;
use weir_ir::generate::{Case, check, evaluate, evaluate_many};

/// Duration in an ordinary test run.
const SECONDS: u64 = 4;
/// Number of concurrent flows.
const MANY: usize = 60;
/// Time limit for shrinking, and number of runs after which a smaller case counts as correct.
const SHRINK_WITHIN: Duration = Duration::from_secs(60);
const SHRINK_TRIES: u64 = 5;

/// Seeds that once failed: nodes after an arm that ends the flow began while that arm still waited.
const REGRESSIONS: [u64; 1] = [115_169];

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|number| number.parse().ok())
}

/// Panics on threads other than the test's. A flow catches panics, and its answer may still be right, but generated
/// programs have no reason to panic.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn note_panics() {
    let own = thread::current().id();
    let said = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| match thread::current().id() == own {
        true => said(info),
        false => PANICS.lock().push(info.to_string()),
    }));
}

/// Tries a case under the setting of its seed.
fn compare(case: &Case, seed: u64, patience: Duration) -> Result<(), String> {
    let compared = compare_answers(case, seed, patience);
    let panics = std::mem::take(&mut *PANICS.lock());
    match panics.first() {
        Some(first) => {
            Err(format!("{first}\nand {} more panics, under\n{}", panics.len() - 1, Setting::random(case, seed)))
        }
        None => compared,
    }
}

fn compare_answers(case: &Case, seed: u64, patience: Duration) -> Result<(), String> {
    let setting = Setting::random(case, seed);
    let wanted = evaluate(case, seed).map_err(|failure| failure.to_string())?;
    let found = execute(case, &setting, Begin::OneByOne, case.inputs.len(), patience)?;
    if found != wanted {
        return Err(format!("one by one, under\n{setting}\nit came to\n{found:#?}\ninstead of\n{wanted:#?}"));
    }
    let wanted = evaluate_many(case, seed, MANY).map_err(|failure| failure.to_string())?;
    let found = execute(case, &setting, Begin::Together, MANY, patience)?;
    if found != wanted {
        return Err(format!("{MANY} together, under\n{setting}\nit came to\n{found:#?}\ninstead of\n{wanted:#?}"));
    }
    Ok(())
}

/// Tries a seed, and shrinks a failing case as long as there is time.
fn try_seed(seed: u64, times: u64) {
    let failed: Cell<Option<Instant>> = Cell::new(None);
    check(seed, |case| {
        let (tries, patience) = match failed.get() {
            // After the time limit every case counts as correct.
            Some(since) if since.elapsed() > SHRINK_WITHIN => return Ok(()),
            Some(_) => (SHRINK_TRIES, run::PATIENCE_SHRINKING),
            None => (times, run::PATIENCE),
        };
        let outcome = (0..tries).try_for_each(|_| compare(case, seed, patience));
        if outcome.is_err() && failed.get().is_none() {
            eprintln!("seed {seed} fails; it is shrunk for up to {} s", SHRINK_WITHIN.as_secs());
            failed.set(Some(Instant::now()));
        }
        outcome
    });
}

#[test]
fn random_graphs_under_random_plans_and_levels_come_to_what_the_evaluator_says() {
    let until = Instant::now() + Duration::from_secs(number("WEIR_STRESS_SECONDS").unwrap_or(SECONDS));
    let (first, times) = (number("WEIR_STRESS_FROM").unwrap_or(0), number("WEIR_STRESS_TIMES").unwrap_or(1));
    note_panics();
    REGRESSIONS.iter().for_each(|seed| try_seed(*seed, times));
    let mut seed = first;
    while Instant::now() < until {
        try_seed(seed, times);
        seed += 1;
    }
    eprintln!("stress: the seeds from {first} to {} came to what the evaluator says", seed.saturating_sub(1));
    assert!(seed > first, "there was time for a seed");
}
