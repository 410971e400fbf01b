//! Forks that fail: calls in rounds that refuse their argument, panic or take long, in loops within loops, in bodies that are
//! cancelled by time or by a race, and in atomic steps; random programs against the reference evaluator.

use std::fmt::Write;
use std::sync::Arc;

use parking_lot::Mutex;
use test_support::flows::gates::{function, int, library};
use test_support::flows::{Feed, options, start_expr};
use test_support::random::Random;
use weir_host::{
    Call, Failure, FailureKind, Function, FunctionCode, Library, Outcome, Passing, Settled, Type, Value, World,
};
use weir_ir::evaluate::Evaluator;
use weir_ir::plan::Plan;
use weir_runtime::{ENGINES, EngineRow, ForkPolicy, Options, SliceLength};

/// The programs that are tried; `WEIR_REGION_PROGRAMS` and `WEIR_REGION_FROM` are for other numbers of them.
const PROGRAMS: u64 = 150;
/// A program that once waited for ever: a step had waited, and one behind it panicked while others had run already.
const REGRESSIONS: [u64; 1] = [1_627];
/// The depth of loops in loops.
const DEPTH_MAX: usize = 3;
/// The units of a call that takes long, more than a flow may spend on its thread.
const UNITS: u64 = 2_000;
/// The time that a body that never ends has.
const BRIEF: &str = "2ms";

/// Returns the number of an environment variable.
fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// A program under construction, in the text of the expression IR: as it runs, and as it is evaluated, where bodies that never
/// end are left out.
struct FailingProgram {
    random: Random,
    texts: [String; 2],
    next: u64,
    /// The numbers in scope.
    numbers: Vec<u64>,
    /// True in an atomic step.
    is_atomic: bool,
}

impl FailingProgram {
    fn texts(seed: u64) -> [String; 2] {
        let mut program = FailingProgram {
            random: Random::new(seed),
            texts: [String::new(), String::new()],
            next: 1,
            numbers: vec![0],
            is_atomic: false,
        };
        for _ in 0..2 + program.random.below(3) {
            program.statement(1, 0);
        }
        let all: Vec<String> = program.numbers.iter().map(|number| format!("%{number}")).collect();
        let result = program.name();
        program.line(1, &format!("%{result}: Text = interpolate({})", all.join(", \" \", ")));
        program.line(1, &format!("yield %{result}"));
        let head = "shared hits: Int\n  yield 3\nentry test from test.feed unordered\n  arguments\n    yield (0,)\n  flow \
                    feed (%0 x: Int) -> Text\n";
        program.texts.map(|text| format!("{head}{text}"))
    }

    /// Adds statements, and ends the body with the last number.
    fn body(&mut self, depth: usize, nesting: usize, own: &[u64]) -> u64 {
        let from = self.numbers.len();
        self.numbers.extend(own);
        for _ in 0..1 + self.random.below(3) {
            self.statement(depth, nesting);
        }
        let last = self.number();
        self.numbers.truncate(from);
        last
    }

    /// Adds one statement, whose result is a number.
    fn statement(&mut self, depth: usize, nesting: usize) {
        let result = self.name();
        match self.random.below(if nesting < DEPTH_MAX { 19 } else { 9 }) {
            0..3 => self.arithmetic(depth, result),
            3..9 => self.call(depth, result),
            9..13 => self.rounds(depth, nesting, result),
            13..15 => self.sum(depth, nesting, result),
            15 => self.repeated(depth, nesting, result),
            16 if !self.is_atomic => self.atomic(depth, nesting, result),
            17 if nesting == 0 => self.cancelled(depth, result),
            _ => self.in_time(depth, nesting, result),
        }
        self.numbers.push(result);
    }

    fn arithmetic(&mut self, depth: usize, result: u64) {
        let operation = *self.random.pick(&["add", "subtract", "multiply", "remainder", "divide"]);
        let (left, right) = (self.number(), self.small());
        self.line(depth, &format!("%{result}: Int = {operation}(%{left}, {right})"));
    }

    fn call(&mut self, depth: usize, result: u64) {
        let functions = ["mix", "mix", "mix", "refuse", "panic", "long", "long_refuse", "long_panic", "change", "wait"];
        let allowed = if self.is_atomic { 8 } else { 10 };
        let function = functions[self.random.below(allowed) as usize];
        let argument = self.number();
        self.line(depth, &format!("%{result}: Int = call f.{function} at n{result} (%{argument})"));
    }

