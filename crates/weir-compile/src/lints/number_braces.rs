//! Numbers in braces: warns of `"[0-9]{3}"`, whose author means literal braces, as in a regular expression, and not the
//! text of the number.

use weir_syntax::ast::{Expr, ExprKind, Literal, LiteralValue, TextLiteral, TextPart};
use weir_syntax::{Code, Diagnostic, Span};

/// The warnings of every interpolation of a whole number.
pub(super) struct NumberBraces<'t> {
    text: &'t str,
    pub(super) found: Vec<Diagnostic>,
}

impl<'t> NumberBraces<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        NumberBraces { text, found: Vec::new() }
    }

    /// Looks at an expression, without its children.
    pub(super) fn expr(&mut self, expr: &Expr) {
        if let ExprKind::Text(TextLiteral { parts, .. }) = &expr.kind {
            parts.iter().for_each(|part| self.part(part));
        }
    }

    fn part(&mut self, part: &TextPart) {
        let TextPart::Expr(Expr { kind: ExprKind::Literal(literal), span, .. }) = part else { return };
        let Literal { value: LiteralValue::Int(_), .. } = literal else { return };
        let number = self.text.get(span.range()).unwrap_or_default();
        let diagnostic =
            Diagnostic::new(Code::NumberBraces, format!("`{{{number}}}` inserts the number {number}, without braces"))
                .at(*span, "a value in braces is inserted into the text");
        let advice = format!("write `\\{{{number}}}` for literal braces, or `{number}` for the number");
        let brace = usize::try_from(span.start).ok().and_then(|start| start.checked_sub(1));
        let is_before = brace.is_some_and(|brace| self.text.as_bytes().get(brace) == Some(&b'{'));
        self.found.push(if is_before {
            let brace = Span { start: span.start - 1, end: span.start, ..*span };
            diagnostic.suggest(advice, brace, "\\{")
        } else {
            diagnostic.hint(advice)
        });
    }
}
