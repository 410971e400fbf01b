//! Lowers interpolated values to text. Values carry no names, so the compiler writes the names out here.
//!
//! `Some(3)`, `Circle(radius: 2.0)` and `Post { id: 1, title: x }` are assembled from their parts, at most
//! [`LEVELS_MAX`] deep, also inside lists and maps; the interpolation itself shows numbers, and lists and maps without names
//! in them.

use weir_host::{Text, Type, TypeShape, Value, Variant};
use weir_ir::expr::{ArmTest, Atom, Op};
use weir_ir::prim::Prim;
use weir_syntax::Span;

use super::block_builder::OpenArm;
use super::{Binding, Lowering};
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
            Ty::List(element) if self.has_names(element) => {
                let of = (**element).clone();
                vec![self.shown_elements(value, &of, "[]", span, |lowering, element| {
                    lowering.shown(element, &of, level.max(1), span)
                })]
            }
            Ty::Map(pair) if self.has_names(&pair.0) || self.has_names(&pair.1) => {
                let entry = Ty::tuple(vec![pair.0.clone(), pair.1.clone()]);
                let entries = self.prim(Prim::Pairs, vec![value], Type::list(entry.to_type()), span);
                vec![self.shown_elements(entries, &entry, "[:]", span, |lowering, entry| {
                    lowering.shown_entry(&entry, pair, level, span)
                })]
            }
            // A text is shown without quotes by itself, and with quotes inside another value.
            ty if *ty == Ty::TEXT && level > 0 => vec![self.prim(Prim::Quote, vec![value], Type::Text, span)],
            _ => self.shown_named(value, ty, level, span),
        }
    }

    /// Returns true if the text of a value of this type has names in it.
    fn has_names(&self, ty: &Ty) -> bool {
        let mut inner = match ty {
            Ty::Option(_) | Ty::Result(_) => return true,
            Ty::List(element) => return self.has_names(element),
            Ty::Map(pair) => vec![&pair.0, &pair.1],
            Ty::Tuple(types) => types.iter().collect(),
            _ => {
                let definition =
                    ty.name().and_then(|name| self.program.declarations.definition(self.context.library, name));
                return definition.is_some_and(|of| matches!(of.shape, TypeShape::Record(_) | TypeShape::Enum(_)));
            }
        };
        inner.retain(|ty| self.has_names(ty));
        !inner.is_empty()
    }

    /// Shows the elements of a list between brackets; `none` if there is none.
    fn shown_elements(
        &mut self,
        list: Atom,
        of: &Ty,
        none: &str,
        span: Span,
        shown: impl FnOnce(&mut Self, Atom) -> Vec<Atom>,
    ) -> Atom {
        let element = self.vars.variable("element", of.to_type());
        let open_block = self.build_block(|lowering| {
            let parts = shown(lowering, Atom::Var(element.var));
            lowering.prim(Prim::Interpolate, parts, Type::Text, span)
        });
        let body = self.close_without_exits(open_block, &Type::Text);
        let texts = self.emit(Op::Map { list, element, body }, Type::list(Type::Text), span);
        let given = [texts, word(", ")].map(|atom| Some(Binding::Atom(atom)));
        let result = Type::result(Type::Text, Type::Failure);
        let joined = self.call_host(&"text.join".into(), given.into(), result, (span, &[]));
        let text = self.vars.variable("text", Type::Text);
        let whole = Atom::Var(text.var);
        let arms = vec![
            self.arm(ArmTest::Tag(Value::OK), vec![text], |_| whole),
            // Longer than a text can be.
            self.arm(ArmTest::Otherwise, Vec::new(), |_| word("…")),
        ];
        let joined = self.switch(joined, arms, &Type::Text, span);
        let is_empty = self.prim(Prim::Equal, vec![joined.clone(), word("")], Type::Bool, span);
        self.choose(
            is_empty,
            &Type::Text,
            span,
            |_| word(none),
            |lowering| lowering.prim(Prim::Interpolate, vec![word("["), joined, word("]")], Type::Text, span),
        )
    }

    /// Returns the parts of the text that shows an entry of a map.
    fn shown_entry(&mut self, entry: &Atom, pair: &(Ty, Ty), level: usize, span: Span) -> Vec<Atom> {
        let mut parts = Vec::new();
        for (ty, (at, before)) in [&pair.0, &pair.1].into_iter().zip([(0, ""), (1, ": ")]) {
            let part = self.prim(Prim::Field(at), vec![entry.clone()], ty.to_type(), span);
            parts.push(word(before));
            parts.extend(self.shown(part, ty, level.max(1), span));
        }
        parts
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
