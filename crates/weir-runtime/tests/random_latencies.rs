//! Straight programs of batched calls, compared with the reference evaluator while their latencies are random: batches wait
//! for further calls, or do not.

use std::sync::Arc;

use test_support::flows::options;
use test_support::flows::random_cases::{execute, seeds};
use test_support::flows::random_clock::RandomClock;
use test_support::random::Random;
use weir_host::Value;
use weir_ir::generate::{Case, evaluate};
use weir_runtime::{ENGINES, Options};

/// The programs that are tried; `WEIR_SEEDS=400..4000` tries others.
const PROGRAMS: u64 = 100;

/// The flows of each program, from the first of which latencies are learned.
const FLOWS: i64 = 12;

/// A program under construction.
struct Straight {
    random: Random,
    text: String,
    /// The integers that statements can use.
    integers: Vec<u64>,
    next: u64,
    calls: u64,
}

impl Straight {
    /// Returns a program of batched reads, some writes, choices and subtractions, in the text of the expression IR.
    fn program(seed: u64) -> String {
        let mut straight =
            Straight { random: Random::new(seed), text: String::new(), integers: vec![0], next: 1, calls: 0 };
        let statements = 6 + straight.random.below(16);
        (0..statements).for_each(|_| straight.statement());
        let last = straight.next - 1;
        format!(
            "entry test from a.elements ordered\n  arguments\n    yield (0,)\n  flow elements (%0: Int) -> Int\n{}    yield \
             %{last}\n",
            straight.text
        )
    }

    fn statement(&mut self) {
        let (one, other) = (self.integer(), self.integer());
        let operation = match self.random.below(12) {
            0 => self.choice(one, other),
            1 | 2 => format!("subtract(%{one}, %{other})"),
            3 | 4 => self.rounds(one, other),
            _ => self.call(one),
        };
        self.text += &format!("    %{}: Int = {operation}\n", self.next);
        self.integers.push(self.next);
        self.next += 1;
    }

    /// Returns a call in an arm of a switch on a comparison.
    fn choice(&mut self, one: u64, other: u64) -> String {
        let (test, inner, call) = (self.next, self.next + 1, self.call(one));
        self.next += 2;
        self.text += &format!("    %{test}: Bool = less(%{one}, %{other})\n");
        format!(
            "switch %{test}\n      value true\n        %{inner}: Int = {call}\n        yield %{inner}\n      \
             otherwise\n        yield %{other}"
        )
    }

    /// Returns the sum of the rounds of a `for`, each of which computes before and after a call, or does without it, and may
    /// fail on both sides; it may make further calls, before and behind.
    fn rounds(&mut self, one: u64, other: u64) -> String {
        let [elements, rounds, element, before, test, inner, after, chosen, result, state, item, sum, early, late] =
            std::array::from_fn(|place| self.next + place as u64);
        self.next += 14;
        let list: Vec<String> = (0..2 + self.random.below(5)).map(|_| format!("%{}", self.integer())).collect();
        let call = self.call(element);
        let mut perhaps = |of: u64| match self.random.below(2) {
            0 => self.call(of),
            _ => format!("subtract(%{of}, 1)"),
        };
        let (early_call, late_call) = (perhaps(element), perhaps(chosen));
        let (fails_before, fails_after) = (self.random.below(3) == 0, self.random.below(3) == 0);
        let operation = |fails: bool| if fails { "divide" } else { "subtract" };
        let test_of = if self.random.below(4) == 0 { element } else { one };
        self.text += &format!(
            "    %{elements}: List(Int) = list({})
    %{rounds}: List(Int) = for %{element}: Int in %{elements}
      %{early}: Int = {early_call}
      %{before}: Int = {}(%{other}, %{element})
      %{test}: Bool = less_or_equal(%{test_of}, %{before})
      %{chosen}: Int = switch %{test}
        value true
          %{inner}: Int = {call}
          %{after}: Int = {}(%{inner}, %{before})
          yield %{after}
        otherwise
          yield %{before}
      %{late}: Int = {late_call}
      %{result}: Int = subtract(%{late}, %{early})
      yield %{result}
",
            list.join(", "),
            operation(fails_before),
            operation(fails_after),
        );
        format!(
            "fold %{rounds} from 0 as %{state}: Int, %{item}: Int
      %{sum}: Int = subtract(%{state}, %{item})
      yield %{sum}"
        )
    }

    fn call(&mut self, argument: u64) -> String {
        let module = ["a", "b", "c"][self.random.below(3) as usize];
        let function = if self.random.below(8) == 0 { "gathered_change" } else { "gathered_look" };
        self.calls += 1;
        format!("call {module}.{function} at n{} (%{argument})", self.calls)
    }

    fn integer(&mut self) -> u64 {
        self.integers[self.random.below(self.integers.len() as u64) as usize]
    }
}

#[test]
fn batches_that_wait_give_the_evaluators_answers_and_effects() {
    for seed in seeds(PROGRAMS) {
        let text = Straight::program(seed);
        let program = weir_ir::parse::expr(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let case = Case { program, inputs: (0..FLOWS).map(|flow| vec![Value::Int(flow)]).collect() };
        let expected = evaluate(&case, seed).unwrap_or_else(|failure| panic!("{failure}\n{text}"));
        for row in ENGINES {
            let platform = Arc::new(RandomClock::new(seed));
            let found = execute(&case, seed, Options { platform, ..options(row.name, 2) });
            assert_eq!(found, Ok(expected.clone()), "seed {seed} under `{}`\n{text}", row.name);
        }
    }
}
