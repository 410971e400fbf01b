//! Random programs, for differential tests of engines against the evaluator.
//!
//! A [`Case`] is a program that the verifier accepts, and inputs for its one flow; the same seed gives the same case.
//! Its functions come from a [`Recording`] library, created anew for each execution, that records the effects on each
//! resource in their order. The outcome of an execution is an [`Execution`]; two of them are compared with `==`.
//! [`check`] looks for a difference, and shrinks the program that shows it until a person can read it.
//!
//! Faults, that is panics and arguments out of range, are not generated, because engines do not order them
//! ([`crate::expr::Op::may_end`]).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

use weir_host::{Failure, FailureKind, Library, Value};

use crate::evaluate::Evaluator;
use crate::expr::{Op, Program};
use crate::{print, verify};

mod arithmetic;
mod batched;
mod cases;
mod cover;
mod emphasis;
mod entry_updates;
mod functions;
mod independence;
mod left_loops;
mod library;
mod operations;
mod program;
mod random;
mod recording;
mod replacing;
mod rewritable;
mod rounds;
mod shrink;
mod timed;
mod typed_calls;
mod updates;
mod values;

pub use cases::{
    arithmetic_case, batched_case, case, computing_case, elements_case, independent_case, left_loops_case,
    rewritable_case, rounds_case, updating_case,
};
pub use cover::constructs;
pub use random::Random;
pub use recording::Recording;
pub use shrink::smaller;

/// The work of the evaluation of a case, as [`Evaluator::bound_work`] counts it. One in thousands would exceed it, some of these
/// by terabytes.
const WORK_MAX: u64 = 1 << 20;

/// The number of executions that the shrinking of one case may cost.
const SHRINKING_MAX: usize = 4_000;

/// A random program, and rows of inputs for its one flow (entry 0, flow 0).
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The program.
    pub program: Program,
    /// The inputs of each execution of the flow, one after the other.
    pub inputs: Vec<Vec<Value>>,
}

/// The results and effects of an execution.
#[derive(Clone, Debug, PartialEq)]
pub struct Execution {
    /// The answer of each flow, or its failure.
    pub results: Vec<Result<Value, Failure>>,
    /// The effects on each resource, in their order.
    pub effects: BTreeMap<String, Vec<String>>,
}

impl Case {
    /// Returns the case with barriers instead of every second call that changes the outside world; `None` if it has none.
    #[must_use]
    pub fn with_barriers(&self) -> Option<Case> {
        let mut case = self.clone();
        let mut calls = 0;
        for flow in case.program.entries.iter_mut().flat_map(|entry| &mut entry.flows) {
            flow.body.each_binding_mut(&mut |binding| {
                let Op::Call(call) = &mut binding.op else { return };
                let Some((module, name)) = call.function.split_once('.') else { return };
                if !["slow_change", "change", "block"].contains(&name) {
                    return;
                }
                if calls % 2 == 0 {
                    call.function = format!("{module}.{}", functions::BARRIER).into();
                }
                calls += 1;
            });
        }
        (calls > 0).then_some(case)
    }

    /// Returns the case up to the first flow in which a call refused its argument, if there are flows behind it: which effects
    /// such a flow has had is not determined, see [`crate::expr::Op::may_end`], and later flows may see them.
    #[must_use]
    pub fn up_to_fault(&self, execution: &Execution) -> Option<Case> {
        let at = execution.results.iter().position(is_fault)?;
        let inputs = self.inputs[..=at].to_vec();
        (inputs.len() < self.inputs.len()).then(|| Case { program: self.program.clone(), inputs })
    }
}

impl Execution {
    /// Returns true if a call refused its argument.
    #[must_use]
    pub fn has_fault(&self) -> bool {
        self.results.iter().any(is_fault)
    }
}

fn is_fault(result: &Result<Value, Failure>) -> bool {
    result.as_ref().is_err_and(|failure| failure.kind == FailureKind::Argument)
}

/// A case that shows a difference, shrunk.
#[derive(Clone, Debug)]
pub struct Counterexample {
    /// The smallest case found.
    pub case: Case,
    /// The difference.
    pub difference: String,
}

