//! Folds whose states are sums, extremes and truth values, or maps of sums and of lists, in pieces that are joined: random ones,
//! many of whose sums leave the range on the way, against the reference evaluator.

use std::fmt::Write;

use test_support::random::Random;
use weir_host::{Library, Value};
use weir_ir::generate::{Case, Execution, Recording, evaluate};
use weir_ir::graph::Program;
use weir_runtime::{ENGINES, ForkPolicy, Options, SliceLength, engine, loops, run_on_calling_thread, start};

/// The programs that are tried; `WEIR_REGION_PROGRAMS` and `WEIR_REGION_FROM` are for other numbers of them.
const PROGRAMS: u64 = 600;
/// Of so many programs one also runs on helpers, under an engine.
const ON_HELPERS: u64 = 9;

/// Returns the number of an environment variable.
fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// A program under construction.
struct FoldProgram {
    random: Random,
    text: String,
    next: u64,
}

impl FoldProgram {
    /// Returns a program of one fold, or of a fold in each round of another one or of a `for`, in the text of the expression IR.
    fn text(seed: u64) -> String {
        let mut program = FoldProgram { random: Random::new(seed), text: String::new(), next: 1 };
        let element = program.name();
        let shape = program.random.below(4);
        let list = program.list();
        let result = match shape {
            0 => {
                let inner = program.name();
                program.line(1, &format!("%{inner}: List(Int) = for %{element}: Int in {list}"));
                let result = program.fold(2, element, "0");
                program.line(2, &format!("yield %{result}"));
                let last = program.fold_of(1, &format!("%{inner}"), 0, "5");
                format!("%{last}")
            }
            _ => {
                let result = program.fold_of(1, &list, 0, "%0");
                format!("%{result}")
            }
        };
        format!(
            "entry test from a.elements ordered\n  arguments\n    yield (0,)\n  flow elements (%0: Int) -> Int\n{}    yield \
             {result}\n",
            program.text
        )
    }

    /// Adds a fold over a constant list; returns the name of its result.
    fn fold(&mut self, depth: usize, outer: u64, initial: &str) -> u64 {
        let list = self.list();
        self.fold_of(depth, &list, outer, initial)
    }

    /// Adds a fold with one or two states; returns the name of its first state, or of the sum of both.
    fn fold_of(&mut self, depth: usize, list: &str, outer: u64, initial: &str) -> u64 {
        let [result, first, second, element] = std::array::from_fn(|_| self.name());
        if self.random.below(2) == 0 {
            let from = format!("%{result}: Int = fold {list} from {initial} as %{first}: Int, %{element}: Int");
            self.line(depth, &from);
            let next = self.next_state(depth + 1, first, element, outer);
            self.line(depth + 1, &format!("yield %{next}"));
            return result;
        }
        let start = self.number();
        let states = format!("%{first}: Int, %{second}: Int, %{element}: Int");
        self.line(depth, &format!("%{result}: (Int, Int) = fold {list} from {initial}, {start} as {states}"));
        let next = self.next_state(depth + 1, first, element, outer);
        let other = self.next_state(depth + 1, second, element, outer);
        let pair = self.name();
        self.line(depth + 1, &format!("%{pair}: (Int, Int) = record(%{next}, %{other})"));
        self.line(depth + 1, &format!("yield %{pair}"));
        let field = self.random.below(2);
        let part = self.name();
        self.line(depth, &format!("%{part}: Int = field.{field}(%{result})"));
        part
    }

