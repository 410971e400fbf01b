//! Dialect recovery for expressions.

use super::lists::RANGE;
use super::{Parser, begins_operand};
use crate::ast::{
    BinaryOperator, Block, ClosureParameter, Expr, ExprKind, Path, Pattern, PatternKind, Statement, StatementKind,
    UnaryOperator,
};
use crate::token::TokenKind as T;
use crate::{Code, Diagnostic, Span};

/// Operators that are words in other languages, with their precedence.
const OPERATORS: &[(&str, BinaryOperator, u8)] = &[
    ("or", BinaryOperator::Or, 1),
    ("and", BinaryOperator::And, 2),
    ("is", BinaryOperator::Equal, 3),
    ("mod", BinaryOperator::Remainder, 5),
];

/// Words before an operand that Weir does not need.
const PREFIXES: &[(&str, &str)] = &[
    ("await", "calls are awaited automatically, and independent ones overlap"),
    ("async", "calls are awaited automatically, and independent ones overlap"),
    ("new", "values are constructed with the name of their type"),
];

impl Parser<'_> {
    /// Consumes and reports an operator of another language, and returns its Weir form.
    pub(in crate::parser) fn dialect_infix(&mut self, level: u8) -> Option<(BinaryOperator, Span)> {
        if self.at_new_line() || self.at_block_end() {
            return None;
        }
        let span = self.span();
        let behind = |kind: T| begins_operand(kind) || matches!(kind, T::ParenOpen | T::Bang | T::Minus);
        let word = OPERATORS.iter().find(|(word, ..)| self.at_word_before(&[word], behind));
        let bar = (self.at(T::Bar) && begins_operand(self.nth_kind(1))).then_some(&("|", BinaryOperator::Or, 1));
        let (_, operator, binds) = word.or(bar)?;
        if *binds < level {
            return None;
        }
        self.report_substitution(span, operator.symbol());
        Some((*operator, self.bump()))
    }

    /// Consumes the second symbol of an operator that is doubled in other languages: `**`, `<<`, `>>`, `++`.
    pub(in crate::parser) fn doubled_operator(&mut self, first: Span, operator: BinaryOperator) {
        let sign = self.text_of(self.tokens[self.at - 1]);
        if self.token_text() != sign || self.span().start != first.end {
            return;
        }
        let whole = Span { end: self.span().end, ..first };
        match operator {
            BinaryOperator::Add => self.report_substitution(whole, "+"),
            BinaryOperator::Multiply => {
                self.report_with_advice(whole, "Weir has no `**`", "call `n.power(2)`, or `x.power(2.0)` of a `Float`")
            }
            BinaryOperator::Less => self.report_with_advice(whole, "Weir has no `<<`", "call `n.shift_left(3)`"),
            BinaryOperator::Greater => self.report_with_advice(whole, "Weir has no `>>`", "call `n.shift_right(3)`"),
            _ => return,
        }
        self.bump();
    }

    /// Reads `not x`, `await x`, `new X(…)` and `lambda` before an operand.
    pub(in crate::parser) fn dialect_prefix(&mut self) -> Option<UnaryOperator> {
        if self.goes_on_behind(1) {
            return None;
        }
        if self.at_word_before(&["not"], |kind| begins_operand(kind) || kind == T::Bang) {
            let span = Span { end: self.nth(1).start, ..self.span() };
            self.report(crate::dialect::substitution(self.span(), "not", "!"));
            if let Some(hint) = self.diagnostics.last_mut().and_then(|last| last.help.last_mut()) {
                hint.edit = Some(crate::Edit { span, replacement: "!".to_owned() });
            }
            self.bump();
            return Some(UnaryOperator::Not);
        }
        if self.at(T::Star) && self.nth_kind(1) == T::Word && self.adjacent(0) {
            self.report_superfluous(1, "values are passed without a reference operator");
        }
        if let Some((_, why)) = PREFIXES.iter().find(|(word, _)| self.at_word_before(&[word], begins_operand)) {
            self.report_superfluous(1, why);
        }
        None
    }

    /// Consumes `!` after an operand.
    pub(in crate::parser) fn unwrapping_mark(&mut self) -> bool {
        let mark = self.span();
        let found = self.previous_span().end == mark.start && self.ends_behind(0);
        if found {
            self.report_with_advice(
                mark,
                "a missing value cannot be unwrapped by force",
                "handle the missing value: `value else { … }`",
            );
            self.bump();
        }
        found
    }

    /// Consumes `.await` after an operand.
    pub(in crate::parser) fn dot_await(&mut self) -> bool {
        let found =
            self.nth_kind(1) == T::Word && self.text_of(self.nth(1)) == "await" && self.nth_kind(2) != T::ParenOpen;
        if found {
            self.report_superfluous(2, "calls are awaited automatically");
        }
        found
    }

    /// Reads the operators of other languages that begin with `?`, and bind as closely as a suffix: `a ?? b`, `a ?: b`.
    pub(in crate::parser) fn question(&mut self, value: &Expr) -> Option<ExprKind> {
        let (next, behind) = (self.nth(1), self.nth_kind(2));
        let adjacent = self.adjacent(0);
        // Inside brackets, a `?` before a colon may end a key.
        let is_sign = next.kind == T::Question || (next.kind == T::Colon && !self.line_ends_ignored);
        let or_else = is_sign && adjacent && !self.nth(2).first_on_line && !self.goes_on_behind(2);
        if or_else && begins_operand(behind) {
            let sign = Span { end: next.end, ..self.span() };
            self.bump();
            self.bump();
            let otherwise = self.nested(Self::operators).unwrap_or_else(|| self.error_expr());
            let weir_form = format!("else {{ {} }}", &self.text[otherwise.span.range()]);
            let whole = Span { end: otherwise.span.end, ..sign };
            self.report_rewrite(whole, "a fallback value follows `else`", weir_form);
            let value = Box::new(value.clone());
            return Some(ExprKind::Else { value, failure: None, otherwise: Box::new(otherwise) });
        }
        None
    }

    /// Returns true before the `?` of `a ? b : c`.
    pub(in crate::parser) fn at_choice(&self) -> bool {
        let next = self.nth(1);
        let is_choice = self.at(T::Question) && !next.first_on_line && begins_operand(next.kind);
        is_choice && !self.goes_on_behind(1) && self.has_colon_ahead()
    }

    /// Reads `a ? b : c`, after its condition.
    pub(in crate::parser) fn choice(&mut self, start: Span, condition: Expr) -> Expr {
        self.bump();
        let then = self.nested(Self::operators).unwrap_or_else(|| self.error_expr());
        self.expect(T::Colon, "`:`");
        let otherwise = self.nested(Self::operators).unwrap_or_else(|| self.error_expr());
        let text = |expr: &Expr| self.text[expr.span.range()].to_owned();
        let weir_form = format!("if {} {{ {} }} else {{ {} }}", text(&condition), text(&then), text(&otherwise));
        self.report_rewrite(self.since(start), "a conditional expression is an `if`", weir_form);
        let (then, otherwise) = (block_of(then), block_of(otherwise));
        let span = otherwise.span;
        let otherwise = Expr { span, ..self.expr(span, ExprKind::Block(otherwise)) };
        let kind = ExprKind::If { condition: Box::new(condition), then, otherwise: Some(Box::new(otherwise)) };
        self.expr(start, kind)
    }

    /// Returns true if words come at `ahead` that belong to the construct around the operand: to a `loop`, a shared value, or
    /// the clauses of a query.
    fn goes_on_behind(&self, ahead: usize) -> bool {
        let words = (self.text_of(self.nth(ahead)), self.text_of(self.nth(ahead + 1)));
        matches!(words, ("at", "most") | ("per", "session") | ("order", "by") | ("limit" | "after" | "asc" | "desc", _))
    }

    /// Returns true if a colon follows on the line, outside brackets that open there.
    fn has_colon_ahead(&self) -> bool {
        const TOKENS_MAX: usize = 64;
        let line = (1..TOKENS_MAX).map(|ahead| self.nth(ahead)).take_while(|token| !token.first_on_line);
        let mut open = 0u32;
        for token in line {
            match token.kind {
                T::Colon if open == 0 => return true,
                kind if kind.closing().is_some() || kind == T::TextOpen => open += 1,
                kind if kind.is_closing() || kind == T::TextClose => match open.checked_sub(1) {
                    Some(left) => open = left,
                    None => return false,
                },
                T::End | T::Semicolon => return false,
                _ => {}
            }
        }
        false
    }

    /// Reads `x => …`, `x -> …` and `(x, y) => …`, after their parameters, as closures.
    pub(in crate::parser) fn arrow_closure(&mut self, value: Expr) -> Expr {
        if !matches!(self.peek(), T::FatArrow | T::Arrow) || self.at_new_line() {
            return value;
        }
        let Some(parameters) = self.closure_parameters_of(&value) else { return value };
        let arrow = self.bump();
        let texts: Vec<&str> = parameters.iter().map(|parameter| &self.text[parameter.pattern.span.range()]).collect();
        let weir_form = format!("|{}|", texts.join(", "));
        self.report_rewrite(
            Span { end: arrow.end, ..value.span },
            "closure parameters are written between bars",
            weir_form,
        );
        let body = Box::new(self.expression());
        self.expr(value.span, ExprKind::Closure { parameters, body })
    }

    fn closure_parameters_of(&mut self, value: &Expr) -> Option<Vec<ClosureParameter>> {
        let exprs = match &value.kind {
            ExprKind::Name(_) => std::slice::from_ref(value),
            ExprKind::Tuple(parts) => parts,
            _ => return None,
        };
        let mut names = Vec::new();
        for expr in exprs {
            let ExprKind::Name(name) = &expr.kind else { return None };
            names.push(name.clone());
        }
        let parameters = names.into_iter().map(|name| {
            let pattern = Pattern { id: self.pattern_id(), span: name.span, kind: PatternKind::Bind(name) };
            ClosureParameter { pattern, ty: None }
        });
        Some(parameters.collect())
    }

    /// Reads `fn(x: Int) { … }` and `lambda x: …` as closures.
    pub(in crate::parser) fn dialect_closure(&mut self) -> Option<Expr> {
        let start = self.span();
        if self.at_word_before(&["lambda"], |kind| kind == T::Word) {
            return Some(self.lambda(start));
        }
        if !(self.at(T::Fn) && self.nth_kind(1) == T::ParenOpen) {
            return None;
        }
        self.bump();
        let parameters = self.delimited(T::ParenOpen, |parser| {
            let pattern = parser.simple_pattern();
            let ty = parser.eat(T::Colon).map(|_| parser.ty());
            ClosureParameter { pattern, ty }
        });
        let _returns = self.eat(T::Arrow).map(|_| self.ty());
        let head = self.since(start);
        let inner = self.text[head.range()].split_once('(').map_or("", |(_, rest)| rest);
        let inner = inner.rsplit_once(')').map_or(inner, |(inner, _)| inner);
        let weir_form = format!("|{inner}|");
        self.report_rewrite(head, "closure parameters are written between bars", weir_form);
        let body = Box::new(self.expression());
        Some(self.expr(start, ExprKind::Closure { parameters, body }))
    }

    fn lambda(&mut self, start: Span) -> Expr {
        self.bump();
        let mut parameters = Vec::new();
        while self.at(T::Word) {
            let pattern = self.simple_pattern();
            parameters.push(ClosureParameter { pattern, ty: None });
            if self.eat(T::Comma).is_none() {
                break;
            }
        }
        self.expect(T::Colon, "`:`");
        let texts: Vec<&str> = parameters.iter().map(|parameter| &self.text[parameter.pattern.span.range()]).collect();
        let weir_form = format!("|{}|", texts.join(", "));
        self.report_rewrite(self.since(start), "closure parameters are written between bars", weir_form);
        let body = Box::new(self.expression());
        self.expr(start, ExprKind::Closure { parameters, body })
    }

    /// Reads suffixes of other languages: `1..10`, `x as Float`, `x in xs`.
    pub(in crate::parser) fn dialect_suffix(&mut self, value: Expr) -> Expr {
        let start = value.span;
        match self.peek() {
            _ if self.at_new_line() => return value,
            T::If => return self.value_before_if(value),
            T::Word if self.at_word_before(&["instanceof"], begins_operand) => {
                self.bump();
                let _ty = self.ty();
                let advice = "remove it; use `match` to tell the variants of an `enum` apart";
                self.report_with_advice(self.since(start), "the type of a value is known at compile time", advice);
            }
            T::DotDot | T::DotDotEqual => return self.numbers_in_a_row(value),
            T::With if self.nth_kind(1) == T::BraceOpen && !self.nth(1).first_on_line => self.record_with(&value),
            T::As if self.nth_kind(1) == T::Word && self.text_of(self.nth(1)).starts_with(char::is_uppercase) => {
                self.bump();
                let _ty = self.ty();
                let advice = "call a function that converts the value; convert to text with `\"{value}\"`";
                self.report_with_advice(self.since(start), "Weir has no casts", advice);
            }
            T::In if begins_operand(self.nth_kind(1)) && self.braces == super::super::BraceRole::RecordLiteral => {
                self.bump();
                let list = self.operators();
                let (element, list) = (&self.text[value.span.range()], &self.text[list.span.range()]);
                let weir_form = format!("{list}.contains({element})");
                self.report_rewrite(self.since(start), "membership in a list is tested with `contains`", weir_form);
            }
            _ => return value,
        }
        self.expr(start, ExprKind::Error)
    }

    /// Consumes the colon after a field name, or the `=` that stands for it.
    pub(in crate::parser) fn colon_of_field(&mut self) -> bool {
        if self.at(T::Equal) && !self.at_new_line() {
            let equal = self.span();
            let space = self.text[..equal.start as usize].trim_end().len() as u32;
            let place = Span { start: space, ..equal };
            self.report(
                Diagnostic::new(Code::DialectSyntax, "the value of a field follows `:`").at(equal, "found `=`").fix(
                    "write `:`",
                    place,
                    ":",
                ),
            );
            self.bump();
            return true;
        }
        self.eat(T::Colon).is_some()
    }

    /// Reads `{ ..point, x: 1 }` and `{ x: 1 }` where a block stands: a record without its type.
    pub(in crate::parser) fn record_without_type(&mut self) -> Option<Block> {
        let is_record = self.at(T::BraceOpen)
            && match self.nth_kind(1) {
                T::DotDot => true,
                T::Word => self.nth_kind(2) == T::Colon && !self.nth(2).first_on_line && !self.has_equal_sign_ahead(),
                _ => false,
            };
        if !is_record {
            return None;
        }
        let start = self.span();
        let path = Path { names: Vec::new(), span: start };
        let span = self.record_fields(start, path).span;
        self.report_record_without_type(span);
        Some(block_of(self.expr(span, ExprKind::Error)))
    }

    /// Returns true if an `=` follows on the line of the word behind the brace, which then is bound to a value.
    fn has_equal_sign_ahead(&self) -> bool {
        const TOKENS_MAX: usize = 32;
        let mut line = (2..TOKENS_MAX).map(|ahead| self.nth(ahead)).take_while(|token| !token.first_on_line);
        line.any(|token| token.kind == T::Equal)
    }

    /// Reads `point with { x: 1 }` behind the record.
    fn record_with(&mut self, value: &Expr) {
        self.bump();
        let start = self.span();
        let path = Path { names: Vec::new(), span: start };
        let fields = self.record_fields(start, path).span;
        let (of, fields) = (&self.text[value.span.range()], &self.text[fields.range()]);
        let inner = fields.trim_start_matches('{').trim_start();
        let advice = match fields.contains('\n') {
            true => {
                "write the type of the record, and the record within the braces: `Point { ..point, x: 1 }`".to_owned()
            }
            false => {
                format!("write the type of the record before the brace; for a `Point`: `Point {{ ..{of}, {inner}`")
            }
        };
        self.report_with_advice(self.since(value.span), "a changed record is written with its type", &advice);
    }

    fn report_record_without_type(&mut self, span: Span) {
        let record = &self.text[span.range()];
        let advice = match record.contains('\n') {
            true => "put its type before the brace, as in `Point { … }`".to_owned(),
            false => format!("put its type before the brace; for a `Point`: `Point {record}`"),
        };
        self.report_with_advice(span, "a record is written with its type", &advice);
    }

    /// Reads `..end` after a number. Ranges are not values in Weir.
    pub(in crate::parser) fn numbers_in_a_row(&mut self, value: Expr) -> Expr {
        let ends = matches!(self.nth_kind(1), T::Number | T::Word);
        if !matches!(self.peek(), T::DotDot | T::DotDotEqual) || self.at_new_line() || !ends {
            return value;
        }
        let plus = if self.at(T::DotDotEqual) { " + 1" } else { "" };
        self.bump();
        let end = self.operators();
        let (from, to) = (&self.text[value.span.range()], &self.text[end.span.range()]);
        let weir_form = format!("list.numbers({from}, {to}{plus})?");
        let whole = Span { start: value.span.start, ..self.since(value.span) };
        self.report_rewrite(whole, &format!("{RANGE}; use `list.numbers` for a list of numbers"), weir_form);
        self.expr(value.span, ExprKind::Error)
    }
}

impl Parser<'_> {
    /// Reads `within 5s { … }`: a limit before its value.
    pub(in crate::parser) fn limit_before_value(&mut self) -> ExprKind {
        let start = self.bump();
        let limit = self.head();
        let message = "a time limit comes behind its value";
        let weir_form = format!("write `{{ … }} within {}`", &self.text[limit.span.range()]);
        self.report_with_advice(self.since(start), message, &weir_form);
        if self.at(T::BraceOpen) {
            let _body = self.block();
        }
        ExprKind::Error
    }
}

fn block_of(expr: Expr) -> Block {
    let span = expr.span;
    Block { statements: vec![Statement { kind: StatementKind::Expr(expr), span }], span }
}
