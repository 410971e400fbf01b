//! Values that are interpolated into texts: which types can be shown as text.

use weir_host::TypeShape;
use weir_syntax::ast::{TextLiteral, TextPart};
use weir_syntax::{Code, Diagnostic, Span};

use super::TypeChecker;
use crate::lang_items::HTML;
use crate::typed_tree::Demand;
use crate::types::Ty;

impl<'a> TypeChecker<'a, '_> {
    /// Checks a text with interpolations.
    pub(super) fn text(&mut self, text: &'a TextLiteral) -> Ty {
        for part in &text.parts {
            if let TextPart::Expr(expr) = part {
                let ty = self.expr(expr, None);
                self.shown(expr.span, &ty);
            }
        }
        Ty::TEXT
    }

    /// Reports a value that cannot be interpolated into a text.
    pub(super) fn shown(&mut self, span: Span, ty: &Ty) {
        let ty = self.inference.resolve(ty);
        if self.has_text(&ty, &mut Vec::new()) {
            return self.demand(&ty, Demand::Text, span);
        }
        let mut diagnostic =
            Diagnostic::new(Code::NoText, format!("values of the type `{ty}` cannot be shown as text"))
                .at(span, format!("this is `{ty}`"));
        diagnostic = match ty {
            Ty::Result(_) => diagnostic.hint("unwrap the value first, with `?` or `else { … }`"),
            ty if ty == Ty::named(HTML) => diagnostic.hint("interpolate it in a template: `html\"{…}\"`"),
            Ty::List(element) if self.has_text(&element, &mut Vec::new()) => {
                diagnostic.hint("show each element: `for x in list { \"{x}\" }`")
            }
            Ty::List(element) => match self.shown_field(&element) {
                Some(field) => {
                    diagnostic.hint(format!("show a part of each element: `for x in list {{ \"{{x.{field}}}\" }}`"))
                }
                None => diagnostic,
            },
            _ => diagnostic,
        };
        self.report(diagnostic);
    }

    /// Returns the first field of a record that can be shown as text.
    fn shown_field(&self, record: &Ty) -> Option<String> {
        let has_text = |field: &String| {
            let ty = self.field_of(record, field);
            ty.is_some_and(|(_, ty)| self.has_text(&ty, &mut Vec::new()))
        };
        self.fields_of(record).into_iter().find(has_text)
    }

    /// Returns whether a value can be shown as text. The elements of a list or map must be plain: only the compiler
    /// knows the names of variants and fields, and it cannot generate code for each element.
    pub(super) fn has_text(&self, ty: &Ty, seen: &mut Vec<weir_host::Text>) -> bool {
        match ty {
            Ty::Function(_) | Ty::Result(_) => false,
            Ty::Error | Ty::Unknown(_) => true,
            Ty::List(part) => self.is_plain(part),
            Ty::Map(pair) => self.is_plain(&pair.0) && self.is_plain(&pair.1),
            Ty::Option(part) => self.has_text(part, seen),
            Ty::Tuple(parts) => parts.iter().all(|part| self.has_text(part, seen)),
            Ty::Plain(_) => match ty.name() {
                Some(name) => self.named_has_text(name, seen),
                None => true,
            },
        }
    }

    fn named_has_text(&self, name: &weir_host::Text, seen: &mut Vec<weir_host::Text>) -> bool {
        if seen.contains(name) {
            return true;
        }
        seen.push(name.clone());
        let definition = self.typed.declarations.definition(self.context.library, name);
        match definition.map(|definition| &definition.shape) {
            Some(TypeShape::Record(fields)) => fields.iter().all(|field| self.has_text(&Ty::fixed(&field.ty), seen)),
            Some(TypeShape::Enum(variants)) => {
                variants.iter().flat_map(|variant| &variant.fields).all(|f| self.has_text(&Ty::fixed(&f.ty), seen))
            }
            Some(TypeShape::Opaque { .. }) => false,
            None => true,
        }
    }

    fn is_plain(&self, ty: &Ty) -> bool {
        match ty {
            Ty::Function(_) | Ty::Result(_) | Ty::Option(_) => false,
            Ty::Error | Ty::Unknown(_) => true,
            Ty::List(part) => self.is_plain(part),
            Ty::Map(pair) => self.is_plain(&pair.0) && self.is_plain(&pair.1),
            Ty::Tuple(parts) => parts.iter().all(|part| self.is_plain(part)),
            Ty::Plain(_) => ty.name().is_none() && ty.parameter_name().is_none(),
        }
    }

    pub(super) fn is_opaque(&self, name: &str) -> bool {
        let definition = self.typed.declarations.definition(self.context.library, name);
        definition.is_some_and(|definition| matches!(definition.shape, TypeShape::Opaque { .. }))
    }
}