    /// Adds the operations on a state in a round; returns the name of the next state.
    fn next_state(&mut self, depth: usize, state: u64, element: u64, outer: u64) -> u64 {
        let term = self.term(depth, element, outer);
        let next = self.name();
        match self.random.below(9) {
            0 | 4 => {
                let test = self.name();
                let operation = ["less", "less_or_equal"][self.random.below(2) as usize];
                self.line(depth, &format!("%{test}: Bool = {operation}({term}, %{state})"));
                let [one, other] = if self.random.below(2) == 0 { ["term", "state"] } else { ["state", "term"] };
                let of = |name: &str| if name == "term" { term.clone() } else { format!("%{state}") };
                self.line(depth, &format!("%{next}: Int = switch %{test}"));
                self.line(depth + 1, "value true");
                self.line(depth + 2, &format!("yield {}", of(one)));
                self.line(depth + 1, "otherwise");
                self.line(depth + 2, &format!("yield {}", of(other)));
            }
            1 | 2 => {
                let test = self.name();
                let inner = self.name();
                let than = self.number();
                self.line(depth, &format!("%{test}: Bool = less(%{element}, {than})"));
                self.line(depth, &format!("%{next}: Int = switch %{test}"));
                self.line(depth + 1, "value true");
                self.line(depth + 2, &format!("%{inner}: Int = add(%{state}, {term})"));
                self.line(depth + 2, &format!("yield %{inner}"));
                self.line(depth + 1, "otherwise");
                self.line(depth + 2, &format!("yield %{state}"));
            }
            3 => {
                let first = self.name();
                self.line(depth, &format!("%{first}: Int = add(%{state}, {term})"));
                self.line(depth, &format!("%{next}: Int = add(%{first}, %{element})"));
            }
            // The state is taken twice on the way, which is no reduction.
            8 if self.random.below(3) == 0 => {
                let first = self.name();
                self.line(depth, &format!("%{first}: Int = add(%{state}, {term})"));
                self.line(depth, &format!("%{next}: Int = add(%{first}, %{state})"));
            }
            8 => {
                let [first, second] = [self.name(), self.name()];
                self.line(depth, &format!("%{first}: Int = add(%{element}, %{state})"));
                self.line(depth, &format!("%{second}: Int = add({term}, %{first})"));
                self.line(depth, &format!("%{next}: Int = add(%{second}, %{outer})"));
            }
            // Not a reduction.
            5 if self.random.below(3) == 0 => {
                self.line(depth, &format!("%{next}: Int = subtract({term}, %{state})"));
            }
            _ => self.line(depth, &format!("%{next}: Int = add({term}, %{state})")),
        }
        next
    }

    /// Adds what makes a term of an element, which may fail; returns it.
    fn term(&mut self, depth: usize, element: u64, outer: u64) -> String {
        let name = self.name();
        let operation = match self.random.below(10) {
            0..5 => return format!("%{element}"),
            5 => return self.number(),
            6 => format!("subtract(%{element}, %{outer})"),
            7 => format!("multiply(%{element}, {})", self.number()),
            8 => format!("call a.mix at m{name} (%{element})"),
            _ => format!("divide(100, %{element})"),
        };
        self.line(depth, &format!("%{name}: Int = {operation}"));
        format!("%{name}")
    }

    /// Returns a program of one or two folds whose states are maps, one of which may have a number beside its map.
    fn of_maps(seed: u64) -> String {
        let mut program = FoldProgram { random: Random::new(seed), text: String::new(), next: 1 };
        let first = program.fold_by_key(1, "{}");
        let second = if program.random.below(2) == 0 { program.fold_by_key(1, "{1: 1, 0: 4}") } else { first };
        let text = program.name();
        program.line(1, &format!("%{text}: Text = interpolate(%{first}, %{second})"));
        format!(
            "entry test from a.elements ordered\n  arguments\n    yield (0,)\n  flow elements (%0: Int) -> Text\n{}    yield \
             %{text}\n",
            program.text
        )
    }

    /// Adds a fold by key that begins with a map of sums, or with an empty map of lists; returns the name of its result.
    fn fold_by_key(&mut self, depth: usize, initial: &str) -> u64 {
        let [result, begun, state, element, count] = std::array::from_fn(|_| self.name());
        let (of, function, initial) = match self.random.below(3) {
            0 => ("List(Int)", "collect", "{}"),
            _ => ("Int", "number", initial),
        };
        let list = self.list();
        self.line(depth, &format!("%{begun}: Map(Int, {of}) = copy({initial})"));
        let has_count = self.random.below(4) == 0;
        let states = format!("%{state}: Map(Int, {of})");
        let (ty, initial, states) = match has_count {
            true => (format!("(Map(Int, {of}), Int)"), format!("%{begun}, %0"), format!("{states}, %{count}: Int")),
            false => (format!("Map(Int, {of})"), format!("%{begun}"), states),
        };
        self.line(depth, &format!("%{result}: {ty} = fold {list} from {initial} as {states}, %{element}: Int"));
        let next = self.conditional_update(depth + 1, (state, element), (of, function));
        match has_count {
            true => {
                let [added, pair] = std::array::from_fn(|_| self.name());
                self.line(depth + 1, &format!("%{added}: Int = add(%{count}, %{element})"));
                self.line(depth + 1, &format!("%{pair}: {ty} = record(%{next}, %{added})"));
                self.line(depth + 1, &format!("yield %{pair}"));
            }
            false => self.line(depth + 1, &format!("yield %{next}")),
        }
        result
    }

