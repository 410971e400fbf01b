//! Interpolations that do not end on their line: one error each.
//!
//! If the end is found on one of the next lines, the interpolation is read up to there, so that its lines are not reported as well.
//! If it is not found, a brace was forgotten, and the interpolation ends with its line.

use super::{Lexer, LexerMode};
use crate::{Code, Diagnostic, Span};

/// Maximum number of bytes in which the end of an interpolation is searched, so that a file takes linear time.
const SEARCHED_MAX: usize = 2000;

impl Lexer<'_> {
    /// Returns true if an interpolation is open at a line end, and its end is on one of the next lines. Reports it once.
    pub(super) fn goes_on_over_lines(&mut self, line_end: u32) -> bool {
        let rest = &self.code.source()[line_end as usize..];
        let [.., LexerMode::Text { block, .. }, LexerMode::Interpolation { open, braces, is_over_lines }] =
            &mut self.modes[..]
        else {
            return false;
        };
        if *is_over_lines {
            return true;
        }
        if !ends(&rest.as_bytes()[..rest.len().min(SEARCHED_MAX)], *braces, *block) {
            return false;
        }
        *is_over_lines = true;
        let open = *open;
        self.report(diagnostic(open));
        true
    }
}

/// Returns true if an interpolation with this number of open braces ends before these bytes do. In a text of one line, the end of
/// the text must be on the line where the interpolation ends, or where a later interpolation ends that begins on that line.
fn ends(bytes: &[u8], mut braces: u32, block: bool) -> bool {
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' if block && bytes[at..].starts_with(b"\"\"\"") => return false,
            b'"' => match quote(&bytes[at + 1..]) {
                Some(length) => at += length + 1,
                None => return false,
            },
            b'{' => braces += 1,
            b'}' if braces > 0 => braces -= 1,
            b'}' if block => return true,
            b'}' => match quote_or_brace(&bytes[at + 1..]) {
                Some((b'"', _)) => return true,
                Some((_, length)) => at += length + 1,
                None => return false,
            },
            _ => {}
        }
        at += 1;
    }
    false
}

/// Returns the number of bytes before the next quote of the line.
fn quote(bytes: &[u8]) -> Option<usize> {
    first_of_line(bytes, b"\"").map(|(_, length)| length)
}

/// Returns the quote that ends the text on this line, or the brace that begins its next interpolation, whichever is first, and
/// the number of bytes before it.
fn quote_or_brace(bytes: &[u8]) -> Option<(u8, usize)> {
    first_of_line(bytes, b"\"{")
}

/// Returns the first of these bytes on the line that has no backslash before it, and the number of bytes before it.
fn first_of_line(bytes: &[u8], searched: &[u8]) -> Option<(u8, usize)> {
    let mut at = 0;
    while at < bytes.len() && bytes[at] != b'\n' {
        match bytes[at] {
            byte if searched.contains(&byte) => return Some((byte, at)),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    None
}

pub(super) fn diagnostic(open: Span) -> Diagnostic {
    Diagnostic::new(Code::InterpolationOverLines, "interpolation does not end on its line")
        .at(open, "begins here")
        .hint("put a value of several lines into a `let` or a `fn`, and interpolate its name")
        .fix("write `\\{` for a literal brace", open, "\\{")
}
