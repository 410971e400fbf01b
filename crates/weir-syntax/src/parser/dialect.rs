//! Dialect recovery in the parser: recognises syntax of other languages where no Weir syntax is possible, reports it
//! once, and reads it as its Weir form, so that it causes no further errors.

mod branches;
mod expressions;
mod items;
mod lists;
mod services;
mod statements;
mod tables;
mod types;

use super::Parser;
use crate::dialect::substitution;
use crate::token::TokenKind as T;
use crate::{Code, Diagnostic, Span};

impl Parser<'_> {
    /// Reports that the syntax at `span` has another form in Weir.
    fn report_substitution(&mut self, span: Span, weir_form: &str) {
        let diagnostic = substitution(span, &self.text[span.range()], weir_form);
        self.report(diagnostic);
    }

    /// Reports dialect syntax together with its rewritten Weir form.
    fn report_rewrite(&mut self, span: Span, message: &str, weir_form: String) {
        let advice = if weir_form.contains('\n') {
            "rewrite it in Weir syntax".to_owned()
        } else {
            format!("write `{weir_form}`")
        };
        self.report(
            Diagnostic::new(Code::DialectSyntax, message)
                .at(span, "syntax of another language")
                .fix(advice, span, weir_form),
        );
    }

    /// Reports dialect syntax that no single edit can replace.
    fn report_with_advice(&mut self, span: Span, message: &str, advice: &str) {
        self.report(Diagnostic::new(Code::DialectSyntax, message).at(span, "syntax of another language").hint(advice));
    }

    /// Reports and consumes the next `count` tokens, which Weir does not need.
    fn report_superfluous(&mut self, count: usize, why: &str) {
        let span = Span { end: self.nth(count).start, ..self.span() };
        let dialect_form = self.text[span.range()].trim_end().to_owned();
        let place = Span { end: span.start + dialect_form.len() as u32, ..span };
        (0..count).for_each(|_| _ = self.bump());
        let diagnostic = Diagnostic::new(Code::DialectSyntax, format!("`{dialect_form}` is not needed in Weir"));
        self.report(diagnostic.at(place, why).fix("remove it", span, ""));
    }

    /// Reports a semicolon between fields, variants or arms.
    pub(super) fn semicolon_for_comma(&mut self) {
        self.report_substitution(self.span(), ",");
    }

    /// Returns true if one of these words comes next, followed on its line by a token that `behind` accepts.
    fn at_word_before(&self, words: &[&str], behind: impl Fn(T) -> bool) -> bool {
        let next = self.nth(1);
        self.at(T::Word) && !next.first_on_line && behind(next.kind) && words.contains(&self.token_text())
    }

    /// Returns true if `word (…) {` comes next, on one line.
    fn at_word_and_head(&self, word: &str) -> bool {
        const TOKENS_MAX: usize = 64;
        if !self.at_word_before(&[word], |kind| kind == T::ParenOpen) {
            return false;
        }
        let mut open = 0u32;
        for ahead in 1..TOKENS_MAX {
            let token = self.nth(ahead);
            match token.kind {
                T::ParenOpen => open += 1,
                T::ParenClose => open = open.saturating_sub(1),
                _ => {}
            }
            if open == 0 {
                let next = self.nth(ahead + 1);
                return next.kind == T::BraceOpen && !next.first_on_line;
            }
        }
        false
    }

    /// Returns true if no space follows the token at `ahead`.
    fn adjacent(&self, ahead: usize) -> bool {
        self.nth(ahead).end == self.nth(ahead + 1).start && self.nth_kind(ahead + 1) != T::End
    }

    /// Returns true if the token at `ahead` is the last of its line or of its bracket.
    fn ends_behind(&self, ahead: usize) -> bool {
        let next = self.nth(ahead + 1);
        next.first_on_line || next.kind.is_closing() || matches!(next.kind, T::Semicolon | T::End)
    }

    /// Skips to the end of the line or of the bracket.
    fn skip_line(&mut self) {
        if !self.at_new_line() {
            self.skip_statement();
        }
    }
}

/// Returns true if an operand begins with a token of this kind, and the token cannot continue one.
fn begins_operand(kind: T) -> bool {
    kind.opens_text() || matches!(kind, T::Word | T::Number | T::True | T::False)
}
