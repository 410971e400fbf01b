//! Measures the overhead of an adaptor over a direct call of its function: `cargo run --release -p weir-host --example
//! call_cost`.
#![allow(clippy::print_stdout, reason = "it reports what it measured")]

extern crate weir_host as weir;

use std::hint::black_box;
use std::time::Instant;

use weir::{Argument, Call, Environment, Function, FunctionCode, Outcome, Shared, Value};

const ROUNDS: u32 = 40;
const CALLS: u32 = 500_000;

#[weir::function(pure)]
#[inline(never)]
fn add(left: i64, right: u8) -> i64 {
    left + i64::from(right)
}

#[weir::function(pure)]
#[inline(never)]
fn length(text: &str) -> usize {
    text.len()
}

#[weir::function]
#[inline(never)]
fn count_up(count: &mut i64) {
    *count += 1;
}

#[derive(Default)]
struct Counter(i64);

#[weir::function]
impl Counter {
    #[inline(never)]
    fn count(&mut self, by: i64) -> i64 {
        self.0 += by;
        self.0
    }
}

weir::library!(pub(crate) cost: add, length, count_up, Counter::count);

/// Returns the duration of `work` in nanoseconds, in the fastest of many rounds; slower rounds were disturbed.
fn nanoseconds(mut work: impl FnMut()) -> f64 {
    let mut round = || {
        let begun = Instant::now();
        for _ in 0..CALLS {
            work();
        }
        begun.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
    };
    (0..ROUNDS).map(|_| round()).fold(f64::INFINITY, f64::min)
}

fn called(function: &Function, arguments: &[Argument]) -> f64 {
    let FunctionCode::Immediate(code) = &function.code else { return f64::NAN };
    let state = function
        .signature
        .state
        .as_ref()
        .map(|state| Shared::new((state.make)(&[]).expect("its state is made of nothing")));
    let mut slots = [Value::Int(1), Value::Int(2), Value::text("water")];
    let shared = [Shared::new(Value::Int(0))];
    let environment = Environment::default();
    nanoseconds(|| {
        let mut call = Call {
            slots: &mut slots,
            constants: &[],
            shared: &shared,
            state: state.as_ref(),
            arguments,
            out: None,
            environment: &environment,
            units: weir::UnitBudget::UNLIMITED,
            awaited: None,
        };
        let outcome: Outcome = black_box(code)(black_box(&mut call));
        black_box(&outcome);
    })
}

fn main() {
    let module = cost();
    let slot = |index| Argument::Slot { index, last: false };
    let rows: [(&str, &[Argument]); 5] = [
        ("add", &[slot(0), slot(1)]),
        ("length", &[slot(2)]),
        ("count_up", &[slot(0)]),
        ("count_up", &[Argument::Shared(0)]),
        ("count", &[slot(0)]),
    ];
    let plain = nanoseconds(|| {
        black_box(add(black_box(1), black_box(2)));
    });
    let shared = Shared::new(Value::Int(0));
    let locked = nanoseconds(|| {
        black_box(&mut *black_box(&shared).write());
    });
    println!("the lock of a shared value: {locked:.2} ns");
    println!("add, called by Rust: {plain:.2} ns");
    for (name, arguments) in rows {
        let measured = called(&module.functions[name], arguments);
        println!("{name}({arguments:?}): {measured:.2} ns, {:.2} ns beyond a call by Rust", measured - plain);
    }
}