    /// Adds a `for` whose rounds may run on several threads, and takes one of its results, which may be missing.
    fn rounds(&mut self, depth: usize, nesting: usize, result: u64) {
        let [list, element] = std::array::from_fn(|_| self.name());
        let over = self.list();
        self.line(depth, &format!("%{list}: List(Int) = for %{element}: Int in {over}"));
        let last = self.body(depth + 1, nesting + 1, &[element]);
        self.line(depth + 1, &format!("yield %{last}"));
        if self.random.below(4) == 0 {
            let at = self.random.below(3);
            return self.line(depth, &format!("%{result}: Int = index(%{list}, {at})"));
        }
        let [state, element, next, sum] = std::array::from_fn(|_| self.name());
        self.line(depth, &format!("%{result}: Int = fold %{list} from 1 as %{state}: Int, %{element}: Int"));
        self.line(depth + 1, &format!("%{next}: Int = remainder(%{element}, 1000)"));
        self.line(depth + 1, &format!("%{sum}: Int = add(%{next}, %{state})"));
        self.line(depth + 1, &format!("yield %{sum}"));
    }

    /// Adds a `fold` that may be divided, or not.
    fn sum(&mut self, depth: usize, nesting: usize, result: u64) {
        let [state, element, next] = std::array::from_fn(|_| self.name());
        let (over, may_split) = (self.list(), self.random.below(3) > 0);
        self.line(depth, &format!("%{result}: Int = fold {over} from 2 as %{state}: Int, %{element}: Int"));
        let own: &[u64] = if may_split { &[element] } else { &[element, state] };
        let last = self.body(depth + 1, nesting + 1, own);
        self.line(depth + 1, &format!("%{next}: Int = add(%{state}, %{last})"));
        self.line(depth + 1, &format!("yield %{next}"));
    }

    fn repeated(&mut self, depth: usize, nesting: usize, result: u64) {
        let [state, is_over, next, pair] = std::array::from_fn(|_| self.name());
        let most = 1 + self.random.below(4);
        self.line(depth, &format!("%{result}: Int = loop 0 at most 5 as %{state}: Int"));
        self.body(depth + 1, nesting + 1, &[state]);
        self.line(depth + 1, &format!("%{next}: Int = add(%{state}, 1)"));
        self.line(depth + 1, &format!("%{is_over}: Bool = less({most}, %{next})"));
        self.line(depth + 1, &format!("%{pair}: (Int, Bool) = record(%{next}, %{is_over})"));
        self.line(depth + 1, &format!("yield %{pair}"));
    }

    fn atomic(&mut self, depth: usize, nesting: usize, result: u64) {
        self.line(depth, &format!("%{result}: Int = atomic (write shared hits)"));
        self.is_atomic = true;
        let last = self.body(depth + 1, nesting + 1, &[]);
        self.is_atomic = false;
        self.line(depth + 1, &format!("yield %{last}"));
    }

    /// Adds a body that is in time.
    fn in_time(&mut self, depth: usize, nesting: usize, result: u64) {
        let outcome = self.name();
        self.line(depth, &format!("%{outcome}: Option(Int) = within 86400s"));
        let last = self.body(depth + 1, nesting + 1, &[]);
        self.line(depth + 1, &format!("yield %{last}"));
        self.switch(depth, (outcome, result), 2);
    }

    fn switch(&mut self, depth: usize, (outcome, result): (u64, u64), only: usize) {
        let value = self.name();
        self.line_in(only, depth, &format!("%{result}: Int = switch %{outcome}"));
        self.line_in(only, depth + 1, &format!("tag 1 (%{value}: Int)"));
        self.line_in(only, depth + 2, &format!("yield %{value}"));
        self.line_in(only, depth + 1, "otherwise");
        self.line_in(only, depth + 2, "yield -7");
    }

    /// Adds a body that never ends, and that is cancelled: its time is over, or another one wins.
    fn cancelled(&mut self, depth: usize, result: u64) {
        if self.random.below(2) == 0 {
            let outcome = self.name();
            self.line_in(0, depth, &format!("%{outcome}: Option(Int) = within {BRIEF}"));
            self.endless(depth + 1);
            self.switch(depth, (outcome, result), 0);
            return self.line_in(1, depth, &format!("%{result}: Int = copy(-7)"));
        }
        let waited = self.name();
        self.line_in(0, depth, &format!("%{result}: Int = race"));
        for branch in 0..2 {
            self.line_in(0, depth + 1, "branch");
            if branch == 0 {
                self.endless(depth + 2);
            } else {
                self.line_in(0, depth + 2, &format!("%{waited}: Int = call f.wait at w{waited} (5)"));
                self.line_in(0, depth + 2, &format!("yield %{waited}"));
            }
        }
        self.line_in(1, depth, &format!("%{result}: Int = call f.wait at w{waited} (5)"));
    }