    /// Adds an update of an entry in each round, or in some rounds; returns the name of the next map.
    fn conditional_update(&mut self, depth: usize, (state, element): (u64, u64), (of, function): (&str, &str)) -> u64 {
        if self.random.below(3) > 0 {
            return self.update(depth, (state, element), (of, function));
        }
        let ([test, next], than) = (std::array::from_fn(|_| self.name()), self.number());
        self.line(depth, &format!("%{test}: Bool = less(%{element}, {than})"));
        self.line(depth, &format!("%{next}: Map(Int, {of}) = switch %{test}"));
        self.line(depth + 1, "value true");
        let updated = self.update(depth + 2, (state, element), (of, function));
        self.line(depth + 2, &format!("yield %{updated}"));
        self.line(depth + 1, "otherwise");
        let other =
            if self.random.below(2) == 0 { self.update(depth + 2, (state, element), (of, function)) } else { state };
        self.line(depth + 2, &format!("yield %{other}"));
        next
    }

    /// Adds the update of an entry, some of which are no reductions; returns the name of the next map.
    fn update(&mut self, depth: usize, (state, element): (u64, u64), (of, function): (&str, &str)) -> u64 {
        let [key, found, value, payload, changed, next] = std::array::from_fn(|_| self.name());
        let (keys, missing) = (1 + self.random.below(6), if self.random.below(8) == 0 { "3" } else { "0" });
        let missing = if of == "Int" { missing } else { "[]" };
        self.line(depth, &format!("%{key}: Int = remainder(%{element}, {keys})"));
        let is_before = self.random.below(2) == 0;
        let before = is_before.then(|| self.added(depth, element, of));
        self.line(depth, &format!("%{found}: Option({of}) = index(%{state}, %{key})"));
        self.line(depth, &format!("%{value}: {of} = switch %{found}"));
        self.line(depth + 1, &format!("tag 1 (%{payload}: {of})"));
        self.line(depth + 2, &format!("yield %{payload}"));
        self.line(depth + 1, "tag 0");
        self.line(depth + 2, &format!("yield {missing}"));
        // As in the text, where the entry is looked up first.
        let added = before.unwrap_or_else(|| self.added(depth, element, of));
        let operation = if of == "Int" && self.random.below(12) == 0 { "subtract" } else { "add" };
        self.line(depth, &format!("%{changed}: {of} = {operation}(%{value}, {added})"));
        let call = format!("call data.{function} at n{next} (%{state}, %{key}, %{changed})");
        self.line(depth, &format!("%{next}: Map(Int, {of}) = {call}"));
        next
    }

    /// Adds what is added to an entry: a number, or a list of one; returns its name.
    fn added(&mut self, depth: usize, element: u64, of: &str) -> String {
        let term = self.term(depth, element, 0);
        if of == "Int" {
            return term;
        }
        let one = self.name();
        self.line(depth, &format!("%{one}: List(Int) = list({term})"));
        format!("%{one}")
    }

    fn list(&mut self) -> String {
        let count = self.random.below(40);
        let signs = self.random.below(3);
        let signed = |number: i64| match signs {
            0 => number.saturating_abs(),
            1 => -number.saturating_abs(),
            _ => number,
        };
        let numbers: Vec<String> = (0..count).map(|_| signed(self.int()).to_string()).collect();
        format!("[{}]", numbers.join(", "))
    }

    fn number(&mut self) -> String {
        self.int().to_string()
    }

