//! Operands: names, literals, brackets and closures.

use super::{BraceRole, Parser};
use crate::ast::{ClosureParameter, Expr, ExprKind, MapEntry};
use crate::token::TokenKind as T;

impl Parser<'_> {
    /// Parses an operand without its suffixes.
    pub(super) fn primary(&mut self) -> Expr {
        if let Some(closure) = self.dialect_closure() {
            return closure;
        }
        if let Some(transaction) = self.dialect_transaction() {
            return transaction;
        }
        match self.peek() {
            T::Number | T::Minus | T::True | T::False => self.literal_expr(),
            T::TextOpen | T::BlockTextOpen => self.text_expr(),
            T::HtmlPrefix => self.html_expr(),
            T::Word if self.switch() => self.control(),
            T::Word => self.name_expr(),
            T::ParenOpen => self.parenthesized(),
            T::BracketOpen => self.list_or_map(),
            T::Bar | T::OrOr => self.closure(),
            _ => self.control(),
        }
    }

    fn text_expr(&mut self) -> Expr {
        let start = self.span();
        let text = self.text_literal();
        self.expr(start, ExprKind::Text(text))
    }

    /// `html` and a text literal, without a space between them
    fn html_expr(&mut self) -> Expr {
        let start = self.bump();
        let text = self.text_literal();
        self.expr(start, ExprKind::Html(text))
    }

    fn name_expr(&mut self) -> Expr {
        let start = self.span();
        let name = self.word();
        self.expr(start, ExprKind::Name(name))
    }

    /// `( )`, `( expression )`, `( expression , expression,* )`
    fn parenthesized(&mut self) -> Expr {
        let start = self.span();
        let mut commas = 0;
        let mut values = self.delimited(T::ParenOpen, |parser| {
            let value = parser.expression();
            commas += u32::from(parser.at(T::Comma));
            value
        });
        if values.len() == 1 && commas == 0 {
            let mut value = values.remove(0);
            value.parenthesized = true;
            value.span = self.since(start);
            return value;
        }
        self.expr(start, ExprKind::Tuple(values))
    }

    /// `[ expression,* ]`, `[ [expression : expression],* ]`, `[ : ]`
    fn list_or_map(&mut self) -> Expr {
        let start = self.span();
        if self.nth_kind(1) == T::Colon && self.nth_kind(2) == T::BracketClose {
            (0..3).for_each(|_| _ = self.bump());
            return self.expr(start, ExprKind::Map(Vec::new()));
        }
        let mut is_map = None;
        let entries = self.delimited(T::BracketOpen, |parser| {
            if let Some(spread) = parser.spread_element() {
                return (spread, None);
            }
            let mut key = parser.expression();
            parser.comprehension(&mut key);
            let is_arrow = parser.at(T::FatArrow);
            let is_entry = *is_map.get_or_insert(parser.at_colon_of_entry());
            let value = is_entry.then(|| {
                match is_arrow {
                    true => _ = parser.bump(),
                    false => _ = parser.expect(T::Colon, "`:` and a value"),
                }
                parser.expression()
            });
            (key, value)
        });
        let kind = match is_map {
            Some(true) => ExprKind::Map(entries.into_iter().filter_map(entry).collect()),
            _ => ExprKind::List(entries.into_iter().map(|(key, _)| key).collect()),
        };
        self.expr(start, kind)
    }

    /// `| [pattern [: type]?],* | expression`
    fn closure(&mut self) -> Expr {
        let start = self.span();
        let parameters = match self.bump().len() {
            2 => Vec::new(),
            _ => self.within_mode(BraceRole::RecordLiteral, true, Self::closure_parameters),
        };
        let body = self.expression();
        if self.at(T::Equal) && !self.at_new_line() {
            self.assignment_in_closure(&body);
            self.bump();
            let _value = self.expression();
        }
        self.expr(start, ExprKind::Closure { parameters, body: Box::new(body) })
    }

    fn closure_parameters(&mut self) -> Vec<ClosureParameter> {
        let mut parameters = Vec::new();
        while !self.at(T::Bar) {
            let pattern = self.simple_pattern();
            let ty = self.eat(T::Colon).map(|_| self.ty());
            parameters.push(ClosureParameter { pattern, ty });
            if self.eat(T::Comma).is_none() {
                break;
            }
        }
        self.expect(T::Bar, "`,` or `|`");
        parameters
    }
}

fn entry((key, value): (Expr, Option<Expr>)) -> Option<MapEntry> {
    value.map(|value| MapEntry { key, value })
}
