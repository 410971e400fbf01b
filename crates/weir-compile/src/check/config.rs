//! Checks `config` and `secret`: their types, their defaults, and their uses.

use weir_host::Type;
use weir_syntax::ast::{Config, Expr, ExprKind, ItemKind, Name};
use weir_syntax::{Code, Diagnostic};

use super::{Exits, Expected, TypeChecker};
use crate::constant::NotConstant;
use crate::lang_items::{CONFIGURED_SECRET, SECRET};
use crate::symbol::Symbol;
use crate::typed_tree::Resolution;
use crate::types::Ty;

impl<'a> TypeChecker<'a, '_> {
    pub(super) fn config_items(&mut self) {
        for item in &self.context.tree().items {
            if let ItemKind::Config(config) = &item.kind
                && self.enter_file(item)
            {
                self.config(config);
            }
        }
    }

    fn config(&mut self, config: &'a Config) {
        self.begin_body(Exits::Start);
        let ty = self.resolve_type(&config.ty);
        if ty != Ty::Error && !is_written(&ty.to_type(), config.secret) {
            let (what, types) = match config.secret {
                true => ("a secret", "write `Text`, or `Bytes` for base64"),
                false => ("a `config`", "write `Bool`, `Int`, `Float`, `Text`, `Size` or `Duration`"),
            };
            let diagnostic = Diagnostic::new(Code::ConfigurationForm, format!("{what} cannot be of the type `{ty}`"))
                .at(config.ty.span, "cannot be written as one text")
                .hint(types);
            self.report(diagnostic);
        }
        if config.secret && self.context.library.function(CONFIGURED_SECRET).is_none() {
            let diagnostic = Diagnostic::new(Code::UnknownModule, "there is no module `crypto`, which has secrets")
                .at(config.name.span, "is a `crypto.Secret`");
            self.report(diagnostic);
        }
        if let Some(default) = &config.default {
            self.config_default(config, default, ty);
        }
    }

    fn config_default(&mut self, config: &Config, default: &'a Expr, ty: Ty) {
        let found = self.expr(default, Some(&Expected::new(ty, config.ty.span, "the declared type")));
        if config.secret {
            let diagnostic = Diagnostic::new(Code::ConfigurationForm, "a secret has no default")
                .at(default.span, "stands in the text of the program")
                .hint(format!(
                    "leave it out, and set `WEIR_{}` where the program runs",
                    config.name.text.to_uppercase()
                ));
            self.report(diagnostic);
        } else if let Err(NotConstant { span, why }) = self.typed.constant(default)
            && found != Ty::Error
            && !(why.is_empty() || matches!(default.kind, ExprKind::Error))
        {
            let diagnostic = Diagnostic::new(Code::NotConstant, "the default of a `config` must be a constant")
                .at(span, why)
                .hint("write a literal, or the name of a constant");
            self.report(diagnostic);
        }
    }

    /// Resolves the use of a configured value.
    pub(super) fn config_named(&mut self, expr: &Expr, name: &Name) -> Option<Ty> {
        let (whole, declared) =
            self.typed.declarations.config.get_key_value(self.typed.declarations.own(&name.text))?;
        let whole = whole.clone();
        let ty = if declared.secret { Ty::named(SECRET) } else { declared.ty.clone() };
        self.typed.resolve(expr.id, Resolution::Config(whole));
        self.refer(name.span, Symbol::Config(name.as_str().into()));
        Some(ty)
    }
}

/// Returns whether a configured value of this type can be written as one text.
fn is_written(ty: &Type, secret: bool) -> bool {
    match ty {
        Type::Text => true,
        Type::Bytes => secret,
        Type::Bool | Type::Int | Type::Float | Type::Size | Type::Duration => !secret,
        _ => false,
    }
}