/// Executes a case with the reference evaluator. The seed determines how long functions wait.
///
/// # Errors
/// Fails if the creation of a shared value does.
pub fn evaluate(case: &Case, seed: u64) -> Result<Execution, Failure> {
    let recording = Recording::new(seed);
    let library = recording.library();
    let mut evaluator = Evaluator::new(&case.program, &library)?;
    let run = |inputs: &Vec<Value>| evaluator.run(0, 0, inputs.clone()).map_err(|failure| *failure);
    let results = case.inputs.iter().map(run).collect();
    Ok(Execution { results, effects: recording.effects() })
}

/// Returns what the flows of a case read of the outside world under the reference evaluator; `None` if a flow fails, or leaves a
/// loop by a failure.
///
/// # Errors
/// Fails if the creation of a shared value does.
pub fn evaluated_reads(case: &Case, seed: u64) -> Result<Option<BTreeSet<String>>, Failure> {
    let recording = Recording::new(seed);
    let library = recording.library();
    let mut evaluator = Evaluator::new(&case.program, &library)?;
    let succeed = case.inputs.iter().all(|inputs| evaluator.run(0, 0, inputs.clone()).is_ok());
    Ok((succeed && !evaluator.has_left_loop_by_failure()).then(|| recording.reads()))
}

/// Returns true if the evaluation of a case makes no more than some megabytes.
#[must_use]
pub fn is_bounded(case: &Case) -> bool {
    let library = Recording::new(0).library();
    let Ok(mut evaluator) = Evaluator::new(&case.program, &library) else { return true };
    evaluator.bound_work(WORK_MAX);
    case.inputs.iter().for_each(|inputs| _ = evaluator.run(0, 0, inputs.clone()));
    !evaluator.is_exhausted()
}

/// Executes many flows of a case with the reference evaluator, one after the other: with the rows of its inputs in
/// turn.
///
/// # Errors
/// Fails if the creation of a shared value does.
pub fn evaluate_many(case: &Case, seed: u64, flows: usize) -> Result<Execution, Failure> {
    let recording = Recording::of_many(seed);
    let library = recording.library();
    let mut evaluator = Evaluator::new(&case.program, &library)?;
    let rows = case.inputs.iter().cycle().take(flows);
    let results = rows.map(|inputs| evaluator.run(0, 0, inputs.clone()).map_err(|failure| *failure)).collect();
    Ok(Execution { results, effects: recording.effects() })
}

/// Runs the test on the case of this seed, and shrinks the case if the test fails or panics.
pub fn find(seed: u64, test: impl Fn(&Case) -> Result<(), String>) -> Option<Counterexample> {
    find_in(case(seed), test)
}

/// Runs the test on a case, and shrinks the case if the test fails or panics.
pub fn find_in(case: Case, test: impl Fn(&Case) -> Result<(), String>) -> Option<Counterexample> {
    let library = Recording::new(0).library();
    let difference = outcome(&test, &case).err()?;
    let mut found = Counterexample { case, difference };
    let mut tests_left = SHRINKING_MAX;
    while let Some(next) = step(&found.case, &library, &test, &mut tests_left) {
        found = next;
    }
    Some(found)
}

/// Returns the first smaller case that fails too.
fn step(
    case: &Case,
    library: &Library,
    test: &impl Fn(&Case) -> Result<(), String>,
    tests_left: &mut usize,
) -> Option<Counterexample> {
    let is_valid = |case: &Case| verify::expr(&case.program, library).is_empty() && is_bounded(case);
    let valid = smaller(case).filter(is_valid);
    for case in valid {
        *tests_left = tests_left.checked_sub(1)?;
        if let Err(difference) = outcome(test, &case) {
            return Some(Counterexample { case, difference });
        }
    }
    None
}

fn outcome(test: &impl Fn(&Case) -> Result<(), String>, case: &Case) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(|| test(case))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().copied();
        let said = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Err(format!("panicked: {}", said.unwrap_or("without a text")))
    })
}

/// Runs the test on the case of this seed.
///
/// # Panics
/// Panics if the test fails, with the shrunk program, its inputs and the difference.
pub fn check(seed: u64, test: impl Fn(&Case) -> Result<(), String>) {
    if let Some(found) = find(seed, test) {
        panic!("seed {seed}: {found}");
    }
}

impl std::fmt::Display for Counterexample {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut inputs = String::new();
        for row in &self.case.inputs {
            // Writing to a `String` cannot fail.
            _ = writeln!(inputs, "  {row:?}");
        }
        write!(f, "{}\n{}inputs\n{inputs}", self.difference, print::expr(&self.case.program))
    }
}