    /// Returns a number that is small most often, and sometimes at an end of the range or half-way to it.
    fn int(&mut self) -> i64 {
        let small = self.random.below(11).cast_signed() - 4;
        match self.random.below(40) {
            0 => i64::MAX - small.abs(),
            1 => i64::MIN + small.abs(),
            2..5 => i64::MAX / 2 + small,
            5..8 => i64::MIN / 2 + small,
            _ => small,
        }
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

fn seeds() -> std::ops::Range<u64> {
    let from = variable("WEIR_REGION_FROM").unwrap_or(0);
    from..from + variable("WEIR_REGION_PROGRAMS").unwrap_or(PROGRAMS)
}

/// Returns a case of folds over numbers, or of folds by key.
fn case(seed: u64) -> (Case, String) {
    let text = if seed.is_multiple_of(2) { FoldProgram::text(seed) } else { FoldProgram::of_maps(seed) };
    (case_of(&text), text)
}

fn case_of(text: &str) -> Case {
    let program = weir_ir::parse::expr(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let inputs = [0, -70, i64::MAX / 2, i64::MIN / 2, i64::MAX, i64::MIN].map(|number| vec![Value::Int(number)]).into();
    Case { program, inputs }
}

/// Runs the flows of a case on this thread.
fn in_place(
    case: &Case,
    program: &Program,
    library: &Library,
    forks: ForkPolicy,
) -> Vec<Result<Value, weir_host::Failure>> {
    let engine = engine("thread-per-flow").expect("the engine");
    let slice = SliceLength::ONE_UNIT;
    let options = Options { engine, threads: Some(2), slice, forks, ..Options::default() };
    run_on_calling_thread(program, library, &options, case.inputs.iter().cloned())
        .expect("the program fits the library")
}

/// Runs the flows of a case under an engine, with helpers.
fn on_helpers(case: &Case, program: &Program, recording: &Recording, seed: u64) -> Execution {
    let feed = test_support::flows::Feed::new();
    let mut library = recording.library();
    feed.put(&mut library, "a", "elements");
    let rows: Vec<_> = ENGINES.iter().filter(|row| row.may_fork()).collect();
    let row = rows[seed as usize % rows.len()];
    let forks = [ForkPolicy::Always, ForkPolicy::AlwaysOnHelpers][seed as usize / 3 % 2];
    let options = Options { slice: SliceLength::ONE_UNIT, forks, ..test_support::flows::options(row.name, 2) };
    let running = start(program, &library, options).expect("the program starts");
    let results = case.inputs.iter().map(|inputs| feed.run(inputs.clone())).collect();
    drop(feed);
    running.wait().expect("the program ends");
    Execution { results, effects: recording.effects() }
}

#[test]
fn joined_states_and_failures_are_those_of_the_evaluator() {
    for seed in seeds() {
        let (case, text) = case(seed);
        let expected = evaluate(&case, seed).unwrap_or_else(|failure| panic!("{failure}\n{text}"));
        let recording = Recording::new(seed);
        let library = recording.library();
        let program = weir_ir::optimize(&case.program, &library);
        for forks in [ForkPolicy::AsPlanned, ForkPolicy::AlwaysInPlace] {
            let results = in_place(&case, &program, &library, forks);
            assert_eq!(results, expected.results, "seed {seed}, {forks:?}\n{text}");
        }
        if seed % ON_HELPERS == 0 {
            let found = on_helpers(&case, &program, &Recording::new(seed), seed);
            assert_eq!(found, expected, "seed {seed} on helpers\n{text}");
        }
    }
}

#[test]
fn most_of_the_programs_have_folds_whose_rounds_may_run_on_several_threads() {
    let library = Recording::new(0).library();
    let has_reductions = |seed: &u64| {
        let found = loops(&weir_ir::optimize(&case(*seed).0.program, &library), &library);
        found.expect("the program fits the library").iter().any(|found| found.obstacle.is_none())
    };
    let found = (0..PROGRAMS).filter(has_reductions).count() as u64;
    assert!(found * 2 >= PROGRAMS, "{found} of {PROGRAMS}");
}

/// Folds over texts, over lists, over records of which a field is read, and over records as a whole.
const OF_VALUES: [&str; 4] = [
    "%1: Int = fold [\"a\", \"bcd\", \"\", \"ef\", \"g\"] from %0 as %2: Int, %3: Text
      %4: Int = length(%3)
      %5: Int = add(%2, %4)
      yield %5",
    "%1: Int = fold [[1, 2], [], [3], [9223372036854775807, -1]] from %0 as %2: Int, %3: List(Int)
      %4: Int = fold %3 from 1 as %6: Int, %7: Int
        %8: Int = add(%6, %7)
        yield %8
      %5: Int = add(%4, %2)
      yield %5",
    "%1: Int = fold [(1, \"a\"), (-9, \"bc\"), (4, \"\"), (5, \"d\")] from %0 as %2: Int, %3: (Int, Text)
      %4: Int = field.0(%3)
      %6: Text = field.1(%3)
      %7: Int = length(%6)
      %8: Int = multiply(%4, %7)
      %5: Int = add(%2, %8)
      yield %5",
    "%1: Int = fold [(1, \"a\"), (-9, \"bc\"), (4, \"\"), (5, \"d\")] from %0 as %2: Int, %3: (Int, Text)
      %6: List((Int, Text)) = list(%3, %3)
      %4: Int = length(%6)
      %5: Int = add(%2, %4)
      yield %5",
];

#[test]
fn folds_over_values_are_joined_too() {
    for lines in OF_VALUES {
        let text = format!(
            "entry test from a.elements ordered\n  arguments\n    yield (0,)\n  flow elements (%0: Int) -> Int\n    \
             {lines}\n    yield %1\n"
        );
        let (case, library) = (case_of(&text), Recording::new(0).library());
        let program = weir_ir::lower(&case.program, &library);
        let found = loops(&program, &library).expect("the program fits the library");
        assert!(found[0].obstacle.is_none(), "{:?}\n{text}", found[0].obstacle);
        let expected = evaluate(&case, 0).expect("there are no shared values");
        assert_eq!(in_place(&case, &program, &library, ForkPolicy::AlwaysInPlace), expected.results, "{text}");
    }
}

/// Rounds by key over integers, with the operations `ADD` and the value `NONE` for a missing key.
const BY_KEY: &str = "%1: Map(Int, Int) = copy({})
    %2: Map(Int, Int) = fold [3, 1, 4, 1, 5, 9, 2, 6] from %1 as %3: Map(Int, Int), %4: Int
      %5: Int = remainder(%4, 3)
      %6: Option(Int) = index(%3, %5)
      %7: Int = switch %6
        tag 1 (%8: Int)
          yield %8
        tag 0
          yield NONE
      %9: Int = OPERATION(%7, %4)
      %10: Map(Int, Int) = call data.number at put (%3, %5, %9)
      yield %10
    %11: Text = interpolate(%2)
    yield %11";

/// Rounds over numbers whose next state is `NEXT`.
const OF_NUMBERS: &str = "%1: TYPE = fold LIST from FIRST as %2: TYPE, %3: TYPE
      %4: TYPE = NEXT
      yield %4
    %5: Text = interpolate(%1)
    yield %5";

#[test]
fn a_fold_whose_rounds_run_in_their_order_has_a_reason() {
    let of_numbers = |next: &str| {
        OF_NUMBERS.replace("TYPE", "Int").replace("LIST", "[1, 2]").replace("FIRST", "%0").replace("NEXT", next)
    };
    let of_floats = OF_NUMBERS.replace("TYPE", "Float").replace("LIST", "[1.5]").replace("FIRST", "0.5");
    let of_texts = OF_NUMBERS.replace("TYPE", "Text").replace("LIST", "[\"a\"]").replace("FIRST", "\"b\"");
    let by_key = |operation: &str, none: &str| BY_KEY.replace("OPERATION", operation).replace("NONE", none);
    let behind_look_up = by_key("add", "0")
        .replace("      %9: Int = add(%7, %4)", "      %12: Int = multiply(%4, 3)\n      %9: Int = add(%7, %12)");
    let held = by_key("add", "0")
        .replace("      %6:", "      %12: Int = length(%3)\n      %6:")
        .replace("add(%7, %4)", "add(%7, %12)");
    let folds = [
        (of_numbers("add(%2, %3)"), None),
        (
            of_numbers("add(%2, %3)\n      %6: Int = add(7, %4)\n      %7: Int = add(%6, %3)")
                .replace("yield %4", "yield %7"),
            None,
        ),
        (
            of_numbers("add(%2, %3)\n      %6: Int = add(%4, %2)").replace("yield %4", "yield %6"),
            Some("`fold/add` does not only add to the state, or keep the least, the greatest or a truth value"),
        ),
        (
            of_numbers("multiply(%2, %3)"),
            Some("`fold/multiply` does not only add to the state, or keep the least, the greatest or a truth value"),
        ),
        (of_floats.replace("NEXT", "add(%2, %3)"), Some("`fold/add` adds `Float`s, whose sum depends on their order")),
        (of_texts.replace("NEXT", "add(%2, %3)"), Some("a state is neither a number nor a truth value nor a map")),
        (by_key("add", "0"), None),
        (behind_look_up, None),
        (by_key("add", "1"), Some("`fold/switch` does not begin with `0` or `[]` for a missing key")),
        (
            by_key("subtract", "0"),
            Some("`fold/switch` does not only add to the integer or the list under a key of the map"),
        ),
        (held, Some("`fold/length` does not only add to the integer or the list under a key of the map")),
    ];
    let library = Recording::new(0).library();
    for (lines, expected) in folds {
        let text = format!(
            "entry test from a.elements ordered\n  arguments\n    yield (0,)\n  flow elements (%0: Int) -> Text\n    {lines}\n"
        );
        let program = weir_ir::optimize(&case_of(&text).program, &library);
        let found = loops(&program, &library).expect("the program fits the library");
        assert_eq!(found.iter().map(|found| found.obstacle.as_deref()).collect::<Vec<_>>(), [expected], "{text}");
    }
}
