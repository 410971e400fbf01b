//! Checks failure handlers: the callee that `on failure of f { … }` names, and the type of its value.
//!
//! A handler yields what its scope yields: the result of its `fn`, or the answer of its service or flow. A handler at
//! the top of the file yields the answer of the file's services; in flows without an answer, its value is dropped.

use weir_host::{Parameter, Passing, Text, Type};
use weir_syntax::ast::{Block, FailureHandler, ItemKind, Name, Path, PatternKind, StatementKind};
use weir_syntax::{Code, Diagnostic, Span};

use super::constant_patterns::PatternPlace;
use super::{Exits, Expected, TypeChecker};
use crate::symbol::Symbol;
use crate::typed_tree::{CallTarget, ResolvedHandler};
use crate::types::Ty;

impl<'a> TypeChecker<'a, '_> {
    /// Checks the handlers of a body. They see its parameters, but none of its locals.
    pub(super) fn handlers_of_block(&mut self, block: &'a Block) {
        let handlers = block.statements.iter().filter_map(|statement| match &statement.kind {
            StatementKind::FailureHandler(handler) => Some(handler),
            _ => None,
        });
        self.handlers(handlers);
    }

    pub(super) fn handlers(&mut self, handlers: impl Iterator<Item = &'a FailureHandler>) {
        let mut seen: Vec<(CallTarget, Span)> = Vec::new();
        for handler in handlers {
            let Some(target) = self.handler(handler) else { continue };
            match seen.iter().find(|(known, _)| *known == target) {
                Some((_, first)) => {
                    let diagnostic = Diagnostic::new(
                        Code::NameTaken,
                        format!("the failures of `{}` are handled twice", handler.function),
                    )
                    .at(handler.function.span, "handled again here")
                    .because(*first, "first handled here")
                    .hint("remove one of them");
                    self.report(diagnostic);
                }
                None => seen.push((target, handler.function.span)),
            }
        }
    }

    /// Checks the handlers of the file after everything else, because they yield what its services answer.
    pub(super) fn file_handlers(&mut self) {
        let tree = self.context.tree();
        let answer =
            self.typed.entries().iter().find(|entry| entry.element.is_none()).map(|entry| Ty::fixed(&entry.answer));
        let handlers = tree.items.iter().filter_map(|item| match &item.kind {
            ItemKind::FailureHandler(handler) if item.file == 0 => Some(handler),
            _ => None,
        });
        let place = tree.items.iter().find_map(|item| match &item.kind {
            ItemKind::Service(service) => Some(service.transport.span),
            _ => None,
        });
        let expected = match (answer, place) {
            (Some(answer), Some(place)) => Expected::new(answer, place, "the services of this file answer with this"),
            _ => Expected::plain(Ty::UNIT),
        };
        self.begin_body(Exits::Flow(expected));
        self.handlers(handlers);
    }

    fn handler(&mut self, handler: &'a FailureHandler) -> Option<CallTarget> {
        let found = self.handled(&handler.function);
        let mark = self.scope.mark();
        let failure = found.as_ref().map_or(Ty::Error, |(_, failure)| failure.clone());
        let arguments = found.as_ref().map(|(target, _)| target.clone());
        self.handler_arguments(handler, arguments.as_ref());
        let local = handler.failure.as_ref().map(|name| self.bind(name.text.clone(), name.span, failure.clone()));
        let expected = match self.exits.clone() {
            Exits::Flow(expected) | Exits::Function(expected) => Some(expected),
            Exits::Start | Exits::Default(_) => None,
        };
        self.block(&handler.body, expected.as_ref());
        self.scope.leave(mark);
        let (target, failure) = found?;
        let uses_arguments = !handler.arguments.is_empty();
        let resolved = ResolvedHandler { target: target.clone(), local, failure, uses_arguments };
        self.typed.here().handlers.insert(handler.span.start, resolved);
        Some(target)
    }

    /// Checks the patterns for the arguments of the call that failed.
    fn handler_arguments(&mut self, handler: &'a FailureHandler, target: Option<&CallTarget>) {
        if handler.arguments.is_empty() {
            return;
        }
        let parameters = target.map(|target| self.handled_parameters(target));
        if let Some(parameters) = &parameters
            && let Some(extra) = handler.arguments.get(parameters.len())
        {
            let count = parameters.len();
            let diagnostic = Diagnostic::new(
                Code::UnknownArgument,
                format!("a call of `{}` has {count} argument{}", handler.function, if count == 1 { "" } else { "s" }),
            )
            .at(extra.span, "there is no such argument");
            self.report(diagnostic);
        }
        for (at, pattern) in handler.arguments.iter().enumerate() {
            let parameter = parameters.as_ref().and_then(|parameters| parameters.get(at));
            let ty = match parameter {
                Some((_, Some(ty))) => ty.clone(),
                Some((name, None)) if !matches!(pattern.kind, PatternKind::Wildcard) => {
                    let diagnostic =
                        Diagnostic::new(Code::NotAValue, format!("a handler cannot use the argument `{name}`"))
                            .at(pattern.span, "is not a value of the same type at every call")
                            .hint("write `_` for it");
                    self.report(diagnostic);
                    Ty::Error
                }
                _ => Ty::Error,
            };
            self.constants_in_pattern(pattern, PatternPlace::HandlerArgument);
            self.irrefutable_pattern(pattern, &ty);
        }
    }

    /// Returns the name of each parameter of a callee, and its type if it is the same at every call.
    fn handled_parameters(&self, target: &CallTarget) -> Vec<(Text, Option<Ty>)> {
        match target {
            CallTarget::Host(path) => {
                let parameters = self.context.parameters(path).iter();
                let ty = |parameter: &Parameter| {
                    let passes = parameter.passing != Passing::Change && parameter.passing != Passing::Start;
                    (passes && is_value(&parameter.ty)).then(|| Ty::fixed(&parameter.ty))
                };
                parameters.map(|parameter| (parameter.name.clone(), ty(parameter))).collect()
            }
            CallTarget::Function(name) => {
                let declared = &self.typed.declarations.functions[name].parameters;
                let ty = |ty: &Ty| is_value(&ty.to_type()).then(|| ty.clone());
                declared.iter().map(|parameter| ((&*parameter.name).into(), ty(&parameter.ty))).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the callee that a handler names, and the type of its failures.
    fn handled(&mut self, path: &Path) -> Option<(CallTarget, Ty)> {
        if path.last().is_missing() {
            return None;
        }
        match &path.names[..] {
            [name] => match self.typed.declarations.functions.get_index_of(self.typed.declarations.own(&name.text)) {
                Some(at) => self.handled_fn(at, name),
                None => {
                    self.unknown_name(name);
                    None
                }
            },
            [module, name] if self.names_module(module) => {
                if let Some(file) = self.module_file(module) {
                    let at = self.function_of_file(file, module, name)?;
                    return self.handled_fn(at, name);
                }
                let signature = self.host_function(module, name)?;
                let Some(failure) = &signature.failure else {
                    let diagnostic = Diagnostic::new(Code::CannotFail, format!("`{path}` cannot fail"))
                        .at(path.span, "there is no failure to handle")
                        .hint("remove the handler");
                    self.report(diagnostic);
                    return None;
                };
                Some((CallTarget::Host(Text::from(signature.path())), Ty::fixed(failure)))
            }
            _ => {
                self.no_callee(path);
                None
            }
        }
    }

    /// Reports a handler for failures of something that is not called by its name alone.
    fn no_callee(&mut self, path: &Path) {
        let table = &path.names[0];
        if !self.typed.declarations.tables.contains_key(self.typed.declarations.own(&table.text)) {
            return self.unknown_name(table);
        }
        let diagnostic = Diagnostic::new(Code::NotAValue, "a statement of a table has no handler".to_owned())
            .at(path.span, format!("`{table}` is a table"))
            .hint(format!("handle its failures at its place: `{path}(…) else as failure {{ … }}`"))
            .hint("or make it in a `fn`, whose failures a handler may handle");
        self.report(diagnostic);
    }
}

impl TypeChecker<'_, '_> {
    /// Returns a `fn` of the program as the callee of a handler, and the type of its failures.
    fn handled_fn(&mut self, at: usize, name: &Name) -> Option<(CallTarget, Ty)> {
        let (whole, declared) = self.typed.declarations.functions.get_index(at)?;
        let symbol = Symbol::Function((&**whole).into());
        // A `fn` without a `Result` still fails: a `?` in it ends the flow.
        let failure = match &declared.result {
            Ty::Result(pair) => pair.1.clone(),
            _ => Ty::FAILURE,
        };
        self.refer(name.span, symbol);
        if failure.mentions_parameter() {
            let message = format!("the failures of the generic `fn` `{name}` cannot be handled together");
            let diagnostic = Diagnostic::new(Code::GenericFunction, message)
                .at(name.span, "fails with another type in each call")
                .hint("handle each failure at its call: `… else as failure { … }`");
            self.report(diagnostic);
            return None;
        }
        Some((CallTarget::Function(self.typed.declarations.fn_name(at)), failure))
    }
}

/// Returns whether values of the type exist, and the type is the same at every call.
fn is_value(ty: &Type) -> bool {
    match ty {
        Type::Parameter(_) | Type::Function(_) => false,
        Type::List(inner) | Type::Option(inner) => is_value(inner),
        Type::Map(pair) | Type::Result(pair) => is_value(&pair.0) && is_value(&pair.1),
        Type::Tuple(parts) => parts.iter().all(is_value),
        _ => true,
    }
}
