//! Error recovery: a list continues at its next element, a block at its next statement, a file at its next item. Each
//! token is skipped at most once, so recovery takes linear time.

use super::{BraceRole, Parser};
use crate::Span;
use crate::token::TokenKind;

impl Parser<'_> {
    /// Skips one token, or a whole bracket if it is an opening one.
    pub(super) fn skip_token(&mut self) {
        let mut open = 0u32;
        loop {
            let kind = self.peek();
            if kind.closing().is_some() {
                open += 1;
            } else if kind.is_closing() {
                open = open.saturating_sub(1);
            }
            self.bump();
            if open == 0 || kind == TokenKind::End {
                break;
            }
        }
    }

    /// Skips to a comma, a semicolon, a new line, or the end of the bracket: the boundaries of an operand.
    pub(super) fn skip_operand(&mut self) {
        while !self.at_boundary() && !self.at(TokenKind::Comma) {
            self.skip_token();
            if self.at_new_line() {
                break;
            }
        }
    }

    /// Skips to the next statement.
    pub(super) fn skip_statement(&mut self) {
        while !self.at_boundary() {
            self.skip_token();
            if self.at_new_line() {
                break;
            }
        }
    }

    /// Returns true at a token that ends every statement.
    fn at_boundary(&self) -> bool {
        let kind = self.peek();
        kind.is_closing() || matches!(kind, TokenKind::Semicolon | TokenKind::End)
    }

    /// `( element,* )`, or the same in `[…]`, if `open` comes next. Line ends inside have no meaning.
    pub(super) fn delimited<T>(&mut self, open: TokenKind, element: impl FnMut(&mut Self) -> T) -> Vec<T> {
        if self.at(open) { self.bracketed(true, element) } else { Vec::new() }
    }

    /// `{ element,* }`, if it comes next. A line end can replace a comma.
    pub(super) fn braced<T>(&mut self, element: impl FnMut(&mut Self) -> T) -> Vec<T> {
        if self.at(TokenKind::BraceOpen) { self.bracketed(false, element) } else { Vec::new() }
    }

    fn bracketed<T>(&mut self, line_ends_ignored: bool, element: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let Some(close) = self.peek().closing() else { return Vec::new() };
        let before = self.diagnostics.len();
        self.bump();
        let elements =
            self.within_mode(BraceRole::RecordLiteral, line_ends_ignored, |parser| parser.elements(close, element));
        let closed = !self.eat(close).is_none_or(Span::is_empty);
        if !closed && line_ends_ignored {
            // The missing end has been reported; errors inside follow from it.
            self.diagnostics.truncate(before);
        }
        elements
    }

    /// `element,*` up to the closing bracket.
    fn elements<T>(&mut self, close: TokenKind, mut element: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let mut elements = Vec::new();
        let mut semicolons = 0;
        while !self.at(close) && !self.at(TokenKind::End) {
            let before = self.at;
            self.begun_at = before;
            elements.push(element(self));
            if !self.comma(close, &mut semicolons) && !self.at(close) && (self.at == before || !self.at_new_line()) {
                self.unexpected(element_end(close));
                self.skip_element(close, before);
            }
        }
        elements
    }

    /// Consumes a comma; between braces also a semicolon, the first of which is reported.
    fn comma(&mut self, close: TokenKind, semicolons: &mut u32) -> bool {
        if close == TokenKind::BraceClose && self.at(TokenKind::Semicolon) {
            if *semicolons == 0 {
                self.semicolon_for_comma();
            }
            *semicolons += 1;
            self.bump();
            return true;
        }
        self.eat(TokenKind::Comma).is_some()
    }

    fn skip_element(&mut self, close: TokenKind, before: usize) {
        while !self.at(close) && !matches!(self.peek(), TokenKind::Comma | TokenKind::End) {
            if self.at > before && self.at_new_line() {
                return;
            }
            self.skip_token();
        }
        self.eat(TokenKind::Comma);
    }
}

fn element_end(close: TokenKind) -> &'static str {
    match close {
        TokenKind::ParenClose => "`,` or `)`",
        TokenKind::BracketClose => "`,` or `]`",
        _ => "`,`, a new line or `}`",
    }
}
