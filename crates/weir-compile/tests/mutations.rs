//! Nothing that can be written makes the compiler panic: mutations of right and wrong programs are compiled, and what
//! compiles is verified (assertions are on). `WEIR_MUTATIONS` sets how many are tried, `WEIR_SEED` where they begin.
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

extern crate weir_host as weir;

mod fixture;

use std::path::PathBuf;

use weir_syntax::{SourceFile, SourceId};

/// A small generator of numbers, the same on every machine (Marsaglia, "Xorshift RNGs", 2003).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below.max(1) as u64) as usize
    }
}

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(otherwise)
}

fn corpus() -> Vec<String> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut texts = Vec::new();
    for folder in ["diagnostics", "programs"] {
        let files = std::fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "weir")).collect();
        files.sort();
        texts.extend(files.iter().map(|path| std::fs::read_to_string(path).unwrap()));
    }
    texts.retain(|text| text.len() < 4000);
    texts
}

/// Words, numbers, texts, signs and spaces, each a piece.
fn pieces(text: &str) -> Vec<&str> {
    let kind = |letter: char| match letter {
        letter if letter.is_alphanumeric() || letter == '_' => 0,
        ' ' | '\n' => 1,
        _ => 2,
    };
    let mut pieces = Vec::new();
    let mut start = 0;
    let letters: Vec<(usize, char)> = text.char_indices().collect();
    for pair in letters.windows(2) {
        if kind(pair[0].1) != kind(pair[1].1) || kind(pair[0].1) == 2 {
            pieces.push(&text[start..pair[1].0]);
            start = pair[1].0;
        }
    }
    pieces.push(&text[start..]);
    pieces
}

fn mutated(corpus: &[String], numbers: &mut Numbers) -> String {
    let mut own = pieces(&corpus[numbers.next(corpus.len())]);
    let other = pieces(&corpus[numbers.next(corpus.len())]);
    for _ in 0..=numbers.next(4) {
        let at = numbers.next(own.len());
        match numbers.next(6) {
            0 => _ = own.remove(at),
            1 => own.insert(at, other[numbers.next(other.len())]),
            2 => own[at] = other[numbers.next(other.len())],
            3 => {
                let with = numbers.next(own.len());
                own.swap(at, with);
            }
            4 => {
                let from = numbers.next(other.len());
                let to = (from + numbers.next(20)).min(other.len());
                own.splice(at..at, other[from..to].iter().copied());
            }
            _ => {
                let word = own[numbers.next(own.len())];
                own[at] = word;
            }
        }
        if own.is_empty() {
            own.push("fn");
        }
    }
    own.concat()
}

#[test]
fn no_text_makes_the_compiler_panic() {
    let library = fixture::library();
    let corpus = corpus();
    let (count, seed) = (setting("WEIR_MUTATIONS", 3000), setting("WEIR_SEED", 1));
    for case in 0..count {
        let mut numbers = Numbers((seed + case).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let text = mutated(&corpus, &mut numbers);
        let compile = || _ = weir_compile::compile(SourceId(0), &SourceFile::new("case.weir", &*text), &library);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(compile));
        assert!(outcome.is_ok(), "seed {} panics on:\n{text}", seed + case);
    }
}
