//! Bracket balancing: gives every bracket a partner before the parser runs.
//!
//! With balanced brackets the parser can leave any bracket at any time and cannot run past its end, so an error inside
//! one bracket affects nothing outside it. A closing bracket without an opening one is dropped. For an opening bracket
//! without a closing one, a closing bracket is inserted at the most probable place:
//! 1. before a closing bracket of another kind that belongs to an outer bracket;
//! 2. before a line that begins with a keyword that cannot occur in `(…)` or `[…]`;
//! 3. before a line that begins, in the first column, with a keyword that only begins items;
//! 4. at the end of the file.
//!
//! If one of several nested braces is unclosed, the brackets alone always point to the outermost one. Indentation is
//! more reliable: if a closing brace is indented less than the line of the brace that it closes, that brace is reported
//! ([`MisindentedBrace`]).

use crate::lexer::DIAGNOSTICS_MAX;
use crate::token::{Token, TokenKind};
use crate::{Code, Diagnostic, SourceId};

/// Returns the tokens with balanced brackets, and the diagnostics.
pub(crate) fn balance(source: SourceId, text: &str, tokens: Vec<Token>) -> (Vec<Token>, Vec<Diagnostic>) {
    let mut balancer = Balancer {
        source,
        text,
        open: Vec::new(),
        indent: 0,
        misindented: None,
        out: Vec::with_capacity(tokens.len()),
        diagnostics: Vec::new(),
    };
    for token in tokens {
        balancer.take(token);
    }
    (balancer.out, balancer.diagnostics)
}

struct Balancer<'t> {
    source: SourceId,
    text: &'t str,
    /// Open brackets, outermost first.
    open: Vec<OpenBracket>,
    /// Indentation of the current line.
    indent: u32,
    /// The first brace whose closing brace is indented less than its line.
    misindented: Option<MisindentedBrace>,
    out: Vec<Token>,
    diagnostics: Vec<Diagnostic>,
}

/// An open bracket.
#[derive(Clone, Copy)]
struct OpenBracket {
    token: Token,
    /// Indentation of its line.
    indent: u32,
}

/// A brace, and the closing brace that, by its indentation, belongs to another one.
struct MisindentedBrace {
    open: Token,
    close: Token,
}

