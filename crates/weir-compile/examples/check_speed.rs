//! Measures the speed of checking.
//!
//! Generates and compiles programs of 1,000 and 10,000 lines, and prints the best and the median of several rounds, by
//! phase. Run it with `cargo run --release -p weir-compile --example check_speed`.
#![allow(clippy::print_stdout, reason = "an example says what it measured")]

use std::time::{Duration, Instant};

use test_support::long_program;
use weir_host::Library;
use weir_syntax::{SourceFile, SourceId};

/// The number of compilations of each program.
const ROUNDS: usize = 15;

fn measured(rounds: usize, mut work: impl FnMut()) -> (Duration, Duration) {
    let mut times: Vec<Duration> = (0..rounds)
        .map(|_| {
            let begin = Instant::now();
            work();
            begin.elapsed()
        })
        .collect();
    times.sort();
    (times[0], times[times.len() / 2])
}

/// Measures a check after an edit of one line in the middle, at best: with the cache of the previous check. Dropping
/// the previous result is not measured, because a language server does that after it has answered.
fn edited(text: &str, library: &Library) -> Duration {
    let mut cache = weir_compile::CheckCache::default();
    let (mut times, mut before) = (Vec::new(), None);
    let middle = text.len() / 2 + text[text.len() / 2..].find("half - 10").expect("each part has one");
    for round in 0..ROUNDS {
        let changed = format!("{}half - 1{round}{}", &text[..middle], &text[middle + "half - 10".len()..]);
        let file = SourceFile::new("made.weir", changed);
        let begin = Instant::now();
        let checked = weir_compile::check_again(SourceId(0), &file, library, &mut cache);
        times.push(begin.elapsed());
        drop(before.replace(checked));
    }
    times.into_iter().skip(1).min().unwrap_or_default()
}

fn main() {
    let library = Library::default();
    for lines in [1_000, 10_000] {
        let text = long_program::with_lines(lines);
        let file = SourceFile::new("made.weir", text.as_str());
        let said = weir_compile::compile(SourceId(0), &file, &library).diagnostics;
        assert!(said.is_empty(), "the made program is right: {said:?}");
        let (parse, _) = measured(ROUNDS, || _ = weir_syntax::parse(SourceId(0), &text));
        let (best, median) = measured(ROUNDS, || _ = weir_compile::check(SourceId(0), &file, &library));
        let edit = edited(&text, &library);
        println!(
            "{} lines: parse {parse:?}, check best {best:?}, median {median:?}, after an edit {edit:?}",
            text.lines().count()
        );
    }
}
