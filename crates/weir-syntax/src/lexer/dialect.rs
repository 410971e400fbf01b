//! Dialect recovery for quotes, comments and attributes: reports each once and reads it as its Weir form.

use super::{CommentPlace, Lexer, LexerMode};
use crate::token::TokenKind;
use crate::{Code, Diagnostic, Span};

/// Quotes of other languages, with their closing quotes.
const QUOTES: &[(char, char)] = &[('\'', '\''), ('`', '`'), ('‘', '’'), ('“', '”')];

/// Maximum number of bytes in which the end of dialect syntax is searched, so that a long line takes linear time.
const LINE_BYTES_MAX: usize = 1000;

impl Lexer<'_> {
    /// Reads a text literal in other quotes, if the character at `start` opens one that ends on its line.
    pub(super) fn dialect_text(&mut self, start: u32) -> bool {
        let line = self.line_from(start);
        let Some(open) = line.chars().next() else { return false };
        let Some((_, close)) = QUOTES.iter().find(|(quote, _)| *quote == open) else { return false };
        let Some(length) = line[open.len_utf8()..].find(*close) else { return false };
        let piece = start + open.len_utf8() as u32;
        let piece_end = piece + length as u32;
        let end = piece_end + close.len_utf8() as u32;
        let value = &self.code.source()[piece as usize..piece_end as usize];
        let weir_form = format!("\"{}\"", value.replace('"', "\\\"").replace('{', "\\{"));
        let diagnostic = Diagnostic::new(Code::DialectSyntax, "text literals use double quotes")
            .at(self.place(start, end), "other quotes")
            .fix("use double quotes", self.place(start, end), weir_form);
        self.report(diagnostic);
        self.code.bump((end - self.code.span().end as u32) as usize);
        self.push(TokenKind::TextOpen, start, piece);
        if length > 0 {
            self.push(TokenKind::TextPiece, piece, piece_end);
        }
        self.push(TokenKind::TextClose, piece_end, end);
        true
    }

    /// Reads `#[…]`, or a comment that begins with `#`. Returns false for any other `#`.
    pub(super) fn hash(&mut self, start: u32) -> bool {
        let line = self.line_from(start);
        if line.starts_with("#[") || line.starts_with("#![") {
            let length = line.rfind(']').map_or(line.len(), |at| at + 1);
            return self.skip_attribute(start, length);
        }
        if !(line.starts_with('#')
            && (self.line_begins || (line.starts_with("# ") && !line.contains(['{', '}', '(', ')']))))
        {
            return false;
        }
        let rest = &self.code.source()[start as usize..];
        let length = rest.find('\n').unwrap_or(rest.len());
        let diagnostic = Diagnostic::new(Code::DialectSyntax, "comments begin with `//`")
            .at(self.place(start, start + 1), "does not begin a comment in Weir")
            .fix("write `//`", self.place(start, start + 1), "//");
        self.report(diagnostic);
        self.comment_to(start, start + length as u32);
        true
    }

    /// Reads `@name` and `@name(…)`.
    pub(super) fn attribute(&mut self, start: u32) -> bool {
        let line = self.line_from(start);
        let Some(rest) = line.strip_prefix('@').filter(|_| self.line_begins) else { return false };
        let name = rest.find(|each: char| !(each.is_alphanumeric() || each == '_' || each == '.'));
        let name = name.unwrap_or(rest.len());
        let arguments = if rest[name..].starts_with('(') { rest.rfind(')').map(|at| at + 1) } else { None };
        name > 0 && self.skip_attribute(start, 1 + arguments.unwrap_or(name))
    }

    fn skip_attribute(&mut self, start: u32, length: usize) -> bool {
        let end = start + length as u32;
        let diagnostic = Diagnostic::new(Code::DialectSyntax, "Weir has no attributes")
            .at(self.place(start, end), "syntax of another language")
            .fix("remove it", self.place(start, end), "");
        self.report(diagnostic);
        self.code.bump((end - self.code.span().end as u32) as usize);
        true
    }

    /// Reads `/* … */`, which may span lines, after its slash has been read.
    pub(super) fn block_comment(&mut self, start: u32) {
        let rest = &self.code.source()[start as usize..];
        let rest = if self.modes.is_empty() { rest } else { self.line_from(start) };
        let length = rest[2..].find("*/").map_or(rest.len(), |at| at + 4);
        let (comment, behind) = (&rest[..length], rest[length..].lines().next().unwrap_or_default());
        let span = self.place(start, start + length as u32);
        let diagnostic = Diagnostic::new(Code::DialectSyntax, "comments begin with `//` and end with the line")
            .at(self.place(start, start + 2), "does not begin a comment in Weir");
        let diagnostic = match behind.trim().is_empty() {
            true => diagnostic.fix("write `//` before each line", span, in_lines(comment)),
            false => diagnostic.hint("move it to the end of the line, or to a line of its own"),
        };
        let has_line_end = comment.contains('\n');
        self.report(diagnostic);
        self.comment_to(start, start + length as u32);
        if has_line_end {
            self.line_begins = true;
        }
    }

    /// Returns true if a comment of this length is in an interpolation of a one-line text literal and would hide its
    /// end.
    pub(super) fn takes_end(&self, comment: usize) -> bool {
        comment <= LINE_BYTES_MAX
            && matches!(&self.modes[..], [.., LexerMode::Text { block: false, .. }, LexerMode::Interpolation { .. }])
    }

    /// Reads `//` in an interpolation as the integer division of other languages.
    pub(super) fn division(&mut self, start: u32) {
        let mut code = logos::Lexer::new(self.code.source());
        code.bump(start as usize + 2);
        self.code = code;
        let span = self.place(start, start + 2);
        let diagnostic = Diagnostic::new(Code::DialectSyntax, "`//` cannot be used in an interpolation")
            .at(span, "a comment would hide its end")
            .fix("write `/`, which is integer division for `Int`s", span, "/");
        self.report(diagnostic);
        self.push(TokenKind::Slash, start, start + 2);
    }

    /// Records a comment from `start` to `end`, and continues after it.
    fn comment_to(&mut self, start: u32, end: u32) {
        let first_on_line = self.line_begins;
        self.code.bump((end - self.code.span().end as u32) as usize);
        self.lexed.comments.push(CommentPlace { start, end, first_on_line });
    }

    /// Returns the source from `start` to the end of its line, up to the search limit.
    fn line_from(&self, start: u32) -> &str {
        let rest = &self.code.source()[start as usize..];
        let rest = &rest[..rest.floor_char_boundary(LINE_BYTES_MAX)];
        let line = rest.split('\n').next().unwrap_or_default();
        line.trim_end_matches('\r')
    }

    pub(super) fn place(&self, start: u32, end: u32) -> Span {
        Span::new(self.source, start, end)
    }
}

/// Converts the lines between `/*` and `*/` to `//` comments.
fn in_lines(comment: &str) -> String {
    let inner = comment.trim_start_matches("/*").trim_end_matches("*/");
    let lines = inner.lines().map(|line| line.trim().trim_start_matches('*').trim());
    let lines: Vec<String> = lines.filter(|line| !line.is_empty()).map(|line| format!("// {line}")).collect();
    lines.join("\n")
}
