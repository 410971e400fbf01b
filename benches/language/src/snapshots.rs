//! The cost of a change to a shared list or map while readers hold snapshots of earlier states.
//!
//! After each change, one of [`READERS`] readers exchanges its snapshot for the new state, so that every change finds all
//! nodes shared that it has not copied itself. The column `alone` is the same change without readers, and `first` the
//! first change beside readers, with which a long value begins to become persistent.

use std::collections::VecDeque;
use std::time::Instant;

use serde_json::json;
use weir::{Elements, Entries, Value};

use crate::BenchResult;

/// The number of snapshots that are held.
const READERS: usize = 1_000;
/// The number of changes that are measured.
const CHANGES: i64 = 20_000;
/// The numbers of entries and elements.
const SIZES: [i64; 6] = [100, 256, 1_000, 10_000, 100_000, 1_000_000];

/// Measures changes of all sizes, and prints and writes the figures.
pub(crate) fn measure() -> BenchResult<()> {
    println!("{:<26} {:>9} {:>10} {:>10} {:>10} {:>12}", "ns for a change", "size", "alone", "median", "p99", "first");
    let mut rows = Vec::new();
    for size in SIZES {
        let key = |number: i64| Value::text(&format!("key {}", number * 7919 % size));
        let map = || (0..size).map(|number| (key(number), Value::Int(number))).collect::<Entries>();
        let list = || (0..size).map(|number| Value::text(&number.to_string())).collect::<Elements>();
        rows.push(row("put", size, map, |map, i| drop(map.insert(key(i), Value::Int(i)))));
        rows.push(row("put a new key, keep: size", size, map, |map, i| {
            map.insert(Value::Int(i), Value::Int(i));
            map.remove_first();
        }));
        rows.push(row("push", size, list, |list, i| list.push(Value::Int(i))));
        rows.push(row("push, keep: size", size, list, |list, i| {
            list.push(Value::Int(i));
            list.remove_first(1);
        }));
    }
    bench_harness::results::publish("bench-language-snapshots", &rows.into())
}

fn row<T: Clone>(name: &str, size: i64, value: impl Fn() -> T, change: impl Fn(&mut T, i64)) -> serde_json::Value {
    let alone = sorted(&times(value(), &change, 0));
    let held = times(value(), &change, READERS);
    let sorted = sorted(&held);
    let at = |share: f64| sorted[(sorted.len() as f64 * share) as usize];
    let (alone, median, p99, first) = (alone[alone.len() / 2], at(0.5), at(0.99), held[0]);
    println!("{name:<26} {size:>9} {alone:>10} {median:>10} {p99:>10} {first:>12}");
    json!({ "change": name, "size": size, "alone_ns": alone, "median_ns": median, "p99_ns": p99, "first_ns": first })
}

/// Returns the nanoseconds of each change.
fn times<T: Clone>(mut value: T, change: impl Fn(&mut T, i64), readers: usize) -> Vec<u64> {
    let mut snapshots: VecDeque<T> = (0..readers).map(|_| value.clone()).collect();
    let timed = (1..=CHANGES).map(|number| {
        let begun = Instant::now();
        change(&mut value, number);
        let nanos = begun.elapsed().as_nanos() as u64;
        if readers > 0 {
            snapshots.push_back(value.clone());
            snapshots.pop_front();
        }
        nanos
    });
    timed.collect()
}

fn sorted(times: &[u64]) -> Vec<u64> {
    let mut times = times.to_vec();
    times.sort_unstable();
    times
}
