//! Writes behind many operations that may end the flow, in arms and loops, some of which wait: random ones against the reference evaluator.
//!
//! A write waits for every earlier operation that may end the flow. From nine of them on, a gate stands for them in the graph; it
//! lies in no arm, even if the write is in one. A region goes on behind it.

use std::fmt::Write;

use test_support::random::Random;
use weir_host::Value;
use weir_ir::generate::{Case, Execution, Recording, evaluate};
use weir_ir::graph::{Graph, Program};
use weir_runtime::{ENGINES, EngineRow, ForkPolicy, Options, SliceLength, regions, run_on_calling_thread, start};
use weir_trace::{Detail, Recorder};

/// The programs that are tried; `WEIR_REGION_PROGRAMS` and `WEIR_REGION_FROM` are for other numbers of them.
const PROGRAMS: u64 = 120;
/// Of so many programs one also runs under an engine.
const UNDER_ENGINES: u64 = 7;

/// Returns the number of an environment variable.
fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn seeds() -> std::ops::Range<u64> {
    let from = variable("WEIR_REGION_FROM").unwrap_or(0);
    from..from + variable("WEIR_REGION_PROGRAMS").unwrap_or(PROGRAMS)
}

/// A program under construction, in the text of the expression IR.
struct FlowText {
    random: Random,
    text: String,
    next: u64,
    /// The numbers in scope, by their variables.
    known: Vec<u64>,
}

impl FlowText {
    fn of(seed: u64) -> String {
        let mut flow = FlowText { random: Random::new(seed), text: String::new(), next: 1, known: vec![0] };
        let statements = 8 + flow.below(16);
        flow.statements(1, statements);
        let result = flow.operand();
        format!(
            "entry test from a.elements ordered\n  arguments\n    yield (0,)\n  flow elements (%0: Int) -> Int\n{}    yield \
             {result}\n",
            flow.text
        )
    }

    fn statements(&mut self, depth: usize, count: usize) {
        for _ in 0..count {
            match self.below(20) {
                0..=2 if depth < 4 => self.choice(depth),
                3 if depth < 4 => self.fold(depth),
                4..=6 => self.write(depth),
                _ => self.operation(depth),
            }
        }
    }

    /// Adds an operation that may end the flow, though most do for few inputs only.
    fn operation(&mut self, depth: usize) {
        let operation = ["add", "subtract", "multiply", "add"][self.below(4)];
        let (one, other) = (self.operand(), self.operand());
        let result = self.name();
        self.line(depth, &format!("%{result}: Int = {operation}({one}, {other})"));
        self.known.push(result);
        if self.below(4) == 0 {
            let rest = self.name();
            self.line(depth, &format!("%{rest}: Int = remainder(%{result}, 1009)"));
            self.known.push(rest);
        }
    }

    fn write(&mut self, depth: usize) {
        let argument = self.operand();
        let (world, result) = (["a", "b"][self.below(2)], self.name());
        let function = ["change", "change", "note", "slow_change"][self.below(4)];
        self.line(
            depth,
            &format!("%{result}: Int = call {world}.{function} at {world}.{function}#{result} ({argument})"),
        );
        self.known.push(result);
    }

    /// Adds a choice between two arms, with a result or without.
    fn choice(&mut self, depth: usize) {
        let (one, other, test, result) = (self.operand(), self.operand(), self.name(), self.name());
        let yields = self.below(2) == 0;
        self.line(depth, &format!("%{test}: Bool = less({one}, {other})"));
        self.line(depth, &format!("%{result}: {} = switch %{test}", if yields { "Int" } else { "()" }));
        for arm in ["value true", "otherwise"] {
            self.line(depth + 1, arm);
            let (outside, count) = (self.known.len(), 1 + self.below(12));
            self.statements(depth + 2, count);
            let value = if yields { self.operand() } else { "()".into() };
            self.line(depth + 2, &format!("yield {value}"));
            self.known.truncate(outside);
        }
        if yields {
            self.known.push(result);
        }
    }

    fn fold(&mut self, depth: usize) {
        let [result, state, element] = std::array::from_fn(|_| self.name());
        let first = self.operand();
        let list = format!("[{}]", ["1, 2", "", "5, -3, 40"][self.below(3)]);
        self.line(depth, &format!("%{result}: Int = fold {list} from {first} as %{state}: Int, %{element}: Int"));
        let outside = self.known.len();
        self.known.extend([state, element]);
        let count = 1 + self.below(14);
        self.statements(depth + 1, count);
        let next = self.operand();
        self.line(depth + 1, &format!("yield {next}"));
        self.known.truncate(outside);
        self.known.push(result);
    }

    /// Returns a number in scope, most often one of the last, or a constant.
    fn operand(&mut self) -> String {
        match self.below(4) {
            0 => ["0", "1", "-7", "1000"][self.below(4)].into(),
            1 => format!("%{}", self.random.pick(&self.known)),
            _ => {
                let last = &self.known[self.known.len().saturating_sub(3)..];
                format!("%{}", self.random.pick(last))
            }
        }
    }

    fn below(&mut self, limit: usize) -> usize {
        self.random.below(limit as u64) as usize
    }

