//! Expressions that begin with a keyword, and operators.

use super::SourcePrinter;
use super::comments::{CommentedElements, comma_lines, range};
use super::doc::Doc;
use super::items::in_brackets;
use super::parentheses::{
    Tightness, begins_with_bars, begins_with_brace, begins_with_number, is_piped, object, takes_brace, takes_else,
    tightness,
};
use super::statements::BlockLayout;
use crate::Span;
use crate::ast::{
    Argument, Arm, AtomicResource, BinaryOperator, Block, ClosureParameter, Expr, ExprKind, Name, Replacement,
    TextStyle, UnaryOperator,
};
use std::ops::Range;

impl SourcePrinter<'_> {
    /// Prints any expression in a place that accepts all.
    pub(super) fn expression(&mut self, expr: &Expr) -> Doc {
        self.expr_in(expr, Tightness::EXPRESSION)
    }

    /// Prints the head of an `if`, `match` or loop.
    pub(super) fn head(&mut self, expr: &Expr) -> Doc {
        self.head_of(expr, Tightness::LIMITED)
    }

    /// Prints an expression before a body, where a brace begins the body.
    pub(super) fn head_of(&mut self, expr: &Expr, least: Tightness) -> Doc {
        let saved = std::mem::replace(&mut self.records_in_parentheses, true);
        let doc = self.expr_in(expr, least);
        self.records_in_parentheses = saved;
        doc
    }

    /// Prints an expression, with parentheses if it binds less tightly than `least`.
    pub(super) fn expr_in(&mut self, expr: &Expr, least: Tightness) -> Doc {
        let is_record = matches!(expr.kind, ExprKind::Record { .. });
        let needs = tightness(expr) < least || (is_record && self.records_in_parentheses);
        if expr.parenthesized || needs { self.in_parentheses(expr) } else { self.bare(expr) }
    }

    pub(super) fn in_parentheses(&mut self, expr: &Expr) -> Doc {
        let inner = self.inside(|printer| printer.bare(expr));
        in_brackets("(", inner, ")")
    }

    /// Runs `print` as if inside a bracket, where a record needs no parentheses.
    pub(super) fn inside<T>(&mut self, print: impl FnOnce(&mut Self) -> T) -> T {
        let saved = std::mem::replace(&mut self.records_in_parentheses, false);
        let result = print(self);
        self.records_in_parentheses = saved;
        result
    }

    /// Prints an expression without parentheses around it.
    fn bare(&mut self, expr: &Expr) -> Doc {
        match &expr.kind {
            ExprKind::Binary { operator, .. } => self.binary(expr, *operator),
            ExprKind::Unary { operator, operand } => self.unary(*operator, operand),
            ExprKind::Else { value, failure, otherwise } => self.or_else(value, failure.as_ref(), otherwise),
            ExprKind::Within { value, limit } => self.within(value, limit),
            ExprKind::Return(None) => Doc::text("return"),
            ExprKind::Return(Some(value)) => Doc::text("return ").then(self.expression(value)),
            ExprKind::Closure { parameters, body } => self.closure(parameters, body),
            ExprKind::If { .. } => self.if_chain(expr).group(),
            ExprKind::Match { value, arms } => self.match_expr(value, arms, expr.span),
            ExprKind::For { pattern, items, query, body } => {
                let pattern = self.pattern(pattern);
                let head = Doc::concat([Doc::text("for "), pattern, Doc::text(" in "), self.head(items)]);
                Doc::concat([head, self.query_clauses(query), Doc::text(" "), self.block(body)])
            }
            ExprKind::Fold { accumulator, initial, pattern, items, body } => {
                let start =
                    Doc::concat([Doc::text("fold "), self.pattern(accumulator), Doc::text(" = "), self.head(initial)]);
                let items =
                    Doc::concat([Doc::text(" for "), self.pattern(pattern), Doc::text(" in "), self.head(items)]);
                Doc::concat([start, items, Doc::text(" "), self.block(body)])
            }
            ExprKind::Loop { state, initial, body, until, at_most } => {
                let head = Doc::concat([Doc::text("loop "), self.pattern(state), Doc::text(" = "), self.head(initial)]);
                let round = Doc::text(" ").then(self.block(body));
                let until = Doc::text(" until ").then(self.expr_in(until, Tightness::OPERATORS));
                let at_most = Doc::text(" at most ").then(self.expr_in(at_most, Tightness::OPERATORS));
                Doc::concat([head, round, until, at_most])
            }
            ExprKind::Block(block) => self.block(block),
            ExprKind::Atomic { resources, body } => {
                let resources: Vec<String> = resources.iter().map(resource).collect();
                Doc::text(format!("atomic {} ", resources.join(", "))).then(self.block(body))
            }
            ExprKind::Race(values) => self.race(values, expr.span),
            ExprKind::Retry { arguments, body } => {
                let region = expr.span.start..body.span.start;
                let arguments = self.arguments(arguments, region);
                Doc::concat([Doc::text("retry"), arguments, Doc::text(" "), self.block(body)])
            }
            ExprKind::With { replacements, body } => self.with(replacements, body),
            _ if is_piped(expr) => self.pipe(expr),
            _ => self.operand(expr),
        }
    }

    /// Prints a chain of operands of one precedence, broken before each operator or nowhere.
    fn binary(&mut self, expr: &Expr, operator: BinaryOperator) -> Doc {
        let level = Tightness::of_operator(operator);
        let mut rest = Vec::new();
        let mut left = expr;
        while let ExprKind::Binary { operator, left: inner, right, .. } = &left.kind {
            let is_chained = left.parenthesized && !std::ptr::eq(left, expr);
            if is_chained
                || Tightness::of_operator(*operator) != level
                || operator.is_comparison() && !std::ptr::eq(left, expr)
            {
                break;
            }
            rest.push((*operator, &**right));
            left = inner;
        }
        let first_least = if operator.is_comparison() { level.next() } else { level };
        let first = self.expr_in(left, first_least);
        let others = rest.into_iter().rev().map(|(operator, right)| {
            let right = self.expr_in(right, level.next());
            operation(operator).then(right)
        });
        let others = Doc::concat(others.collect::<Vec<_>>()).nest();
        first.then(others).group()
    }

    fn unary(&mut self, operator: UnaryOperator, operand: &Expr) -> Doc {
        let takes_number = operator == UnaryOperator::Negate && begins_with_number(operand);
        let operand = match takes_number && !operand.parenthesized {
            true => self.in_parentheses(operand),
            false => self.expr_in(operand, Tightness::UNARY),
        };
        Doc::text(operator.symbol()).then(operand)
    }

    fn or_else(&mut self, value: &Expr, failure: Option<&Name>, otherwise: &Expr) -> Doc {
        let value = match takes_else(value) {
            true => self.in_parentheses(value),
            false => self.expr_in(value, Tightness::LIMITED),
        };
        value.then(self.else_part(failure, otherwise))
    }

    /// ` else as failure …`
    pub(super) fn else_part(&mut self, failure: Option<&Name>, otherwise: &Expr) -> Doc {
        let failure = failure.map_or(String::new(), |name| format!(" as {name}"));
        let is_block = matches!(otherwise.kind, ExprKind::Block(_)) && !otherwise.parenthesized;
        let body = match begins_with_brace(otherwise) && !is_block {
            true => self.in_parentheses(otherwise),
            false => self.expression(otherwise),
        };
        Doc::text(format!(" else{failure} ")).then(body)
    }

    fn within(&mut self, value: &Expr, limit: &Expr) -> Doc {
        let value = self.expr_in(value, Tightness::LIMITED);
        Doc::concat([value, Doc::text(" within "), self.expr_in(limit, Tightness::BINARY)])
    }

    fn closure(&mut self, parameters: &[ClosureParameter], body: &Expr) -> Doc {
        let mut head = Doc::text("|");
        for (index, parameter) in parameters.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            let ty = parameter.ty.as_ref().map_or(Doc::nothing(), |ty| Doc::text(": ").then(self.ty(ty)));
            head = Doc::concat([head, Doc::text(comma), self.simple_pattern(&parameter.pattern), ty]);
        }
        Doc::concat([head.flat(), Doc::text("| "), self.expression(body)])
    }

    /// Prints an `if` chain with all blocks on one line, or none.
    fn if_chain(&mut self, expr: &Expr) -> Doc {
        let ExprKind::If { condition, then, otherwise } = &expr.kind else { return self.expression(expr) };
        let head = Doc::concat([Doc::text("if "), self.head(condition), Doc::text(" "), self.open_block(then)]);
        let Some(otherwise) = otherwise else { return head };
        let rest = match &otherwise.kind {
            ExprKind::Block(block) => self.open_block(block),
            _ => self.if_chain(otherwise),
        };
        Doc::concat([head, Doc::text(" else "), rest])
    }

    fn match_expr(&mut self, value: &Expr, arms: &[Arm], span: Span) -> Doc {
        let head = Doc::concat([Doc::text("match "), self.head(value), Doc::text(" ")]);
        let region = value.span.end..span.end.saturating_sub(1);
        let sequence = self.inside(|printer| printer.attach_comments(arms, region, |arm| range(arm.span), Self::arm));
        head.then(self.in_braces(sequence, BlockLayout::AsWritten(value.span.end)))
    }

    fn arm(&mut self, arm: &Arm) -> Doc {
        let pattern = self.pattern(&arm.pattern);
        let guard = match &arm.guard {
            Some(guard) => Doc::text(" if ").then(self.expr_in(guard, Tightness::OPERATORS)),
            None => Doc::nothing(),
        };
        let body = self.expression(&arm.body);
        let body = match begins_lines(&arm.body) {
            true => Doc::text(" ").then(body),
            false => Doc::line(" ").then(body).nest().group(),
        };
        Doc::concat([pattern, guard, Doc::text(" =>"), body])
    }

    fn race(&mut self, values: &[Expr], span: Span) -> Doc {
        let region = span.start..span.end.saturating_sub(1);
        let sequence = self.inside(|printer| {
            printer.attach_comments(
                values,
                region,
                |value| range(value.span),
                |printer, value| match begins_with_bars(value) {
                    true => printer.in_parentheses(value),
                    false => printer.expression(value),
                },
            )
        });
        Doc::text("race ").then(self.in_braces(sequence, BlockLayout::AsWritten(span.start)))
    }

    fn with(&mut self, replacements: &[Replacement], body: &Block) -> Doc {
        let mut out = Doc::text("with ");
        for (index, replacement) in replacements.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            let value = self.replacement(&replacement.value);
            out = Doc::concat([out, Doc::text(format!("{comma}{} = ", replacement.function)), value]);
        }
        out.then_text(" ").then(self.block(body))
    }

    /// Prints a value that a brace follows.
    fn replacement(&mut self, value: &Expr) -> Doc {
        if takes_brace(value) {
            return self.in_parentheses(value);
        }
        let saved = std::mem::replace(&mut self.records_in_parentheses, true);
        let doc = self.expression(value);
        self.records_in_parentheses = saved;
        doc
    }

    /// Prints `( argument,* )`. A last argument with several lines begins on the line of the bracket.
    pub(super) fn arguments(&mut self, arguments: &[Argument], region: Range<u32>) -> Doc {
        if arguments.is_empty() {
            return Doc::text("()");
        }
        let place = |argument: &Argument| range(argument.span);
        let sequence = self.inside(|printer| printer.attach_comments(arguments, region, place, Self::argument));
        let last_holds_lines = arguments.last().is_some_and(|last| holds_lines(&last.value));
        let others_are_short = arguments.iter().rev().skip(1).all(|argument| is_short(&argument.value));
        if last_holds_lines && others_are_short && !sequence.has_comments() {
            return hugged(sequence);
        }
        in_brackets("(", comma_lines(sequence), ")")
    }

    fn argument(&mut self, argument: &Argument) -> Doc {
        let label = argument.name.as_ref().map_or(Doc::nothing(), |name| Doc::text(format!("{name}: ")));
        label.then(self.expression(&argument.value))
    }
}

