//! The process that makes the data of a memory row in Rust.

use std::hint::black_box;
use std::io::{BufRead, stdin};

use crate::BenchResult;
use crate::rows::Row;

/// A record of the row `memory_records`.
struct Person {
    name: String,
    age: i64,
    score: f64,
}

/// Makes the data and waits until the standard input ends.
pub(crate) fn run(row: &Row, size: i64) -> BenchResult<()> {
    let mut lines = stdin().lock().lines();
    println!("begin");
    lines.next().transpose()?;
    let (mut people, mut numbers) = (Vec::new(), Vec::new());
    match row.name {
        "memory_records" => people.extend((0..size).map(person)),
        _ => numbers.extend(0..size),
    }
    println!("ready");
    lines.for_each(drop);
    let sum: f64 = people.iter().map(|person| person.score + (person.age + person.name.len() as i64) as f64).sum();
    black_box((sum, numbers));
    Ok(())
}

fn person(number: i64) -> Person {
    Person { name: format!("name{}", number % 1000), age: number % 90, score: number as f64 / 2.0 }
}
