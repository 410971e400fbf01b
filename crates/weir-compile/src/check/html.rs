//! Checks templates: the HTML around their interpolations, and the types of the values.

use weir_syntax::ast::{Expr, ExprKind, TextLiteral, TextPart};
use weir_syntax::{Code, Diagnostic, Span};

use super::{Expected, TypeChecker};
use crate::html_template::{FaultPlace, HoleContext, TemplateFault, is_markup, parse_template};
use crate::lang_items::{HTML, HTML_MODULE};
use crate::types::Ty;

impl<'a> TypeChecker<'a, '_> {
    /// Checks `html"…"`.
    pub(super) fn html(&mut self, expr: &Expr, text: &'a TextLiteral) -> Ty {
        if self.context.library.definition(HTML).is_none() {
            let message = format!("there is no module `{HTML_MODULE}`, which has templates");
            self.report(Diagnostic::new(Code::UnknownModule, message).at(expr.span, "is a template"));
            return Ty::Error;
        }
        let template = parse_template(text, self.foreign_templates.contains(&expr.id));
        for fault in &template.faults {
            self.template_fault(text, fault);
        }
        for (hole, context) in holes_of(text).zip(template.holes) {
            self.hole(hole, &context);
            self.typed.of_mut(hole.id).html_holes.insert(hole.id, context);
        }
        Ty::named(HTML)
    }

    fn template_fault(&mut self, text: &TextLiteral, fault: &TemplateFault) {
        let (code, span) = match fault.place {
            FaultPlace::Hole(index) => (Code::UnsafeInterpolation, holes_of(text).nth(index).map(|hole| hole.span)),
            FaultPlace::Tag { number, length } => (Code::MalformedTemplate, self.span_of_tag(text, number, length)),
            FaultPlace::Whole => (Code::MalformedTemplate, Some(text.span.at_end())),
        };
        let place = span.unwrap_or(text.span);
        self.report(Diagnostic::new(code, fault.message.clone()).at(place, fault.label).hint(fault.hint.clone()));
    }

    /// Returns the place of the `<` with this number in the source of a template.
    fn span_of_tag(&self, text: &TextLiteral, number: usize, length: usize) -> Option<Span> {
        let holes: Vec<Span> = holes_of(text).map(|hole| hole.span).collect();
        let in_hole = |at: u32| {
            let before = holes.partition_point(|hole| hole.start <= at);
            before > 0 && at < holes[before - 1].end
        };
        let source = self.context.text.get(text.span.range())?;
        let starts = source.match_indices('<').map(|(at, _)| text.span.start + at as u32);
        let start = starts.filter(|at| !in_hole(*at)).nth(number)?;
        let line = self.context.text[start as usize..text.span.end as usize].lines().next()?;
        let length: usize = line.chars().take(length).map(char::len_utf8).sum();
        Some(Span { start, end: start + length as u32, ..text.span })
    }

    fn hole(&mut self, hole: &'a Expr, context: &HoleContext) {
        match context {
            HoleContext::Flag { name, .. } => {
                let why = format!("`{name}` is present or not");
                self.expr(hole, Some(&Expected::new(Ty::BOOL, hole.span, why)));
            }
            HoleContext::Script(_) => _ = self.expr(hole, None),
            HoleContext::Markup => {
                let ty = self.type_inserted(hole);
                if !is_markup(&ty) {
                    self.shown_in_template(hole.span, &ty);
                }
            }
            HoleContext::ForeignMarkup => {
                let is_written_here = self.enter_foreign(hole);
                let ty = self.type_inserted(hole);
                if !is_markup(&ty) {
                    self.shown_in_template(hole.span, &ty);
                } else if !is_written_here {
                    self.made_for_html(hole.span);
                }
            }
            _ => {
                let ty = self.type_inserted(hole);
                self.shown_in_template(hole.span, &ty);
            }
        }
    }

    /// Returns the type of the value that is inserted. An `if` without `else` inserts nothing if its condition does not hold.
    fn type_inserted(&mut self, hole: &'a Expr) -> Ty {
        let ExprKind::If { condition, then, otherwise: None } = &hole.kind else {
            let ty = self.expr(hole, None);
            return self.inference.resolve(&ty);
        };
        self.expr(condition, Some(&Expected::new(Ty::BOOL, condition.span, "a condition is a `Bool`")));
        let ty = self.block(then, None);
        let ty = self.inference.resolve(&ty);
        let ty = if ty == Ty::NEVER { Ty::named(HTML) } else { ty };
        self.typed.of_mut(hole.id).set_expr(hole.id, ty.clone(), hole.span);
        ty
    }

    /// Checks that a value can be shown as text, and that somebody could want to see it on a page.
    fn shown_in_template(&mut self, place: Span, ty: &Ty) {
        let hint = match ty {
            Ty::List(_) | Ty::Map(_) => "insert each element: `{for x in list { html\"<li>{x}</li>\" }}`",
            Ty::Option(_) => "say what is shown for `None`: `{match value { Some(x) => \"{x}\", None => \"none\" }}`",
            ty if *ty == Ty::BYTES => "decode the bytes first, or answer with them in a response of their own",
            ty if *ty == Ty::UNIT => "let the block end with the value that is inserted",
            ty if *ty == Ty::named(HTML) => "pass a `Text` instead of the `Html`, and insert that",
            _ => return self.shown(place, ty),
        };
        let message = format!("a template cannot show values of the type `{ty}` here");
        self.report(Diagnostic::new(Code::NoText, message).at(place, format!("this is `{ty}`")).hint(hint));
    }

    /// Marks the templates whose values an expression inserts into SVG or MathML. Returns false if it can insert others.
    fn enter_foreign(&mut self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Html(_) => {
                self.foreign_templates.insert(expr.id);
                true
            }
            ExprKind::For { body, .. } | ExprKind::Block(body) => {
                body.value().is_some_and(|value| self.enter_foreign(value))
            }
            ExprKind::If { then, otherwise, .. } => {
                let then = then.value().is_some_and(|value| self.enter_foreign(value));
                then & otherwise.as_ref().is_none_or(|otherwise| self.enter_foreign(otherwise))
            }
            ExprKind::Match { arms, .. } => arms.iter().all(|arm| self.enter_foreign(&arm.body)),
            _ => false,
        }
    }

    fn made_for_html(&mut self, place: Span) {
        let message = "a template for HTML cannot be inserted into SVG or MathML, which browsers parse by other rules";
        let hint =
            "write the template here: `{for x in items { html\"<circle r='{x}'/>\" }}`; or insert all of the `<svg>`";
        let diagnostic = Diagnostic::new(Code::UnsafeInterpolation, message).at(place, "cannot be made safe here");
        self.report(diagnostic.hint(hint));
    }
}

/// Returns the interpolated expressions of a text.
fn holes_of(text: &TextLiteral) -> impl Iterator<Item = &Expr> {
    text.parts.iter().filter_map(|part| match part {
        TextPart::Expr(hole) => Some(hole),
        TextPart::Literal { .. } => None,
    })
}
