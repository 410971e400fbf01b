//! `#[weir::function]`: what a function becomes, and how a call of it is carried over.

#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

extern crate weir_host as weir;

use weir::{Failure, Text};

/// Adds two.
///
/// With a second paragraph.
#[weir::function(pure)]
fn add(left: i64, #[default(85)] right: u8) -> i64 {
    left + i64::from(right)
}

#[weir::function]
fn join(call: &str, other: Text) -> String {
    format!("{call}{other}")
}

#[weir::function]
fn put(list: &mut Vec<i64>, element: i64) -> Result<(), std::num::ParseIntError> {
    list.push(element);
    if element < 0 { "x".parse::<i64>().map(drop) } else { Ok(()) }
}

#[weir::function]
fn push(count: &mut i64, by: &i64) {
    *count += by;
}

#[weir::function(reads, fresh = "2m")]
async fn slow(text: &str, count: &mut i64) -> Result<String, Failure> {
    *count += 1;
    Ok(text.to_uppercase())
}

#[weir::function(blocking)]
fn hold(text: &str, count: &mut i64) -> usize {
    *count += 1;
    text.len()
}

#[weir::function]
fn rooted(#[environment] root: &String, name: &str) -> String {
    format!("{root}/{name}")
}

#[derive(Default)]
struct Counter(i64);

#[weir::function]
impl Counter {
    fn count(&mut self, by: i64) -> i64 {
        self.0 += by;
        self.0
    }
    #[weir::function(pure)]
    fn zero() -> i64 {
        0
    }
}

weir::library! {
    /// Functions of the tests.
    tests: add, join, put, push, slow, hold, rooted, Counter::count, Counter::zero
}

#[test]
fn all_are_in_the_module() {
    let module = tests();
    for function in module.functions.values() {
        println!("{:?}", function.signature);
    }
    assert_eq!(module.functions.len(), 9);
}
