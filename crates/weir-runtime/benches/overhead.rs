//! What the runtime costs beyond the functions that it calls: nanoseconds for a flow and for a fused node.
//!
//! A source begins many flows of two bodies that differ in their length; what they differ by is the price of a node, and
//! what is left is the price of a flow. The same calls in a plain Rust loop stand beside it.

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

#[path = "../tests/support/mod.rs"]
mod support;

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use support::gates::{immediate, int, library, on_shared};
use weir_host::{
    Begun, Call, Failure, Flows, LocalFuture, Opened, Outcome, Parameter, Passing, Route, Source, SourceSignature,
    Stop, Type, Value,
};
use weir_runtime::{Options, start};

const FLOWS: u32 = 300_000;
const NODES: u32 = 100;

/// A source that begins flows as fast as it can, and says how long each took.
struct Fast;

impl Source for Fast {
    fn open(&self, _: Vec<Value>, _: Arc<[Route]>) -> Result<Arc<dyn Opened>, Failure> {
        Ok(Arc::new(Fast))
    }
}

impl Opened for Fast {
    fn describe(&self) -> String {
        "as fast as it can".into()
    }

    fn run(self: Arc<Self>, flows: Arc<dyn Flows>, _: Stop) -> LocalFuture<Result<(), Failure>> {
        Box::pin(async move {
            let mut best = f64::MAX;
            for _ in 0..5 {
                let begin = Instant::now();
                for index in 0..FLOWS {
                    match flows.begin(0, vec![Value::Int(i64::from(index))]) {
                        Begun::Done(answer) => _ = black_box(answer),
                        _ => return Err(Failure::function("a flow that waits")),
                    }
                }
                best = best.min(begin.elapsed().as_nanos() as f64 / f64::from(FLOWS));
            }
            BEST.store((best * 1000.0) as u64, std::sync::atomic::Ordering::SeqCst);
            Ok(())
        })
    }
}

static BEST: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

fn ns_per_flow(shared: &str, line: &str, count: u32) -> f64 {
    let step = |call: &mut Call<'_>| Outcome::Value(Value::Int(black_box(int(call, 0)).wrapping_add(1)));
    let touch = |call: &mut Call<'_>| Outcome::Value(Value::Int(black_box(int(call, 1)).wrapping_add(1)));
    let parameters = [("x", Type::Int, Passing::Value)];
    let functions =
        [immediate("a.step", &parameters, step), on_shared(immediate("a.touch", &parameters, touch), Passing::Change)];
    let mut library = library(functions);
    let signature = SourceSignature {
        module: "a".into(),
        name: "fast".into(),
        doc: "".into(),
        parameters: vec![Parameter { name: "first".into(), ty: Type::Int, passing: Passing::Value, default: None }],
        element: Some(Type::Int),
        answer: None,
        ordered: false,
    };
    let module = library.modules.shift_remove("a").unwrap_or_default();
    library.modules.insert("a".into(), module.source(signature, Arc::new(Fast)));
    let mut body = String::new();
    for index in 0..count {
        let line = line.replace("IN", &index.to_string()).replace("OUT", &(index + 1).to_string());
        body.push_str(&format!("    {}\n", line.replace("SITE", &format!("s{index}"))));
    }
    let text = format!(
        "{shared}entry t from a.fast unordered\n  arguments\n    yield (0,)\n  flow f (%0 x: Int) -> Int\n{body}    yield %{count}\n"
    );
    let program = weir_ir::parse::expr(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let options = Options { threads: Some(1), ..Options::default() };
    let running = start(&weir_ir::lower(&program, &library), &library, options).expect("it starts");
    running.wait().expect("it ends");
    BEST.load(std::sync::atomic::Ordering::SeqCst) as f64 / 1000.0
}

/// The same chain of calls without a graph: slots, an adaptor behind a vtable, and nothing else.
fn plain_call() -> f64 {
    type Adaptor = dyn Fn(&mut Call<'_>) -> Outcome;
    let step: Box<Adaptor> = Box::new(|call| Outcome::Value(Value::Int(black_box(int(call, 0)).wrapping_add(1))));
    let environment = weir_host::Environment::default();
    let arguments = [weir_host::Argument::Slot { index: 0, last: true }];
    let mut slots = [Value::Int(1)];
    let begin = Instant::now();
    for _ in 0..FLOWS * NODES {
        let mut call = Call {
            slots: &mut slots,
            constants: &[],
            shared: &[],
            state: None,
            arguments: &arguments,
            environment: &environment,
        };
        if let Outcome::Value(value) = step(black_box(&mut call)) {
            slots[0] = value;
        }
    }
    begin.elapsed().as_nanos() as f64 / f64::from(FLOWS * NODES)
}

fn main() {
    let plain = plain_call();
    println!("plain call through its adaptor      {plain:7.1} ns");
    let cases = [
        ("call", "", "%OUT: Int = call a.step at SITE (%IN)"),
        ("call on a shared value", "shared s: Int\n  yield 0\n", "%OUT: Int = call a.touch at SITE (shared s, %IN)"),
        ("add", "", "%OUT: Int = add(%IN, 1)"),
        ("copy", "", "%OUT: Int = copy(%IN)"),
    ];
    println!("flow of no node                     {:7.1} ns", ns_per_flow("", "", 0));
    for (name, shared, line) in cases {
        let (short, long) = (ns_per_flow(shared, line, 1), ns_per_flow(shared, line, NODES + 1));
        println!("node: {name:30}{:7.1} ns", (long - short) / f64::from(NODES));
    }
}
