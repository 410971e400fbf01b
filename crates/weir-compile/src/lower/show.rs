//! Lowers interpolated values to text. Values carry no names, so the compiler writes the names out here.
//!
//! `Some(3)`, `Circle(radius: 2.0)` and `Post { id: 1, title: x }` are assembled from their parts, at most
//! [`LEVELS_MAX`] deep; the interpolation itself shows lists, maps and numbers.

use weir_host::{Text, Type, TypeShape, Value, Variant};
use weir_ir::expr::{ArmTest, Atom};
use weir_ir::prim::Prim;
use weir_syntax::Span;

use super::Lowering;
use super::block_builder::OpenArm;
use crate::types::Ty;

/// The depth at which the text of a value is cut with `…`.
const LEVELS_MAX: usize = 3;

impl Lowering<'_, '_> {
    /// Returns the parts of the text that shows the value.
    pub(super) fn shown(&mut self, value: Atom, ty: &Ty, level: usize, span: Span) -> Vec<Atom> {
        if level > LEVELS_MAX {
            return vec![word("…")];
        }
        match ty {
            Ty::Option(some) => {
                let some = ("Some", vec![("0".into(), (**some).clone())]);
                vec![self.shown_variant(value, vec![("None", Vec::new()), some], level, span)]
            }
            Ty::Result(pair) => {
                let of = |name, ty: &Ty| (name, vec![(Text::from("0"), ty.clone())]);
                vec![self.shown_variant(value, vec![of("Ok", &pair.0), of("Err", &pair.1)], level, span)]
            }
            Ty::Tuple(types) => {
                let fields: Vec<(String, Ty)> = types.iter().map(|ty| (String::new(), ty.clone())).collect();
                self.shown_fields(value, ("(", ")"), &fields, level, span)
            }
            // A text is shown without quotes by itself, and with quotes inside another value.
            ty if *ty == Ty::TEXT && level > 0 => vec![self.prim(Prim::Quote, vec![value], Type::Text, span)],
            _ => self.shown_named(value, ty, level, span),
        }
    }

    fn shown_named(&mut self, value: Atom, ty: &Ty, level: usize, span: Span) -> Vec<Atom> {
        let definition = ty.name().and_then(|name| self.program.declarations.definition(self.context.library, name));
        match definition.map(|definition| &definition.shape) {
            Some(TypeShape::Record(fields)) => {
                let fields: Vec<(String, Ty)> =
                    fields.iter().map(|field| (format!("{}: ", field.name), Ty::fixed(&field.ty))).collect();
                // Without its module: a text does not depend on the file in which the type or the text is.
                let name = ty.name().and_then(|name| name.rsplit('.').next()).unwrap_or_default();
                self.shown_fields(value, (&format!("{name} {{ "), " }"), &fields, level, span)
            }
            Some(TypeShape::Enum(variants)) => {
                let variants = variants.iter().map(|variant: &Variant| {
                    let fields = variant.fields.iter().map(|field| (field.name.clone(), Ty::fixed(&field.ty)));
                    (&*variant.name, fields.collect())
                });
                vec![self.shown_variant(value, variants.collect(), level, span)]
            }
            _ => vec![value],
        }
    }

    fn shown_fields(
        &mut self,
        value: Atom,
        (open, close): (&str, &str),
        fields: &[(String, Ty)],
        level: usize,
        span: Span,
    ) -> Vec<Atom> {
        let mut parts = vec![word(open)];
        for (index, (name, ty)) in fields.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            parts.push(word(&format!("{comma}{name}")));
            let field = self.prim(Prim::Field(index as u32), vec![value.clone()], ty.to_type(), span);
            parts.extend(self.shown(field, ty, level + 1, span));
        }
        parts.push(word(close));
        parts
    }

    fn shown_variant(&mut self, value: Atom, variants: Vec<(&str, Vec<(Text, Ty)>)>, level: usize, span: Span) -> Atom {
        let arms: Vec<OpenArm> = variants
            .into_iter()
            .zip(0..)
            .map(|((name, fields), tag)| {
                let payload = fields.iter().map(|(name, ty)| self.vars.variable(name, ty.to_type()));
                let payload: Vec<_> = payload.collect();
                let atoms: Vec<Atom> = payload.iter().map(|variable| Atom::Var(variable.var)).collect();
                self.arm(ArmTest::Tag(tag), payload, |lowering| {
                    lowering.shown_payload(name, &fields, atoms, level, span)
                })
            })
            .collect();
        self.switch(value, arms, &Type::Text, span)
    }

    fn shown_payload(&mut self, name: &str, fields: &[(Text, Ty)], atoms: Vec<Atom>, level: usize, span: Span) -> Atom {
        if fields.is_empty() {
            return word(name);
        }
        let mut parts = vec![word(&format!("{name}("))];
        for (index, ((field, ty), atom)) in fields.iter().zip(atoms).enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            let named = if field.parse::<u32>().is_ok() { String::new() } else { format!("{field}: ") };
            parts.push(word(&format!("{comma}{named}")));
            parts.extend(self.shown(atom, ty, level + 1, span));
        }
        parts.push(word(")"));
        self.prim(Prim::Interpolate, parts, Type::Text, span)
    }
}

fn word(text: &str) -> Atom {
    Atom::Value(Value::text(text))
}
