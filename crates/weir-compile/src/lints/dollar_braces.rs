//! Dollar signs before braces: warns of `"Hello, ${name}"`, whose author means the interpolation of another language, and not a
//! dollar sign before the value.

use weir_syntax::ast::{Expr, ExprKind, TextLiteral, TextPart};
use weir_syntax::{Code, Diagnostic, Span};

use crate::typed_tree::TypedTree;
use crate::types::Ty;

/// The warnings of every name behind a dollar sign. A number may be a price, and so may what a call returns.
pub(super) struct DollarBraces<'t> {
    text: &'t str,
    typed: &'t TypedTree,
    pub(super) found: Vec<Diagnostic>,
}

impl<'t> DollarBraces<'t> {
    pub(super) fn new(text: &'t str, typed: &'t TypedTree) -> Self {
        DollarBraces { text, typed, found: Vec::new() }
    }

    /// Looks at an expression, without its children.
    pub(super) fn expr(&mut self, expr: &Expr) {
        if let ExprKind::Text(TextLiteral { parts, .. }) | ExprKind::Html(TextLiteral { parts, .. }) = &expr.kind {
            parts.iter().for_each(|part| self.part(part));
        }
    }

    fn part(&mut self, part: &TextPart) {
        let TextPart::Expr(value) = part else { return };
        let is_name = matches!(value.kind, ExprKind::Name(_) | ExprKind::Field { .. });
        let is_price = [Ty::INT, Ty::FLOAT].contains(self.typed.expr_type(value.id));
        let Some(start) = value.span.start.checked_sub(2).filter(|_| is_name && !is_price) else { return };
        let sign = Span { start, end: start + 1, ..value.span };
        if self.text.get(start as usize..value.span.start as usize) != Some("${") {
            return;
        }
        let name = self.text.get(value.span.range()).unwrap_or_default();
        self.found.push(
            Diagnostic::new(Code::DollarBraces, format!("`${{{name}}}` inserts `{name}` behind a dollar sign"))
                .at(sign, "this is a part of the text")
                .suggest(format!("write `{{{name}}}` for the value alone"), sign, ""),
        );
    }
}
