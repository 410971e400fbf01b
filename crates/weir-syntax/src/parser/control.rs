//! Expressions that begin with a keyword.

use super::{BraceRole, Parser};
use crate::ast::{Arm, Expr, ExprKind, Replacement};
use crate::token::TokenKind as T;
use crate::{Code, Diagnostic, Span};

impl Parser<'_> {
    /// Parses an expression that begins with a keyword, or reports that there is none.
    pub(super) fn control(&mut self) -> Expr {
        let start = self.span();
        let kind = match self.peek() {
            T::BraceOpen => ExprKind::Block(self.block()),
            T::If => self.if_kind(),
            T::Match => self.match_kind(),
            T::For => self.for_kind(),
            T::Fold => self.fold_kind(),
            T::Loop => self.loop_kind(),
            T::Return => self.return_kind(),
            T::Atomic => self.atomic_kind(),
            T::Race => self.race_kind(),
            T::Retry => self.retry_kind(),
            T::With => self.with_kind(),
            T::Word if self.token_text() == "switch" => self.match_kind(),
            T::Within if matches!(self.nth_kind(1), T::Number | T::Word | T::ParenOpen) => self.limit_before_value(),
            _ => {
                self.unexpected("an expression");
                return self.error_expr();
            }
        };
        self.expr(start, kind)
    }

    /// `if head block [else [if … | block]]?`
    fn if_kind(&mut self) -> ExprKind {
        let word = self.bump();
        if let Some(kind) = self.if_let(word) {
            return kind;
        }
        let start = self.span();
        let condition = self.head();
        if self.depth_reported && matches!(condition.kind, ExprKind::Error) && !self.at(T::BraceOpen) {
            // The rest of the chain was skipped with the condition that is too deep.
            return ExprKind::Error;
        }
        let condition = Box::new(self.equals_in_condition(start, condition));
        if self.then_without_braces(word, &condition) {
            return ExprKind::Error;
        }
        self.then_word();
        let then = self.block();
        let belongs = (self.at(T::Else) && self.nth_kind(1) != T::As) || self.else_if_word();
        let otherwise = belongs.then(|| Box::new(self.if_else()));
        ExprKind::If { condition, then, otherwise }
    }

    /// `else [if … | block]`
    fn if_else(&mut self) -> Expr {
        let is_one_word = self.at(T::Word);
        if !is_one_word {
            self.bump();
        }
        let start = self.span();
        let kind = match self.peek() {
            T::If | T::Word if is_one_word || self.at(T::If) => {
                self.else_ifs += 1;
                let kind = self.nested(Self::if_kind).unwrap_or(ExprKind::Error);
                self.else_ifs -= 1;
                kind
            }
            _ => ExprKind::Block(self.block()),
        };
        self.expr(start, kind)
    }

    /// `match head { arm,* }`
    fn match_kind(&mut self) -> ExprKind {
        self.bump();
        let value = Box::new(self.subject());
        ExprKind::Match { value, arms: self.braces_of(Self::arm) }
    }

    /// `pattern [if operators]? => expression`
    fn arm(&mut self) -> Arm {
        let start = self.span();
        self.case_word();
        let pattern = self.else_pattern().unwrap_or_else(|| self.pattern());
        let guard = self.guard_word().then(|| self.operators());
        let body = if self.arrow_of_arm() { self.expression() } else { self.error_expr() };
        Arm { pattern, guard, body, span: self.since(start) }
    }

    /// `for pattern in head clauses block`
    pub(super) fn for_kind(&mut self) -> ExprKind {
        let start = self.bump();
        if let Some(kind) = self.counting_for(start) {
            return kind;
        }
        let pattern = Box::new(self.pattern());
        self.in_of_for();
        let items = Box::new(self.subject());
        let query = Box::new(self.query_clauses());
        ExprKind::For { pattern, items, query, body: self.block() }
    }

    /// `fold pattern = head for pattern in head block`
    fn fold_kind(&mut self) -> ExprKind {
        self.bump();
        let accumulator = Box::new(self.pattern());
        self.expect(T::Equal, "`=`");
        let initial = Box::new(self.subject());
        self.expect(T::For, "`for`");
        let pattern = Box::new(self.pattern());
        self.expect(T::In, "`in`");
        let items = Box::new(self.subject());
        self.condition_of_fold();
        ExprKind::Fold { accumulator, initial, pattern, items, body: self.block() }
    }

    /// Reads the condition that a `for` may have.
    fn condition_of_fold(&mut self) {
        if self.at(T::If) {
            let start = self.bump();
            let _condition = self.subject();
            let diagnostic = Diagnostic::new(Code::DialectSyntax, "a `fold` has no condition")
                .at(self.since(start), "only a `for` may have one")
                .hint("decide in the body: `if condition { next } else { state }`");
            self.report(diagnostic);
        }
    }

    /// The value of a `match` or loop: a head, which has no `else`.
    fn subject(&mut self) -> Expr {
        let start = self.span();
        let value = self.head();
        self.else_in_head(start, value)
    }

    /// `loop pattern = head block until operators at most operators`
    fn loop_kind(&mut self) -> ExprKind {
        let start = self.bump();
        if self.at(T::BraceOpen) {
            self.unbounded(start, "`state = first`");
            let _body = self.block();
            return ExprKind::Error;
        }
        let state = Box::new(self.pattern());
        self.expect(T::Equal, "`=`");
        let initial = Box::new(self.subject());
        let body = self.block();
        let until = match self.eat(T::Until) {
            Some(_) => self.operators(),
            None => self.unbounded(start, "`until` and a condition"),
        };
        let at_most = match self.eat_word("at") {
            Some(_) => {
                self.expect_word("most");
                self.operators()
            }
            None => self.unbounded(start, "`at most` and a number"),
        };
        ExprKind::Loop { state, initial, body, until: Box::new(until), at_most: Box::new(at_most) }
    }

    fn unbounded(&mut self, start: Span, missing: &str) -> Expr {
        if self.reported_at.replace(self.at) != Some(self.at) {
            let end = self.previous_span().at_end();
            self.report(
                Diagnostic::new(Code::UnboundedLoop, "loop without a bound")
                    .at(start, "")
                    .because(end, format!("expected {missing} here"))
                    .hint("write `loop state = first { … } until condition at most 100`"),
            );
        }
        self.error_expr()
    }

    /// `return expression?`
    fn return_kind(&mut self) -> ExprKind {
        self.bump();
        let alone = self.at_new_line()
            || self.peek().is_closing()
            || self.at_per_session()
            || matches!(self.peek(), T::Semicolon | T::Comma | T::Colon | T::Else | T::End | T::FatArrow);
        ExprKind::Return((!alone).then(|| Box::new(self.expression())))
    }

    /// `race { expression,* }`
    fn race_kind(&mut self) -> ExprKind {
        self.bump();
        ExprKind::Race(self.braces_of(Self::expression))
    }

    /// `retry ( argument,* ) block`
    fn retry_kind(&mut self) -> ExprKind {
        self.bump();
        if !self.at(T::ParenOpen) {
            self.unexpected("`(` and the number of attempts");
        }
        let arguments = self.arguments();
        ExprKind::Retry { arguments, body: self.block() }
    }

    /// `with [path = expression],+ block`
    fn with_kind(&mut self) -> ExprKind {
        self.bump();
        let mut replacements = vec![self.replacement()];
        while self.eat(T::Comma).is_some() {
            replacements.push(self.replacement());
        }
        ExprKind::With { replacements, body: self.block() }
    }

    fn replacement(&mut self) -> Replacement {
        let start = self.span();
        let function = self.path("the function to replace");
        self.expect(T::Equal, "`=`");
        let ignored = self.line_ends_ignored;
        let value = self.within_mode(BraceRole::Body, ignored, Self::expression);
        Replacement { function, value, span: self.since(start) }
    }
}
