//! Checks `const`s and the defaults of fields: both are constant expressions.

use indexmap::IndexSet;
use weir_host::{Text, TypeShape, Value};
use weir_syntax::ast::{Expr, ExprKind, FieldDeclaration, ItemKind, Name};
use weir_syntax::{Code, Diagnostic, Span};

use super::{Exits, Expected, TypeChecker};
use crate::constant::{NotConstant, is_small, too_large};
use crate::constant_uses::{ConstantOwner, ConstantUses};
use crate::declare::private_item;
use crate::dependency_order::{CIRCLE_SHOWN_MAX, circle_shown};
use crate::symbol::Symbol;
use crate::typed_tree::Resolution;
use crate::types::Ty;

impl<'a> TypeChecker<'a, '_> {
    /// Checks all `const`s and all defaults of fields, each after those that it names.
    pub(super) fn constants(&mut self) {
        let tree = self.context.tree();
        let ordered = ConstantUses::of(&self.typed.declarations, self.context).ordered();
        let mut endless = IndexSet::new();
        for circle in ordered.circular.into_values() {
            if let Some(begin) = circle.iter().position(|member| matches!(member, ConstantOwner::Item(_))) {
                let circle = [&circle[begin..], &circle[..begin]].concat();
                self.endless_constant(&circle);
                endless.extend(circle);
            }
        }
        for constant in ordered.order {
            match constant {
                ConstantOwner::Item(_) if endless.contains(&constant) => {}
                ConstantOwner::Item(at) => self.constant_item(at),
                ConstantOwner::Defaults(at) => {
                    let item = &tree.items[at];
                    if let ItemKind::Record(record) = &item.kind
                        && self.enter_file(item)
                    {
                        let whole: Text = self.typed.declarations.own(&record.name.text).into();
                        record.fields.iter().for_each(|field| self.field_default(&whole, field));
                    }
                }
            }
        }
    }

    fn endless_constant(&mut self, circle: &[ConstantOwner]) {
        let members: Vec<(String, Span)> = circle.iter().map(|member| self.owner_shown(*member)).collect();
        let names: Vec<String> = members.iter().map(|(name, _)| name.clone()).collect();
        let Some((name, place)) = members.first() else { return };
        let message = match &names[..] {
            [alone] => format!("the value of the constant `{alone}` names the constant itself"),
            _ => format!("the value of the constant `{name}` depends on itself: {}", circle_shown(&names)),
        };
        let mut diagnostic = Diagnostic::new(Code::Recursion, message).at(*place, "its value is never known");
        for (at, (_, place)) in members.iter().enumerate().skip(1) {
            // The next member is not known behind the last one that is kept of a long circle.
            if let Some(next) = names.get(at + 1).or((names.len() <= CIRCLE_SHOWN_MAX).then_some(name)) {
                diagnostic = diagnostic.because(*place, format!("depends on `{next}`"));
            }
        }
        self.report(diagnostic.hint("write the value itself in one of them"));
    }

    /// Returns the name and the place of a declaration with constant expressions.
    fn owner_shown(&self, owner: ConstantOwner) -> (String, Span) {
        match owner {
            ConstantOwner::Item(at) => {
                let (name, declared) =
                    self.typed.declarations.constants.get_index(at).expect("its index is of the list");
                (name.to_string(), declared.span)
            }
            ConstantOwner::Defaults(item) => match &self.context.tree().items[item].kind {
                ItemKind::Record(record) => (record.name.to_string(), record.name.span),
                _ => (String::new(), self.context.tree().items[item].span),
            },
        }
    }

    fn field_default(&mut self, record: &str, field: &'a FieldDeclaration) {
        let Some(default) = &field.default else { return };
        self.begin_body(Exits::Start);
        let ty = self.resolve_type(&field.ty);
        let expected = Expected::new(ty, field.ty.span, "the declared type");
        let (_, value) = self.constant_expression(default, Some(&expected), "the default of a field");
        let declared = self.typed.declarations.types.get_mut(record);
        if let Some(TypeShape::Record(fields)) = declared.map(|declared| &mut declared.definition.shape)
            && let Some(known) = fields.iter_mut().find(|known| known.name.as_str() == field.name.as_str())
        {
            known.default = Some(value.unwrap_or(Value::Unit));
        }
    }

    fn constant_item(&mut self, at: usize) {
        let item = &self.context.tree().items[self.typed.declarations.constants[at].item];
        let ItemKind::Constant(constant) = &item.kind else { return };
        if !self.enter_file(item) {
            return;
        }
        self.begin_body(Exits::Start);
        let expected = constant.ty.as_ref().map(|ty| {
            let written = self.resolve_type(ty);
            Expected::new(written, ty.span, "the declared type")
        });
        let (ty, value) = self.constant_expression(&constant.value, expected.as_ref(), "the value of a `const`");
        let declared = &mut self.typed.declarations.constants[at];
        declared.ty = expected.map_or(ty, |expected| expected.ty);
        declared.value = value;
    }

    /// Checks a constant expression, and returns its type and its value.
    fn constant_expression(&mut self, expr: &'a Expr, expected: Option<&Expected>, what: &str) -> (Ty, Option<Value>) {
        let before = self.context.reported();
        let ty = self.expr(expr, expected);
        if self.context.reported() > before || matches!(expr.kind, ExprKind::Error) {
            return (ty, None);
        }
        let value =
            self.typed.constant(expr).and_then(|value| if is_small(&value) { Ok(value) } else { Err(too_large(expr)) });
        match value {
            Ok(value) => (ty, Some(value)),
            Err(NotConstant { why, .. }) if why.is_empty() => (ty, None),
            Err(NotConstant { span, why }) => {
                let diagnostic = Diagnostic::new(Code::NotConstant, format!("{what} must be a constant expression"))
                    .at(span, why)
                    .hint("use literals, operators, lists, maps, records, variants and other constants");
                self.report(diagnostic);
                (ty, None)
            }
        }
    }

    /// Resolves the use of a constant, by its index.
    pub(super) fn constant_named(&mut self, expr: &Expr, at: usize, span: Span) -> Ty {
        if let Some((name, _)) = self.typed.declarations.constants.get_index(at) {
            let name = name.clone();
            self.refer(span, Symbol::Constant((&*name).into()));
            self.typed.resolve(expr.id, Resolution::Constant(name));
        }
        self.typed.declarations.constants[at].ty.clone()
    }

    /// Returns the index of a constant of another file. Reports one that is not public.
    pub(super) fn constant_of_file(&mut self, file: usize, module: &Name, name: &Name) -> Option<usize> {
        let declarations = &self.typed.declarations;
        let (at, _, declared) = declarations.constants.get_full(declarations.files[file].whole(name.as_str()))?;
        let hidden = (!declared.public).then_some(declared.span);
        self.module(module);
        if let Some(place) = hidden {
            self.report(private_item(name, &format!("{module}.{name}"), place));
        }
        Some(at)
    }
}
