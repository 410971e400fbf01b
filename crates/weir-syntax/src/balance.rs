//! Makes every bracket have its partner, before the grammar is looked at.
//!
//! With balanced brackets the parser can leave any bracket at any time and cannot run past its end, so a fault inside one
//! bracket spoils nothing outside of it. A closing bracket without an opening one is dropped; an opening one without a
//! closing one gets an empty one where it probably was meant:
//! 1. before a closing bracket of another kind that belongs to a bracket further out;
//! 2. before a line that begins with a word which cannot stand in `(…)` or `[…]`;
//! 3. before a line that begins, in the first column, with a word that only begins items;
//! 4. at the end of the file.
//!
//! Which of several open braces lacks its partner, the brackets alone do not tell: the last one does always. Where a
//! closing brace stands further left than the line of the brace that it closes, that one is named (`MisindentedBrace`).

use crate::lexer::DIAGNOSTICS_MAX;
use crate::token::{Token, TokenKind};
use crate::{Code, Diagnostic, SourceId};

/// The tokens with every bracket balanced, and what was reported on the way.
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
    /// The open brackets, outermost first.
    open: Vec<OpenBracket>,
    /// How far the line that is read is indented.
    indent: u32,
    /// The first brace that is closed from further left than its line.
    misindented: Option<MisindentedBrace>,
    out: Vec<Token>,
    diagnostics: Vec<Diagnostic>,
}

/// An open bracket.
#[derive(Clone, Copy)]
struct OpenBracket {
    token: Token,
    /// How far its line is indented.
    indent: u32,
}

/// A brace, and the one that closes it though its place says that it closes another.
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

    /// Finds the partner of a closing bracket. Braces and interpolations end what is open inside of them; the other
    /// brackets do not look through a brace.
    fn close(&mut self, token: Token) -> bool {
        let is_barrier = |open: &OpenBracket| match token.kind {
            TokenKind::InterpolationClose => false,
            TokenKind::BraceClose => open.token.kind == TokenKind::InterpolationOpen,
            _ => matches!(open.token.kind, TokenKind::BraceOpen | TokenKind::InterpolationOpen),
        };
        let inner = self.open.iter().rev().take_while(|open| !is_barrier(open));
        // A stack of equal brackets without partner must not be searched again and again.
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

    /// Reports the innermost open bracket and closes it, behind the token before `token`.
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
                .because(misindented.close.span(self.source), "by its place, this one closes another"),
            None => self.ended_early(open, at, token),
        };
        self.diagnostics.push(diagnostic);
    }

    fn unclosed(&self, open: Token) -> Diagnostic {
        let symbol = &self.text[open.start as usize..open.end as usize];
        Diagnostic::new(Code::UnclosedDelimiter, format!("this `{symbol}` is never closed"))
            .at(open.span(self.source), "it opens here")
    }

    /// Says that `open` would have to be closed at `at`, before `token`.
    fn ended_early(&self, open: Token, at: u32, token: Token) -> Diagnostic {
        let found = match token.kind {
            TokenKind::End => "the file ends here".to_owned(),
            _ => format!("`{}` comes before its end", &self.text[token.start as usize..token.end as usize]),
        };
        let end = if token.kind == TokenKind::End { Token { start: at, end: at, ..token } } else { token };
        let diagnostic = self.unclosed(open).because(end.span(self.source), found);
        match CLOSING.iter().find(|(kind, _)| *kind == open.kind) {
            Some((_, symbol)) if self.comment_behind(open).contains(*symbol) => diagnostic
                .hint(format!("`//` begins a comment, and the `{symbol}` is in it; `/` divides whole numbers")),
            _ => diagnostic,
        }
    }

    /// The comment on the bracket's line, where there is one.
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
        let diagnostic = Diagnostic::new(Code::UnmatchedDelimiter, format!("this `{symbol}` closes nothing"))
            .at(token.span(self.source), "no bracket of its kind is open")
            .fix(format!("remove the `{symbol}`"), token.span(self.source), "");
        self.diagnostics.push(diagnostic);
    }
}

/// What closes the brackets that stand within a line.
const CLOSING: &[(TokenKind, char)] = &[(TokenKind::ParenOpen, ')'), (TokenKind::BracketOpen, ']')];

/// How far the line is indented whose first token begins at `at`.
fn indent_before(text: &str, at: u32) -> u32 {
    let before = &text.as_bytes()[..at as usize];
    let blank = before.iter().rev().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    u32::try_from(blank).unwrap_or(u32::MAX)
}

/// How far out the partner of a closing bracket is looked for.
const SEARCH_MAX: usize = 256;
