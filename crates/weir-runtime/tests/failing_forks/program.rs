//! Random programs of nested rounds whose calls fail, panic, take long and wait, and of bodies that are cancelled.

use std::fmt::Write;

use test_support::random::Random;

/// The depth of loops in loops.
const DEPTH_MAX: usize = 3;
/// The time that a body that never ends has.
const BRIEF: &str = "2ms";

/// A program under construction, in the text of the expression IR: as it runs, and as it is evaluated, where bodies that never
/// end are left out.
pub(super) struct FailingProgram {
    random: Random,
    texts: [String; 2],
    next: u64,
    /// The numbers in scope.
    numbers: Vec<u64>,
    /// True in an atomic step.
    is_atomic: bool,
}

impl FailingProgram {
    /// Returns the texts of a program, as it runs and as it is evaluated.
    pub(super) fn texts(seed: u64) -> [String; 2] {
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
