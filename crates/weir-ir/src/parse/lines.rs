//! The text as lines with their depth.

use super::cursor::Cursor;
use super::error::{ParseError, ParseResult};
use crate::program::NESTING_MAX;

/// One line that is not blank.
#[derive(Clone, Copy)]
struct IndentedLine<'t> {
    /// From 1.
    number: usize,
    depth: usize,
    text: &'t str,
}

/// The lines that are still to be read.
pub(super) struct LineReader<'t> {
    lines: std::iter::Peekable<std::vec::IntoIter<IndentedLine<'t>>>,
    /// The number of the line after the last, for messages.
    end: usize,
}

impl<'t> LineReader<'t> {
    pub(super) fn new(text: &'t str) -> ParseResult<Self> {
        let numbered = text.split('\n').zip(1..);
        let said = numbered.filter(|(line, _)| !line.trim().is_empty() && !line.trim_start().starts_with("//"));
        let lines: Vec<IndentedLine<'t>> =
            said.map(|(line, number)| IndentedLine::new(line, number)).collect::<ParseResult<_>>()?;
        Ok(LineReader { lines: lines.into_iter().peekable(), end: text.split('\n').count() })
    }

    /// Returns the next line if it has this depth.
    pub(super) fn next_at(&mut self, depth: usize) -> Option<Cursor<'t>> {
        self.lines.next_if(|line| line.depth == depth).map(|line| Cursor::new(line.number, line.depth * 2, line.text))
    }

    /// Returns the next line if it has this depth and begins with this word.
    pub(super) fn next_with(&mut self, depth: usize, word: &str) -> Option<Cursor<'t>> {
        let begins =
            |line: &IndentedLine<'_>| line.text.strip_prefix(word).is_some_and(|rest| !rest.starts_with(is_letter));
        self.lines.peek().filter(|line| line.depth == depth && begins(line))?;
        let mut cursor = self.next_at(depth)?;
        cursor.eat(word);
        Some(cursor)
    }

    /// Returns the next line, which must have this depth.
    pub(super) fn expect_at(&mut self, depth: usize, expected: &str) -> ParseResult<Cursor<'t>> {
        if self.lines.peek().is_some_and(|line| line.depth == depth) {
            return Ok(self.next_at(depth).expect("it was just seen"));
        }
        Err(self.unexpected(&format!("{expected}, indented by {} spaces", depth * 2)))
    }

    /// Checks that no line is left.
    pub(super) fn end(&mut self, expected: &str) -> ParseResult<()> {
        if self.lines.peek().is_none() { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    fn unexpected(&mut self, expected: &str) -> ParseError {
        match self.lines.peek() {
            Some(line) => Cursor::new(line.number, line.depth * 2, line.text).error(expected),
            None => ParseError { line: self.end, column: 1, expected: expected.into(), found: "the end".into() },
        }
    }
}

impl<'t> IndentedLine<'t> {
    fn new(line: &'t str, number: usize) -> ParseResult<Self> {
        let text = line.trim_start_matches(' ');
        let indentation = line.len() - text.len();
        let error = |expected: String| ParseError {
            line: number,
            column: 1,
            expected,
            found: format!("an indentation of {indentation}"),
        };
        if indentation % 2 == 1 {
            return Err(error("an even indentation".into()));
        }
        if indentation / 2 > NESTING_MAX {
            return Err(error(format!("at most {NESTING_MAX} levels of nesting")));
        }
        Ok(IndentedLine { number, depth: indentation / 2, text: text.trim_end_matches([' ', '\r']) })
    }
}

fn is_letter(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