    /// Adds rounds that never end.
    fn endless(&mut self, depth: usize) {
        let [list, element, last, state, mixed, pair, at] = std::array::from_fn(|_| self.name());
        let function = *self.random.pick(&["mix", "long"]);
        self.line_in(0, depth, &format!("%{list}: List(Int) = for %{element}: Int in [4, 5, 6, 7, 8]"));
        self.line_in(0, depth + 1, &format!("%{last}: Int = loop %{element} at most 1000000000 as %{state}: Int"));
        self.line_in(0, depth + 2, &format!("%{mixed}: Int = call f.{function} at m{mixed} (%{state})"));
        self.line_in(0, depth + 2, &format!("%{pair}: (Int, Bool) = record(%{mixed}, false)"));
        self.line_in(0, depth + 2, &format!("yield %{pair}"));
        self.line_in(0, depth + 1, &format!("yield %{last}"));
        self.line_in(0, depth, &format!("%{at}: Int = index(%{list}, 0)"));
        self.line_in(0, depth, &format!("yield %{at}"));
    }

    fn list(&mut self) -> String {
        let count = self.random.below(7);
        let numbers: Vec<String> = (0..count).map(|_| self.small().to_string()).collect();
        format!("[{}]", numbers.join(", "))
    }

    fn small(&mut self) -> i64 {
        self.random.below(24).cast_signed() - 2
    }

    /// Returns a number in scope, one of the last ones most often.
    fn number(&mut self) -> u64 {
        let last = self.numbers.len() - 1;
        let back = if self.random.below(3) == 0 { self.random.below(last as u64 + 1) } else { 0 };
        self.numbers[last - back as usize]
    }

    fn name(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Adds a line to both texts.
    fn line(&mut self, depth: usize, line: &str) {
        self.line_in(2, depth, line);
    }

    /// Adds a line to the text that runs, 0, to the one that is evaluated, 1, or to both.
    fn line_in(&mut self, only: usize, depth: usize, line: &str) {
        let texts = self.texts.iter_mut().enumerate().filter(|(index, _)| only == 2 || only == *index);
        // Writing to a `String` cannot fail.
        texts.for_each(|(_, text)| _ = writeln!(text, "{}{line}", "  ".repeat(depth + 1)));
    }
}

/// The effects of an execution.
type Effects = Arc<Mutex<Vec<i64>>>;

fn mixed(x: i64) -> i64 {
    x.wrapping_mul(0x5851_f42d_4c95_7f2d).rotate_left(17).rem_euclid(1_000)
}

fn refused(x: i64) -> Option<Outcome> {
    let failure = Failure::function(format!("{x} is refused"));
    (x.rem_euclid(9) == 4).then(|| Outcome::Fault(Box::new(failure)))
}

/// Panics for some arguments; in the evaluator, fails as an engine does.
fn panicked(path: &'static str, x: i64, evaluates: bool) -> Option<Outcome> {
    if x.rem_euclid(11) != 5 {
        return None;
    }
    if !evaluates {
        // Without a report on the standard error stream.
        std::panic::resume_unwind(Box::new(format!("no number like {x}")));
    }
    let failure = Failure::new(FailureKind::Panic, format!("`{path}` panicked: no number like {x}"));
    Some(Outcome::Fault(Box::new(failure)))
}

/// Returns the functions; of the evaluator none panics.
fn functions(effects: &Effects, evaluates: bool) -> Library {
    let parameters = [("x", Type::Int, Passing::Value)];
    let immediate = |path, world, code: fn(i64, bool) -> Option<Outcome>| {
        let code = move |call: &mut Call<'_>| {
            let x = int(call, 0);
            code(x, evaluates).unwrap_or(Outcome::Value(Value::Int(mixed(x))))
        };
        function(path, &parameters, world, FunctionCode::Immediate(Arc::new(code)))
    };
    let long = |path, code: fn(i64, bool) -> Option<Outcome>| {
        let code = move |call: &mut Call<'_>| {
            if !call.declare_units(UNITS) {
                return Outcome::ExceedsUnits;
            }
            let x = int(call, 0);
            code(x, evaluates).unwrap_or(Outcome::Value(Value::Int(mixed(x))))
        };
        let mut long: Function = function(path, &parameters, World::Pure, FunctionCode::Immediate(Arc::new(code)));
        long.signature.effects.declares_units = true;
        long
    };
    let effects = Arc::clone(effects);
    let change = move |call: &mut Call<'_>| {
        let x = int(call, 0);
        effects.lock().push(x);
        Outcome::Value(Value::Int(mixed(x)))
    };
    let wait = |call: &mut Call<'_>| {
        let x = int(call, 0);
        Ok(Box::pin(async move {
            tokio::task::yield_now().await;
            Settled { outcome: Outcome::Value(Value::Int(mixed(x))), restored: Vec::new() }
        }) as weir_host::Pending)
    };
    library([
        immediate("f.mix", World::Pure, |_, _| None),
        immediate("f.refuse", World::Pure, |x, _| refused(x)),
        immediate("f.panic", World::Reads, |x, evaluates| panicked("f.panic", x, evaluates)),
        long("f.long", |_, _| None),
        long("f.long_refuse", |x, _| refused(x)),
        long("f.long_panic", |x, evaluates| panicked("f.long_panic", x, evaluates)),
        function("f.change", &parameters, World::Writes, FunctionCode::Immediate(Arc::new(change))),
        function("f.wait", &parameters, World::Pure, FunctionCode::Waiting(Arc::new(wait))),
    ])
}

