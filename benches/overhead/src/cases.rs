//! Cases of the benchmark: the program of each in the expression IR.

use weir::{Text, Type, Value};
use weir_ir::expr::{Atom, Block, Call, Let, Op, Origin, Program, Var, Variable};
use weir_ir::program::{Entry, Flow};

use crate::BenchResult;

/// The number of calls of a chain.
pub(crate) const NODES: u32 = 100;

/// Five rounds that add.
const ROUNDS: &str = "    %1: List(Int) = list(%0, %0, %0, %0, %0)
    %2: List(Int) = for %3: Int in %1
      %4: Int = add(%3, %0)
      yield %4
    %5: Int = length(%2)
    yield %5
";
/// Five rounds that call.
const CALLS: &str = "    %1: List(Int) = for %2: Int in [1, 2, 3, 4, 5]
      %3: Int = call chain.one at l (%2)
      yield %3
    %4: Int = length(%1)
    yield %4
";

/// The cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OverheadCase {
    /// A flow that does nothing.
    Flow,
    /// A chain of calls that pass one value.
    OneValue,
    /// A chain of calls that pass four values.
    FourValues,
    /// The chain of one value in plain Rust.
    PlainOneValue,
    /// The chain of four values in plain Rust.
    PlainFourValues,
    /// A `for` of five rounds that add, and a `fold` of five.
    FiveRounds,
    /// The same without forks.
    FiveRoundsOff,
    /// A `for` of five calls.
    FiveCalls,
    /// The same without forks.
    FiveCallsOff,
}

impl OverheadCase {
    pub(crate) const ALL: [OverheadCase; 9] = [
        OverheadCase::Flow,
        OverheadCase::OneValue,
        OverheadCase::FourValues,
        OverheadCase::PlainOneValue,
        OverheadCase::PlainFourValues,
        OverheadCase::FiveRounds,
        OverheadCase::FiveRoundsOff,
        OverheadCase::FiveCalls,
        OverheadCase::FiveCallsOff,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            OverheadCase::Flow => "flow",
            OverheadCase::OneValue => "one-value",
            OverheadCase::FourValues => "four-values",
            OverheadCase::PlainOneValue => "plain-one-value",
            OverheadCase::PlainFourValues => "plain-four-values",
            OverheadCase::FiveRounds => "five-rounds",
            OverheadCase::FiveRoundsOff => "five-rounds-off",
            OverheadCase::FiveCalls => "five-calls",
            OverheadCase::FiveCallsOff => "five-calls-off",
        }
    }

    pub(crate) fn named(name: &str) -> BenchResult<OverheadCase> {
        let found = OverheadCase::ALL.into_iter().find(|case| case.name() == name);
        Ok(found.ok_or_else(|| format!("no case is called {name}"))?)
    }

    /// Returns the body of the flow, if the case has a loop.
    fn loop_body(self) -> Option<&'static str> {
        match self {
            OverheadCase::FiveRounds | OverheadCase::FiveRoundsOff => Some(ROUNDS),
            OverheadCase::FiveCalls | OverheadCase::FiveCallsOff => Some(CALLS),
            _ => None,
        }
    }

    /// Returns true if the case has a loop. Time stands still there, so that all rounds seem short.
    pub(crate) fn has_loop(self) -> bool {
        self.loop_body().is_some()
    }

    /// Returns true if no round may run on another core.
    pub(crate) fn is_unforked(self) -> bool {
        matches!(self, OverheadCase::FiveRoundsOff | OverheadCase::FiveCallsOff)
    }

    /// Returns the function of the chain and its number of values, if the case has one.
    fn function(self) -> Option<(&'static str, usize)> {
        match self {
            OverheadCase::OneValue => Some(("chain.one", 1)),
            OverheadCase::FourValues => Some(("chain.four", 4)),
            _ => None,
        }
    }
}

/// Returns the program `for x in chain.burst(count) { one(one(… one(x))) }`, or that of a loop.
pub(crate) fn program(case: OverheadCase, count: i64) -> BenchResult<Program> {
    if let Some(body) = case.loop_body() {
        let text = format!(
            "entry burst from chain.burst unordered\n  arguments\n    yield ({count},)\n  flow burst (%0 x: Int) -> Int\n{body}"
        );
        return Ok(weir_ir::parse::expr(&text).map_err(|error| error.to_string())?);
    }
    let integer = |index: u32| Variable { var: Var(index), name: Text::default(), ty: Type::Int };
    let lets: Vec<Let> = match case.function() {
        None => Vec::new(),
        Some((path, values)) => (1..=NODES).map(|index| call(path, values, integer(index))).collect(),
    };
    let last = Var(u32::try_from(lets.len()).unwrap_or(0));
    let arguments = tuple_of(count);
    let body = Block { lets, result: Atom::Var(last) };
    let flow = Flow {
        name: "burst".into(),
        route: None,
        parameters: vec![integer(0)],
        result: Type::Int,
        body,
        former_sites: Vec::new(),
    };
    let entry =
        Entry { name: "burst".into(), source: "chain.burst".into(), arguments, ordered: false, flows: vec![flow] };
    Ok(Program { entries: vec![entry], ..Program::default() })
}

fn call(path: &str, values: usize, bound: Variable) -> Let {
    let before = Atom::Var(Var(bound.var.0 - 1));
    let site = format!("{path}#{}", bound.var.0).into();
    let op = Op::Call(Call::new(path.into(), site, vec![before; values]));
    Let { bound, op, origin: Origin::default() }
}

fn tuple_of(count: i64) -> Block {
    let bound = Variable { var: Var(0), name: Text::default(), ty: Type::tuple(vec![Type::Int]) };
    let op = Op::Prim(weir_ir::prim::Prim::Record, vec![Atom::Value(Value::Int(count))]);
    Block { lets: vec![Let { bound, op, origin: Origin::default() }], result: Atom::Var(Var(0)) }
}
