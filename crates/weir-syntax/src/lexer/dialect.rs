//! Quotes, comments and attributes of other languages, reported once and read as what they mean.

use super::{CommentPlace, Lexer, LexerMode};
use crate::token::TokenKind;
use crate::{Code, Diagnostic, Span};

/// Quotes of other languages, with those that end them.
const QUOTES: &[(char, char)] = &[('\'', '\''), ('`', '`'), ('‘', '’'), ('“', '”')];

/// So far is looked for the end of what is of another language, so that a long line stays linear.
const LINE_BYTES_MAX: usize = 1000;

impl Lexer<'_> {
    /// A text between other quotes, if the character at `start` opens one that ends on its line.
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
        let diagnostic = Diagnostic::new(Code::DialectSyntax, "a text stands between `\"` and `\"`")
            .at(self.place(start, end), "between other quotes")
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

    /// `#[…]`, or a comment that begins with `#`; a `#` right before something else only means nothing.
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
        let diagnostic = Diagnostic::new(Code::DialectSyntax, "a comment begins with `//`")
            .at(self.place(start, start + 1), "begins no comment here")
            .fix("write `//`", self.place(start, start + 1), "//");
        self.report(diagnostic);
        self.comment_to(start, start + length as u32);
        true
    }

    /// `@name` and `@name(…)`.
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
        let diagnostic = Diagnostic::new(Code::DialectSyntax, "there are no attributes here")
            .at(self.place(start, end), "of another language")
            .fix("take it out", self.place(start, end), "");
        self.report(diagnostic);
        self.code.bump((end - self.code.span().end as u32) as usize);
        true
    }

    /// `/* … */`, over lines too, of which the slash is read.
    pub(super) fn block_comment(&mut self, start: u32) {
        let rest = &self.code.source()[start as usize..];
        let rest = if self.modes.is_empty() { rest } else { self.line_from(start) };
        let length = rest[2..].find("*/").map_or(rest.len(), |at| at + 4);
        let (comment, behind) = (&rest[..length], rest[length..].lines().next().unwrap_or_default());
        let span = self.place(start, start + length as u32);
        let diagnostic = Diagnostic::new(Code::DialectSyntax, "a comment begins with `//`, and ends with its line")
            .at(self.place(start, start + 2), "begins no comment here");
        let diagnostic = match behind.trim().is_empty() {
            true => diagnostic.fix("write `//` before each line", span, in_lines(comment)),
            false => diagnostic.hint("put it behind the code, or on a line of its own"),
        };
        let has_line_end = comment.contains('\n');
        self.report(diagnostic);
        self.comment_to(start, start + length as u32);
        if has_line_end {
            self.line_begins = true;
        }
    }

    /// Whether a comment of these bytes stands in an interpolation of a text on one line, whose end it would take.
    pub(super) fn takes_end(&self, comment: usize) -> bool {
        comment <= LINE_BYTES_MAX
            && matches!(&self.modes[..], [.., LexerMode::Text { block: false, .. }, LexerMode::Interpolation { .. }])
    }

    /// `//` in an interpolation, as the whole division of other languages.
    pub(super) fn division(&mut self, start: u32) {
        let mut code = logos::Lexer::new(self.code.source());
        code.bump(start as usize + 2);
        self.code = code;
        let span = self.place(start, start + 2);
        let diagnostic = Diagnostic::new(Code::DialectSyntax, "there is no `//` in an interpolation")
            .at(span, "a comment would end it")
            .fix("write `/`, which divides whole numbers to a whole number", span, "/");
        self.report(diagnostic);
        self.push(TokenKind::Slash, start, start + 2);
    }

    /// Reads on behind `end`, with what stands before it as a comment.
    fn comment_to(&mut self, start: u32, end: u32) {
        let first_on_line = self.line_begins;
        self.code.bump((end - self.code.span().end as u32) as usize);
        self.lexed.comments.push(CommentPlace { start, end, first_on_line });
    }

    /// The text from `start` to the end of its line, as far as it is looked at.
    fn line_from(&self, start: u32) -> &str {
        let rest = &self.code.source()[start as usize..];
        let rest = &rest[..rest.floor_char_boundary(LINE_BYTES_MAX)];
        let line = rest.split('\n').next().unwrap_or_default();
        line.trim_end_matches('\r')
    }

    fn place(&self, start: u32, end: u32) -> Span {
        Span::new(self.source, start, end)
    }
}

/// The lines of a comment between `/*` and `*/` as comments of ours.
fn in_lines(comment: &str) -> String {
    let inner = comment.trim_start_matches("/*").trim_end_matches("*/");
    let lines = inner.lines().map(|line| line.trim().trim_start_matches('*').trim());
    let lines: Vec<String> = lines.filter(|line| !line.is_empty()).map(|line| format!("// {line}")).collect();
    lines.join("\n")
}
