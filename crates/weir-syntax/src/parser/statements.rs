//! Statements.

use super::Parser;
use super::bodies::BlockKind;
use crate::Span;
use crate::ast::{Let, Otherwise, Statement, StatementKind};
use crate::token::TokenKind as T;

impl Parser<'_> {
    /// `statement*`, each ended by a line end or `;`, up to the closing brace.
    pub(super) fn statements(&mut self, place: BlockKind) -> Vec<Statement> {
        let mut statements = Vec::new();
        while self.eat(T::Semicolon).is_some() || !self.at_block_end() {
            if self.at_block_end() || self.at(T::Semicolon) {
                continue;
            }
            let before = self.at;
            self.begun_at = before;
            statements.extend(self.statement(place));
            if self.at == before {
                self.skip_token();
                self.skip_statement_tail();
            } else {
                self.statement_end(self.previous_span());
            }
        }
        statements
    }

    pub(super) fn at_block_end(&self) -> bool {
        self.peek().is_closing() || self.at(T::End)
    }

    fn skip_statement_tail(&mut self) {
        if !self.at_new_line() {
            self.skip_statement();
        }
    }

    /// Consumes the end of a statement, and skips unexpected tokens before it.
    pub(super) fn statement_end(&mut self, before: Span) {
        if self.at_block_end() || self.at_new_line() || self.at(T::Semicolon) {
            return;
        }
        if self.begins_statement() {
            self.missing_line_end(before);
            if self.peek() != T::Word && self.begins_statement_only() {
                return;
            }
        } else {
            self.unexpected("a new line");
        }
        self.skip_statement();
    }

    fn begins_statement(&self) -> bool {
        let kind = self.peek();
        let begins = matches!(kind, T::Word | T::Number | T::ParenOpen | T::BracketOpen | T::BraceOpen);
        begins || matches!(kind, T::TextOpen | T::HtmlPrefix) || self.begins_statement_only()
    }

    /// Returns true if the next token can only begin a statement.
    fn begins_statement_only(&self) -> bool {
        matches!(
            self.peek(),
            T::Let | T::Return | T::Expect | T::If | T::For | T::Match | T::Atomic | T::With | T::Loop
        )
    }

    /// `let …`, `expect expression`, `on failure of …`, `expression`
    fn statement(&mut self, place: BlockKind) -> Option<Statement> {
        let start = self.span();
        if let Some(statement) = self.dialect_statement(start) {
            return Some(statement);
        }
        let kind = match self.peek() {
            T::Let => StatementKind::Let(self.binding()),
            T::Expect => {
                self.bump();
                StatementKind::Expect(self.expression())
            }
            T::Fn if self.nth_kind(1) != T::Word => return self.expression_statement(start),
            _ if self.at_declaration() => return self.misplaced_item(start),
            T::Word if self.at_session() => return self.misplaced_session(start),
            T::Word if self.at_handler() => self.handler_statement(place),
            _ => return self.expression_statement(start),
        };
        Some(Statement { kind, span: self.since(start) })
    }

    /// `let pattern [: type]? = value [else [as name]? expression]?`
    pub(super) fn binding(&mut self) -> Let {
        self.bump();
        self.mutable();
        let pattern = self.pattern();
        let ty = self.eat(T::Colon).map(|_| self.ty());
        if !self.equals_of_binding() {
            let value = self.error_expr();
            return Let { pattern, ty, value, otherwise: None };
        }
        let value = self.limited();
        let value = self.arrow_closure(value);
        Let { pattern, ty, value, otherwise: self.otherwise() }
    }

    /// `[else [as name]? expression]?`
    pub(super) fn otherwise(&mut self) -> Option<Otherwise> {
        let start = self.eat(T::Else)?;
        let failure = self.failure_name();
        let body = self.else_body();
        Some(Otherwise { failure, body, span: self.since(start) })
    }

    fn handler_statement(&mut self, place: BlockKind) -> StatementKind {
        let start = self.span();
        let handler = self.failure_handler();
        if place == BlockKind::Inner {
            let words = Span { end: (start.start + 10).min(handler.function.span.start), ..start };
            let words = Span { end: words.end.max(start.end), ..words };
            self.misplaced(
                words,
                "`on failure`",
                "to the head of the `fn`, route or entry point, or write `else` here",
            );
        }
        StatementKind::FailureHandler(handler)
    }

    fn misplaced_item(&mut self, start: Span) -> Option<Statement> {
        let word = self.token_text().to_owned();
        self.misplaced(start, &format!("`{word}`"), "to the top level of the file");
        let _outside = self.nested(Self::item);
        None
    }

    fn misplaced_session(&mut self, start: Span) -> Option<Statement> {
        self.misplaced(start, "`session`", "to the head of the service, route or entry point");
        let _outside = self.session();
        None
    }

    fn expression_statement(&mut self, start: Span) -> Option<Statement> {
        let mut expr = self.expression();
        self.map_in_braces(&mut expr);
        if self.at(T::Equal) && !self.at_new_line() {
            self.assignment(&expr);
            self.bump();
            let _value = self.expression();
        }
        Some(Statement { kind: StatementKind::Expr(expr), span: self.since(start) })
    }
}
