//! Dialect recovery for branches: conditions, arms of a `match`, and patterns.

use super::{Parser, begins_operand};
use crate::Span;
use crate::ast::{BinaryOperator, Expr, ExprKind, Pattern, PatternKind};
use crate::token::TokenKind as T;

impl Parser<'_> {
    /// Reads `=` in a condition as `==`.
    pub(in crate::parser) fn equals_in_condition(&mut self, start: Span, condition: Expr) -> Expr {
        if !self.at(T::Equal) || self.at_new_line() {
            return condition;
        }
        self.report_substitution(self.span(), "==");
        let operator_span = self.bump();
        let right = Box::new(self.head());
        let operator = BinaryOperator::Equal;
        self.expr(start, ExprKind::Binary { operator, operator_span, left: Box::new(condition), right })
    }

    /// Reads `if let pattern = value { … } else { … }`, after its `if`, and proposes a `match`.
    pub(in crate::parser) fn if_let(&mut self, start: Span) -> Option<ExprKind> {
        if !self.at(T::Let) {
            return None;
        }
        self.bump();
        let pattern = self.pattern();
        self.equals_of_binding();
        let value = self.head();
        let span = self.since(start);
        let text = |span: Span| &self.text[span.range()];
        let advice = format!("use `match`: `match {} {{ {} => …, _ => … }}`", text(value.span), text(pattern.span));
        self.report_with_advice(span, "a condition is a `Bool` and cannot contain a pattern", &advice);
        let _then = self.block();
        if self.eat(T::Else).is_some() {
            let _otherwise = self.else_body();
        }
        Some(ExprKind::Error)
    }

    /// Returns true if `switch` comes next, with a value and braces, and reports it as `match`.
    pub(in crate::parser) fn switch(&mut self) -> bool {
        let found = self.at_word_before(&["switch"], |kind| kind == T::Word) && self.nth_kind(2) == T::BraceOpen;
        let found = found || self.at_word_and_head("switch");
        if found {
            self.report_substitution(self.span(), "match");
        }
        found
    }

    /// Drops `then` after a condition.
    pub(in crate::parser) fn then_word(&mut self) {
        if self.at_word_before(&["then"], |kind| kind == T::BraceOpen) {
            self.report_superfluous(1, "the `{` follows the condition directly");
        }
    }

    /// Replaces `elif` and its variants by `else if`. Returns true if one was consumed; its condition comes next.
    pub(in crate::parser) fn else_if_word(&mut self) -> bool {
        let behind = |kind: T| begins_operand(kind) || matches!(kind, T::ParenOpen | T::Bang | T::Minus);
        let found = self.at_word_before(&["elif", "elseif", "elsif"], behind);
        if found {
            self.report_substitution(self.span(), "else if");
        }
        found
    }

    /// Drops `case` before a pattern.
    pub(in crate::parser) fn case_word(&mut self) {
        let behind = |kind: T| begins_operand(kind) || matches!(kind, T::Underscore | T::ParenOpen | T::BracketOpen);
        if self.at_word_before(&["case"], behind) {
            self.report_superfluous(1, "every arm of a `match` is a case");
        }
    }

    /// Returns true if `else` comes next as a pattern.
    pub(in crate::parser) fn at_else_arm(&self) -> bool {
        self.at(T::Else) && matches!(self.nth_kind(1), T::FatArrow | T::Arrow)
    }

    /// Reads `else` as the pattern `_`.
    pub(in crate::parser) fn else_pattern(&mut self) -> Option<Pattern> {
        if !self.at_else_arm() {
            return None;
        }
        let start = self.span();
        self.report_substitution(start, "_");
        self.bump();
        Some(self.pattern_node(start, PatternKind::Wildcard))
    }

    /// Consumes the `if` of a guard, or a word that stands for it.
    pub(in crate::parser) fn guard_word(&mut self) -> bool {
        if self
            .at_word_before(&["when", "where"], |kind| begins_operand(kind) || matches!(kind, T::ParenOpen | T::Bang))
        {
            self.report_substitution(self.span(), "if");
            self.bump();
            return true;
        }
        self.eat(T::If).is_some()
    }

    /// Consumes the `=>` of an arm, or a symbol that stands for it.
    pub(in crate::parser) fn arrow_of_arm(&mut self) -> bool {
        if matches!(self.peek(), T::Arrow | T::Colon) && !self.at_new_line() {
            let weir_form = if self.at(T::Colon) { " =>" } else { "=>" };
            let sign = self.span();
            self.report_substitution(sign, "=>");
            if let Some(edit) = self.diagnostics.last_mut().and_then(|last| last.help.last_mut()?.edit.as_mut()) {
                edit.replacement = weir_form.to_owned();
            }
            self.bump();
            return true;
        }
        self.expect(T::FatArrow, "`=>`").is_some()
    }

    /// Reads `a if condition else b`, after `a`.
    pub(super) fn value_before_if(&mut self, value: Expr) -> Expr {
        let start = value.span;
        self.bump();
        let condition = self.operators();
        let weir_form = self.weir_if(&condition, &value);
        self.report_rewrite(self.since(start), "the condition of an `if` comes before its value", weir_form);
        self.expr(start, ExprKind::Error)
    }

    /// Reads `then a else b`, after the condition.
    pub(in crate::parser) fn then_without_braces(&mut self, start: Span, condition: &Expr) -> bool {
        let is_then = self.at_word_before(&["then"], begins_operand);
        let is_bare = !self.at_new_line() && (self.at(T::Return) || begins_operand(self.peek()));
        if !is_then && !is_bare {
            return false;
        }
        if is_then {
            self.bump();
        }
        let then = if self.at(T::Return) { self.return_before_else() } else { self.operators() };
        let weir_form = self.weir_if(condition, &then);
        self.report_rewrite(self.since(start), "the branches of an `if` are written in braces", weir_form);
        true
    }

    /// `return [operators]?`, whose value has no `else` of its own
    fn return_before_else(&mut self) -> Expr {
        let start = self.bump();
        let is_alone =
            self.at_new_line() || self.peek().is_closing() || matches!(self.peek(), T::Semicolon | T::Else | T::End);
        let value = (!is_alone).then(|| Box::new(self.operators()));
        self.expr(start, ExprKind::Return(value))
    }

    /// Returns the Weir form of an `if` with these parts, and consumes an `else` if one follows.
    fn weir_if(&mut self, condition: &Expr, then: &Expr) -> String {
        let text = |span: Span| &self.text[span.range()];
        let weir_form = format!("if {} {{ {} }}", text(condition.span), text(then.span));
        if self.eat(T::Else).is_none() {
            return weir_form;
        }
        let otherwise = self.expression();
        format!("{weir_form} else {{ {} }}", &self.text[otherwise.span.range()])
    }
}
