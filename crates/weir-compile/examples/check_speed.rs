//! Measures the speed of checking.
//!
//! Generates and compiles programs of 1,000 and 10,000 lines, and one of 50,000 lines in 200 files, and prints the best and
//! the median of several rounds, by phase. Run it with `cargo run --release -p weir-compile --example check_speed`.
//!
//! `check_speed end 20` only edits the program of many routes 20 times, at the end of a module, so that callgrind can count the
//! instructions of an edit; so do `body`, in a `fn` of a module, and `main`, at the top of the main file.
#![allow(clippy::print_stdout, reason = "an example says what it measured")]

use std::time::{Duration, Instant};

use test_support::{fixture, long_program};
use weir_compile::{CheckCache, Checked, ModuleFile, ModuleFiles, ModulePlace, ProgramFiles};
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

/// A program of several files, and its main file.
struct Program {
    modules: Modules,
    main: String,
}

impl Program {
    fn new(mut texts: Vec<(String, String)>) -> Program {
        let (_, main) = texts.pop().expect("the main file is the last");
        Program { modules: Modules(texts), main }
    }

    fn load(&mut self, cache: &mut CheckCache) -> (ProgramFiles, SourceFile) {
        let mut file = SourceFile::new("main", self.main.as_str());
        let program =
            ProgramFiles::load_again(SourceId(0), &mut file, &fixture::library(), &mut self.modules, &mut cache.trees);
        (program, file)
    }

    fn check(&mut self, library: &Library, cache: &mut CheckCache) -> Checked {
        let (program, file) = self.load(cache);
        weir_compile::check_program(program, &file, library, cache)
    }

    /// Measures a check after each of several edits, at best. The first check fills the cache.
    fn edited(&mut self, library: &Library, rounds: usize, edit: Edit) -> Duration {
        let mut cache = CheckCache::default();
        let (mut best, mut before) = (Duration::MAX, None);
        for round in 0..rounds {
            edit(self, round);
            let begin = Instant::now();
            let checked = self.check(library, &mut cache);
            // Dropping the previous result is not measured.
            best = if round == 0 { best } else { best.min(begin.elapsed()) };
            drop(before.replace(checked));
        }
        best
    }
}

/// Edits a program, each round in another way.
type Edit = fn(&mut Program, usize);

const EDITS: [(&str, Edit); 3] = [
    ("end", |program, round| {
        let middle = program.modules.0.len() / 2;
        program.modules.0[middle].1.push_str(&format!("fn edited{round}() -> Int {{ {round} }}\n"));
    }),
    ("body", |program, round| {
        let middle = program.modules.0.len() / 2;
        let text = &mut program.modules.0[middle].1;
        let rest = text.find("let rest = if half > ").map_or(0, |at| at + "let rest = if half > ".len());
        let end = rest + text[rest..].find(' ').unwrap_or_default();
        text.replace_range(rest..end, &format!("{}", 10 + round));
    }),
    ("main", |program, round| {
        program.main = program.main.replacen("\n\n", &format!("\n\n// Edit {round}.\n"), 1);
    }),
];

/// Measures a program of several files: loading and parsing it; and checking it, too, from scratch and after edits.
fn several_files(name: &str, texts: Vec<(String, String)>) {
    let library = fixture::library();
    let mut program = Program::new(texts);
    let all = program.modules.0.iter().map(|(_, text)| text.lines().count()).sum::<usize>();
    let all = all + program.main.lines().count();
    let (parse, _) = measured(ROUNDS, || program.load(&mut CheckCache::default()));
    let (best, median) = measured(ROUNDS, || {
        let mut cache = CheckCache::default();
        let checked = program.check(&library, &mut cache);
        let errors: Vec<_> = checked.diagnostics.iter().filter(|found| found.is_error()).collect();
        assert!(errors.is_empty(), "the made program is right: {errors:?}");
        (checked, cache)
    });
    println!("{name}, {all} lines: load {parse:?}, check best {best:?}, median {median:?}");
    let [at_end, in_body, in_main] = EDITS.map(|(_, edit)| program.edited(&library, ROUNDS, edit));
    println!(
        "  after an edit at the end of a module {at_end:?}, in a `fn` {in_body:?}, at the top of the main file {in_main:?}"
    );
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [name, rounds] = &arguments[..] {
        let (_, edit) =
            EDITS.into_iter().find(|(known, _)| known == name).expect("the edits are `end`, `body` and `main`");
        let rounds = rounds.parse().expect("the number of edits");
        let time = Program::new(long_program::with_routes(FILES, FILE_LINES)).edited(&fixture::library(), rounds, edit);
        println!("{time:?} after an edit");
        return;
    }
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
    several_files("200 files", long_program::with_files(FILES, FILE_LINES));
    several_files("200 files and 199 routes", long_program::with_routes(FILES, FILE_LINES));
}
