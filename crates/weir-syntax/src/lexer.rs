//! Lexer: text to tokens, in one pass and linear time; never fails.
//!
//! The *mode* determines how the next characters are read: code, a text literal, or the code of an interpolation in
//! one. Modes nest, so they are kept on a stack; the code of the file is the bottom and is not on it.
//!
//! Protocol: [`Lexer::run`] alternates between the derived lexer for code and [`Lexer::text_piece`] for text literals.
//! A line end closes every open interpolation and one-line text literal, so a forgotten quote affects one line and not
//! the rest of the file. An interpolation whose end is found on one of the next lines is read up to there, as an error.

mod dialect;
mod interpolation_over_lines;
mod text_direction;

use crate::token::{Token, TokenKind};
use crate::{Code, Diagnostic, SourceId, Span};

/// Maximum number of diagnostics that one pass keeps for one file; bounds memory.
pub(crate) const DIAGNOSTICS_MAX: usize = 500;

/// The source range of a comment of any kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CommentPlace {
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// True if it is the first thing on its line.
    pub(crate) first_on_line: bool,
}

/// Result of the lexer.
pub(crate) struct Lexed {
    /// Tokens without comments. The last one, and only it, is [`TokenKind::End`].
    pub(crate) tokens: Vec<Token>,
    pub(crate) comments: Vec<CommentPlace>,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

/// Splits `text` into tokens, from the offset `begin` on.
pub(crate) fn lex(source: SourceId, text: &str, begin: u32) -> Lexed {
    let lexed = Lexed { tokens: Vec::new(), comments: Vec::new(), diagnostics: Vec::new() };
    let mut code = logos::Lexer::new(text);
    code.bump(begin as usize);
    let mut lexer = Lexer { source, code, modes: Vec::new(), line_begins: true, lexed };
    lexer.run();
    lexer.report_directions(begin);
    lexer.lexed
}

enum LexerMode {
    /// In a text literal.
    Text { block: bool, open: Span },
    /// In the code of an interpolation, with this number of open braces.
    Interpolation {
        open: Span,
        braces: u32,
        /// True if it has been reported that it does not end on its line, and is read up to its end on another.
        is_over_lines: bool,
    },
}

struct Lexer<'t> {
    source: SourceId,
    code: logos::Lexer<'t, TokenKind>,
    modes: Vec<LexerMode>,
    /// True if the line has no token yet.
    line_begins: bool,
    lexed: Lexed,
}

