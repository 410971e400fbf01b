//! Measures the speed of checking.
//!
//! Generates and compiles programs of 1,000 and 10,000 lines, and one of 50,000 lines in 200 files, and prints the best and
//! the median of several rounds, by phase. Run it with `cargo run --release -p weir-compile --example check_speed`.
#![allow(clippy::print_stdout, reason = "an example says what it measured")]

use std::time::{Duration, Instant};

use test_support::long_program;
use weir_compile::{CheckCache, ModuleFile, ModuleFiles, ModulePlace, ProgramFiles};
use weir_host::Library;
use weir_syntax::{SourceFile, SourceId};

/// The number of compilations of each program.
const ROUNDS: usize = 15;

/// The number of files of the program of several files, and the lines of each.
const FILES: usize = 200;
const FILE_LINES: usize = 250;

/// Measures the work without dropping its result, which a command does not and a language server does after its answer.
fn measured<T>(rounds: usize, mut work: impl FnMut() -> T) -> (Duration, Duration) {
    let mut times: Vec<Duration> = (0..rounds)
        .map(|_| {
            let begin = Instant::now();
            let result = work();
            let time = begin.elapsed();
            drop(result);
            time
        })
        .collect();
    times.sort();
    (times[0], times[times.len() / 2])
}

/// Measures a check after an edit of one line in the middle, at best: with the cache of the previous check. Dropping
/// the previous result is not measured, because a language server does that after it has answered.
fn edited(text: &str, library: &Library) -> Duration {
    let mut cache = CheckCache::default();
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

/// The modules of a program, by their names.
struct Modules(Vec<(String, String)>);

impl ModuleFiles for Modules {
    fn read(&mut self, place: &ModulePlace<'_>) -> ModuleFile {
        let found = self.0.iter().find(|(name, _)| place.names == [name.as_str()]);
        found.map_or(ModuleFile::Missing, |(name, text)| ModuleFile::Found { name: name.clone(), text: text.clone() })
    }
}

/// Measures a program of several files: loading and parsing it; and checking it, too, from scratch and after edits of one of
/// its files.
fn several_files(files: usize, lines: usize, library: &Library) {
    let mut modules = Modules(long_program::with_files(files, lines));
    let (name, main) = modules.0.pop().expect("the main file is the last");
    let all = modules.0.iter().map(|(_, text)| text.lines().count()).sum::<usize>();
    let load = |modules: &mut Modules, cache: &mut CheckCache| {
        let mut file = SourceFile::new(name.as_str(), main.as_str());
        let program = ProgramFiles::load_again(SourceId(0), &mut file, library, modules, &mut cache.trees);
        (program, file)
    };
    let (parse, _) = measured(ROUNDS, || load(&mut modules, &mut CheckCache::default()));
    let (best, median) = measured(ROUNDS, || {
        let mut cache = CheckCache::default();
        let (program, file) = load(&mut modules, &mut cache);
        let checked = weir_compile::check_program(program, &file, library, &mut cache);
        let errors: Vec<_> = checked.diagnostics.iter().filter(|found| found.is_error()).collect();
        assert!(errors.is_empty(), "the made program is right: {errors:?}");
        (checked, file, cache)
    });
    let (mut cache, mut edit) = (CheckCache::default(), Duration::MAX);
    for round in 0..ROUNDS {
        modules.0[files / 2].1.push_str(&format!("fn edited{round}() -> Int {{ {round} }}\n"));
        let begin = Instant::now();
        let (program, file) = load(&mut modules, &mut cache);
        let checked = weir_compile::check_program(program, &file, library, &mut cache);
        // The first check fills the cache. Dropping the result is not measured.
        edit = if round == 0 { edit } else { edit.min(begin.elapsed()) };
        drop(checked);
    }
    println!(
        "{all} lines in {files} files: load {parse:?}, check best {best:?}, median {median:?}, after an edit {edit:?}"
    );
}

fn main() {
    let library = Library::default();
    for lines in [1_000, 10_000] {
        let text = long_program::with_lines(lines);
        let file = SourceFile::new("made.weir", text.as_str());
        let said = weir_compile::compile(SourceId(0), &file, &library).diagnostics;
        assert!(said.is_empty(), "the made program is right: {said:?}");
        let (parse, _) = measured(ROUNDS, || weir_syntax::parse(SourceId(0), &text));
        let (best, median) = measured(ROUNDS, || weir_compile::check(SourceId(0), &file, &library));
        let edit = edited(&text, &library);
        println!(
            "{} lines: parse {parse:?}, check best {best:?}, median {median:?}, after an edit {edit:?}",
            text.lines().count()
        );
    }
    several_files(FILES, FILE_LINES, &library);
}