/// Prints an operator after its line end. A minus cannot begin a line, so there the line end follows.
fn operation(operator: BinaryOperator) -> Doc {
    let symbol = operator.symbol();
    match operator {
        BinaryOperator::Subtract => Doc::text(format!(" {symbol}")).then(Doc::line(" ")),
        _ => Doc::line(" ").then_text(format!("{symbol} ")),
    }
}

fn resource(resource: &AtomicResource) -> String {
    let read = if resource.read.is_some() { "read " } else { "" };
    format!("{read}{}{}", resource.path, if resource.per_session { " per session" } else { "" })
}

/// Prints arguments of which only the last one has several lines.
fn hugged(sequence: CommentedElements) -> Doc {
    let last = sequence.elements.len().saturating_sub(1);
    let docs = sequence.elements.into_iter().enumerate();
    let docs = docs.map(|(index, element)| if index == last { element.doc } else { element.doc.flat() });
    Doc::concat([Doc::text("("), super::joined(docs, &Doc::text(", ")), Doc::text(")")])
}

/// Returns true if an argument is so short that it need not be broken.
fn is_short(expr: &Expr) -> bool {
    match &expr.kind {
        _ if expr.parenthesized => false,
        ExprKind::Name(_) | ExprKind::Literal(_) => true,
        ExprKind::Text(text) | ExprKind::Html(text) => text.style == TextStyle::Line,
        ExprKind::Field { object, .. } | ExprKind::Try(object) => is_short(object),
        ExprKind::Call { function, arguments } => {
            is_short(function) && arguments.iter().all(|argument| is_short(&argument.value))
        }
        _ => false,
    }
}

