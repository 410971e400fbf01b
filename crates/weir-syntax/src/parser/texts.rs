//! Text literals: escapes, interpolations, and indented blocks.

use super::{BraceRole, Parser};
use crate::ast::{Expr, ExprKind, TextFormat, TextLiteral, TextPart, TextStyle};
use crate::token::TokenKind as T;
use crate::{Code, Diagnostic, Span};
use std::sync::Arc;

/// A piece of a text literal, as tokenised.
enum Piece {
    Raw(Span),
    Expr(Expr),
}

impl Parser<'_> {
    /// `" [characters | { expression }]* "`, or the same between `"""`. The next token opens it.
    pub(super) fn text_literal(&mut self) -> TextLiteral {
        let start = self.span();
        let style = if self.at(T::BlockTextOpen) { TextStyle::Block } else { TextStyle::Line };
        self.bump();
        let mut pieces = Vec::new();
        loop {
            match self.peek() {
                T::TextPiece => pieces.push(Piece::Raw(self.bump())),
                T::InterpolationOpen => pieces.push(Piece::Expr(self.interpolation())),
                _ => break,
            }
        }
        self.eat(T::TextClose);
        let span = self.since(start);
        let parts = match style {
            TextStyle::Line => self.line_parts(pieces),
            TextStyle::Block => self.block_parts(pieces, span),
        };
        TextLiteral { style, parts, span }
    }

    /// `{ expression }`
    fn interpolation(&mut self) -> Expr {
        let open = self.bump();
        let before = self.diagnostics.len();
        let expr = self.within_mode(BraceRole::RecordLiteral, true, |parser| {
            let start = parser.span();
            let value = parser.expression();
            let expr = if parser.at(T::Colon) { parser.formatted(start, value) } else { value };
            if !parser.at(T::InterpolationClose) {
                parser.unexpected("`}`");
            }
            expr
        });
        while !self.at(T::InterpolationClose) && !self.at(T::End) {
            self.skip_token();
        }
        let closed = !self.eat(T::InterpolationClose).is_none_or(Span::is_empty);
        if !closed {
            // The missing end has been reported; errors inside follow from it.
            self.diagnostics.truncate(before);
            return expr;
        }
        if let Some(first) = self.diagnostics.get_mut(before).filter(|first| first.code == Code::UnexpectedToken) {
            *first = first.clone().fix("write `\\{` for a literal brace", open, "\\{");
        }
        expr
    }

    /// `: format`, up to the end of the interpolation.
    fn formatted(&mut self, start: Span, value: Expr) -> Expr {
        let colon = self.bump();
        let first = self.diagnostics.len();
        while !self.at(T::InterpolationClose) && !self.at(T::End) {
            self.skip_token();
        }
        // The signs of a format are no expression: what the parser says of them as tokens does not help.
        self.diagnostics.truncate(first);
        let format_span = Span { start: colon.end, end: self.span().start, ..colon };
        let Some(format) = TextFormat::parse(&self.text[format_span.range()]) else {
            let shown = &self.text[value.span.range()];
            let format = &self.text[format_span.range()];
            let diagnostic = Diagnostic::new(Code::UnexpectedToken, "this is no format of a value")
                .at(colon.to(format_span), "after the colon");
            self.report(match format.trim_start().starts_with('%') {
                true => diagnostic.hint(format!(
                    "a time is formatted by a function, which may fail: `let shown = {shown}.format(\"{}\")?`",
                    format.trim()
                )),
                false => diagnostic
                    .hint("write `.2` for decimals, `,` for thousands, and `8`, `<8`, `>8` or `08` for a width"),
            });
            return value;
        };
        self.expr(start, ExprKind::Formatted { value: Box::new(value), format, format_span })
    }

    fn line_parts(&mut self, pieces: Vec<Piece>) -> Vec<TextPart> {
        let mut parts = Vec::new();
        for piece in pieces {
            parts.push(match piece {
                Piece::Expr(expr) => TextPart::Expr(expr),
                Piece::Raw(span) => {
                    let mut value = String::new();
                    self.unescape(span, &mut value);
                    TextPart::Literal { value: Arc::from(value), raw: Arc::from(&self.text[span.range()]) }
                }
            });
        }
        parts
    }

    /// Removes the indentation of a block, and the line ends next to its quotes.
    fn block_parts(&mut self, pieces: Vec<Piece>, span: Span) -> Vec<TextPart> {
        let Some(layout) = self.block_layout(&pieces, span) else { return self.line_parts(pieces) };
        let count = pieces.len();
        let mut parts = Vec::new();
        for (index, piece) in pieces.into_iter().enumerate() {
            match piece {
                Piece::Expr(expr) => parts.push(TextPart::Expr(expr)),
                Piece::Raw(span) => {
                    let ends = PiecePosition { first: index == 0, last: index + 1 == count };
                    let (value, raw) = self.block_piece(span, &layout, ends);
                    if !raw.is_empty() {
                        parts.push(TextPart::Literal { value: Arc::from(value), raw: Arc::from(raw) });
                    }
                }
            }
        }
        parts
    }

    /// Returns the indentation of the closing quotes, or reports misplaced quotes and returns `None`.
    fn block_layout(&mut self, pieces: &[Piece], span: Span) -> Option<String> {
        let raw = |piece: Option<&Piece>| match piece {
            Some(Piece::Raw(span)) => &self.text[span.range()],
            _ => "",
        };
        let opens = raw(pieces.first()).trim_start_matches([' ', '\t', '\r']).starts_with('\n');
        let (_, last_line) = raw(pieces.last()).rsplit_once('\n').unwrap_or(("", "x"));
        let closes = last_line.chars().all(|character| matches!(character, ' ' | '\t'));
        if opens && closes {
            return Some(last_line.to_owned());
        }
        let (place, text) = match opens {
            false => (Span { end: span.start + 3, ..span }, "begin the text on the next line"),
            true => (
                Span { start: span.end.saturating_sub(3).max(span.start), ..span },
                "move these to a line of their own",
            ),
        };
        // A block without an end has already been reported.
        if self.text[span.range()].len() >= 6 && self.text[span.range()].ends_with("\"\"\"") {
            self.report(
                Diagnostic::new(Code::BlockTextLayout, "the quotes of a text block must be on lines of their own")
                    .at(place, text),
            );
        }
        None
    }

    /// Returns the value and the source, without indentation, of one piece of a block.
    fn block_piece(&mut self, span: Span, indentation: &str, ends: PiecePosition) -> (String, String) {
        let text = &self.text[span.range()];
        let (mut value, mut raw) = (String::new(), String::new());
        let lines: Vec<&str> = text.split('\n').collect();
        let mut start = span.start;
        for (index, line) in lines.iter().enumerate() {
            let is_last_line = index + 1 == lines.len();
            let place = Span::new(span.source, start, start + line.len() as u32);
            start = place.end + 1;
            if (index == 0 && ends.first) || (is_last_line && ends.last) {
                continue;
            }
            // The first line end and the one before the closing quotes do not belong to the text.
            if index > 1 || (index == 1 && !ends.first) {
                value.push('\n');
                raw.push('\n');
            }
            let place = if index == 0 { place } else { self.strip_indentation(place, indentation, is_last_line) };
            let place = self.without_carriage_return(place, is_last_line);
            self.unescape(place, &mut value);
            raw.push_str(&self.text[place.range()]);
        }
        (value, raw)
    }

    fn strip_indentation(&mut self, line: Span, indentation: &str, goes_on: bool) -> Span {
        let text = &self.text[line.range()];
        if text.starts_with(indentation) {
            return Span { start: line.start + indentation.len() as u32, ..line };
        }
        if text.trim().is_empty() && !goes_on {
            return line.at_end();
        }
        let shown = (text.len() - text.trim_start().len()) as u32;
        let first = text.chars().next().map_or(0, char::len_utf8) as u32;
        self.report(
            Diagnostic::new(Code::BlockTextLayout, "line is indented less than the closing quotes of the text block")
                .at(Span { end: line.start + shown.max(first), ..line }, "indented too little")
                .hint("indent the line, or move the closing quotes to the left"),
        );
        Span { start: line.start + shown, ..line }
    }

    fn without_carriage_return(&self, line: Span, goes_on: bool) -> Span {
        let ends = !goes_on && self.text[line.range()].ends_with('\r');
        Span { end: line.end - u32::from(ends), ..line }
    }

    /// Appends the characters in `span`, with escapes resolved.
    pub(super) fn unescape(&mut self, span: Span, out: &mut String) {
        let text = &self.text[span.range()];
        let mut rest = text;
        while let Some(at) = rest.find('\\') {
            out.push_str(&rest[..at]);
            rest = &rest[at..];
            let length = match escape_at(rest) {
                Ok((character, length)) => {
                    out.push(character);
                    length
                }
                Err(length) => {
                    let start = span.start + (text.len() - rest.len()) as u32;
                    self.invalid_escape(Span::new(span.source, start, start + length as u32));
                    length
                }
            };
            rest = &rest[length..];
        }
        out.push_str(rest);
    }

    fn invalid_escape(&mut self, span: Span) {
        let escape = &self.text[span.range()];
        self.report(
            Diagnostic::new(Code::InvalidEscape, format!("unknown escape `{escape}`"))
                .at(span, "")
                .note("the escapes are \\n \\r \\t \\0 \\\" \\\\ \\{ \\} and \\u{1F600}")
                .fix("write `\\\\` for a backslash", Span { end: span.start + 1, ..span }, "\\\\"),
        );
    }
}