impl Balancer<'_> {
    fn take(&mut self, token: Token) {
        if token.first_on_line {
            self.indent = indent_before(self.text, token.start);
        }
        if token.kind.closing().is_some() {
            self.open.push(OpenBracket { token, indent: self.indent });
        } else if token.kind.is_closing() && !self.close(token) {
            return self.report_unmatched(token);
        } else if token.kind == TokenKind::End || self.begins_item(token) {
            self.close_all_before(token, |_| true);
        } else if token.first_on_line && matches!(token.kind, TokenKind::Let | TokenKind::Expect) {
            self.close_all_before(token, |open| matches!(open, TokenKind::ParenOpen | TokenKind::BracketOpen));
        }
        self.out.push(token);
    }

    fn begins_item(&self, token: Token) -> bool {
        use TokenKind as T;
        let word = matches!(token.kind, T::Use | T::Shared | T::Record | T::Enum | T::Service | T::Fn);
        word && token.first_on_line && (token.start == 0 || self.text.as_bytes()[token.start as usize - 1] == b'\n')
    }

    /// Finds the partner of a closing bracket. Closing braces and interpolations also close the brackets inside them;
    /// the search for other brackets stops at a brace.
    fn close(&mut self, token: Token) -> bool {
        let is_barrier = |open: &OpenBracket| match token.kind {
            TokenKind::InterpolationClose => false,
            TokenKind::BraceClose => open.token.kind == TokenKind::InterpolationOpen,
            _ => matches!(open.token.kind, TokenKind::BraceOpen | TokenKind::InterpolationOpen),
        };
        let inner = self.open.iter().rev().take_while(|open| !is_barrier(open));
        // The limit keeps the search linear if many equal brackets have no partner.
        let Some(depth) = inner.take(SEARCH_MAX).position(|open| open.token.kind.closing() == Some(token.kind)) else {
            return false;
        };
        for _ in 0..depth {
            self.close_top_before(token);
        }
        let partner = self.open.pop();
        if self.open.is_empty() {
            self.misindented = None;
        } else if let Some(open) = partner
            && token.kind == TokenKind::BraceClose
            && token.first_on_line
            && self.indent < open.indent
            && self.misindented.is_none()
        {
            self.misindented = Some(MisindentedBrace { open: open.token, close: token });
        }
        true
    }

    fn close_all_before(&mut self, token: Token, may_close: impl Fn(TokenKind) -> bool) {
        while self.open.last().is_some_and(|open| may_close(open.token.kind)) {
            self.close_top_before(token);
        }
    }

    /// Reports and closes the innermost open bracket, after the token before `token`.
    fn close_top_before(&mut self, token: Token) {
        let Some(OpenBracket { token: open, .. }) = self.open.pop() else { return };
        let Some(kind) = open.kind.closing() else { return };
        let at = self.out.last().map_or(token.start, |last| last.end);
        self.out.push(Token { kind, first_on_line: false, start: at, end: at });
        if self.diagnostics.len() >= DIAGNOSTICS_MAX {
            return;
        }
        let misindented = if open.kind == TokenKind::BraceOpen { self.misindented.take() } else { None };
        let diagnostic = match misindented {
            Some(misindented) => self
                .unclosed(misindented.open)
                .because(misindented.close.span(self.source), "its indentation matches another brace"),
            None => self.ended_early(open, at, token),
        };
        self.diagnostics.push(diagnostic);
    }

    fn unclosed(&self, open: Token) -> Diagnostic {
        let symbol = &self.text[open.start as usize..open.end as usize];
        Diagnostic::new(Code::UnclosedDelimiter, format!("unclosed `{symbol}`"))
            .at(open.span(self.source), "opened here")
    }

    /// Reports that `open` should have been closed at `at`, before `token`.
    fn ended_early(&self, open: Token, at: u32, token: Token) -> Diagnostic {
        let found = match token.kind {
            TokenKind::End => "the file ends here".to_owned(),
            // The end of an interpolation or template has no text.
            _ if token.start == token.end => "the code ends here before it is closed".to_owned(),
            _ => format!("`{}` comes before it is closed", &self.text[token.start as usize..token.end as usize]),
        };
        let end = if token.kind == TokenKind::End { Token { start: at, end: at, ..token } } else { token };
        let diagnostic = self.unclosed(open).because(end.span(self.source), found);
        match CLOSING.iter().find(|(kind, _)| *kind == open.kind) {
            Some((_, symbol)) if self.comment_behind(open).contains(*symbol) => diagnostic
                .hint(format!("`//` begins a comment that hides the `{symbol}`; integer division is written `/`")),
            _ => diagnostic,
        }
    }

    /// Returns the comment on the line of the bracket, or an empty text.
    fn comment_behind(&self, open: Token) -> &str {
        let line = self.text[open.end as usize..].lines().next().unwrap_or_default();
        let Some(at) = line.find("//") else { return "" };
        let place = open.end + at as u32;
        let next = self.out.partition_point(|token| token.start <= place);
        let in_text = next > 0 && place < self.out[next - 1].end;
        if in_text { "" } else { &line[at..] }
    }

    fn report_unmatched(&mut self, token: Token) {
        if self.diagnostics.len() >= DIAGNOSTICS_MAX {
            return;
        }
        let symbol = &self.text[token.start as usize..token.end as usize];
        let diagnostic = Diagnostic::new(Code::UnmatchedDelimiter, format!("unmatched `{symbol}`"))
            .at(token.span(self.source), "no matching opening bracket")
            .suggest(format!("remove the `{symbol}`"), token.span(self.source), "");
        self.diagnostics.push(diagnostic);
    }
}

/// Closing symbols of the brackets that usually close on their line.
const CLOSING: &[(TokenKind, char)] = &[(TokenKind::ParenOpen, ')'), (TokenKind::BracketOpen, ']')];

/// Returns the indentation of the line whose first token begins at `at`.
fn indent_before(text: &str, at: u32) -> u32 {
    let before = &text.as_bytes()[..at as usize];
    let blank = before.iter().rev().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    u32::try_from(blank).unwrap_or(u32::MAX)
}

/// Maximum number of open brackets in which the partner of a closing bracket is searched.
const SEARCH_MAX: usize = 256;
