//! Checks calls: resolves the callee, and returns the type of the result.
//!
//! `a.b(…)` is, in this order, a function of the module `a`, a variant of the enum `a`, or a function whose first
//! argument is `a` ([`super::method`]).

use weir_host::{Passing, Resource, Signature, Text};
use weir_syntax::ast::{Argument, Expr, ExprKind, ItemKind, Name};
use weir_syntax::{Code, Diagnostic, Span};

use super::arguments::{CallArguments, CalleeParameter};
use super::names::{ResolvedVariant, path_of};
use super::{Expected, OpenType, TypeChecker};
use crate::declare::private_item;
use crate::suggest::{listed, nearest};
use crate::symbol::Symbol;
use crate::typed_tree::{CallTarget, FnCall, GenericCallee};
use crate::types::{Substitution, Ty};
use crate::weir_modules::WeirFunction;

impl<'a> TypeChecker<'a, '_> {
    pub(super) fn call(
        &mut self,
        expr: &'a Expr,
        function: &'a Expr,
        piped: Option<&'a Expr>,
        arguments: &'a [Argument],
        expected: Option<&Ty>,
    ) -> Ty {
        let given = CallArguments { call: Some(expr), callee: function.span, object: None, piped, arguments };
        match &function.kind {
            ExprKind::Name(name) => self.call_name(name, given, expected),
            ExprKind::Field { object, name } => self.call_member(object, name, given),
            ExprKind::Error => self.ignore(given),
            _ => {
                self.expr(function, None);
                let diagnostic = Diagnostic::new(Code::NotCallable, "only a named function can be called")
                    .at(function.span, "not a name")
                    .hint("bind it first: `let f = …`");
                self.report(diagnostic);
                self.ignore(given)
            }
        }
    }

    /// Checks the arguments of a call whose callee is unknown.
    pub(super) fn ignore(&mut self, given: CallArguments<'a>) -> Ty {
        for argument in given.piped.into_iter().chain(given.arguments.iter().map(|argument| &argument.value)) {
            if !self.is_shared(argument) {
                // The types of a closure's parameters, which the callee would say, are no errors of their own.
                self.expr(argument, Some(&Expected::plain(Ty::Error)));
            }
        }
        Ty::Error
    }

    fn call_name(&mut self, name: &'a Name, given: CallArguments<'a>, expected: Option<&Ty>) -> Ty {
        if name.is_missing() {
            return self.ignore(given);
        }
        if let Some(local) = self.scope.find(name.as_str()) {
            let ty = self.typed.local(local).ty.clone();
            self.refer(name.span, Symbol::Local(local));
            return self.call_local(name, &ty, CallTarget::Local(local), given);
        }
        if let Some((at, _, _)) = self.typed.declarations.functions.get_full(self.typed.declarations.own(&name.text)) {
            return self.call_fn(at, name.span, given);
        }
        if name.is_upper()
            && let Some(variant) = self.variant(name.as_str(), expected)
        {
            return self.call_variant(name, variant, given);
        }
        if self.shared_index(name).is_some() {
            let diagnostic = Diagnostic::new(Code::NotCallable, format!("`{name}` is a shared value, not a function"))
                .at(name.span, "not callable")
                .hint(format!("call a function on it: `{name}.…(…)`"));
            self.report(diagnostic);
            return self.ignore(given);
        }
        self.call_prelude(name, given).unwrap_or_else(|given| {
            if name.is_upper() {
                self.unknown_variant(name)
            } else {
                self.unknown_name(name)
            }
            self.ignore(given)
        })
    }

    fn call_local(&mut self, name: &Name, ty: &Ty, target: CallTarget, given: CallArguments<'a>) -> Ty {
        let Ty::Function(signature) = self.inference.shallow(ty) else {
            let ty = self.inference.resolve(ty);
            if ty != Ty::Error {
                let diagnostic = Diagnostic::new(Code::NotCallable, format!("`{name}` is not a function"))
                    .at(name.span, format!("this is `{ty}`"));
                self.report(diagnostic);
            }
            return self.ignore(given);
        };
        let taken = signature.0.iter().map(|ty| CalleeParameter::positional(ty.clone())).collect();
        self.arguments(name.as_str(), target, taken, given);
        signature.1.clone()
    }

    pub(super) fn call_fn(&mut self, at: usize, span: Span, given: CallArguments<'a>) -> Ty {
        self.calls_fn(at, span);
        let (name, declared) = self.typed.declarations.functions.get_index(at).expect("its index was just found");
        let name = name.clone();
        let is_generic = !declared.type_parameters.is_empty();
        let (mut types, inference) = (Substitution::new(), &mut self.inference);
        let mut instantiated = |ty: &Ty| if is_generic { ty.instantiated(&mut types, inference) } else { ty.clone() };
        let result = instantiated(&declared.result);
        let taken = declared.parameters.iter().map(|parameter| CalleeParameter {
            name: Some(parameter.name.clone()),
            ty: instantiated(&parameter.ty),
            passing: None,
            has_default: parameter.default.is_some(),
            place: Some(parameter.span),
        });
        let taken = taken.collect();
        let call = given.call.map(|call| call.id);
        self.arguments(&name, CallTarget::Function(name.clone()), taken, given);
        if is_generic {
            self.use_of_generic(GenericCallee::Own(name), call, types, span);
        }
        result
    }

    /// Checks the call of a function of a module that is written in Weir.
    pub(super) fn call_weir(&mut self, function: WeirFunction<'a>, span: Span, given: CallArguments<'a>) -> Ty {
        let declared = function.declared();
        let mut types = Substitution::new();
        let taken = declared.parameters.iter().map(|parameter| CalleeParameter {
            name: Some(parameter.name.clone()),
            ty: parameter.ty.instantiated(&mut types, &mut self.inference),
            passing: None,
            has_default: parameter.default.is_some(),
            place: None,
        });
        let taken: Vec<CalleeParameter> = taken.collect();
        let result = declared.result.instantiated(&mut types, &mut self.inference);
        self.uses_weir(function, span);
        let (path, call) = (function.path(), given.call.map(|call| call.id));
        self.arguments(&path, CallTarget::Weir(path.clone()), taken, given);
        self.use_of_generic(GenericCallee::of_module(function), call, types, span);
        result
    }

    /// Records a reference to a function of a module that is written in Weir, and its effects.
    pub(super) fn uses_weir(&mut self, function: WeirFunction<'a>, span: Span) {
        self.refer(span, Symbol::HostFunction(function.path()));
        if let Some(effects) = function.module.typed.fn_effects.get(function.at) {
            self.seen.own.join(effects);
        }
    }

    /// Returns the names of all functions of a module.
    pub(super) fn functions_of(&self, module: &str) -> Vec<String> {
        let host = self.context.library.modules.get(module).into_iter().flat_map(|module| module.functions.keys());
        let host = host.map(Text::to_string);
        host.chain(self.context.modules.names(module, self.context.library)).collect()
    }

    /// Returns the function of a module that is written in Weir.
    pub(super) fn weir_function(&self, module: &str, name: &str) -> Option<WeirFunction<'a>> {
        self.context.modules.module(module, self.context.library, super::check_module)?.function(name)
    }

    pub(super) fn calls_fn(&mut self, at: usize, span: Span) {
        let callee = self.typed.declarations.fn_name(at);
        self.refer(span, Symbol::Function((&*callee).into()));
        if let Some(caller) = self.current_fn {
            let (caller, callee) = (self.typed.declarations.fn_name(caller), callee.clone());
            self.typed.here().summary.fn_calls.push(FnCall { caller, callee, span });
        }
        self.seen.callees.insert(callee);
    }

    fn call_variant(&mut self, name: &Name, variant: ResolvedVariant, given: CallArguments<'a>) -> Ty {
        self.refer_variant(name, &variant);
        let taken = variant.fields.iter().map(|(field, ty)| {
            let named = !field.starts_with(|first: char| first.is_ascii_digit());
            let name = named.then(|| field.as_str().into());
            CalleeParameter { name, ty: ty.clone(), passing: None, has_default: false, place: None }
        });
        self.arguments(name.as_str(), CallTarget::Variant(variant.tag), taken.collect(), given);
        variant.ty
    }

    fn call_member(&mut self, object: &'a Expr, name: &'a Name, given: CallArguments<'a>) -> Ty {
        if name.is_missing() {
            return self.ignore(given);
        }
        if let ExprKind::Name(service) = &object.kind
            && self.is_service(service)
        {
            return self.call_service(service, name, given);
        }
        if self.table_named(object).is_some() {
            return self.call_method(object, name, given);
        }
        if let Some(path) = path_of(object) {
            if self.type_named(&path).is_some() || (name.is_upper() && self.names_module(&path[0])) {
                return match self.qualified_variant(&path, name) {
                    Some(variant) => self.call_variant(name, variant, given),
                    None => {
                        self.unknown_variant(name);
                        self.ignore(given)
                    }
                };
            }
            if let [module] = &path[..]
                && self.names_module(module)
            {
                if let Some(file) = self.module_file(module) {
                    return match self.function_of_file(file, module, name) {
                        Some(at) => self.call_fn(at, name.span, given),
                        None => self.ignore(given),
                    };
                }
                if let Some(function) = self.weir_function_named(module, name) {
                    return self.call_weir(function, name.span, given);
                }
                return match self.host_function(module, name) {
                    Some(signature) => self.call_host(signature, name.span, given),
                    None => self.ignore(given),
                };
            }
            if let [unknown] = &path[..]
                && self.scope.find(unknown.as_str()).is_none()
                && self.shared_index(unknown).is_none()
                && !self.typed.declarations.functions.contains_key(self.typed.declarations.own(&unknown.text))
                && !self.typed.declarations.config.contains_key(self.typed.declarations.own(&unknown.text))
                && !self.typed.declarations.constants.contains_key(self.typed.declarations.own(&unknown.text))
                && !unknown.is_upper()
                && !unknown.is_missing()
            {
                self.unknown_before_dot(unknown, name);
                return self.ignore(given);
            }
        }
        self.call_method(object, name, given)
    }

    /// Reports an unknown lower-case word before `.name(…)`: a misspelt module or value.
    fn unknown_before_dot(&mut self, word: &Name, member: &Name) {
        let modules = self.context.library.modules.values();
        let with_member = modules.filter(|module| module.functions.contains_key(member.as_str()));
        if let Some(near) = nearest(word.as_str(), with_member.map(|module| module.name.as_str())) {
            let diagnostic = Diagnostic::new(Code::UnknownName, format!("there is no `{word}`"))
                .at(word.span, "not found in this scope")
                .suggest(format!("did you mean `{near}.{member}`?"), word.span, near);
            return self.report(diagnostic);
        }
        self.unknown_name(word);
    }

    /// Returns the function `module.name` if it is written in Weir, and marks the module as used.
    pub(super) fn weir_function_named(&mut self, module: &Name, name: &Name) -> Option<WeirFunction<'a>> {
        let whole = self.typed.declarations.here().modules.get(&module.text)?.module.clone();
        let is_host = self.context.library.modules.get(&whole)?.functions.contains_key(name.as_str());
        let function = if is_host { None } else { self.weir_function(&whole, name.as_str()) }?;
        self.module(module);
        Some(function)
    }

    /// Returns the file of a module of the program that nothing shadows.
    pub(super) fn module_file(&self, name: &Name) -> Option<usize> {
        self.typed.declarations.here().modules.get(&name.text)?.file
    }

    /// Returns the index of a public `fn` of another file, or reports that there is none.
    pub(super) fn function_of_file(&mut self, file: usize, module: &Name, name: &Name) -> Option<usize> {
        self.module(module);
        if name.is_missing() {
            return None;
        }
        let declarations = &self.typed.declarations;
        let whole = declarations.files[file].whole(name.as_str());
        if let Some((at, _, declared)) = declarations.functions.get_full(whole) {
            if !declared.public {
                let place = self.function_name_span(at);
                self.report(private_item(name, &format!("{module}.{name}"), place));
            }
            return Some(at);
        }
        let prefix = format!("{}.", declarations.files[file].module);
        let names: Vec<String> = declarations
            .functions
            .iter()
            .filter(|(_, declared)| declared.public)
            .filter_map(|(name, _)| name.strip_prefix(&prefix))
            .filter(|name| !name.contains('.'))
            .map(str::to_owned)
            .collect();
        let diagnostic = Diagnostic::new(Code::UnknownMember, format!("`{module}` has no function `{name}`"))
            .at(name.span, "no such function");
        let diagnostic = match nearest(name.as_str(), names.iter().map(String::as_str)) {
            Some(near) => diagnostic.suggest(format!("did you mean `{module}.{near}`?"), name.span, near),
            None if names.len() <= FUNCTIONS_LISTED_MAX && !names.is_empty() => {
                diagnostic.hint(format!("it has {}", listed(&names)))
            }
            None => diagnostic,
        };
        self.report(diagnostic);
        None
    }

    /// Returns the span of the name of a `fn` where it is declared.
    fn function_name_span(&self, at: usize) -> Span {
        let item = &self.context.tree().items[self.typed.declarations.functions[at].item];
        if let ItemKind::Function(function) = &item.kind { function.name.span } else { item.span }
    }

    /// Returns the signature of `module.name`, or reports that it does not exist.
    pub(super) fn host_function(&mut self, module: &Name, name: &Name) -> Option<&'a Signature> {
        let Some(whole) = self.module(module) else {
            self.module_not_used(module);
            return None;
        };
        let found = self.context.library.modules.get(&whole)?;
        if let Some(function) = found.functions.get(name.as_str()) {
            return Some(&function.signature);
        }
        if name.is_missing() {
            return None;
        }
        if self.weir_function(&whole, name.as_str()).is_some() {
            let what = format!("`{module}.{name}` is written in Weir, and can only be called");
            let diagnostic = Diagnostic::new(Code::UnknownMember, what)
                .at(name.span, "not a function of the host")
                .hint("call it in a `fn` of your own, and name that one here");
            self.report(diagnostic);
            return None;
        }
        let mut diagnostic = Diagnostic::new(Code::UnknownMember, format!("`{module}` has no function `{name}`"))
            .at(name.span, "no such function");
        let names = self.functions_of(&whole);
        let near = nearest(name.as_str(), names.iter().map(String::as_str));
        diagnostic = match near {
            Some(near) => diagnostic.suggest(format!("did you mean `{module}.{near}`?"), name.span, near),
            None if names.len() <= FUNCTIONS_LISTED_MAX && !names.is_empty() => {
                diagnostic.hint(format!("it has {}", listed(&names)))
            }
            None if names.is_empty() => {
                let sources: Vec<String> = found.sources.keys().map(|name| format!("{module}.{name}")).collect();
                diagnostic.hint(format!("it has no functions, only sources: {}", listed(&sources)))
            }
            None => diagnostic,
        };
        if near.is_none()
            && let Some(other) = self.module_with(name)
        {
            diagnostic = diagnostic.hint(format!("there is `{other}.{name}`"));
        }
        self.report(diagnostic);
        None
    }

    /// Returns the module of the library that has a function of this name, if only one has.
    fn module_with(&self, name: &Name) -> Option<&'a Text> {
        let modules = self.context.library.modules.iter();
        let mut found = modules.filter(|(_, module)| module.functions.contains_key(name.as_str()));
        let first = found.next()?;
        found.next().is_none().then_some(first.0)
    }

    pub(super) fn call_host(&mut self, signature: &'a Signature, span: Span, given: CallArguments<'a>) -> Ty {
        let mut parameters = Substitution::new();
        let inference = &mut self.inference;
        let taken = signature.written().iter().map(|parameter| CalleeParameter {
            name: Some(parameter.name.as_str().into()),
            ty: Ty::of(&parameter.ty, &mut parameters, inference),
            passing: Some(parameter.passing),
            has_default: parameter.default.is_some(),
            place: None,
        });
        let taken: Vec<CalleeParameter> = taken.collect();
        let result = Ty::of(&signature.call_type(), &mut parameters, &mut self.inference);
        self.expects_type(signature, &parameters, span);
        self.touches(signature, span);
        self.refer(span, Symbol::HostFunction(signature.path().into()));
        self.arguments(&signature.path(), CallTarget::Host(signature.path().into()), taken, given);
        self.use_of_library(&signature.path(), parameters, span);
        result
    }

    /// Notes that the code around this call has to determine the types that the function creates values of.
    pub(super) fn expects_type(&mut self, signature: &Signature, types: &Substitution, span: Span) {
        for parameter in &signature.parameters {
            if let Passing::TypeOf(name) = parameter.passing
                && let Some(ty) = types.get(&*name.to_string())
            {
                self.open.push(OpenType { span, ty: ty.clone(), function: Some(signature.path()) });
            }
        }
    }

    /// Adds the effects of a call to those of the current body.
    pub(super) fn touches(&mut self, signature: &Signature, span: Span) {
        // The call path is known only after inlining; until then the offset identifies the call.
        let site = format!("{}@{}", signature.path(), span.start);
        self.seen.own.call(signature, &site);
    }

    pub(super) fn touches_shared(&mut self, name: &str, passing: Passing) {
        let mode = if passing == Passing::Change { weir_host::Mode::Write } else { weir_host::Mode::Read };
        self.seen.own.touch(Resource::Shared(name.into()), mode);
    }

    pub(super) fn shared_index(&self, name: &Name) -> Option<usize> {
        match self.scope.find(name.as_str()) {
            Some(_) => None,
            None => self.typed.declarations.shared.get_index_of(self.typed.declarations.own(&name.text)),
        }
    }
}

/// The maximum number of functions of a module that a diagnostic lists.
const FUNCTIONS_LISTED_MAX: usize = 16;
