//! The process that runs a row in Weir: under the engine `event`, as `weir run` does by default.
//!
//! The program has one entry point, `for size in bench.flows(0)`. A flow with a positive size makes the data, all other
//! flows run the row and pass its result to `bench.result`.

use std::io::{BufRead, Write, stdin, stdout};
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use test_support::flows::{Feed, options};
use weir::Value;
use weir_syntax::{SourceFile, Sources, Style, render};

use crate::BenchResult;
use crate::rows::Row;

/// The result of the row that was run last.
static RESULT: AtomicI64 = AtomicI64::new(0);

mod functions {
    //! The function with which a program returns its result, and those on floats that the library does not have.

    use std::sync::atomic::Ordering;

    weir::library! {
        /// The benchmark's own functions.
        pub(super) bench: result, float, whole, sqrt
    }

    /// Stores the result of a row.
    #[weir::function]
    pub(super) fn result(number: i64) {
        super::RESULT.store(number, Ordering::SeqCst);
    }

    /// Returns a whole number as a float.
    #[weir::function(pure, total)]
    pub(super) fn float(number: i64) -> f64 {
        number as f64
    }

    /// Returns the whole part of a float.
    #[weir::function(pure, total)]
    pub(super) fn whole(number: f64) -> i64 {
        number as i64
    }

    /// Returns the square root.
    #[weir::function(pure, total)]
    pub(super) fn sqrt(number: f64) -> f64 {
        number.sqrt()
    }
}

/// Returns the library that the rows use, which takes flows from the feed.
fn library(feed: &Feed) -> weir::Library {
    let mut library = weir_library::library();
    library.modules.insert("bench".into(), functions::bench());
    feed.put(&mut library, "bench", "flows");
    library
}

/// Returns a listing of the row's regions.
pub(crate) fn regions(row: &Row) -> BenchResult<String> {
    let library = library(&Feed::new());
    Ok(weir_runtime::regions(&compiled(row, &library)?, &library).map_err(|error| error.to_string())?)
}

/// Makes the data, and runs the row once for each line of the standard input.
pub(crate) fn run(row: &Row, size: i64) -> BenchResult<()> {
    let feed = Feed::new();
    let library = library(&feed);
    let running = weir_runtime::start(&compiled(row, &library)?, &library, options("event", 1))?;
    let flow = |size: i64| feed.run(vec![Value::Int(size)]).map_err(|failure| failure.message.to_string());
    let mut lines = stdin().lock().lines();
    say("begin")?;
    lines.next().transpose()?;
    flow(size)?;
    say("ready")?;
    for line in lines {
        line?;
        let begun = Instant::now();
        flow(0)?;
        say(&format!("{} {}", begun.elapsed().as_nanos(), RESULT.load(Ordering::SeqCst)))?;
    }
    running.stop();
    Ok(())
}

fn compiled(row: &Row, library: &weir::Library) -> BenchResult<weir_ir::graph::Program> {
    let mut sources = Sources::new();
    let file = SourceFile::new(format!("{}.weir", row.name), row.program);
    let source = sources.add(file.clone());
    let compiled = weir_compile::compile(source, &file, library);
    for diagnostic in &compiled.diagnostics {
        eprintln!("{}", render(&sources, diagnostic, Style::Plain));
    }
    compiled.graph.ok_or_else(|| format!("{}.weir does not compile", row.name).into())
}

fn say(line: &str) -> BenchResult<()> {
    let mut output = stdout().lock();
    writeln!(output, "{line}")?;
    Ok(output.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of instructions of the shortest loop in the listing of a row whose last instruction has this name.
    fn instructions_of_round(row: &str, end: &str) -> usize {
        let listing = regions(Row::named(row).expect("there is such a row")).expect("the row compiles");
        let rounds = listing.lines().filter_map(|line| {
            let (at, instruction) = line.trim().split_once("  ")?;
            let head = instruction.trim().strip_prefix(end)?.rsplit_once("->")?.1;
            Some(at.parse::<usize>().ok()? + 1 - head.parse::<usize>().ok()?)
        });
        rounds.min().unwrap_or_else(|| panic!("no loop ends with {end}:\n{listing}"))
    }

    #[test]
    fn a_round_of_a_loop_over_numbers_is_a_few_instructions() {
        // Of which one, behind `set_word`, is skipped, and the first runs all rounds that it can.
        assert_eq!(instructions_of_round("sieve", "again_unless_less_or_equal"), 5);
        assert_eq!(instructions_of_round("sieve", "next_word"), 2);
        assert_eq!(instructions_of_round("collatz", "again_unless_equal"), 8);
        assert_eq!(instructions_of_round("integer_loop", "again_unless_less_or_equal"), 5);
        assert_eq!(instructions_of_round("levenshtein", "next_word"), 4);
        assert_eq!(instructions_of_round("group_by", "next_word"), 8);
    }
}