/// Returns true if the lines of an expression can follow the text before it, because a bracket opens on its first line.
/// The answer must depend neither on widths nor on parentheses that printing adds; otherwise formatting twice would
/// give another result.
fn begins_lines(expr: &Expr) -> bool {
    let within = |inner: &Expr, least: Tightness| tightness(inner) >= least && begins_lines(inner);
    match &expr.kind {
        _ if expr.parenthesized => false,
        ExprKind::Pipe { .. } | ExprKind::Binary { .. } | ExprKind::Name(_) | ExprKind::Literal(_) => false,
        ExprKind::Within { .. } | ExprKind::Return(None) => false,
        ExprKind::Call { function, .. } => has_hugged_call(expr) || within(function, Tightness::OPERAND),
        ExprKind::Unary { operand, .. } => within(operand, Tightness::UNARY),
        ExprKind::Return(Some(value)) => begins_lines(value),
        ExprKind::Else { value, otherwise, .. } => {
            let is_block = matches!(otherwise.kind, ExprKind::Block(_)) && !otherwise.parenthesized;
            let begins_value = !takes_else(value) && within(value, Tightness::LIMITED);
            is_block || begins_value || (!begins_with_brace(otherwise) && begins_lines(otherwise))
        }
        ExprKind::Text(text) | ExprKind::Html(text) => text.style == TextStyle::Block,
        _ => object(expr).is_none_or(|object| within(object, Tightness::OPERAND)),
    }
}

/// Returns true if a call keeps the lines of its last argument after its bracket.
pub(super) fn has_hugged_call(expr: &Expr) -> bool {
    let ExprKind::Call { arguments, .. } = &expr.kind else { return false };
    arguments.last().is_some_and(|last| holds_lines(&last.value))
}

/// Returns true if the lines of an argument may follow the bracket of its call.
fn holds_lines(expr: &Expr) -> bool {
    match &expr.kind {
        _ if expr.parenthesized => false,
        ExprKind::Closure { body, .. } => holds_lines(body),
        ExprKind::Block(_)
        | ExprKind::Record { .. }
        | ExprKind::List(_)
        | ExprKind::Map(_)
        | ExprKind::Match { .. } => true,
        ExprKind::Text(text) | ExprKind::Html(text) => text.style == TextStyle::Block,
        _ => false,
    }
}
