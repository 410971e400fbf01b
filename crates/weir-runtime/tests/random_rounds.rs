//! Random `for`s whose calls are in several sections of a random plan, compared with the reference evaluator: answers,
//! failures, and the effects on each part of the outside world in their order. Some calls change an argument in place: a value
//! of their round, or one from outside that rounds hand on. Some plans put all calls of the inner one of two `for`s into a section.

use std::fmt::Write;
use std::ops::Range;

use test_support::flows::options;
use test_support::flows::random_cases::{execute, seeds};
use test_support::random::Random;
use weir_host::Value;
use weir_ir::generate::{Case, evaluate};
use weir_ir::plan::Plan;
use weir_runtime::{ENGINES, Options, SliceLength};

/// The programs that are tried; `WEIR_SEEDS=400..4000` tries others.
const PROGRAMS: u64 = 60;

/// Programs that once showed a mistake: a region that began in a run of several segments, and was interrupted, went on in the
/// first of them, and its effects behind the end of that segment happened twice; calls of a flow that had failed were still in a
/// queue that has room for one flow; the number of a flow's own counter was that of a shared one.
const REGRESSIONS: [u64; 4] = [10_389, 1_017_070, 1_023_725, 1_083_289];

/// A program under construction.
struct Rounds {
    random: Random,
    text: String,
    /// The integers that statements can use.
    integers: Vec<u64>,
    /// The counters, which can only be moved, and whose calls change them in place.
    counters: Vec<u64>,
    /// The nodes that the plan may name.
    nodes: Vec<String>,
    /// The nodes in the inner one of two `for`s.
    inner: Range<usize>,
    /// True if all calls return at once and no round ends the flow, so that calls of later rounds follow those of earlier ones into
    /// the queue of their section.
    is_quick: bool,
    next: u64,
}

impl Rounds {
    /// Returns a program of one or two `for`s, the second of which may be in the first.
    fn program(seed: u64) -> Rounds {
        let mut program = Rounds {
            random: Random::new(seed),
            text: String::new(),
            integers: vec![0],
            counters: Vec::new(),
            nodes: Vec::new(),
            inner: 0..0,
            is_quick: seed % 5 == 2,
            next: 1,
        };
        if program.random.below(6) == 0 {
            program.new_counter(2);
        }
        let is_nested = program.random.below(3) == 0;
        let first = program.rounds(2, is_nested);
        program.integers.push(first);
        if program.random.below(2) == 0 {
            program.statement(2);
        }
        let before = program.integers[program.integers.len() - 1];
        let last = if program.random.below(2) == 0 { program.rounds(2, false) } else { before };
        program.text = format!(
            "entry test from a.elements ordered\n  arguments\n    yield (0,)\n  flow elements (%0: Int) -> Int\n{}    yield \
             %{last}\n",
            program.text
        );
        program
    }

    /// Adds a `for`, and a `fold` that makes one number of its results; returns the name of the number.
    fn rounds(&mut self, depth: usize, is_nested: bool) -> u64 {
        let [list, results, element] = std::array::from_fn(|_| self.name());
        let elements: Vec<String> = (0..self.random.below(6)).map(|_| self.operand()).collect();
        self.line(depth, &format!("%{list}: List(Int) = list({})", elements.join(", ")));
        self.line(depth, &format!("%{results}: List(Int) = for %{element}: Int in %{list}"));
        let outside = (self.integers.len(), self.counters.len());
        self.integers.push(element);
        for _ in 0..1 + self.random.below(5) {
            self.statement(depth + 1);
        }
        if is_nested {
            let first = self.nodes.len();
            let inner = self.rounds(depth + 1, false);
            self.inner = first..self.nodes.len();
            self.integers.push(inner);
            self.statement(depth + 1);
        }
        let result = self.operand();
        self.line(depth + 1, &format!("yield {result}"));
        self.integers.truncate(outside.0);
        self.counters.truncate(outside.1);
        let [sum, state, item, next] = std::array::from_fn(|_| self.name());
        self.line(depth, &format!("%{sum}: Int = fold %{results} from 1 as %{state}: Int, %{item}: Int"));
        let last = self.name();
        if self.is_quick {
            self.line(depth + 1, &format!("%{next}: Int = call a.mix at n{next} (%{item})"));
            self.line(depth + 1, &format!("%{last}: Int = copy(%{next})"));
        } else {
            self.line(depth + 1, &format!("%{next}: Int = call a.mix at n{next} (%{state})"));
            self.line(depth + 1, &format!("%{last}: Int = subtract(%{next}, %{item})"));
        }
        self.line(depth + 1, &format!("yield %{last}"));
        sum
    }

