//! Checks calls of functions on a value: `value.function(…)`.
//!
//! These are the functions of the module that the value's type belongs to: `text` for a `Text`, `image` for an
//! `image.Cache`. Shared values also have those of `state`. Such a module needs no `use`.

use weir_host::{Signature, Type};
use weir_syntax::ast::{Expr, ExprKind, Name};
use weir_syntax::{Code, Diagnostic, Span};

use super::arguments::{CallArguments, CalleeParameter};
use super::generics::stands_for_any;
use super::{Exits, TypeChecker};
use crate::dialects::{self, Advice};
use crate::lang_items::{HTML, HTML_MODULE, STATE};
use crate::suggest::{listed, nearest};
use crate::typed_tree::{CallTarget, Resolution};
use crate::types::Ty;
use crate::weir_modules::WeirFunction;

impl<'a> TypeChecker<'a, '_> {
    pub(super) fn is_shared(&self, object: &Expr) -> bool {
        self.shared_named(object).is_some()
    }

    pub(super) fn call_method(&mut self, object: &'a Expr, name: &'a Name, given: CallArguments<'a>) -> Ty {
        if let Some(table) = self.table_named(object) {
            return self.table_call(table, object, name, given);
        }
        let ty = self.object_type(object);
        let ty = self.inference.shallow(&ty);
        let given = CallArguments { object: Some((object, ty.clone())), ..given };
        if ty == Ty::Error {
            return self.ignore(given);
        }
        if let Some(signature) = self.method(&ty, name.as_str()) {
            self.uses_module_of(&ty);
            return self.call_host(signature, name.span, given);
        }
        if let Some(at) = self.file_method(&ty, name.as_str()) {
            self.uses_module_of(&ty);
            return self.call_fn(at, name.span, given);
        }
        if let Some(function) = self.weir_method(&ty, name.as_str()) {
            self.uses_module_of(&ty);
            return self.call_weir(function, name.span, given);
        }
        if name.as_str() == "get" && given.arguments.is_empty() && given.piped.is_none() && self.is_shared(object) {
            return self.read_by_get(object, name, &ty, &given);
        }
        if self.is_shared(object)
            && let Some(function) = self.context.library.function(&format!("{STATE}.{name}"))
        {
            self.uses_module(STATE);
            return self.call_host(&function.signature, name.span, given);
        }
        if name.as_str() == "length" && has_length(&ty) {
            let taken = vec![CalleeParameter::positional(ty)];
            self.arguments("length", CallTarget::Length, taken, given);
            return Ty::INT;
        }
        let is_shared = self.is_shared(object);
        match is_shared.then(|| self.change_named(&ty, name.as_str())).flatten() {
            Some(ours) => self.other_change(object, &ty, name, &ours),
            None => self.no_method(object.span, &ty, name),
        }
        self.ignore(given)
    }

    /// Returns the function that changes a shared value, if this is its name in another language, or almost its name.
    fn change_named(&self, ty: &Ty, name: &str) -> Option<String> {
        let named = module_of(ty).and_then(|module| dialects::change_named(module, name)).map(str::to_owned);
        named.or_else(|| nearest(name, self.functions_of(STATE).iter().map(String::as_str)).map(str::to_owned))
    }

    /// Reports a change of a shared value that has another name in Weir.
    fn other_change(&mut self, object: &Expr, ty: &Ty, name: &Name, ours: &str) {
        let shown = self.inference.resolve(ty);
        let diagnostic = Diagnostic::new(Code::UnknownMethod, format!("`{shown}` has no function `{name}`"))
            .at(name.span, "no such function")
            .because(object.span, format!("this is a shared `{shown}`"))
            .suggest(format!("write `{ours}`"), name.span, ours);
        self.report(diagnostic);
    }

    /// Reports `count.get()`: the value of a shared value is its name, and `get` reads an entry of a map.
    fn read_by_get(&mut self, object: &Expr, name: &Name, ty: &Ty, given: &CallArguments<'a>) -> Ty {
        let shown = self.inference.resolve(ty);
        let end = given.call.map_or(name.span.end, |call| call.span.end);
        let rest = Span { start: object.span.end, end, ..name.span };
        let diagnostic = Diagnostic::new(Code::UnknownMethod, "`get` without a key reads nothing")
            .at(name.span, format!("on a shared `{shown}`"))
            .fix("the name of a shared value is its current value", rest, "");
        self.report(diagnostic);
        ty.clone()
    }

    fn object_type(&mut self, object: &'a Expr) -> Ty {
        match &object.kind {
            ExprKind::Name(name) => match self.shared_index(name) {
                Some(at) => {
                    let name = self.typed.declarations.shared_name(at);
                    self.typed.resolve(object.id, Resolution::Shared(name));
                    self.shared_type(object.span, at)
                }
                None => self.expr(object, None),
            },
            _ => self.expr(object, None),
        }
    }

    /// Returns the type of a shared value. Reports a use in an initial value if the type is not known yet. The lowering
    /// reports all other uses of a shared value before its initialisation.
    pub(super) fn shared_type(&mut self, span: Span, at: usize) -> Ty {
        let (name, declared) = self.typed.declarations.shared.get_index(at).expect("its index was just found");
        if !matches!(self.exits, Exits::Start) || declared.ty != Ty::Error {
            return declared.ty.clone();
        }
        let diagnostic = Diagnostic::new(Code::SharedAsValue, format!("`{name}` is not initialised yet"))
            .at(span, "used when the program starts")
            .because(declared.span, "declared here")
            .hint("use it in a flow instead");
        self.report(diagnostic);
        Ty::Error
    }

    pub(super) fn has_method(&self, ty: &Ty, name: &str) -> bool {
        self.method(ty, name).is_some()
            || self.file_method(ty, name).is_some()
            || self.weir_method(ty, name).is_some()
            || (name == "length" && has_length(ty))
    }

    /// Marks the module of a called function as used, because it could be named.
    fn uses_module_of(&mut self, ty: &Ty) {
        if let Some(module) = module_of(ty) {
            self.uses_module(module);
        }
    }

    fn uses_module(&mut self, module: &str) {
        for used in
            self.typed.declarations.here_mut().modules.values_mut().filter(|used| used.module.as_str() == module)
        {
            used.used = true;
        }
    }

    /// Returns the function of the type's module whose first parameter accepts the value.
    fn method(&self, ty: &Ty, name: &str) -> Option<&'a Signature> {
        let function = self.context.library.modules.get(module_of(ty)?)?.functions.get(name)?;
        (!function.signature.parameters.is_empty()).then_some(&function.signature)
    }

    /// Returns the index of the `fn` of the type's module, if the module is a file of the program.
    fn file_method(&self, ty: &Ty, name: &str) -> Option<usize> {
        let declarations = &self.typed.declarations;
        let module = module_of(ty)?;
        let (at, _, declared) = declarations.functions.get_full(&*format!("{module}.{name}"))?;
        let is_visible = declared.public || declarations.here().module.as_str() == module;
        (is_visible && !declared.parameters.is_empty()).then_some(at)
    }

    /// Returns the function of the type's module that is written in Weir.
    fn weir_method(&self, ty: &Ty, name: &str) -> Option<WeirFunction<'a>> {
        self.weir_function(module_of(ty)?, name).filter(|function| !function.declared().parameters.is_empty())
    }

    /// Returns the advice on a method of another language.
    pub(super) fn dialect_method(&self, ty: &Ty, name: &Name) -> Option<Advice> {
        let advice = dialects::method_named(module_of(ty)?, name.as_str())?;
        let is_there = !matches!(advice, Advice::Write(ours) if !self.has_method(ty, ours));
        is_there.then_some(advice)
    }

    fn no_method(&mut self, object: Span, ty: &Ty, name: &Name) {
        let ty = self.inference.resolve(ty);
        if let Ty::Unknown(_) = ty {
            self.unknown_here(object, &ty);
            return;
        }
        let mut diagnostic = Diagnostic::new(Code::UnknownMethod, format!("`{ty}` has no function `{name}`"))
            .at(name.span, "no such function")
            .because(object, format!("this is `{ty}`"));
        let module = module_of(&ty).filter(|module| self.context.library.modules.contains_key(*module));
        let known = module.map_or_else(Vec::new, |module| self.functions_of(module));
        let functions = known.iter().map(String::as_str).chain(has_length(&ty).then_some("length"));
        let advice = self.dialect_method(&ty, name);
        if self.field_of(&ty, name.as_str()).is_some() {
            diagnostic = diagnostic.hint(format!("`{name}` is a field: write it without parentheses"));
        } else if let Some(parameter) = ty.parameter_name() {
            let hint = format!("take the function as a parameter: `{name}: fn({parameter}) -> …`");
            diagnostic = diagnostic.note(stands_for_any(parameter)).hint(hint);
        } else if let Some(advice) = advice {
            diagnostic = super::names::advised(diagnostic, name, advice);
        } else if let Some(near) = nearest(name.as_str(), functions) {
            diagnostic = diagnostic.suggest(format!("did you mean `{near}`?"), name.span, near);
        } else if self.context.library.function(&format!("{STATE}.{name}")).is_some() {
            diagnostic = diagnostic
                .note("values are immutable; mutable state is declared with `shared` at the top of the file")
                .hint(format!("call it on a shared value: `shared count: {ty} = …`, then `count.{name}(…)`"));
        } else if self.typed.declarations.functions.contains_key(self.typed.declarations.own(&name.text)) {
            diagnostic = diagnostic.hint(format!("call the `fn` with the value as argument: `{name}(…)`"));
        } else if let Ty::Result(_) = ty {
            diagnostic = diagnostic.suggest("unwrap the value first, with `?` or `else { … }`", object.at_end(), "?");
        } else if let Some(module) = module {
            diagnostic = diagnostic.hint(format!("`{module}` has {}", listed(&known)));
        }
        self.report(diagnostic);
    }
}

fn has_length(ty: &Ty) -> bool {
    matches!(ty, Ty::List(_) | Ty::Map(_)) || *ty == Ty::TEXT || *ty == Ty::BYTES
}

/// Returns the module whose functions can be called on a value of the type.
fn module_of(ty: &Ty) -> Option<&str> {
    match ty {
        Ty::List(_) => Some("list"),
        Ty::Map(_) => Some("map"),
        Ty::Option(_) => Some("option"),
        Ty::Result(_) => Some("result"),
        Ty::Plain(Type::Text) => Some("text"),
        Ty::Plain(Type::Bytes) => Some("bytes"),
        Ty::Plain(Type::Int) => Some("int"),
        Ty::Plain(Type::Float) => Some("float"),
        Ty::Plain(Type::Time) => Some("time"),
        Ty::Plain(Type::Duration) => Some("duration"),
        Ty::Plain(Type::Size) => Some("size"),
        Ty::Plain(Type::Failure) => Some("failure"),
        Ty::Plain(Type::Named(name)) if name.as_str() == HTML => Some(HTML_MODULE),
        Ty::Plain(Type::Named(name)) => name.as_str().rsplit_once('.').map(|(module, _)| module),
        _ => None,
    }
}
