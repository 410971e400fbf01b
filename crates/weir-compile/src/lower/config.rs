//! Lowers configured values: a `config` is a constant, and a `secret` a call that returns it, so that no program in the IR
//! contains one.

use weir_host::{Text, Type, TypeShape, Value};
use weir_ir::expr::Atom;
use weir_syntax::Span;
use weir_syntax::ast::ItemKind;

use super::{Binding, Lowering};
use crate::lang_items::{CONFIGURED_SECRET, SECRET};

impl Lowering<'_, '_> {
    /// Lowers the use of a configured value.
    pub(super) fn configured(&mut self, name: &str, span: Span) -> Atom {
        let Some(declared) = self.typed.declarations.config.get(name) else {
            return Atom::Value(Value::Unit);
        };
        if declared.secret {
            let name = Some(Binding::Atom(Atom::Value(Value::text(name))));
            return self.call_host(&Text::from(CONFIGURED_SECRET), vec![name], Type::named(SECRET), (span, &[]));
        }
        Atom::Value(self.configured_value(name).unwrap_or_else(|| unset(&declared.ty.to_type())))
    }

    /// Returns the value of a `config`; `None` if it has none, which a tool need not know that only looks at a program.
    pub(super) fn configured_value(&self, name: &str) -> Option<Value> {
        let declared = self.typed.declarations.config.get(name)?;
        let default = match &self.context.tree().items[declared.item].kind {
            ItemKind::Config(config) => config.default.as_ref().and_then(|default| self.typed.constant(default).ok()),
            _ => None,
        };
        self.context.library.configuration.get(name).cloned().or(default)
    }
}

impl Lowering<'_, '_> {
    /// Returns the value of a `const`.
    pub(super) fn constant_value(&self, name: &str) -> Value {
        let declared = self.typed.declarations.constants.get(name);
        declared.and_then(|declared| declared.value.clone()).unwrap_or(Value::Unit)
    }

    /// Returns the default of the field of a record with this index.
    pub(super) fn default_of_field(&self, ty: &Type, at: usize) -> Option<Value> {
        let Type::Named(name) = ty else { return None };
        match &self.program.declarations.definition(self.context.library, name)?.shape {
            TypeShape::Record(fields) => fields.get(at)?.default.clone(),
            _ => None,
        }
    }
}

/// Returns a value of the type, for tools that look at a program without its configuration. A program whose
/// configuration is incomplete is not run.
fn unset(ty: &Type) -> Value {
    match ty {
        Type::Bool => Value::Bool(false),
        Type::Float => Value::Float(0.0),
        Type::Text => Value::text(""),
        Type::Size => Value::Size(0),
        Type::Duration => Value::Duration(0),
        _ => Value::Int(0),
    }
}