/// Position of a piece in its block.
#[derive(Clone, Copy)]
struct PiecePosition {
    first: bool,
    last: bool,
}

/// Returns the character of the escape at the start of `text` and the length of the escape in bytes, or only the length
/// of an invalid escape.
fn escape_at(text: &str) -> Result<(char, usize), usize> {
    let mut characters = text.chars().skip(1);
    let character = match characters.next().ok_or(1usize)? {
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        '0' => '\0',
        plain @ ('"' | '\\' | '{' | '}') => plain,
        'u' => return unicode_escape(text),
        other => return Err(1 + other.len_utf8()),
    };
    Ok((character, 2))
}

/// `\u{1F600}`: one to six hexadecimal digits.
fn unicode_escape(text: &str) -> Result<(char, usize), usize> {
    let digits = text.strip_prefix("\\u{").ok_or(2usize)?;
    let length = digits.bytes().take(7).take_while(u8::is_ascii_hexdigit).count();
    let closed = digits.as_bytes().get(length) == Some(&b'}');
    let whole = 3 + length + usize::from(closed);
    let number = u32::from_str_radix(&digits[..length], 16).map_err(|_| whole)?;
    let character = char::from_u32(number).filter(|_| closed && length <= 6).ok_or(whole)?;
    Ok((character, whole))
}

/// Escapes the characters of `value` for a one-line text literal.
pub(crate) fn escape(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for character in value.chars() {
        match character {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0' => out.push_str("\\0"),
            '"' | '\\' | '{' => out.extend(['\\', character]),
            other => out.push(other),
        }
    }
    out
}
