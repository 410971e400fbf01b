//! Lowers templates: each interpolation is escaped for its context, and the parts are joined to a text.

use weir_host::{Text, Type, Value};
use weir_ir::expr::Atom;
use weir_ir::prim::Prim;
use weir_syntax::Span;
use weir_syntax::ast::{Expr, ExprKind, TextLiteral, TextPart};

use super::branch::FallibleValue;
use super::{Binding, Lowering};
use crate::html_template::{HoleContext, ScriptLanguage, is_markup};
use crate::lang_items::HTML;
use crate::types::Ty;

/// Functions of the module `html` that the lowering calls.
const ESCAPE: &str = "html.escape";
const JOIN: &str = "html.join";
const JSON_IN_SCRIPT: &str = "html.json_in_script";
const TO_TEXT: &str = "html.to_text";
const UNESCAPED: &str = "html.unescaped";
const URL: &str = "html.url";
const URL_PART: &str = "html.url_part";
const URL_SEGMENT: &str = "html.url_segment";
const VALUE_IN_SCRIPT: &str = "html.value_in_script";

impl<'a> Lowering<'a, '_> {
    /// Lowers `html"…"`.
    pub(super) fn html(&mut self, text: &'a TextLiteral) -> Atom {
        let mut parts: Vec<Atom> = Vec::new();
        for (index, part) in text.parts.iter().enumerate() {
            match part {
                TextPart::Literal { value, .. } => {
                    let value = self.without_flags(text, index, value);
                    parts.push(Atom::Value(Value::text(value)));
                }
                TextPart::Expr(hole) => parts.push(self.hole(hole)),
            }
        }
        let whole = match &parts[..] {
            [] => Atom::Value(Value::text("")),
            [Atom::Value(only @ Value::Text(_))] => Atom::Value(only.clone()),
            _ => self.prim(Prim::Interpolate, parts, Type::Text, text.span),
        };
        self.html_call(UNESCAPED, whole, Type::named(HTML), text.span)
    }

    /// Returns a literal part without ` name="` and `"` around an attribute that is present or not.
    fn without_flags<'t>(&self, text: &'a TextLiteral, index: usize, value: &'t str) -> &'t str {
        let flag = |part: Option<&'a TextPart>| match part {
            Some(TextPart::Expr(hole)) => match self.typed.of(hole.id).html_holes.get(&hole.id) {
                Some(HoleContext::Flag { before, .. }) => Some(*before),
                _ => None,
            },
            _ => None,
        };
        let start = usize::from(index > 0 && flag(text.parts.get(index - 1)).is_some());
        let end = value.len() - flag(text.parts.get(index + 1)).unwrap_or(0);
        &value[start..end]
    }

    fn hole(&mut self, hole: &'a Expr) -> Atom {
        let typed = self.typed;
        let span = hole.span;
        match typed.of(hole.id).html_holes.get(&hole.id) {
            Some(HoleContext::Markup | HoleContext::ForeignMarkup) | None => self.markup(hole),
            Some(HoleContext::Flag { name, .. }) => {
                let condition = self.expr(hole);
                let (present, absent) = (Value::text(&format!(" {name}")), Value::text(""));
                self.choose(condition, &Type::Text, span, |_| Atom::Value(present), |_| Atom::Value(absent))
            }
            Some(HoleContext::Script(language)) => {
                let value = self.expr(hole);
                let path = if *language == ScriptLanguage::Json { JSON_IN_SCRIPT } else { VALUE_IN_SCRIPT };
                let value = Some(Binding::Atom(value));
                self.call_host(&Text::from(path), vec![value], Type::Text, (span, &[Some(hole)]))
            }
            Some(HoleContext::PlainText | HoleContext::Attribute) => self.escaped(hole, ESCAPE),
            Some(HoleContext::Url) => self.escaped(hole, URL),
            Some(HoleContext::UrlPart) => self.escaped(hole, URL_PART),
            Some(HoleContext::UrlSegment { is_last }) => {
                let segment = self.text_of(hole);
                let arguments = [segment, Atom::Value(Value::Bool(*is_last))].map(|atom| Some(Binding::Atom(atom)));
                self.call_host(&Text::from(URL_SEGMENT), arguments.into(), Type::Text, (span, &[]))
            }
        }
    }

    /// Lowers an interpolation between tags.
    fn markup(&mut self, hole: &'a Expr) -> Atom {
        let ty = self.concrete(self.typed.expr_type(hole.id)).into_owned();
        if is_markup(&ty) {
            return self.value_or_nothing(hole, |lowering, value| lowering.inserted(value, &ty, hole.span));
        }
        self.escaped(hole, ESCAPE)
    }

    /// Returns what `insert` makes of the value of an interpolation, and an empty text for an `if` without `else` whose
    /// condition does not hold.
    fn value_or_nothing(&mut self, hole: &'a Expr, insert: impl FnOnce(&mut Self, Atom) -> Atom) -> Atom {
        let ExprKind::If { condition, then, otherwise: None } = &hole.kind else {
            let value = self.expr(hole);
            return insert(self, value);
        };
        let condition = self.expr(condition);
        let inserted = |lowering: &mut Self| {
            let value = lowering.block(then);
            insert(lowering, value)
        };
        self.choose(condition, &Type::Text, hole.span, inserted, |_| Atom::Value(Value::text("")))
    }

    /// Returns the text of `Html`, of a list of it, or of an option.
    fn inserted(&mut self, value: Atom, ty: &Ty, span: Span) -> Atom {
        let html = match ty {
            Ty::Option(some) => {
                let value = FallibleValue { subject: value, of: ty.to_type() };
                self.match_fallible(value, &some.to_type(), span, |lowering, _| {
                    lowering.html_call(UNESCAPED, Atom::Value(Value::text("")), Type::named(HTML), span)
                })
            }
            Ty::List(_) => self.html_call(JOIN, value, Type::named(HTML), span),
            _ => value,
        };
        self.html_call(TO_TEXT, html, Type::Text, span)
    }

    /// Lowers the interpolation of a value that is shown as text, by this function.
    fn escaped(&mut self, hole: &'a Expr, function: &str) -> Atom {
        let text = self.text_of(hole);
        self.html_call(function, text, Type::Text, hole.span)
    }

    /// Returns the value of an interpolation as text.
    fn text_of(&mut self, hole: &'a Expr) -> Atom {
        let ty = self.concrete(self.typed.expr_type(hole.id)).into_owned();
        self.value_or_nothing(hole, |lowering, value| {
            let mut parts = lowering.shown(value, &ty, 0, hole.span);
            match parts.len() {
                1 if ty == Ty::TEXT => parts.remove(0),
                _ => lowering.prim(Prim::Interpolate, parts, Type::Text, hole.span),
            }
        })
    }

    fn html_call(&mut self, path: &str, argument: Atom, ty: Type, span: Span) -> Atom {
        self.call_host(&Text::from(path), vec![Some(Binding::Atom(argument))], ty, (span, &[]))
    }
}
