//! One line, read from left to right.

use weir_host::Text;

use super::error::{ParseError, ParseResult};
use crate::print::is_bare;
use crate::program::{InlinedCallId, LoopExit, NESTING_MAX, Origin, Var};

/// A place in a line.
pub(super) struct Cursor<'t> {
    number: usize,
    indentation: usize,
    text: &'t str,
    /// In bytes; always between two characters.
    at: usize,
    /// The nesting depth of types and constants.
    depth: usize,
}

impl<'t> Cursor<'t> {
    pub(super) fn new(number: usize, indentation: usize, text: &'t str) -> Self {
        Cursor { number, indentation, text, at: 0, depth: 0 }
    }

    pub(super) fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    pub(super) fn error(&self, expected: &str) -> ParseError {
        let rest = self.rest().trim_start_matches(' ');
        let before = &self.text[..self.text.len() - rest.len()];
        let found: String = rest.chars().take(20).collect();
        ParseError {
            line: self.number,
            column: self.indentation + before.chars().count() + 1,
            expected: expected.into(),
            found: if found.is_empty() { "the end of the line".into() } else { format!("`{found}`") },
        }
    }

    /// Skips spaces and this mark or word, if it comes next; returns whether it did. A word must end there.
    pub(super) fn eat(&mut self, mark: &str) -> bool {
        let rest = self.rest().trim_start_matches(' ');
        let Some(after) = rest.strip_prefix(mark) else { return false };
        let is_word = mark.ends_with(|c: char| c.is_ascii_alphanumeric());
        if is_word && after.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') {
            return false;
        }
        self.at = self.text.len() - after.len();
        true
    }

    pub(super) fn expect(&mut self, mark: &str) -> ParseResult<()> {
        if self.eat(mark) { Ok(()) } else { Err(self.error(&format!("`{mark}`"))) }
    }

    /// Returns true if this mark comes next.
    pub(super) fn sees(&self, mark: &str) -> bool {
        self.rest().trim_start_matches(' ').starts_with(mark)
    }

    pub(super) fn end(&mut self) -> ParseResult<()> {
        if self.rest().trim_start_matches(' ').is_empty() { Ok(()) } else { Err(self.error("the end of the line")) }
    }

    fn spaces(&mut self) {
        self.at = self.text.len() - self.rest().trim_start_matches(' ').len();
    }

    /// Returns the longest run of these characters; may be empty.
    pub(super) fn run(&mut self, of: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let length = rest.find(|c| !of(c)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    /// A bare or quoted name.
    pub(super) fn name(&mut self, what: &str) -> ParseResult<Text> {
        self.spaces();
        if self.sees("\"") {
            return self.quoted();
        }
        if !self.rest().starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            return Err(self.error(what));
        }
        Ok(self.run(is_bare).into())
    }

    pub(super) fn quoted(&mut self) -> ParseResult<Text> {
        if !self.eat("\"") {
            return Err(self.error("a quoted text"));
        }
        let mut text = String::new();
        loop {
            text.push_str(self.run(|c| c != '"' && c != '\\'));
            if self.skip("\"") {
                return Ok(text.into());
            }
            text.push(self.escape()?);
        }
    }

    fn skip(&mut self, mark: &str) -> bool {
        let is_here = self.rest().starts_with(mark);
        self.at += if is_here { mark.len() } else { 0 };
        is_here
    }

    fn escape(&mut self) -> ParseResult<char> {
        const PLAIN: [(&str, char); 4] = [("\\\"", '"'), ("\\\\", '\\'), ("\\n", '\n'), ("\\t", '\t')];
        if let Some((_, c)) = PLAIN.iter().find(|(mark, _)| self.skip(mark)) {
            return Ok(*c);
        }
        if !self.skip("\\u{") {
            return Err(self.error("`\"`, or one of the escapes `\\\"`, `\\\\`, `\\n`, `\\t`, `\\u{…}`"));
        }
        let code = u32::from_str_radix(self.run(|c| c.is_ascii_hexdigit()), 16).ok().and_then(char::from_u32);
        let code = code.ok_or_else(|| self.error("the code of a character"))?;
        if self.skip("}") { Ok(code) } else { Err(self.error("`}`")) }
    }

    /// An unsigned number.
    pub(super) fn number<N: std::str::FromStr>(&mut self, what: &str) -> ParseResult<N> {
        self.spaces();
        let start = self.at;
        self.run(|c| c.is_ascii_digit()).parse().map_err(|_| {
            self.at = start;
            self.error(what)
        })
    }

    /// `%3`
    pub(super) fn var(&mut self) -> ParseResult<Var> {
        self.expect("%")?;
        Ok(Var(self.number("the number of a variable")?))
    }

    /// ` @12..20`, ` @12..20 in call 3`, or nothing.
    pub(super) fn origin(&mut self) -> ParseResult<Origin> {
        if !self.eat("@") {
            return Ok(Origin::default());
        }
        let start = self.number("a place in bytes")?;
        self.expect("..")?;
        let end = self.number("a place in bytes")?;
        let in_call = self.eat("in call");
        let inlined_call = if in_call { Some(InlinedCallId(self.number("the number of a call")?)) } else { None };
        Ok(Origin { start, end, inlined_call })
    }

    /// `left by failure (@12..20)`, `left by return ()`, or nothing.
    pub(super) fn loop_exit(&mut self) -> ParseResult<LoopExit> {
        let exit = match (self.eat("left by failure"), self.eat("left by return")) {
            (true, _) => LoopExit::Failure,
            (false, true) => LoopExit::Return,
            (false, false) => return Ok(LoopExit::Never),
        };
        self.expect("(")?;
        let at = self.origin()?;
        self.expect(")")?;
        Ok(exit(at))
    }

    /// `(a, b)`: items in brackets with commas between; one may end the list.
    pub(super) fn list<T>(
        &mut self,
        open: &str,
        close: &str,
        mut item: impl FnMut(&mut Self) -> ParseResult<T>,
    ) -> ParseResult<Vec<T>> {
        self.expect(open)?;
        let mut items = Vec::new();
        while !self.eat(close) {
            if self.eat(",") && self.eat(close) {
                break;
            }
            items.push(item(self)?);
            if !self.sees(",") && !self.sees(close) {
                return Err(self.error(&format!("`,` or `{close}`")));
            }
        }
        Ok(items)
    }

    /// `a, b`: one item or more.
    pub(super) fn commas<T>(&mut self, mut item: impl FnMut(&mut Self) -> ParseResult<T>) -> ParseResult<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.eat(",") {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// Runs `read` one nesting level deeper, up to the limit.
    pub(super) fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> ParseResult<T>) -> ParseResult<T> {
        if self.depth == NESTING_MAX {
            return Err(self.error(&format!("at most {NESTING_MAX} levels of nesting")));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }
}
