//! Checking a file again after an edit gives the same result as checking it for the first time.
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

mod corpus;
mod mutator;

use corpus::Corpus;
use mutator::Numbers;
use test_support::{fixture, long_program};
use weir_compile::{CheckCache, Checked, ModuleFile, ModuleFiles, ModulePlace, ProgramFiles};
use weir_host::Library;
use weir_syntax::{Diagnostic, SourceFile, SourceId};

fn checked(text: &str, library: &Library, cache: &mut CheckCache) -> Checked {
    weir_compile::check_again(SourceId(0), &SourceFile::new("case.weir", text), library, cache)
}

#[track_caller]
fn assert_same(text: &str, library: &Library, cache: &mut CheckCache) {
    let again = checked(text, library, cache);
    let first = checked(text, library, &mut CheckCache::default());
    assert_eq!(again.diagnostics, first.diagnostics, "{text}");
    assert!(again.expr == first.expr && again.tests == first.tests, "the program is the same\n{text}");
    assert_eq!(again.query_rests, first.query_rests, "{text}");
}

#[test]
fn whatever_is_edited_the_answer_is_that_of_a_first_check() {
    for (Corpus { texts, library }, seeds) in [(corpus::of_tests(), 1..1000), (corpus::of_documentation(), 1..250)] {
        for seed in seeds {
            let mut numbers = Numbers::new(seed);
            let mut cache = CheckCache::default();
            let original = texts[numbers.next(texts.len())].clone();
            for _ in 0..3 {
                assert_same(&original, &library, &mut cache);
                let edited = mutator::mutated(&[mutator::pieces(&original)], &mut numbers);
                assert_same(&edited, &library, &mut cache);
            }
        }
    }
}

/// A program whose flows consist of parts: routes, a handler and a `before` of the service, a handler of the file, `fn`s that
/// leave a backtrace, an entry point with an end, and tests.
const FLOWS: &str = include_str!("check_cache/flows.weir");

#[test]
fn flows_that_move_are_lowered_as_a_first_check_lowers_them() {
    let (library, mut cache) = (fixture::library(), CheckCache::default());
    assert_same(FLOWS, &library, &mut cache);
    assert_eq!(checked(FLOWS, &library, &mut cache).diagnostics, []);
    for (line, _) in FLOWS.match_indices('\n') {
        // A line before each line, which moves all flows behind it, and then a longer one.
        for added in ["\n", "\n// Here.", "\n// Not here any more."] {
            assert_same(&format!("{}{added}{}", &FLOWS[..line], &FLOWS[line..]), &library, &mut cache);
        }
    }
    let mut edited = FLOWS.to_owned();
    let edits = [
        ("n + 2", "n + 3"),
        ("* 7", "* 8"),
        ("before {", "before (header accept: Text) {"),
        ("first = 1", "first = 1.0"),
    ];
    for (from, to) in edits.into_iter().chain(edits.map(|(from, to)| (to, from))) {
        assert!(edited.contains(from), "{from}");
        edited = edited.replace(from, to);
        assert_same(&edited, &library, &mut cache);
    }
    assert_eq!(edited, FLOWS);
}

/// A transaction whose changes are placed, with failures that leave the flow in it and in a `fn`.
const PLACED: &str = "record Account { owner: Text, balance: Int }\n\ntable accounts: Account key owner\n\n\
     fn opened(owner: Text) -> Result(Text) { Ok(accounts.insert(Account { owner, balance: 0 })?) }\n\n\
     for line in stdio.lines() {\n  atomic accounts {\n    accounts.upsert(Account { owner: line, balance: 1 })?\n    \
     opened(\"{line}!\")?\n  }\n}\n";

#[test]
fn the_failures_of_placed_changes_move_with_their_text() {
    let (library, mut cache) = (weir_library::library(), CheckCache::default());
    let text = format!("use stdio\n\n{PLACED}");
    assert_same(&text, &library, &mut cache);
    assert_eq!(checked(&text, &library, &mut cache).diagnostics, []);
    assert_same(&format!("use stdio\n\n// Moved.\n{PLACED}"), &library, &mut cache);
}

const CALLED: &str = "use wire\n\nfn greet() -> Int {\n  let line = wire.connect(\"a\")\n  line.send(\"hello\")\n}\n\n\
     fn twice() -> Int { greet() + greet() }\n";

#[test]
fn a_fn_is_looked_at_again_when_one_that_it_calls_has_changed() {
    let library = fixture::library();
    let mut cache = CheckCache::default();
    assert_same(CALLED, &library, &mut cache);
    let moved = CALLED.replace("  line.send", "  line.close()\n  line.send");
    assert_same(&moved, &library, &mut cache);
    assert!(!checked(&moved, &library, &mut cache).diagnostics.is_empty(), "it uses a moved value");
    assert_same(&format!("// a line before\n{CALLED}"), &library, &mut cache);
}

#[test]
fn an_error_that_two_fns_share_is_still_that_of_the_other_when_one_is_removed() {
    let (library, mut cache) = (fixture::library(), CheckCache::default());
    let wrong = CALLED.replace("  line.send", "  line.close()\n  line.send");
    let both = format!("{wrong}\nfn thrice() -> Int {{ greet() + greet() + greet() }}\n");
    assert_same(&both, &library, &mut cache);
    let (twice, thrice) =
        ("fn twice() -> Int { greet() + greet() }\n", "fn thrice() -> Int { greet() + greet() + greet() }\n");
    for removed in [twice, thrice] {
        let one = both.replace(removed, "");
        assert_same(&one, &library, &mut cache);
        assert!(!checked(&one, &library, &mut cache).diagnostics.is_empty(), "{one}");
        assert_same(&both, &library, &mut cache);
    }
}

/// The modules of a program, by their names.
struct Modules(Vec<(String, String)>);

impl ModuleFiles for Modules {
    fn read(&mut self, place: &ModulePlace<'_>) -> ModuleFile {
        let found = self.0.iter().find(|(name, _)| place.names == [name.as_str()]);
        found.map_or(ModuleFile::Missing, |(name, text)| ModuleFile::Found { name: name.clone(), text: text.clone() })
    }
}

fn checked_files(modules: &mut Modules, main: &str, library: &Library, cache: &mut CheckCache) -> Vec<Diagnostic> {
    let mut file = SourceFile::new("main.weir", main);
    let program = ProgramFiles::load(SourceId(0), &mut file, library, modules);
    weir_compile::check_program(program, &file, library, cache).diagnostics
}

#[test]
fn whatever_file_of_a_program_is_edited_the_answer_is_that_of_a_first_check() {
    let library = Library::default();
    for seed in 1..150 {
        let mut numbers = Numbers::new(seed);
        let mut modules = Modules(long_program::with_files(4, 25));
        let (_, main) = modules.0.pop().unwrap();
        let mut cache = CheckCache::default();
        for _ in 0..6 {
            let edited = numbers.next(modules.0.len());
            let original = modules.0[edited].1.clone();
            for text in [mutator::mutated(&[mutator::pieces(&original)], &mut numbers), original] {
                modules.0[edited].1 = text;
                let again = checked_files(&mut modules, &main, &library, &mut cache);
                let first = checked_files(&mut modules, &main, &library, &mut CheckCache::default());
                assert_eq!(again, first, "seed {seed}: {}", modules.0[edited].1);
            }
        }
    }
}
