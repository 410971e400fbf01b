//! Makes every bracket have its partner, before the grammar is looked at.
//!
//! With balanced brackets the parser can leave any bracket at any time and cannot run past its end, so a fault inside one
//! bracket spoils nothing outside of it. A closing bracket without an opening one is dropped; an opening one without a
//! closing one gets an empty one where it probably was meant:
//! 1. before a closing bracket of another kind that belongs to a bracket further out;
//! 2. before a line that begins with a word which cannot stand in `(…)` or `[…]`;
//! 3. before a line that begins, in the first column, with a word that only begins items;
//! 4. at the end of the file.

use crate::lexer::DIAGNOSTICS_MAX;
use crate::token::{Token, TokenKind};
use crate::{Code, Diagnostic, SourceId};

/// The tokens with every bracket balanced, and what was reported on the way.
pub(crate) fn balance(source: SourceId, text: &str, tokens: Vec<Token>) -> (Vec<Token>, Vec<Diagnostic>) {
    let mut balancer =
        Balancer { source, text, open: Vec::new(), out: Vec::with_capacity(tokens.len()), diagnostics: Vec::new() };
    for token in tokens {
        balancer.take(token);
    }
    (balancer.out, balancer.diagnostics)
}

struct Balancer<'t> {
    source: SourceId,
    text: &'t str,
    /// The open brackets, outermost first.
    open: Vec<Token>,
    out: Vec<Token>,
    diagnostics: Vec<Diagnostic>,
}

impl Balancer<'_> {
    fn take(&mut self, token: Token) {
        if token.kind.closing().is_some() {
            self.open.push(token);
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
        let wall = |open: &Token| match token.kind {
            TokenKind::InterpolationClose => false,
            TokenKind::BraceClose => open.kind == TokenKind::InterpolationOpen,
            _ => matches!(open.kind, TokenKind::BraceOpen | TokenKind::InterpolationOpen),
        };
        let inner = self.open.iter().rev().take_while(|open| !wall(open));
        // A stack of equal brackets without partner must not be searched again and again.
        let Some(depth) = inner.take(SEARCH_MAX).position(|open| open.kind.closing() == Some(token.kind)) else {
            return false;
        };
        for _ in 0..depth {
            self.close_top_before(token);
        }
        self.open.pop();
        true
    }

    fn close_all_before(&mut self, token: Token, may_close: impl Fn(TokenKind) -> bool) {
        while self.open.last().is_some_and(|open| may_close(open.kind)) {
            self.close_top_before(token);
        }
    }

    /// Reports the innermost open bracket and closes it, behind the token before `token`.
    fn close_top_before(&mut self, token: Token) {
        let Some(open) = self.open.pop() else { return };
        let Some(kind) = open.kind.closing() else { return };
        let at = self.out.last().map_or(token.start, |last| last.end);
        self.out.push(Token { kind, first_on_line: false, start: at, end: at });
        if self.diagnostics.len() >= DIAGNOSTICS_MAX {
            return;
        }
        let symbol = &self.text[open.start as usize..open.end as usize];
        let found = match token.kind {
            TokenKind::End => "the file ends here".to_owned(),
            _ => format!("`{}` comes before its end", &self.text[token.start as usize..token.end as usize]),
        };
        let end = if token.kind == TokenKind::End { Token { start: at, end: at, ..token } } else { token };
        let diagnostic = Diagnostic::new(Code::UnclosedDelimiter, format!("this `{symbol}` is never closed"))
            .at(open.span(self.source), "it opens here")
            .because(end.span(self.source), found);
        self.diagnostics.push(diagnostic);
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

/// How far out the partner of a closing bracket is looked for.
const SEARCH_MAX: usize = 256;
