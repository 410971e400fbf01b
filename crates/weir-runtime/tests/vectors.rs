//! Calls of several flows that are made together: results and failures are those of the evaluator, flow by flow.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use test_support::flows::gates::{function, immediate, int, library};
use test_support::flows::options;
use test_support::flows::stream::Numbers;
use weir_host::{Call, Failure, Function, FunctionCode, Library, Outcome, Passing, Type, Value, WordCode, World};
use weir_ir::evaluate::Evaluator;
use weir_ir::expr::Program;
use weir_ir::generate::Random;
use weir_runtime::{Options, SliceLength, start};
use weir_trace::{Detail, EventKind, Recorder};

/// The engines whose sections have queues.
const ENGINES: [&str; 4] = ["manual", "staged", "elastic", "dedicated"];
const PARAMETERS: [(&str, Type, Passing); 1] = [("x", Type::Int, Passing::Value)];
const PAIR: [(&str, Type, Passing); 2] = [("x", Type::Int, Passing::Value), ("y", Type::Int, Passing::Value)];

/// The ends of flows, by their numbers: the number that it kept, or the message of its failure.
type Ends = BTreeMap<i64, Result<i64, String>>;

/// The calls of the directed test, in the order in which they were made: for each the number of calls of its flow before.
static STEPS: Mutex<Vec<u64>> = Mutex::new(Vec::new());

/// Keeps the number of a flow, and its result.
fn keep(kept: &Arc<Mutex<Ends>>) -> Function {
    let kept = Arc::clone(kept);
    let code = FunctionCode::Immediate(Arc::new(move |call| {
        let before = kept.lock().insert(int(call, 0), Ok(int(call, 1)));
        assert_eq!(before, None, "a flow runs once");
        Outcome::Value(Value::Int(0))
    }));
    function("a.keep", &PAIR, World::Writes, code)
}

/// The source of the test that runs, if the first flow waits for it.
static SOURCE: Mutex<Option<Numbers>> = Mutex::new(None);

/// The time for which the first flow waits at most for the program to be full: on one processor the event loop may run the flow.
const PATIENCE: Duration = Duration::from_secs(1);

/// Ends for the first flow when the program is full, so that others stand in a queue.
fn begin() -> Function {
    on_words("a.begin", &PARAMETERS, |words| {
        let since = Instant::now();
        let is_full = || SOURCE.lock().as_ref().is_none_or(|source| source.full() > 0);
        while words[0] == 0 && !is_full() && since.elapsed() < PATIENCE {
            std::thread::yield_now();
        }
        Ok(words[0])
    })
}

/// Runs `count` flows of the program that a source does not await, and returns how they ended. One test at a time does.
fn run(text: &str, functions: Vec<Function>, count: i64, options: Options) -> Ends {
    static RUNNING: Mutex<()> = Mutex::new(());
    let _one = RUNNING.lock();
    let kept = Arc::default();
    let numbers = Numbers::given(count);
    // The event loop of `elastic` may run flows itself.
    *SOURCE.lock() = (options.engine.name != "elastic").then(|| numbers.clone());
    let options = Options { flows_max: 32, ..options };
    let mut library = library(functions.into_iter().chain([begin(), keep(&kept)]));
    numbers.put(&mut library);
    let (recorder, reader) = Recorder::new(Detail::Log, 1 << 12);
    let running = start(&weir_ir::lower(&parse(text), &library), &library, Options { recorder, ..options });
    running.expect("it starts").wait().expect("the source ends");
    *SOURCE.lock() = None;
    let mut ends = std::mem::take(&mut *kept.lock());
    for event in reader.take() {
        if let EventKind::FlowFailed { flow, message, .. } = event.kind {
            let number = i64::try_from(flow.sequence).expect("a small number");
            assert!(ends.insert(number, Err(message.to_string())).is_none(), "a flow ends once");
        }
    }
    ends
}

