//! Checks services and sources: their arguments, routes, sessions and answers.

use std::sync::Arc;

use indexmap::IndexMap;
use weir_host::{SourceSignature, Text, Type};
use weir_syntax::ast::{self, Argument, Expr, ExprKind, Name, ParameterLocation, PathPart, Route, Service, Session};
use weir_syntax::{Code, Diagnostic, Span};

use super::arguments::{CallArguments, CalleeParameter};
use super::names::{LocalScope, path_of};
use super::{Exits, Expected, TypeChecker};
use crate::suggest::{listed, nearest};
use crate::typed_tree::{ArgumentSource, EntryInfo, LocalId, RouteInfo};
use crate::types::Ty;

/// Sources with a short name, and their paths.
const SHORT_SOURCES: [(&str, &str); 1] = [("every", "time.every")];

impl<'a> TypeChecker<'a, '_> {
    pub(super) fn service(&mut self, item: usize, service: &'a Service) {
        self.begin_body(Exits::Start);
        let signature = self.transport(&service.transport);
        let supplied = self.source_arguments(signature, service.transport.span, &service.arguments);
        let answer = signature.and_then(|signature| signature.answer.clone());
        self.begin_body(Exits::Flow(service_answer(service, answer.as_ref())));
        self.handlers(service.handlers());
        let shared = self.befores(service, answer.as_ref());
        let mut seen = IndexMap::new();
        let routes = service.routes().map(|route| {
            self.duplicate_route(route, &mut seen);
            self.route(service, route, answer.as_ref(), &shared)
        });
        let routes: Vec<RouteInfo> = routes.collect();
        let session_locals = self.service_session(service, &sharing_key(service, &routes));
        let Some(signature) = signature else { return };
        self.typed.here().summary.entries.push(EntryInfo {
            item,
            source: path(signature),
            ordered: signature.ordered,
            answer: answer.unwrap_or(Type::Unit),
            element: None,
            supplied,
            routes,
            session_locals,
        });
    }

    /// Checks the session key of a service, which sees only the parameters that all routes without one of their own share.
    fn service_session(&mut self, service: &'a Service, routes: &[&RouteInfo]) -> Vec<LocalId> {
        let Some(session) = service.session() else { return Vec::new() };
        self.begin_body(Exits::Start);
        let (first, others) = match routes.split_first() {
            Some((first, others)) => (&first.locals[..], others),
            None => (&[][..], &[][..]),
        };
        let mut common: Vec<_> = first.iter().map(|id| self.typed.local(*id).clone()).collect();
        common.retain(|local| {
            others.iter().all(|route| {
                let mut of_route = route.locals.iter().map(|id| self.typed.local(*id));
                of_route.any(|other| other.name == local.name && other.ty == local.ty)
            })
        });
        let locals = common.into_iter().map(|local| self.bind(local.name, local.span, local.ty)).collect();
        self.session(session);
        locals
    }

    /// Checks a session key, which must be plain data.
    fn session(&mut self, session: &'a Session) {
        let ty = self.expr(&session.value, None);
        let ty = self.inference.resolve(&ty);
        if !self.is_data(&ty, &mut Vec::new()) {
            let diagnostic = Diagnostic::new(Code::TypeMismatch, format!("a session key cannot have the type `{ty}`"))
                .at(session.value.span, format!("this is `{ty}`"))
                .hint("use plain data as key, such as a `Text` or an `Int`");
            self.report(diagnostic);
        }
    }

    /// Returns the source that a service runs on.
    fn transport(&mut self, name: &Name) -> Option<&'a SourceSignature> {
        if name.is_missing() {
            return None;
        }
        let Some(module) = self.module(name) else {
            self.module_not_used(name);
            return None;
        };
        let found = self.context.library.modules.get(&module)?.sources.get(&module);
        if let Some((signature, _)) = found
            && signature.answer.is_some()
        {
            return Some(signature);
        }
        let transports =
            self.context.library.modules.values().filter(|module| {
                module.sources.get(&module.name).is_some_and(|(signature, _)| signature.answer.is_some())
            });
        let transports: Vec<String> = transports.map(|module| module.name.to_string()).collect();
        let diagnostic = Diagnostic::new(Code::UnknownSource, format!("`{name}` cannot run a service"))
            .at(name.span, "has no source for services")
            .hint(format!("use {}", listed(&transports)));
        self.report(diagnostic);
        None
    }

    fn source_arguments(
        &mut self,
        signature: Option<&'a SourceSignature>,
        callee: Span,
        arguments: &'a [Argument],
    ) -> Vec<ArgumentSource> {
        let Some(signature) = signature else {
            arguments.iter().for_each(|argument| _ = self.expr(&argument.value, None));
            return Vec::new();
        };
        let taken = signature.parameters.iter().map(|parameter| CalleeParameter {
            name: Some(parameter.name.as_str().into()),
            ty: Ty::fixed(&parameter.ty),
            passing: None,
            has_default: parameter.default.is_some(),
            place: None,
        });
        let given = CallArguments { call: None, callee, object: None, piped: None, arguments };
        self.supplied(&path(signature), taken.collect(), given)
    }

    fn duplicate_route(&mut self, route: &Route, seen: &mut IndexMap<String, Span>) {
        let span = route.method_span.to(route.path.span);
        let key = format!("{} {}", route.method.word(), shape(route));
        if let Some(first) = seen.get(&key) {
            let diagnostic = Diagnostic::new(Code::DuplicateRoute, "two routes answer the same requests")
                .at(span, "is never reached")
                .because(*first, "answers them first")
                .hint("remove one of them, or change its path or method");
            self.report(diagnostic);
            return;
        }
        seen.insert(key, span);
    }

    /// Checks the bodies that run before those of the routes, whose names are in scope there.
    fn befores(&mut self, service: &'a Service, answer: Option<&Type>) -> SharedByRoutes {
        self.begin_body(Exits::Flow(service_answer(service, answer)));
        let mut shared = SharedByRoutes::default();
        for before in service.befores() {
            for parameter in &before.parameters {
                self.route_parameter(parameter, &mut shared.names, &mut shared.info);
                if parameter.place.is_body() {
                    self.body_before(parameter.parameter.span);
                }
            }
            self.handlers_of_block(&before.body);
            self.open_block(&before.body, Some(&Expected::plain(Ty::UNIT)));
        }
        shared.scope = self.scope.clone();
        shared
    }

    fn route(
        &mut self,
        service: &Service,
        route: &'a Route,
        answer: Option<&Type>,
        shared: &SharedByRoutes,
    ) -> RouteInfo {
        let answer = service_answer(service, answer);
        self.begin_body(Exits::Flow(answer.clone()));
        let SharedByRoutes { mut names, mut info, scope } = shared.clone();
        self.scope = scope;
        let mut body = None;
        for parameter in &route.parameters {
            if parameter.place.is_body() {
                self.second_body(&mut body, parameter.parameter.span);
            }
            if parameter.place == ParameterLocation::Form
                && matches!(route.method, ast::Method::Get | ast::Method::Head)
            {
                self.form_of_get(parameter.parameter.span);
            }
            self.route_parameter(parameter, &mut names, &mut info);
        }
        if let Some(session) = &route.session {
            self.session(session);
        }
        self.handlers_of_block(&route.body);
        self.block(&route.body, Some(&answer));
        info
    }

    pub(super) fn entry(&mut self, item: usize, entry: &'a ast::Entry) {
        self.begin_body(Exits::Start);
        let (callee, arguments): (&Expr, &[Argument]) = match &entry.source.kind {
            ExprKind::Call { function, arguments } => (function, arguments),
            _ => (&entry.source, &[]),
        };
        let signature = self.source(callee);
        let supplied = self.source_arguments(signature, callee.span, arguments);
        let element = signature.and_then(|signature| signature.element.clone());
        let answer = Expected::new(Ty::UNIT, entry.source.span, "flows of this source have no answer");
        self.begin_body(Exits::Flow(answer.clone()));
        let ty = element.as_ref().map_or(Ty::Error, Ty::fixed);
        self.irrefutable_pattern(&entry.pattern, &ty);
        if let Some(session) = &entry.session {
            self.session(session);
        }
        self.handlers_of_block(&entry.body);
        self.block(&entry.body, Some(&answer));
        if let Some(end) = &entry.end {
            // The block does not see an element.
            self.begin_body(Exits::Flow(answer.clone()));
            self.handlers_of_block(end);
            self.block(end, Some(&answer));
        }
        let Some(signature) = signature else { return };
        self.typed.here().summary.entries.push(EntryInfo {
            item,
            source: path(signature),
            ordered: signature.ordered,
            answer: Type::Unit,
            element,
            supplied,
            routes: Vec::new(),
            session_locals: Vec::new(),
        });
    }

    /// Returns the source that the expression after `in` names.
    fn source(&mut self, callee: &Expr) -> Option<&'a SourceSignature> {
        let names = path_of(callee).unwrap_or_default();
        let found = match &names[..] {
            [name] => match SHORT_SOURCES.iter().find(|(short, _)| *short == name.as_str()) {
                Some((_, path)) => path.split_once('.').map(|(module, name)| (Text::from(module), name)),
                None => self.module(name).map(|module| (module, name.as_str())),
            },
            [module, name] => match self.module(module) {
                Some(module) => Some((module, name.as_str())),
                None => {
                    self.module_not_used(module);
                    return None;
                }
            },
            _ => None,
        };
        let sources =
            found.as_ref().and_then(|(module, _)| self.context.library.modules.get(module)).map(|m| &m.sources);
        let signature = found.as_ref().zip(sources).and_then(|((_, name), sources)| sources.get(*name));
        if let Some((signature, _)) = signature
            && signature.element.is_some()
        {
            if let Some(name) = names.last() {
                self.refer(name.span, crate::symbol::Symbol::Source(path(signature)));
            }
            return Some(signature);
        }
        if !matches!(callee.kind, ExprKind::Error) {
            self.no_source(callee, &names);
        }
        None
    }

    fn no_source(&mut self, callee: &Expr, names: &[Name]) {
        let shown = names.iter().map(Name::as_str).collect::<Vec<_>>().join(".");
        let modules = self.context.library.modules.values();
        let sources = modules.flat_map(|module| module.sources.values()).filter(|(source, _)| source.element.is_some());
        let known: Vec<String> = sources.map(|(source, _)| path(source).to_string()).collect();
        let message = if shown.is_empty() {
            "at the top level, `for` needs a source".to_owned()
        } else {
            format!("there is no source `{shown}`")
        };
        let diagnostic = Diagnostic::new(Code::UnknownSource, message).at(callee.span, "not a source of elements");
        let is_table = self.table_named(callee).is_some();
        let near = nearest(&shown, known.iter().map(String::as_str)).map(str::to_owned).filter(|_| !is_table);
        self.report(match near {
            Some(near) => diagnostic.suggest(format!("did you mean `{near}`?"), callee.span, near),
            None if is_table => diagnostic.hint("a table is no source: query it in a `fn`, a route or a test"),
            None if known.is_empty() => diagnostic,
            None => diagnostic.hint(format!("the sources are {}", listed(&known))),
        });
    }
}