impl Lexer<'_> {
    fn run(&mut self) {
        loop {
            let more = match self.modes.last() {
                Some(LexerMode::Text { block, open }) => self.text_piece(*block, *open),
                _ => self.code_token(),
            };
            if !more {
                break;
            }
        }
        self.close_line(true);
        let end = self.code.source().len() as u32;
        self.push(TokenKind::End, end, end);
    }

    fn push(&mut self, kind: TokenKind, start: u32, end: u32) {
        self.lexed.tokens.push(Token { kind, first_on_line: self.line_begins, start, end });
        self.line_begins = false;
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        if self.lexed.diagnostics.len() < DIAGNOSTICS_MAX {
            self.lexed.diagnostics.push(diagnostic);
        }
    }

    /// Reads one token of code. Returns false at the end of the file.
    fn code_token(&mut self) -> bool {
        let Some(result) = self.code.next() else { return false };
        let span = self.code.span();
        let (start, end) = (span.start as u32, span.end as u32);
        match result {
            Ok(TokenKind::LineEnd) => {
                self.close_line(false);
                self.line_begins = !matches!(self.modes.last(), Some(LexerMode::Interpolation { braces: 0, .. }));
            }
            Ok(TokenKind::Comment) if self.takes_end(span.len()) => self.division(start),
            Ok(TokenKind::Comment) => {
                let first_on_line = self.line_begins;
                self.lexed.comments.push(CommentPlace { start, end, first_on_line });
            }
            Ok(TokenKind::Slash) if self.code.remainder().starts_with('*') => self.block_comment(start),
            Ok(kind) => self.code_kind(kind, start, end),
            Err(()) if self.dialect_text(start) || self.hash(start) || self.attribute(start) => {}
            Err(()) => self.unknown(start, end),
        }
        true
    }

    fn code_kind(&mut self, kind: TokenKind, start: u32, end: u32) {
        let mut kind = kind;
        match (kind, self.modes.last_mut()) {
            (TokenKind::Word, _) if self.code.slice() == "html" && self.code.remainder().starts_with('"') => {
                kind = TokenKind::HtmlPrefix;
            }
            (TokenKind::BraceOpen, Some(LexerMode::Interpolation { braces, .. })) => *braces += 1,
            (TokenKind::BraceClose, Some(LexerMode::Interpolation { braces, .. })) if *braces > 0 => *braces -= 1,
            (TokenKind::BraceClose, Some(LexerMode::Interpolation { .. })) => {
                self.modes.pop();
                kind = TokenKind::InterpolationClose;
            }
            (TokenKind::TextOpen | TokenKind::BlockTextOpen, _) => {
                let block = kind == TokenKind::BlockTextOpen;
                self.modes.push(LexerMode::Text { block, open: Span::new(self.source, start, end) });
            }
            _ => {}
        }
        self.push(kind, start, end);
    }

    /// Reports an unknown character; adjacent ones share one diagnostic.
    fn unknown(&mut self, start: u32, end: u32) {
        let last = self.lexed.diagnostics.last_mut().and_then(|last| match last.code {
            Code::UnknownCharacter => last.labels.first_mut(),
            _ => None,
        });
        if let Some(label) = last.filter(|label| label.span.end == start) {
            label.span.end = end;
            return;
        }
        let character = self.code.source()[start as usize..].chars().next().unwrap_or_default();
        let mut diagnostic =
            Diagnostic::new(Code::UnknownCharacter, format!("unexpected character `{}`", shown(character)))
                .at(Span::new(self.source, start, end), "");
        let place = Span::new(self.source, start, end);
        diagnostic = match character_hint(character) {
            // The parser reports the rest of such a closure.
            Some(hint) if character == '\\' => diagnostic.fix(hint, place, ""),
            Some(hint) => diagnostic.hint(hint),
            None => diagnostic,
        };
        self.report(diagnostic);
    }

    /// Reads a text literal up to its end, the next interpolation, or the end of the line. Returns false at the end of
    /// the file.
    fn text_piece(&mut self, block: bool, open: Span) -> bool {
        let start = self.code.span().end as u32;
        let rest = self.code.remainder();
        let length = piece_length(rest, block);
        let next = rest.as_bytes().get(length).copied();
        self.code.bump(length);
        let end = start + length as u32;
        if length > 0 {
            self.push(TokenKind::TextPiece, start, end);
        }
        match next {
            Some(b'{') => {
                self.code.bump(1);
                let open = Span::new(self.source, end, end + 1);
                self.modes.push(LexerMode::Interpolation { open, braces: 0, is_over_lines: false });
                self.push(TokenKind::InterpolationOpen, end, end + 1);
            }
            Some(b'"') => {
                let quotes = if block { 3 } else { 1 };
                self.code.bump(quotes);
                self.modes.pop();
                self.push(TokenKind::TextClose, end, end + quotes as u32);
            }
            Some(_) if self.in_interpolation() => self.close_text(end),
            Some(_) => self.unterminated(open, end),
            None => return false,
        }
        true
    }

    /// Closes all literals and interpolations that cannot continue after a line end or the end of the file.
    fn close_line(&mut self, file_ends: bool) {
        let at = if file_ends { self.code.source().len() } else { self.code.span().start } as u32;
        let mut reported = false;
        if !file_ends && self.goes_on_over_lines(at) {
            return;
        }
        loop {
            match self.modes.last() {
                Some(LexerMode::Interpolation { open, .. }) => {
                    let open = *open;
                    if !std::mem::replace(&mut reported, true) {
                        self.report(interpolation_over_lines::diagnostic(open));
                    }
                    self.modes.pop();
                    self.push(TokenKind::InterpolationClose, at, at);
                }
                Some(LexerMode::Text { block: true, .. }) if !file_ends => {
                    // The line end belongs to the text block: it has been read as code, and must be read again as text.
                    let mut code = logos::Lexer::new(self.code.source());
                    code.bump(at as usize);
                    self.code = code;
                    break;
                }
                Some(LexerMode::Text { open, .. }) => {
                    let open = *open;
                    if std::mem::replace(&mut reported, true) {
                        self.close_text(at);
                    } else {
                        self.unterminated(open, at);
                    }
                }
                None => break,
            }
        }
    }

    /// Returns true if the current text literal is inside an interpolation. Then the missing end of the interpolation
    /// is reported.
    fn in_interpolation(&self) -> bool {
        matches!(self.modes.iter().rev().nth(1), Some(LexerMode::Interpolation { .. }))
    }

    fn close_text(&mut self, at: u32) {
        self.modes.pop();
        self.push(TokenKind::TextClose, at, at);
    }

    fn unterminated(&mut self, open: Span, at: u32) {
        let quotes = if open.len() == 3 { "\"\"\"" } else { "\"" };
        let diagnostic = Diagnostic::new(Code::UnterminatedText, "unterminated text literal")
            .at(open, "begins here")
            .suggest(format!("add the closing `{quotes}`"), Span::new(self.source, at, at), quotes);
        self.report(if open.len() == 1 {
            diagnostic.note("a text literal of several lines is written between `\"\"\"`")
        } else {
            diagnostic
        });
        self.close_text(at);
    }
}

/// Returns the number of bytes before the closing quotes, an opening brace, or (in a one-line literal) the line end.
fn piece_length(rest: &str, block: bool) -> usize {
    let bytes = rest.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'{' => return at,
            b'"' if !block || bytes[at..].starts_with(b"\"\"\"") => return at,
            b'\n' if !block => return at,
            b'\\' if bytes[at..].starts_with(b"\\u{") => at += 3,
            // An escaped character does not end the literal; an escaped line end does end a one-line literal.
            b'\\' if at + 1 < bytes.len() && bytes[at + 1] != b'\n' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Returns the character in printable form.
fn shown(character: char) -> String {
    if character.is_control() || text_direction::turns_text(character) {
        character.escape_unicode().to_string()
    } else {
        character.to_string()
    }
}

fn character_hint(character: char) -> Option<&'static str> {
    match character {
        '\'' | '‘' | '’' | '“' | '”' => Some("write text between `\"` and `\"`"),
        '$' => Some("interpolate a value with `{name}`"),
        '#' => Some("comments begin with `//`"),
        '\\' => Some("write the parameters of a closure between bars: `|x| x + 1`"),
        '@' => Some("Weir has no attributes"),
        '^' => Some("call `n.power(2)` for a power, or `n.bit_xor(m)` for bits"),
        '~' => Some("call `n.bit_not()`"),
        _ => None,
    }
}
