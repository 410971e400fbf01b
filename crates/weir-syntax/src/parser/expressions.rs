//! Expressions from the outside in: `else` and `within`, pipes, operators, and suffixes.

use super::{BraceRole, Parser};
use crate::ast::{Argument, BinaryOperator, Expr, ExprKind, FieldValue, Path, UnaryOperator};
use crate::token::TokenKind as T;
use crate::{Code, Diagnostic, Span};

/// Precedence of the loosest operators; each level of [`Parser::infix`] is one higher.
const LOOSEST: u8 = 1;

impl Parser<'_> {
    /// `limited [else [as name]? expression]*`
    pub(super) fn expression(&mut self) -> Expr {
        self.nested(Self::expression_here).unwrap_or_else(|| self.error_expr())
    }

    fn expression_here(&mut self) -> Expr {
        let start = self.span();
        let mut value = self.limited();
        while !self.at_else_arm() && self.eat(T::Else).is_some() {
            let failure = self.failure_name();
            let otherwise = Box::new(self.else_body());
            value = self.expr(start, ExprKind::Else { value: Box::new(value), failure, otherwise });
            value = self.limits(start, value);
        }
        self.dialect_suffix(value)
    }

    /// Parses the body of an `else`: a block, or any expression.
    pub(super) fn else_body(&mut self) -> Expr {
        if !self.at(T::BraceOpen) {
            return self.expression();
        }
        let start = self.span();
        let block = self.block();
        self.expr(start, ExprKind::Block(block))
    }

    /// `operators [within operators]*`
    pub(super) fn limited(&mut self) -> Expr {
        let start = self.span();
        let value = self.operators();
        self.limits(start, value)
    }

    fn limits(&mut self, start: Span, mut value: Expr) -> Expr {
        while self.eat(T::Within).is_some() {
            let limit = Box::new(self.binary(LOOSEST));
            value = self.expr(start, ExprKind::Within { value: Box::new(value), limit });
        }
        value
    }

    /// Parses the head of an `if`, `match` or loop: `limited`, where a brace begins the body.
    pub(super) fn head(&mut self) -> Expr {
        let ignored = self.line_ends_ignored;
        let rule = |parser: &mut Self| parser.within_mode(BraceRole::Body, ignored, Self::head_operators);
        self.nested(rule).unwrap_or_else(|| self.error_expr())
    }

    fn head_operators(&mut self) -> Expr {
        let value = self.limited();
        self.numbers_in_a_row(value)
    }

    /// `binary [|> step]*`
    pub(super) fn operators(&mut self) -> Expr {
        let start = self.span();
        let mut value = self.binary(LOOSEST);
        if self.at_choice() {
            value = self.choice(start, value);
        }
        while self.eat(T::Pipe).is_some() {
            value = self.pipe_step(start, value);
            if self.infix().is_some() {
                self.operator_after_pipe(start.at_start());
                self.bump();
                value = self.operators();
            }
        }
        value
    }

    /// `path [( argument,* )]? suffix*`
    fn pipe_step(&mut self, start: Span, value: Expr) -> Expr {
        let path_start = self.span();
        let first = self.name("a function");
        let mut function = self.expr(path_start, ExprKind::Name(first));
        while self.at(T::Dot) {
            function = self.field(path_start, function);
        }
        let has_arguments = self.at(T::ParenOpen) && !self.token().first_on_line;
        let arguments = if has_arguments { self.arguments() } else { Vec::new() };
        let pipe = ExprKind::Pipe { value: Box::new(value), function: Box::new(function), arguments };
        let piped = self.expr(start, pipe);
        self.suffixes(start, piped)
    }

    /// `unary [operator unary]*`, with operators of at least the precedence `level`.
    fn binary(&mut self, level: u8) -> Expr {
        let start = self.span();
        let mut left = self.unary();
        if self.changing_operator(self.since(start)) {
            return self.expr(start, ExprKind::Error);
        }
        while let Some((operator, found, operator_span)) = self.operator(level) {
            let right = Box::new(self.binary(found + 1));
            left = self.expr(start, ExprKind::Binary { operator, operator_span, left: Box::new(left), right });
            if operator.is_comparison() {
                self.check_chain(operator_span);
            }
        }
        left
    }

    /// Consumes an operator of at least the precedence `level`; returns it with its precedence and range.
    fn operator(&mut self, level: u8) -> Option<(BinaryOperator, u8, Span)> {
        let Some((operator, found)) = self.infix() else {
            let (operator, span) = self.dialect_infix(level)?;
            return Some((operator, level, span));
        };
        if found < level {
            return None;
        }
        let span = self.bump();
        self.doubled_operator(span, operator);
        Some((operator, found, span))
    }

    /// Returns the next operator and its precedence. A minus at the beginning of a line begins a statement.
    fn infix(&self) -> Option<(BinaryOperator, u8)> {
        use BinaryOperator as B;
        Some(match self.peek() {
            T::OrOr => (B::Or, 1),
            T::AndAnd => (B::And, 2),
            T::EqualEqual => (B::Equal, 3),
            T::NotEqual => (B::NotEqual, 3),
            T::Less => (B::Less, 3),
            T::LessEqual => (B::LessEqual, 3),
            T::Greater => (B::Greater, 3),
            T::GreaterEqual => (B::GreaterEqual, 3),
            T::Plus => (B::Add, 4),
            T::Minus if !self.at_new_line() => (B::Subtract, 4),
            T::Star => (B::Multiply, 5),
            T::Slash => (B::Divide, 5),
            T::Percent => (B::Remainder, 5),
            _ => return None,
        })
    }

    fn check_chain(&mut self, first: Span) {
        let Some((second, _)) = self.infix().filter(|(operator, _)| operator.is_comparison()) else { return };
        let diagnostic = Diagnostic::new(Code::ChainedComparison, "comparisons cannot be chained")
            .at(self.span(), format!("`{}` would compare a `Bool`", second.symbol()))
            .because(first, "the first comparison")
            .hint("join two comparisons with `&&`");
        self.report(diagnostic);
    }

    /// `[- | !]* operand`
    fn unary(&mut self) -> Expr {
        let operator = match self.peek() {
            T::Minus if self.nth_kind(1) == T::Number && !self.number_is_quantity() => return self.operand(),
            T::Minus => UnaryOperator::Negate,
            T::Bang => UnaryOperator::Not,
            _ => {
                let start = self.span();
                let Some(operator) = self.dialect_prefix() else { return self.operand() };
                return self.unary_behind(start, operator);
            }
        };
        let start = self.bump();
        self.unary_behind(start, operator)
    }

    fn unary_behind(&mut self, start: Span, operator: UnaryOperator) -> Expr {
        let operand = self.nested(Self::unary).unwrap_or_else(|| self.error_expr());
        self.expr(start, ExprKind::Unary { operator, operand: Box::new(operand) })
    }

    /// Returns true if the number after the minus is a size or a duration, which has no sign.
    fn number_is_quantity(&self) -> bool {
        let text = self.text_of(self.nth(1));
        let plain = text.starts_with("0x") || !text.ends_with(|last: char| last.is_ascii_alphabetic());
        !plain
    }

    /// `primary suffix*`
    fn operand(&mut self) -> Expr {
        let start = self.span();
        let primary = self.primary();
        self.suffixes(start, primary)
    }

    /// `[. name | . number | ? | ( argument,* ) | [ expression ] | { field,* }]*`
    fn suffixes(&mut self, start: Span, mut value: Expr) -> Expr {
        loop {
            let same_line = !self.token().first_on_line;
            value = match self.peek() {
                T::Dot if self.dot_await() => value,
                T::Dot => self.field(start, value),
                T::DotIndex => self.tuple_index(start, value),
                T::Question if self.at_choice() => return value,
                T::Question => {
                    let kind = self.question(&value).unwrap_or_else(|| {
                        self.bump();
                        ExprKind::Try(Box::new(value))
                    });
                    self.expr(start, kind)
                }
                T::ParenOpen if same_line => {
                    let arguments = self.arguments();
                    self.expr(start, ExprKind::Call { function: Box::new(value), arguments })
                }
                T::BracketOpen if same_line => self.index(start, value),
                T::Bang if same_line && self.unwrapping_mark() => self.expr(start, ExprKind::Error),
                T::BraceOpen if same_line => match self.record_here(&value) {
                    Some(path) => self.record_fields(start, path),
                    None => return value,
                },
                _ => return value,
            };
        }
    }

    /// Returns the name of the record if the next brace continues `value` to a record expression. Where a brace begins
    /// a body, only `{ name :` shows that a record is meant and parentheses are missing.
    fn record_here(&mut self, value: &Expr) -> Option<Path> {
        let path = record_path(value)?;
        if self.braces == BraceRole::Body {
            let is_meant = self.nth_kind(1) == T::Word && self.nth_kind(2) == T::Colon;
            is_meant.then(|| self.record_in_head(value.span))?;
        }
        Some(path)
    }

    /// `. name`
    fn field(&mut self, start: Span, object: Expr) -> Expr {
        self.bump();
        let name = self.member_name();
        self.expr(start, ExprKind::Field { object: Box::new(object), name })
    }

    /// `. number`
    fn tuple_index(&mut self, start: Span, object: Expr) -> Expr {
        let index = self.token_text()[1..].parse();
        let token = self.bump();
        let index_span = Span { start: token.start + 1, ..token };
        match index {
            Ok(index) => self.expr(start, ExprKind::TupleIndex { object: Box::new(object), index, index_span }),
            Err(_) => {
                let fault = Diagnostic::new(Code::InvalidNumber, "tuple index is too large").at(index_span, "");
                self.report(fault);
                object
            }
        }
    }

    /// `[ expression ]`
    fn index(&mut self, start: Span, object: Expr) -> Expr {
        let mut indices = self.delimited(T::BracketOpen, |parser| {
            let before = parser.diagnostics.len();
            let index = parser.expression();
            parser.range_as_index(before);
            parser.part_as_index();
            index
        });
        if indices.len() != 1 {
            let place = self.since(start);
            let wrong = Diagnostic::new(Code::UnexpectedToken, "an index must be a single expression")
                .at(place, format!("found {}", indices.len()))
                .hint("use a tuple as a key: `map[(a, b)]`");
            self.report(wrong);
        }
        let index = if indices.is_empty() { self.error_expr() } else { indices.swap_remove(0) };
        self.expr(start, ExprKind::Index { object: Box::new(object), index: Box::new(index) })
    }

    /// `( [[name :]? expression],* )`
    pub(super) fn arguments(&mut self) -> Vec<Argument> {
        let arguments = self.delimited(T::ParenOpen, Self::argument);
        let mut named: Option<Span> = None;
        for argument in &arguments {
            match (&argument.name, named) {
                (Some(_), _) => named = named.or(Some(argument.span)),
                (None, Some(named)) => self.positional_after_named(argument.span, named),
                (None, None) => {}
            }
        }
        arguments
    }

    fn argument(&mut self) -> Argument {
        let start = self.span();
        let name = self.label();
        let value = self.expression();
        let value = self.arrow_closure(value);
        Argument { name, value, span: self.since(start) }
    }

    fn positional_after_named(&mut self, argument: Span, named: Span) {
        self.report(
            Diagnostic::new(Code::PositionalAfterNamed, "positional arguments come before named ones")
                .at(argument, "positional argument")
                .because(named, "named argument")
                .hint("move it to the front, or name it"),
        );
    }

    /// `{ [.. expression | name [: expression]?],* }`
    pub(super) fn record_fields(&mut self, start: Span, path: Path) -> Expr {
        let mut base = None;
        let fields = self.braced(|parser| {
            if parser.eat(T::DotDot).is_some() {
                base = Some(Box::new(parser.expression()));
                return None;
            }
            Some(parser.field_value())
        });
        let fields = fields.into_iter().flatten().collect();
        self.expr(start, ExprKind::Record { path, base, fields })
    }

    fn field_value(&mut self) -> FieldValue {
        let start = self.span();
        let name = self.name("a field name");
        let shorthand = !self.colon_of_field();
        let value = match shorthand {
            true => self.expr(start, ExprKind::Name(name.clone())),
            false => self.expression(),
        };
        FieldValue { name, value, shorthand, span: self.since(start) }
    }

    /// Parses a literal as an expression.
    pub(super) fn literal_expr(&mut self) -> Expr {
        let start = self.span();
        match self.signed_literal() {
            Some(literal) => self.expr(start, ExprKind::Literal(literal)),
            None => self.expr(start, ExprKind::Error),
        }
    }
}

/// Returns the path of an expression that consists of names and dots and ends in upper case: a record name.
fn record_path(expr: &Expr) -> Option<Path> {
    let mut names = Vec::new();
    let mut rest = expr;
    while let ExprKind::Field { object, name } = &rest.kind {
        names.push(name.clone());
        rest = object;
    }
    let ExprKind::Name(first) = &rest.kind else { return None };
    names.push(first.clone());
    names.reverse();
    let plain = !expr.parenthesized && names.last().is_some_and(crate::ast::Name::is_upper);
    plain.then_some(Path { names, span: expr.span })
}