fn parse(text: &str) -> Program {
    weir_ir::parse::expr(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn program(body: &str) -> String {
    format!("entry test from test.feed unordered\n  arguments\n    yield (0,)\n  flow feed (%0 x: Int) -> Int\n{body}")
}

#[test]
fn flows_in_a_queue_make_their_calls_together() {
    let mut body = "    %1: Int = call a.begin at begin (%0)\n".to_owned();
    for call in 1..10 {
        body += &format!("    %{}: Int = call a.step at s{call} (%{call})\n", call + 1);
    }
    let text = program(&(body + "    %11: Int = call a.keep at keep (%0, %10)\n    yield %11\n"));
    for engine in ["manual", "staged"] {
        STEPS.lock().clear();
        let step = on_words("a.step", &PARAMETERS, |words| {
            STEPS.lock().push(words[0] / 1_000);
            Ok(words[0] + 1_000)
        });
        let ends = run(&text, vec![step], 200, options(engine, 1));
        assert_eq!(ends, (0..200).map(|number| (number, Ok(number + 9_000))).collect(), "{engine}");
        let steps = STEPS.lock();
        let together = steps.windows(8).any(|calls| calls == [3, 3, 3, 3, 4, 4, 4, 4]);
        assert!(together, "{engine}: no four flows have made two calls together, {steps:?}");
    }
}

fn number(word: u64) -> i64 {
    word.cast_signed()
}

fn sum(words: &[u64]) -> Result<u64, Box<Failure>> {
    Ok(((number(words[0]) + number(words[1])) % 1_000).cast_unsigned())
}

fn twice(words: &[u64]) -> Result<u64, Box<Failure>> {
    Ok((number(words[0]) * 2 % 1_009).cast_unsigned())
}

fn refuse(words: &[u64]) -> Result<u64, Box<Failure>> {
    match number(words[0]) {
        x if x % 13 == 5 => Err(Box::new(Failure::function(format!("{x} is refused")))),
        x => Ok((x + 1).cast_unsigned()),
    }
}

fn panic(words: &[u64]) -> Result<u64, Box<Failure>> {
    let x = number(words[0]);
    assert!(x % 17 != 3, "{x} is not foreseen");
    Ok((x + 3).cast_unsigned())
}

/// Makes a function without effects that has a typed entry point.
fn on_words(path: &'static str, parameters: &[(&str, Type, Passing)], code: WordCode) -> Function {
    let boxed = move |call: &mut Call<'_>| {
        let words: Vec<u64> = (0..call.arguments.len()).map(|index| int(call, index).cast_unsigned()).collect();
        match code(&words) {
            Ok(word) => Outcome::Value(Value::Int(number(word))),
            Err(failure) => Outcome::Fault(failure),
        }
    };
    Function { words: Some(code), ..immediate(path, parameters, boxed) }
}

/// Functions without effects, of which some fail or panic.
fn functions() -> Vec<Function> {
    vec![
        on_words("a.add", &PAIR, sum),
        on_words("a.twice", &PARAMETERS, twice),
        on_words("a.refuses", &PARAMETERS, refuse),
        on_words("a.panics", &PARAMETERS, panic),
    ]
}

fn random_body(random: &mut Random) -> String {
    let mut body = "    %1: Int = call a.begin at begin (%0)\n".to_owned();
    let calls = 3 + random.below(20);
    for call in 2..calls + 2 {
        let (x, y) = (random.below(call), random.below(call));
        let expression = match random.below(12) {
            0 => format!("call a.refuses at c{call} (%{x})"),
            1 => format!("call a.panics at c{call} (%{x})"),
            2 => format!("add(%{x}, %{y})"),
            3..7 => format!("call a.twice at c{call} (%{x})"),
            _ => format!("call a.add at c{call} (%{x}, %{y})"),
        };
        body += &format!("    %{call}: Int = {expression}\n");
    }
    let (last, end) = (calls + 1, calls + 2);
    body + &format!("    %{end}: Int = call a.keep at keep (%0, %{last})\n    yield %{end}\n")
}

fn evaluate(text: &str, count: i64) -> Ends {
    let kept = Arc::default();
    let functions = functions().into_iter().chain([begin(), keep(&kept)]);
    let library: Library = library(functions);
    let program = parse(text);
    let mut evaluator = Evaluator::new(&program, &library).expect("it has no state");
    let run = |number| (number, evaluator.run(0, 0, vec![Value::Int(number)]));
    let failed: Vec<_> =
        (0..count).map(run).filter_map(|(number, end)| Some((number, Err(end.err()?.message.to_string())))).collect();
    let mut ends = std::mem::take(&mut *kept.lock());
    ends.extend(failed);
    ends
}

#[test]
fn random_programs_end_as_the_evaluator_says() {
    let programs = std::env::var("WEIR_VECTOR_PROGRAMS").map_or(60, |count| count.parse().expect("a number"));
    for seed in 0..programs {
        let mut random = Random::new(seed);
        let text = program(&random_body(&mut random));
        let count = 100;
        let expected = evaluate(&text, count);
        assert_eq!(expected.len(), 100);
        let engine = ENGINES[seed as usize % ENGINES.len()];
        let slice = if seed % 3 == 0 { SliceLength::ONE_UNIT } else { SliceLength::default() };
        let found = run(&text, functions(), count, Options { slice, ..options(engine, 1 + seed as usize % 2) });
        assert_eq!(found, expected, "{engine}, seed {seed}\n{text}");
    }
}