/// The outcomes of flows, and their effects, unless one has failed: effects and faults have no order among each other.
type Outcomes = (Vec<Result<Value, Failure>>, Option<Vec<i64>>);

fn outcomes(results: Vec<Result<Value, Failure>>, effects: &Effects) -> Outcomes {
    let has_failed = results.iter().any(Result::is_err);
    (results, (!has_failed).then(|| effects.lock().clone()))
}

const INPUTS: [i64; 4] = [0, 5, 4, 123];

fn evaluated(text: &str) -> Outcomes {
    let (effects, program) = (Effects::default(), parsed(text));
    let mut library = functions(&effects, true);
    Feed::new().put(&mut library, "test", "feed");
    let mut evaluator = Evaluator::new(&program, &library).unwrap_or_else(|_| panic!("no initial value fails"));
    let run = |x| evaluator.run(0, 0, vec![Value::Int(x)]).map_err(|failure| *failure);
    let results = INPUTS.map(run).into();
    outcomes(results, &effects)
}

fn parsed(text: &str) -> weir_ir::expr::Program {
    weir_ir::parse::expr(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn executed(text: &str, row: &EngineRow, forks: ForkPolicy, plan: &str) -> Outcomes {
    let effects = Effects::default();
    let mut library = functions(&effects, false);
    let feed = Feed::new();
    feed.put(&mut library, "test", "feed");
    let (plan, problems) = Plan::parse(plan);
    assert!(problems.is_empty(), "{problems:?}");
    let slice = if forks == ForkPolicy::AsPlanned { SliceLength::default() } else { SliceLength::ONE_UNIT };
    let running = start_expr(&parsed(text), &library, Options { forks, slice, plan, ..options(row.name, 3) });
    let results = INPUTS.map(|x| feed.run(vec![Value::Int(x)])).into();
    drop(feed);
    running.wait().expect("the program ends");
    outcomes(results, &effects)
}

#[test]
fn failures_of_forks_are_those_of_the_evaluator() {
    let from = variable("WEIR_REGION_FROM").unwrap_or(0);
    let forks = [ForkPolicy::Always, ForkPolicy::AlwaysOnHelpers, ForkPolicy::AsPlanned];
    let plans = ["", "parallel = \"off\"", "parallel = 3"];
    for seed in (from..from + variable("WEIR_REGION_PROGRAMS").unwrap_or(PROGRAMS)).chain(REGRESSIONS) {
        let [text, evaluates] = FailingProgram::texts(seed);
        let expected = evaluated(&evaluates);
        let row = &ENGINES[seed as usize % ENGINES.len()];
        let (forks, plan) = (forks[seed as usize / 3 % 3], plans[seed as usize / 9 % 3]);
        let found = executed(&text, row, forks, plan);
        assert_eq!(found, expected, "seed {seed} under `{}`, {forks:?}, {plan}\n{text}", row.name);
    }
}

/// A panic behind a step that has waited, while one behind it has run already.
const PANIC_BEHIND_A_WAIT: &str = "\
shared hits: Int
  yield 3
entry test from test.feed unordered
  arguments
    yield (0,)
  flow feed (%0 x: Int) -> Text
    %1: Int = call f.wait at w (%0)
    %2: Int = atomic (write shared hits)
      %3: Int = call f.panic at p (%0)
      yield %3
    %4: Int = fold [1, 2] from 2 as %5: Int, %6: Int
      yield %0
    %7: Text = interpolate(%1, \" \", %2, \" \", %4)
    yield %7
";

#[test]
fn a_panic_behind_a_step_that_has_waited_ends_the_flow() {
    let expected = evaluated(PANIC_BEHIND_A_WAIT);
    for row in ENGINES {
        let found = executed(PANIC_BEHIND_A_WAIT, row, ForkPolicy::AsPlanned, "");
        assert_eq!(found, expected, "under `{}`", row.name);
    }
}
