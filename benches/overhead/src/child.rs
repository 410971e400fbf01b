//! Child process that runs one case in a loop and prints the nanoseconds that it took.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use weir::{
    Begun, Environment, Failure, Flows, LocalFuture, Opened, Parameter, Passing, Route, Source, SourceSignature, Stop,
    Type,
};
use weir::{Library, Value};
use weir_ir::plan::Plan;
use weir_runtime::{Options, Platform, ScriptedPlatform, start};

use crate::BenchResult;
use crate::cases::{NODES, OverheadCase, program};

/// Returns its argument.
#[weir::function(pure)]
#[inline(never)]
pub(crate) fn one(x: i64) -> i64 {
    black_box(x)
}

/// Returns its first argument, and reads the others.
#[weir::function(pure)]
#[inline(never)]
pub(crate) fn four(x: i64, a: i64, b: i64, c: i64) -> i64 {
    black_box((a, b, c));
    black_box(x)
}

weir::library!(chain: one, four);

/// Runs the case `count` times.
pub(crate) fn run(case: OverheadCase, count: u64) -> BenchResult<()> {
    match case {
        OverheadCase::PlainOneValue => plain(count, one),
        OverheadCase::PlainFourValues => plain(count, |x| four(x, x, x, x)),
        _ => flows(case, count)?,
    }
    Ok(())
}

fn plain(count: u64, function: impl Fn(i64) -> i64) {
    let begin = Instant::now();
    for number in 0..count {
        let mut x = number.cast_signed();
        for _ in 0..NODES {
            x = function(x);
        }
        black_box(x);
    }
    println!("{}", begin.elapsed().as_nanos());
}

fn flows(case: OverheadCase, count: u64) -> BenchResult<()> {
    let library = library()?;
    let program = weir_ir::lower(&program(case, count.cast_signed())?, &library);
    let engine = weir_runtime::engine("event").ok_or("the engine `event` is there")?;
    let (plan, _) = Plan::parse(if case.is_unforked() { "parallel = \"off\"" } else { "" });
    let options = Options { engine, plan, threads: Some(1), ..Options::default() };
    // Valgrind makes rounds long enough for forks, as the clock tells.
    let clock = case.has_loop().then(|| Arc::new(ScriptedPlatform::new(0)) as Arc<dyn Platform>);
    let options = Options { platform: clock.unwrap_or_else(|| Arc::clone(&options.platform)), ..options };
    start(&program, &library, options)
        .map_err(|error| error.to_string())?
        .wait()
        .map_err(|failure| failure.to_string())?;
    Ok(())
}

fn library() -> BenchResult<Library> {
    let signature = SourceSignature {
        module: "chain".into(),
        name: "burst".into(),
        doc: "Begins flows one after the other and prints the nanoseconds of the loop.".into(),
        parameters: vec![Parameter { name: "count".into(), ty: Type::Int, passing: Passing::Value, default: None }],
        element: Some(Type::Int),
        answer: None,
        ordered: false,
    };
    let mut library = Library::default();
    library.add(chain().source(signature, Arc::new(Burst)))?;
    Ok(library)
}

/// The source whose loop is timed.
struct Burst;

impl Source for Burst {
    fn open(
        &self,
        arguments: Vec<Value>,
        _routes: Arc<[Route]>,
        _environment: &Environment,
    ) -> Result<Arc<dyn Opened>, Failure> {
        match arguments.as_slice() {
            [Value::Int(count)] => Ok(Arc::new(Counted(*count))),
            _ => Err(Failure::argument("a count expected")),
        }
    }
}

struct Counted(i64);

impl Opened for Counted {
    fn describe(&self) -> String {
        format!("{} flows", self.0)
    }

    fn run(self: Arc<Self>, flows: Arc<dyn Flows>, _stop: Stop) -> LocalFuture<Result<(), Failure>> {
        Box::pin(async move {
            let begin = Instant::now();
            for number in 0..self.0 {
                match flows.begin(0, &mut vec![Value::Int(number)]) {
                    Begun::Done(answer) => _ = black_box(answer?),
                    // The rounds of the first flow may run on another core.
                    Begun::Pending(answer) => _ = black_box(answer.await?),
                    Begun::Full => return Err(Failure::function("the program was full")),
                }
            }
            println!("{}", begin.elapsed().as_nanos());
            Ok(())
        })
    }
}