    fn statement(&mut self, depth: usize) {
        let [one, other] = [(); 2].map(|()| self.operand());
        let kind = if self.is_quick { [1, 15, 15, 15][self.random.below(4) as usize] } else { self.random.below(16) };
        match kind {
            12 if self.counters.len() < 3 => self.new_counter(depth),
            13 | 14 => self.change(depth),
            0 => {
                let name = self.name();
                let operation = ["subtract", "divide"][self.random.below(2) as usize];
                self.line(depth, &format!("%{name}: Int = {operation}({one}, {other})"));
                self.integers.push(name);
            }
            1 | 2 => {
                let [test, chosen] = std::array::from_fn(|_| self.name());
                self.line(depth, &format!("%{test}: Bool = less({one}, {other})"));
                self.line(depth, &format!("%{chosen}: Int = switch %{test}"));
                self.line(depth + 1, "value true");
                let inner = self.call(depth + 2);
                self.line(depth + 2, &format!("yield %{inner}"));
                self.line(depth + 1, "otherwise");
                self.line(depth + 2, &format!("yield {other}"));
                self.integers.push(chosen);
            }
            3 | 4 => self.fallible(depth),
            _ => {
                let name = self.call(depth);
                self.integers.push(name);
            }
        }
    }

    /// Adds a call whose failure ends the flow, or is replaced.
    fn fallible(&mut self, depth: usize) {
        let [called, chosen, ok, failure, ends] = std::array::from_fn(|_| self.name());
        let (module, argument) = (self.module(), self.operand());
        let function = ["half", "try_change"][self.random.below(2) as usize];
        let node = self.node(called);
        self.line(depth, &format!("%{called}: Result(Int, Failure) = call {module}.{function} at {node} ({argument})"));
        self.line(depth, &format!("%{chosen}: Int = switch %{called}"));
        self.line(depth + 1, &format!("tag 0 (%{ok}: Int)"));
        self.line(depth + 2, &format!("yield %{ok}"));
        self.line(depth + 1, &format!("tag 1 (%{failure}: Failure)"));
        if self.random.below(3) == 0 {
            self.line(depth + 2, &format!("%{ends}: Never = fail %{failure}"));
            self.line(depth + 2, "yield ()");
        } else {
            self.line(depth + 2, &format!("yield {argument}"));
        }
        self.integers.push(chosen);
    }

    /// Adds a call; returns the name of its result.
    fn call(&mut self, depth: usize) -> u64 {
        let functions = match self.is_quick {
            true => ["mix", "look", "change", "change", "change", "change", "note", "note"],
            false => ["mix", "look", "slow_look", "change", "change", "slow_change", "block", "block"],
        };
        let (name, module, argument) = (self.name(), self.module(), self.operand());
        let function = functions[self.random.below(functions.len() as u64) as usize];
        let node = self.node(name);
        self.line(depth, &format!("%{name}: Int = call {module}.{function} at {node} ({argument})"));
        name
    }

    fn new_counter(&mut self, depth: usize) {
        let (name, number) = (self.name(), self.operand());
        let node = self.node(name);
        self.line(depth, &format!("%{name}: count.Counter = call count.new at {node} ({number})"));
        self.counters.push(name);
    }

