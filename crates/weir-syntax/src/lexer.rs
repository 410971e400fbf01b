//! Text to tokens, in one pass and linear time; never fails.
//!
//! Words: the *mode* is what the next characters belong to: code, a text literal, or the code of an interpolation in
//! one. Modes nest, so they lie on a stack; the bottom is the file's code and is not on it.
//!
//! Protocol: [`Lexer::run`] alternates between the derived lexer for code and [`Lexer::text_piece`] for texts. A line end
//! closes every interpolation and every text on one line that is open, whatever is missing; so one forgotten quote
//! spoils one line and not the file.

mod dialect;

use crate::token::{Token, TokenKind};
use crate::{Code, Diagnostic, SourceId, Span};

/// The most diagnostics that one pass over one file keeps: nobody reads more, and memory stays bounded.
pub(crate) const DIAGNOSTICS_MAX: usize = 500;

/// A comment of any kind, as a place in the text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CommentPlace {
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// Whether it is the first thing on its line.
    pub(crate) first_on_line: bool,
}

/// What the lexer makes of a file.
pub(crate) struct Lexed {
    /// The tokens, without comments; the last one, and only it, is [`TokenKind::End`].
    pub(crate) tokens: Vec<Token>,
    pub(crate) comments: Vec<CommentPlace>,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

/// Cuts `text` into tokens.
pub(crate) fn lex(source: SourceId, text: &str) -> Lexed {
    let lexed = Lexed { tokens: Vec::new(), comments: Vec::new(), diagnostics: Vec::new() };
    let mut lexer = Lexer { source, code: logos::Lexer::new(text), modes: Vec::new(), line_begins: true, lexed };
    lexer.run();
    lexer.lexed
}

enum LexerMode {
    /// In a text literal.
    Text { block: bool, open: Span },
    /// In the code of an interpolation, with this many braces open.
    Interpolation { open: Span, braces: u32 },
}

struct Lexer<'t> {
    source: SourceId,
    code: logos::Lexer<'t, TokenKind>,
    modes: Vec<LexerMode>,
    /// Whether no token has been seen on this line.
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

    /// One token of code. Returns whether there was one.
    fn code_token(&mut self) -> bool {
        let Some(result) = self.code.next() else { return false };
        let span = self.code.span();
        let (start, end) = (span.start as u32, span.end as u32);
        match result {
            Ok(TokenKind::LineEnd) => {
                self.close_line(false);
                self.line_begins = true;
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

    /// Joins characters that mean nothing, where they follow each other, into one diagnostic.
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
            Diagnostic::new(Code::UnknownCharacter, format!("`{}` means nothing here", shown(character)))
                .at(Span::new(self.source, start, end), "");
        let place = Span::new(self.source, start, end);
        diagnostic = match character_hint(character) {
            // The parser says the rest of what is a closure elsewhere.
            Some(hint) if character == '\\' => diagnostic.fix(hint, place, ""),
            Some(hint) => diagnostic.hint(hint),
            None => diagnostic,
        };
        self.report(diagnostic);
    }

    /// What stands in a text up to its end, the next interpolation, or the end of the line. Returns whether the file
    /// goes on.
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
                self.modes.push(LexerMode::Interpolation { open: Span::new(self.source, end, end + 1), braces: 0 });
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

    /// Closes what cannot go on behind a line end, or behind the end of the file.
    fn close_line(&mut self, file_ends: bool) {
        let at = if file_ends { self.code.source().len() } else { self.code.span().start } as u32;
        let mut reported = false;
        loop {
            match self.modes.last() {
                Some(LexerMode::Interpolation { open, .. }) => {
                    let open = *open;
                    if !std::mem::replace(&mut reported, true) {
                        self.report(interpolation_over_lines(open));
                    }
                    self.modes.pop();
                    self.push(TokenKind::InterpolationClose, at, at);
                }
                Some(LexerMode::Text { block: true, .. }) if !file_ends => {
                    // The line end is the text's own: it has been read as code, and must be read as text.
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

    /// Whether the text that is being read stands in an interpolation, whose missing end is the fault to report.
    fn in_interpolation(&self) -> bool {
        matches!(self.modes.iter().rev().nth(1), Some(LexerMode::Interpolation { .. }))
    }

    fn close_text(&mut self, at: u32) {
        self.modes.pop();
        self.push(TokenKind::TextClose, at, at);
    }

    fn unterminated(&mut self, open: Span, at: u32) {
        let quotes = if open.len() == 3 { "\"\"\"" } else { "\"" };
        let diagnostic = Diagnostic::new(Code::UnterminatedText, "this text does not end")
            .at(open, "it begins here")
            .fix(format!("end it with `{quotes}`"), Span::new(self.source, at, at), quotes);
        self.report(if open.len() == 1 {
            diagnostic.note("a text of several lines stands between `\"\"\"`")
        } else {
            diagnostic
        });
        self.close_text(at);
    }
}

fn interpolation_over_lines(open: Span) -> Diagnostic {
    Diagnostic::new(Code::InterpolationOverLines, "this interpolation does not end on its line")
        .at(open, "it begins here")
        .fix("write `\\{` if you mean the character itself", open, "\\{")
}

/// The number of bytes before the text's closing quotes, an opening brace, or (for a text on one line) the line end.
fn piece_length(rest: &str, block: bool) -> usize {
    let bytes = rest.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'{' => return at,
            b'"' if !block || bytes[at..].starts_with(b"\"\"\"") => return at,
            b'\n' if !block => return at,
            b'\\' if bytes[at..].starts_with(b"\\u{") => at += 3,
            // The escaped character is no end; where it is a line end, the text on one line still ends there.
            b'\\' if at + 1 < bytes.len() && bytes[at + 1] != b'\n' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The character as a message shows it.
fn shown(character: char) -> String {
    if character.is_control() { character.escape_unicode().to_string() } else { character.to_string() }
}

fn character_hint(character: char) -> Option<&'static str> {
    match character {
        '\'' | '‘' | '’' | '“' | '”' => Some("a text stands between `\"` and `\"`"),
        '$' => Some("a value is put into a text as `{name}`"),
        '#' => Some("a comment begins with `//`"),
        '\\' => Some("the parameters of a closure stand between bars: `|x| x + 1`"),
        '@' => Some("there are no attributes here"),
        '^' | '~' => Some("there are no bit operators"),
        _ => None,
    }
}
