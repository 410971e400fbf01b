//! Checks templates: the HTML around their interpolations, and the types of the values.

use weir_syntax::ast::{Block, Expr, ExprKind, TextLiteral, TextPart};
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
        let template = parse_template(text);
        for fault in &template.faults {
            self.template_fault(text, fault);
        }
        for (hole, context) in holes_of(text).zip(template.holes) {
            self.hole(hole, &context);
            self.typed.html_holes.insert(hole.id, context);
        }
        Ty::named(HTML)
    }

    fn template_fault(&mut self, text: &TextLiteral, fault: &TemplateFault) {
        let (code, span) = match fault.place {
            FaultPlace::Hole(index) => (Code::UnsafeInterpolation, holes_of(text).nth(index).map(|hole| hole.span)),
            FaultPlace::Tag { number, length } => (Code::MalformedTemplate, self.span_of_tag(text, number, length)),
        };
        let place = span.unwrap_or(text.span);
        self.report(Diagnostic::new(code, fault.message.clone()).at(place, fault.label).hint(fault.hint.clone()));
    }

    /// Returns the place of the `<` with this number in the source of a template.
    fn span_of_tag(&self, text: &TextLiteral, number: usize, length: usize) -> Option<Span> {
        let in_hole = |at: u32| holes_of(text).any(|hole| hole.span.start <= at && at < hole.span.end);
        let source = self.context.text.get(text.span.range())?;
        let starts = source.match_indices('<').map(|(at, _)| text.span.start + at as u32);
        let start = starts.filter(|at| !in_hole(*at)).nth(number)?;
        let line = self.context.text[start as usize..text.span.end as usize].lines().next()?;
        let length: usize = line.chars().take(length).map(char::len_utf8).sum();
        Some(Span { start, end: start + length as u32, ..text.span })
    }

    fn hole(&mut self, hole: &'a Expr, context: &HoleContext) {
        match (context, &hole.kind) {
            (HoleContext::Markup, ExprKind::If { condition, then, otherwise: None }) => {
                self.markup_if(hole, condition, then);
            }
            (HoleContext::Markup, _) => {
                let ty = self.expr(hole, None);
                let ty = self.inference.resolve(&ty);
                if !is_markup(&ty) {
                    self.shown(hole.span, &ty);
                }
            }
            (HoleContext::Flag { name, .. }, _) => {
                let why = format!("`{name}` is present or not");
                self.expr(hole, Some(&Expected::new(Ty::BOOL, hole.span, why)));
            }
            (HoleContext::Script(_), _) => _ = self.expr(hole, None),
            _ => {
                let ty = self.expr(hole, None);
                self.shown(hole.span, &ty);
            }
        }
    }

    /// Checks an `if` without `else`: without its condition, it inserts nothing.
    fn markup_if(&mut self, hole: &Expr, condition: &'a Expr, then: &'a Block) {
        self.expr(condition, Some(&Expected::new(Ty::BOOL, condition.span, "a condition is a `Bool`")));
        let why = "an `if` without `else` in a template inserts `Html` or nothing";
        self.block(then, Some(&Expected::new(Ty::named(HTML), hole.span, why)));
        if let Some(slot) = self.typed.expr_types.get_mut(hole.id.0 as usize) {
            *slot = Ty::named(HTML);
            self.typed.expr_spans[hole.id.0 as usize] = hole.span;
        }
    }
}

/// Returns the interpolated expressions of a text.
fn holes_of(text: &TextLiteral) -> impl Iterator<Item = &Expr> {
    text.parts.iter().filter_map(|part| match part {
        TextPart::Expr(hole) => Some(hole),
        TextPart::Literal { .. } => None,
    })
}