    fn name(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    fn line(&mut self, depth: usize, line: &str) {
        // Writing to a `String` cannot fail.
        _ = writeln!(self.text, "{}{line}", "  ".repeat(depth + 1));
    }
}

fn case(seed: u64) -> Case {
    let text = FlowText::of(seed);
    let program = weir_ir::parse::expr(&text).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
    let inputs = [0, 3, -2_000, i64::MAX - 5, i64::MIN].map(|input| vec![Value::Int(input)]);
    Case { program, inputs: inputs.into() }
}

/// Returns the forms in which a program runs: in steps, in regions, in slices of one unit, in small regions, and with forks.
fn forms(seed: u64) -> Vec<Options> {
    let usual = Options::default();
    let form = |detail, slice, forks, region_size_max| {
        let recorder = Recorder::new(detail, 100).0;
        Options { recorder, slice, forks, region_size_max, threads: Some(2), ..Options::default() }
    };
    let (size, small) = (usual.region_size_max, 9 + seed as usize % 30);
    vec![
        form(Detail::Nodes, SliceLength::default(), ForkPolicy::AsPlanned, size),
        form(Detail::Flows, SliceLength::default(), ForkPolicy::AsPlanned, size),
        form(Detail::Flows, SliceLength::ONE_UNIT, ForkPolicy::AsPlanned, size),
        form(Detail::Flows, SliceLength::ONE_UNIT, ForkPolicy::AlwaysInPlace, size),
        form(Detail::Flows, SliceLength::ONE_UNIT, ForkPolicy::AlwaysInPlace, small),
    ]
}

/// Returns what the flows do on the thread of the test.
fn on_this_thread(case: &Case, program: &Program, seed: u64, options: &Options) -> Execution {
    let recording = Recording::new(seed);
    let results = run_on_calling_thread(program, &recording.library(), options, case.inputs.iter().cloned());
    Execution { results: results.expect("the program starts"), effects: recording.effects() }
}

/// Returns what the flows do under an engine, one after the other.
fn under_engine(case: &Case, program: &Program, seed: u64, engine: &'static EngineRow) -> Execution {
    let recording = Recording::new(seed);
    let (mut library, feed) = (recording.library(), test_support::flows::Feed::new());
    feed.put(&mut library, "a", "elements");
    let running = start(program, &library, test_support::flows::options(engine.name, 2)).expect("the program starts");
    let results = case.inputs.iter().map(|inputs| feed.run(inputs.clone())).collect();
    drop(feed);
    running.wait().expect("it ends");
    Execution { results, effects: recording.effects() }
}

#[test]
fn writes_behind_many_ends_give_the_evaluators_answers_in_every_form() {
    for seed in seeds() {
        let case = case(seed);
        let expected = evaluate(&case, seed).expect("there are no shared values");
        let program = weir_ir::optimize(&case.program, &Recording::new(seed).library());
        for (form, options) in forms(seed).iter().enumerate() {
            let found = on_this_thread(&case, &program, seed, options);
            assert_eq!(found, expected, "seed {seed}, form {form}: {}", weir_ir::print::graph(&program));
        }
        if seed % UNDER_ENGINES == 0 {
            let engine = &ENGINES[(seed / UNDER_ENGINES) as usize % ENGINES.len()];
            assert_eq!(under_engine(&case, &program, seed, engine), expected, "seed {seed}, engine {}", engine.name);
        }
    }
}

/// Returns true if a gate stands between two nodes of an arm, in a graph or in one of its bodies.
fn has_gate_in_arm(graph: &Graph) -> bool {
    let neighbours = graph.nodes.windows(3);
    let is_gate = |nodes: &[weir_ir::graph::Node]| {
        let [before, gate, after] = nodes else { return false };
        gate.name.starts_with("gate") && before.control.is_some() && before.control == after.control
    };
    neighbours.into_iter().any(is_gate) || graph.nodes.iter().flat_map(|node| node.bodies()).any(has_gate_in_arm)
}

#[test]
fn a_gate_ends_no_region() {
    let mut with_gates = 0;
    for seed in 0..PROGRAMS {
        let (case, mut library) = (case(seed), Recording::new(seed).library());
        test_support::flows::Feed::new().put(&mut library, "a", "elements");
        let program = weir_ir::optimize(&case.program, &library);
        with_gates += u64::from(has_gate_in_arm(&program.entries[0].flows[0].body));
        let described = regions(&program, &library).expect("the program can be prepared");
        assert!(!described.contains("cannot be compiled together"), "seed {seed}: {described}");
    }
    assert!(with_gates * 4 > PROGRAMS, "{with_gates} of {PROGRAMS} programs have a gate in an arm");
}

/// No lowering lists a node of an arm apart from the others; the description of regions would say which one it is.
#[test]
fn nodes_that_are_no_region_are_described_with_the_reason() {
    let text = "entry test from a.elements ordered\n  arguments\n    yield (0,)\n  flow elements (%0: Int) -> Int\n    \
                %1: Bool = less(%0, 9)\n    %2: Int = switch %1\n      value true\n        %3: Int = add(%0, 1)\n        \
                %4: Int = multiply(%0, 5)\n        %5: Int = subtract(%3, %4)\n        %6: Int = negate(%5)\n        \
                yield %6\n      otherwise\n        yield %0\n    yield %2\n";
    let program = weir_ir::parse::expr(text).expect("it is a program");
    let mut library = Recording::new(0).library();
    test_support::flows::Feed::new().put(&mut library, "a", "elements");
    let mut graph = weir_ir::lower(&program, &library);
    let described = |graph: &Program| regions(graph, &library).expect("the program can be prepared");
    assert!(described(&graph).contains("region of 7 nodes"), "{}", described(&graph));
    let nodes = &mut graph.entries[0].flows[0].body.nodes;
    nodes.iter_mut().find(|node| node.name.as_str() == "multiply").expect("it is a node").control = None;
    let reason = "they cannot be compiled together, because `subtract` is listed apart from the other nodes of its arm";
    assert!(described(&graph).contains(reason), "{}", described(&graph));
}