    /// Adds a call that changes its first argument in place: a counter or an integer, of the round or from outside.
    fn change(&mut self, depth: usize) {
        let (name, operand) = (self.name(), self.operand());
        let (function, changed) = if self.counters.is_empty() || self.random.below(2) == 0 {
            let functions = ["data.raise", "data.long_raise", "data.block_raise"];
            (*self.random.pick(&functions), *self.random.pick(&self.integers))
        } else {
            let functions = ["count.add", "count.slow_add", "count.value", "count.slow_value"];
            (*self.random.pick(&functions), *self.random.pick(&self.counters))
        };
        let node = self.node(name);
        self.line(depth, &format!("%{name}: Int = call {function} at {node} (%{changed}, {operand})"));
        self.integers.push(name);
    }

    fn node(&mut self, name: u64) -> String {
        self.nodes.push(format!("n{name}"));
        format!("n{name}")
    }

    fn module(&mut self) -> &'static str {
        ["a", "b", "c"][self.random.below(3) as usize]
    }

    fn operand(&mut self) -> String {
        match self.random.below(5) {
            0 => self.random.below(9).to_string(),
            _ => format!("%{}", self.integers[self.random.below(self.integers.len() as u64) as usize]),
        }
    }

    fn name(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    fn line(&mut self, depth: usize, line: &str) {
        // Writing to a `String` cannot fail.
        _ = writeln!(self.text, "{}{line}", "  ".repeat(depth));
    }

    /// Returns a plan that assigns most of the nodes to sections; each section may have an engine of its own. If `inner` says so,
    /// the first section has all nodes of the inner `for`.
    fn plan(&mut self, inner: InnerFor) -> String {
        let engines: Vec<&str> = ENGINES.iter().filter(|row| row.has_sections()).map(|row| row.name).collect();
        let mut sections = vec![Vec::new(); 1 + self.random.below(4) as usize];
        for (index, node) in self.nodes.iter().enumerate() {
            let any = self.random.below(sections.len() as u64 + 1) as usize;
            let is_first = inner == InnerFor::InOneSection && self.inner.contains(&index);
            if let Some(section) = sections.get_mut(if is_first { 0 } else { any }) {
                section.push(format!("{node:?}"));
            }
        }
        let mut engine = || engines[self.random.below(engines.len() as u64) as usize];
        let mut text = format!("engine = {:?}\n", engine());
        for (index, nodes) in sections.iter().enumerate().filter(|(_, nodes)| !nodes.is_empty()) {
            let engine = engine();
            text += &format!("[[section]]\nname = \"s{index}\"\nnodes = [{}]\nengine = {engine:?}\n", nodes.join(", "));
            text += &format!("queue_length_max = {}\n", 1 + index);
        }
        format!("threads = {}\n{text}", 1 + self.random.below(3))
    }
}

/// The way in which a plan divides the inner one of two `for`s.
#[derive(Clone, Copy, PartialEq, Eq)]
enum InnerFor {
    Divided,
    InOneSection,
}

#[test]
fn rounds_in_several_sections_give_the_evaluators_answers_and_effects() {
    for seed in seeds(PROGRAMS).chain(REGRESSIONS) {
        let mut generated = Rounds::program(seed);
        let inner = if seed % 3 == 1 { InnerFor::InOneSection } else { InnerFor::Divided };
        let (plan, text) = (generated.plan(inner), generated.text);
        let program = weir_ir::parse::expr(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let case = Case { program, inputs: (0..4).map(|flow| vec![Value::Int(flow * 2)]).collect() };
        let expected = evaluate(&case, seed).unwrap_or_else(|failure| panic!("{failure}\n{text}"));
        let (parsed, problems) = Plan::parse(&plan);
        assert_eq!(problems, [], "{plan}");
        let slice = [SliceLength::default(), SliceLength::ONE_UNIT][seed as usize % 2];
        let found = execute(&case, seed, Options { plan: parsed, slice, strip_max: 2, ..options("event", 2) });
        assert_eq!(found, Ok(expected), "seed {seed}\n{plan}\n{text}");
    }
}
