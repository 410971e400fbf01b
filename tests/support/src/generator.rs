//! Random program generator: syntax trees of every form, and ways to disarrange or damage a text.

mod expressions;
mod items;
mod patterns;
mod tables;

use std::sync::Arc;
use weir_syntax::ast::{DocLine, Docs, Name, Path};
use weir_syntax::{SourceId, Span};

/// Generates programs from a seed; the same seed gives the same programs.
#[derive(Clone)]
pub struct Generator {
    state: u64,
}

const LOWER: &[&str] = &[
    "a",
    "b",
    "c",
    "item",
    "total",
    "get",
    "on",
    "test",
    "body",
    "cookie",
    "unprefixed_cookie",
    "encrypted_cookie",
    "form",
    "header",
    "at",
    "per",
    "most",
    "failure",
    "of",
    "constraint",
    "x_1",
    "ünder",
    "session",
    "post",
    "before",
    "config",
    "secret",
    "read",
    "table",
    "key",
    "batched",
    "order",
    "limit",
    "after",
];
const UPPER: &[&str] = &["A", "Post", "Shape", "Ok", "Ünder"];

impl Generator {
    /// Creates a generator with this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 }
    }

    /// Returns the next number: Marsaglia's xorshift, multiplied.
    fn next(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns a number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        ((self.next() >> 33) % limit as u64) as usize
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    fn some<T>(&mut self, percent: usize, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.chance(percent).then(|| make(self))
    }

    /// Returns between `least` and `most` items.
    fn several<T>(&mut self, least: usize, most: usize, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let count = least + self.below(most - least + 1);
        (0..count).map(|_| make(self)).collect()
    }

    fn lower(&mut self) -> Name {
        let text = self.pick(LOWER);
        name(text)
    }

    fn upper(&mut self) -> Name {
        let text = self.pick(UPPER);
        name(text)
    }

    fn lower_path(&mut self) -> Path {
        Path { names: self.several(1, 3, Self::lower), span: nowhere() }
    }

    fn upper_path(&mut self) -> Path {
        let mut names = self.several(0, 2, Self::lower);
        names.push(self.upper());
        Path { names, span: nowhere() }
    }

    fn docs(&mut self) -> Docs {
        let texts = ["What it is.", "", "  indented", "- a list", "`code` {x} \"y\""];
        let lines = match self.chance(20) {
            true => {
                self.several(1, 3, |generator| DocLine { text: Arc::from(generator.pick(&texts)), span: nowhere() })
            }
            false => Vec::new(),
        };
        Docs { lines }
    }

    /// Returns characters of every kind that a text can hold.
    fn characters(&mut self) -> String {
        let pieces = ["a", "word ", "{", "}", "\"", "\\", "\n", "\t", "é", "😀", "//", "\"\"\"", " ", "\0", "\r"];
        self.several(1, 4, |generator| generator.pick(&pieces)).concat()
    }

    /// Inserts comments, empty lines and spaces at the ends of lines.
    pub fn disarranged(&mut self, text: &str) -> String {
        let mut out = String::new();
        let mut in_block = false;
        for line in text.lines() {
            let was_in_block = in_block;
            in_block ^= line.matches("\"\"\"").count() % 2 == 1;
            if was_in_block || in_block || line.contains("\"\"\"") {
                out.push_str(line);
                out.push('\n');
                continue;
            }
            let before = ["", "", "", "", "\n", "\n\n\n", "// a comment\n", "  /// lost?\n", "\n// alone\n\n"];
            let indentation = ["", "", " ", "      ", "\t"];
            let behind = ["", "", "", "", " // behind", "   ", "  // {", "\n"];
            out.push_str(self.pick(&before));
            out.push_str(self.pick(&indentation));
            out.push_str(line);
            out.push_str(self.pick(&behind));
            out.push('\n');
        }
        out
    }

    /// Removes, duplicates, swaps or inserts a few pieces of the text.
    pub fn damaged(&mut self, text: &str) -> String {
        let mut characters: Vec<char> = text.chars().collect();
        for _ in 0..1 + self.below(4) {
            self.damage(&mut characters);
        }
        characters.into_iter().collect()
    }

    fn damage(&mut self, text: &mut Vec<char>) {
        let from = self.below(text.len() + 1);
        let length = self.below(12).min(text.len() - from);
        let to = from + length;
        match self.below(4) {
            0 => drop(text.drain(from..to)),
            1 => {
                let copy = text[from..to].to_vec();
                let at = self.below(text.len() + 1);
                text.splice(at..at, copy);
            }
            2 => text[from..to].reverse(),
            _ => {
                let pieces = [
                    "{", "}", "(", ")", "[", "]", "\"", "\"\"\"", "\\", "|", "||", "|>", "..", "=", "=>", "->", ":",
                    ",", ";", "\n", "//", "///", "else", "fn ", "let ", "match ", "x", "X", "1", "1.5", "-", "?", ".",
                    "é", "\u{0}", "within", "for ", "in ", "if ", "return ", "_", "\u{feff}", "0x", "9ms", "\r\n",
                ];
                let piece = self.pick(&pieces);
                text.splice(from..from, piece.chars());
            }
        }
    }
}

fn name(text: &str) -> Name {
    Name { text: Arc::from(text), span: nowhere() }
}

fn nowhere() -> Span {
    Span::new(SourceId(0), 0, 0)
}
