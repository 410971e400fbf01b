//! Checking a file again after an edit gives the same result as checking it for the first time.
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

mod mutator;

use mutator::Numbers;
use test_support::fixture;
use weir_compile::{CheckCache, Checked};
use weir_host::Library;
use weir_syntax::{SourceFile, SourceId};

fn checked(text: &str, library: &Library, cache: &mut CheckCache) -> Checked {
    weir_compile::check_again(SourceId(0), &SourceFile::new("case.weir", text), library, cache)
}

#[track_caller]
fn assert_same(text: &str, library: &Library, cache: &mut CheckCache) {
    let again = checked(text, library, cache).diagnostics;
    assert_eq!(again, checked(text, library, &mut CheckCache::default()).diagnostics, "{text}");
}

#[test]
fn whatever_is_edited_the_answer_is_that_of_a_first_check() {
    let (library, corpus) = (fixture::library(), mutator::corpus());
    for seed in 1..1500 {
        let mut numbers = Numbers::new(seed);
        let mut cache = CheckCache::default();
        let original = corpus[numbers.next(corpus.len())].clone();
        for _ in 0..3 {
            assert_same(&original, &library, &mut cache);
            let edited = mutator::mutated(&[mutator::pieces(&original)], &mut numbers);
            assert_same(&edited, &library, &mut cache);
        }
    }
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