/// The parameters and names that all routes of a service have in common.
#[derive(Clone, Default)]
struct SharedByRoutes {
    /// The names of the parameters, and where they are declared.
    names: IndexMap<Arc<str>, Span>,
    info: RouteInfo,
    /// The parameters and the names that the bodies before those of the routes declare.
    scope: LocalScope,
}

/// Returns the routes whose parameters the session key of a service sees: those without a key of their own, or all if each
/// has one.
fn sharing_key<'r>(service: &Service, routes: &'r [RouteInfo]) -> Vec<&'r RouteInfo> {
    let without = service.routes().zip(routes).filter(|(route, _)| route.session.is_none());
    let without: Vec<&RouteInfo> = without.map(|(_, info)| info).collect();
    if without.is_empty() { routes.iter().collect() } else { without }
}

/// Returns the type that the routes of a service must answer with.
fn service_answer(service: &Service, answer: Option<&Type>) -> Expected {
    let why = format!("a route on `{}` answers with this", service.transport);
    match answer {
        Some(answer) => Expected::new(Ty::fixed(answer), service.transport.span, why),
        None => Expected::plain(Ty::Error),
    }
}

fn path(signature: &SourceSignature) -> Text {
    format!("{}.{}", signature.module, signature.name).into()
}

/// Returns the path of a route without the names of its parameters.
fn shape(route: &Route) -> String {
    let part = |part: &PathPart| match part {
        PathPart::Literal(text) => text.to_string(),
        PathPart::Parameter(_) => "{}".to_owned(),
        PathPart::Rest(_) => "{..}".to_owned(),
    };
    route.path.parts.iter().map(part).collect()
}
