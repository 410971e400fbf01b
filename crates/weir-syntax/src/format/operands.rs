//! Operands: names, literals, text, suffixes and pipes.

use super::SourcePrinter;
use super::comments::{comma_lines, range};
use super::doc::Doc;
use super::expressions::has_hugged_call;
use super::items::in_brackets;
use super::parentheses::{Tightness, is_piped, object};
use super::statements::BlockLayout;
use crate::ast::{Argument, Expr, ExprKind, FieldValue, MapEntry, Path, TextLiteral, TextPart, TextStyle};
use crate::parser::escape;

impl SourcePrinter<'_> {
    pub(super) fn operand(&mut self, expr: &Expr) -> Doc {
        match &expr.kind {
            ExprKind::Literal(literal) => Doc::text(&*literal.raw),
            ExprKind::Name(name) => Doc::text(&*name.text),
            ExprKind::Text(text) => self.text_literal(text),
            ExprKind::Html(text) => Doc::text("html").then(self.text_literal(text)),
            ExprKind::Tuple(values) => self.tuple(values, expr),
            ExprKind::List(values) => {
                let elements = self.elements(values, expr);
                in_brackets("[", elements, "]")
            }
            ExprKind::Map(entries) if entries.is_empty() => Doc::text("[:]"),
            ExprKind::Map(entries) => self.map(entries, expr),
            ExprKind::Record { path, base, fields } => self.record_expr(path, base.as_deref(), fields, expr),
            _ => self.chain(expr),
        }
    }

    /// Prints `object.name(…).other(…)`, broken before each dot whose call follows a call, or nowhere.
    fn chain(&mut self, expr: &Expr) -> Doc {
        let mut links = Vec::new();
        let mut base = expr;
        while let Some(object) = object(base).filter(|_| std::ptr::eq(base, expr) || !base.parenthesized) {
            links.push(base);
            base = object;
        }
        let is_number = matches!(base.kind, ExprKind::Literal(_)) && !base.parenthesized;
        let indexed = links.last().is_some_and(|link| matches!(link.kind, ExprKind::TupleIndex { .. }));
        let first = match is_number && indexed {
            true => self.in_parentheses(base),
            false => self.expr_in(base, Tightness::OPERAND),
        };
        links.reverse();
        let mut suffixes = Vec::new();
        let mut has_call = false;
        let is_hugged = links.iter().any(|link| has_hugged_call(link));
        for (index, link) in links.iter().enumerate() {
            let is_called = matches!(links.get(index + 1).map(|next| &next.kind), Some(ExprKind::Call { .. }));
            let may_break = !is_hugged && has_call && is_called && matches!(link.kind, ExprKind::Field { .. });
            has_call |= matches!(link.kind, ExprKind::Call { .. });
            suffixes.push((may_break, self.suffix(link)));
        }
        with_breaks(first, suffixes)
    }

    /// Prints the suffix of an object.
    fn suffix(&mut self, link: &Expr) -> Doc {
        match &link.kind {
            ExprKind::Field { name, .. } => Doc::text(format!(".{name}")),
            ExprKind::TupleIndex { index, .. } => Doc::text(format!(".{index}")),
            ExprKind::Try(_) => Doc::text("?"),
            ExprKind::Index { index, .. } => {
                let index = self.inside(|printer| printer.expression(index));
                in_brackets("[", index, "]")
            }
            ExprKind::Call { function, arguments } => self.call_arguments(function, arguments, link),
            _ => Doc::nothing(),
        }
    }

    fn call_arguments(&mut self, function: &Expr, arguments: &[Argument], call: &Expr) -> Doc {
        self.arguments(arguments, function.span.end..call.span.end.saturating_sub(1))
    }

    /// Prints `value |> f(…)? |> g(…)`, broken before each `|>` or nowhere.
    pub(super) fn pipe(&mut self, expr: &Expr) -> Doc {
        let mut steps = Vec::new();
        let first = self.pipe_steps(expr, &mut steps);
        let steps = steps.into_iter().map(|step| Doc::line(" ").then(step));
        first.then(Doc::concat(steps.collect::<Vec<_>>()).nest()).group()
    }

    /// Collects the steps of a pipe with their suffixes, and returns the value at its left end.
    fn pipe_steps(&mut self, expr: &Expr, steps: &mut Vec<Doc>) -> Doc {
        if let ExprKind::Pipe { value, function, arguments } = &expr.kind {
            let is_step = !value.parenthesized && is_piped(value);
            let first = if is_step { self.pipe_steps(value, steps) } else { self.expr_in(value, Tightness::BINARY) };
            let name = Doc::text("|> ").then(self.operand(function));
            let arguments = match arguments.is_empty() {
                true => Doc::nothing(),
                false => self.arguments(arguments, function.span.end..expr.span.end.saturating_sub(1)),
            };
            steps.push(name.then(arguments));
            return first;
        }
        let Some(inner) = object(expr) else { return self.expr_in(expr, Tightness::BINARY) };
        let first = self.pipe_steps(inner, steps);
        let bare = matches!(&inner.kind, ExprKind::Pipe { arguments, .. } if arguments.is_empty());
        let call = if bare && !matches!(expr.kind, ExprKind::Try(_)) { "()" } else { "" };
        let suffix = Doc::text(call).then(self.suffix(expr));
        if let Some(step) = steps.pop() {
            steps.push(step.then(suffix));
        }
        first
    }

    fn elements(&mut self, values: &[Expr], around: &Expr) -> Doc {
        let region = around.span.start..around.span.end.saturating_sub(1);
        let place = |value: &Expr| range(value.span);
        comma_lines(self.inside(|printer| printer.attach_comments(values, region, place, Self::expression)))
    }

    fn tuple(&mut self, values: &[Expr], expr: &Expr) -> Doc {
        let elements = self.elements(values, expr);
        match values.len() {
            // Without the comma it would be parentheses; the broken form always has one.
            1 => in_brackets("(", elements.then(Doc::choice(Doc::text(","), Doc::nothing())), ")"),
            _ => in_brackets("(", elements, ")"),
        }
    }

    fn map(&mut self, entries: &[MapEntry], expr: &Expr) -> Doc {
        let region = expr.span.start..expr.span.end.saturating_sub(1);
        let place = |entry: &MapEntry| entry.key.span.start..entry.value.span.end;
        let sequence = self.inside(|printer| {
            printer.attach_comments(entries, region, place, |printer, entry| {
                let key = printer.expr_in(&entry.key, Tightness::LIMITED);
                Doc::concat([key, Doc::text(": "), printer.expression(&entry.value)])
            })
        });
        in_brackets("[", comma_lines(sequence), "]")
    }

    fn record_expr(&mut self, path: &Path, base: Option<&Expr>, fields: &[FieldValue], expr: &Expr) -> Doc {
        let open = path.span.end..expr.span.end.saturating_sub(1);
        let mut rows: Vec<RecordPart<'_>> =
            base.map(RecordPart::Base).into_iter().chain(fields.iter().map(RecordPart::Field)).collect();
        // The base may come anywhere in the source. In a tree without source it comes first.
        rows.sort_by_key(|row| row.span_start());
        let sequence = self.inside(|printer| printer.attach_comments(&rows, open, RecordPart::place, Self::row));
        let braces = self.in_braces(sequence, BlockLayout::AsWritten(path.span.end));
        Doc::text(format!("{path} ")).then(braces)
    }

    fn row(&mut self, row: &RecordPart<'_>) -> Doc {
        match row {
            RecordPart::Base(base) => Doc::text("..").then(self.expression(base)),
            RecordPart::Field(field) if field.shorthand => Doc::text(&*field.name.text),
            RecordPart::Field(field) => Doc::text(format!("{}: ", field.name)).then(self.expression(&field.value)),
        }
    }

    fn text_literal(&mut self, text: &TextLiteral) -> Doc {
        let on_line = self.text_on_line(text);
        match text.style {
            TextStyle::Line => on_line.flat(),
            TextStyle::Block => Doc::choice(on_line.flat(), self.text_block(text)),
        }
    }

    /// Prints `"…"`.
    fn text_on_line(&mut self, text: &TextLiteral) -> Doc {
        let mut out = Doc::text("\"");
        for part in &text.parts {
            out = out.then(match part {
                TextPart::Literal { raw, .. } if text.style == TextStyle::Line => Doc::text(&**raw),
                TextPart::Literal { value, .. } => Doc::text(escape(value)),
                TextPart::Expr(expr) => self.interpolation(expr),
            });
        }
        out.then_text("\"")
    }

    fn interpolation(&mut self, expr: &Expr) -> Doc {
        let (value, format) = match &expr.kind {
            ExprKind::Formatted { value, format, .. } => (&**value, format!(":{format}")),
            _ => (expr, String::new()),
        };
        let inner = self.inside(|printer| printer.expression(value));
        Doc::concat([Doc::text("{"), inner, Doc::text(format!("{format}}}"))]).flat()
    }

    /// Prints `"""`, the lines, and `"""`.
    fn text_block(&mut self, text: &TextLiteral) -> Doc {
        let mut lines = vec![Doc::hard_line()];
        for part in &text.parts {
            match part {
                TextPart::Literal { raw, .. } => {
                    for (index, line) in raw.split('\n').enumerate() {
                        if index > 0 {
                            lines.push(Doc::hard_line());
                        }
                        lines.push(Doc::text(line));
                    }
                }
                TextPart::Expr(expr) => lines.push(self.interpolation(expr)),
            }
        }
        if !text.parts.is_empty() {
            lines.push(Doc::hard_line());
        }
        Doc::concat([Doc::text("\"\"\""), Doc::concat(lines).then_text("\"\"\"").nest()])
    }
}

/// Prints the suffixes of `first`, with a line end before each that may have one, or before none.
fn with_breaks(first: Doc, suffixes: Vec<(bool, Doc)>) -> Doc {
    let has_breaks = suffixes.iter().any(|(may_break, _)| *may_break);
    if !has_breaks {
        return first.then(Doc::concat(suffixes.into_iter().map(|(_, suffix)| suffix)));
    }
    let rows = suffixes.into_iter().map(|(may_break, suffix)| match may_break {
        true => Doc::line("").then(suffix),
        false => suffix,
    });
    first.then(Doc::concat(rows).nest()).group()
}

/// A part of the braces of a record expression.
enum RecordPart<'e> {
    Base(&'e Expr),
    Field(&'e FieldValue),
}

impl RecordPart<'_> {
    fn span_start(&self) -> u32 {
        match self {
            Self::Base(base) => base.span.start,
            Self::Field(field) => field.span.start,
        }
    }

    fn place(&self) -> std::ops::Range<u32> {
        match self {
            Self::Base(base) => range(base.span),
            Self::Field(field) => range(field.span),
        }
    }
}
