//! Checks services and sources: their arguments, routes, sessions and answers.

use std::sync::Arc;

use indexmap::IndexMap;
use weir_host::{Field, SourceSignature, Text, Type, TypeShape};
use weir_syntax::ast::{self, Argument, Expr, ExprKind, Name, ParameterLocation, PathPart, Route, Service, Session};
use weir_syntax::{Code, Diagnostic, Span};

use super::arguments::{CallArguments, CalleeParameter};
use super::names::{LocalScope, path_of};
use super::{Exits, Expected, TypeChecker};
use crate::constant::NotConstant;
use crate::lang_items::{FORM_PART, JSON_VALUE};
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

    fn route_parameter(
        &mut self,
        route_parameter: &'a ast::RouteParameter,
        names: &mut IndexMap<Arc<str>, Span>,
        info: &mut RouteInfo,
    ) {
        let parameter = &route_parameter.parameter;
        self.parameter_name(&parameter.name, names);
        self.name_in_request(route_parameter);
        let ty = self.resolve_type(&parameter.ty);
        self.parameter_type(route_parameter.place, &parameter.ty, &ty);
        info.defaults.push(parameter.default.as_ref().and_then(|default| {
            self.expr(default, Some(&Expected::new(ty.clone(), parameter.ty.span, "the parameter's type")));
            self.default(default)
        }));
        info.locals.push(self.bind(parameter.name.text.clone(), parameter.name.span, ty));
    }

    /// Reports a header field that no request has, and the default of a form, which no request takes.
    fn name_in_request(&mut self, route_parameter: &ast::RouteParameter) {
        let parameter = &route_parameter.parameter;
        let name = parameter.name.as_str();
        if route_parameter.place == ParameterLocation::Header && name.starts_with('_') {
            let field = name.replace('_', "-");
            let message = format!("`{name}` is the header field `{field}`, which no client sends");
            let hint = format!("the name of the parameter is that of the field: `{}`", name.trim_start_matches('_'));
            self.report(
                Diagnostic::new(Code::RouteParameter, message).at(parameter.name.span, "begins with `_`").hint(hint),
            );
        }
        if let (ParameterLocation::Form, Some(default)) = (route_parameter.place, &parameter.default) {
            let diagnostic = Diagnostic::new(Code::RouteParameter, "a form has no default")
                .at(default.span, "never used, because an empty body is a form without fields")
                .hint("give defaults to the fields of the record");
            self.report(diagnostic);
        }
    }

    fn form_of_get(&mut self, span: Span) {
        let diagnostic = Diagnostic::new(Code::RouteParameter, "a `get` takes no form in its body")
            .at(span, "takes the body")
            .hint("browsers put the fields of such a form into the query: declare each as a parameter without `form`");
        self.report(diagnostic);
    }

    fn body_before(&mut self, span: Span) {
        let diagnostic = Diagnostic::new(Code::RouteParameter, "`before` cannot take the body of a request")
            .at(span, "takes the body")
            .hint("let each route take the body that it expects");
        self.report(diagnostic);
    }

    fn default(&mut self, default: &Expr) -> Option<weir_host::Value> {
        match self.typed.constant(default) {
            Ok(value) => Some(value),
            Err(NotConstant { why, .. }) if why.is_empty() || matches!(default.kind, ExprKind::Error) => None,
            Err(NotConstant { span, why }) => {
                let message = "the default of a route's parameter must be a constant";
                let diagnostic = Diagnostic::new(Code::NotConstant, message)
                    .at(span, why)
                    .hint("make the parameter an `Option(…)` and choose the default in the body");
                self.report(diagnostic);
                None
            }
        }
    }

    fn parameter_name(&mut self, name: &Name, seen: &mut IndexMap<Arc<str>, Span>) {
        if let Some(first) = seen.insert(name.text.clone(), name.span)
            && !name.is_missing()
        {
            let diagnostic = Diagnostic::new(Code::NameTaken, format!("the parameter `{name}` is declared twice"))
                .at(name.span, "declared again here")
                .because(first, "first declared here")
                .hint("rename one of them");
            self.report(diagnostic);
        }
    }

    fn second_body(&mut self, first: &mut Option<Span>, span: Span) {
        if let Some(first) = first {
            let diagnostic = Diagnostic::new(Code::RouteParameter, "a request has only one body")
                .at(span, "also takes it")
                .because(*first, "takes the body")
                .hint("combine both in one record");
            self.report(diagnostic);
        }
        first.get_or_insert(span);
    }

    fn parameter_type(&mut self, place: ParameterLocation, written: &ast::Type, ty: &Ty) {
        let (fits, takes) = match place {
            ParameterLocation::Path => (self.is_word(ty), WORDS.to_owned()),
            ParameterLocation::Query => {
                let is_word = match ty {
                    Ty::Option(part) | Ty::List(part) => self.is_word(part),
                    ty => self.is_word(ty),
                };
                (is_word, format!("{WORDS}; in the query also an `Option` or a `List` of these"))
            }
            ParameterLocation::Header | ParameterLocation::Cookie | ParameterLocation::UnprefixedCookie => {
                let optional = matches!(ty, Ty::Option(some) if self.is_word(some));
                (self.is_word(ty) || optional, format!("{WORDS}; outside the path also an `Option` of these"))
            }
            ParameterLocation::EncryptedCookie => {
                let takes = "an encrypted cookie can hold all that JSON can, and an `Option` of it, but no `Bytes`";
                (self.is_data(ty, &mut vec![JSON_VALUE.into()]), takes.to_owned())
            }
            ParameterLocation::Form => {
                let takes = "a form is a record, whose fields are the form's of the same names: data, or an `html.Part` for a \
                             file, also in an `Option` or a `List`";
                (self.is_form(ty), takes.to_owned())
            }
            ParameterLocation::Body => {
                let takes = "a body can be a `Text`, `Bytes`, or anything that JSON can hold, but no `Option` of an `Option` or \
                             of `()`: both would be `null`";
                // Arbitrary JSON is accepted as it is.
                (*ty == Ty::BYTES || self.is_data(ty, &mut vec![JSON_VALUE.into()]), takes.to_owned())
            }
        };
        if !fits && *ty != Ty::Error {
            let field = if place == ParameterLocation::Form { self.field_of_no_form(ty) } else { None };
            let label = match field {
                Some(field) => format!("a form cannot hold its field `{}: {}`", field.name, field.ty),
                None => "cannot be parsed from a request".to_owned(),
            };
            let diagnostic = Diagnostic::new(Code::RouteParameterType, format!("a request cannot hold a `{ty}` here"))
                .at(written.span, label)
                .note(takes);
            self.report(diagnostic);
        }
    }

    /// Returns whether the type can be parsed from one word of a request.
    fn is_word(&self, ty: &Ty) -> bool {
        if [Ty::TEXT, Ty::INT, Ty::FLOAT, Ty::BOOL, Ty::SIZE, Ty::DURATION, Ty::TIME].contains(ty) {
            return true;
        }
        let definition = ty.name().and_then(|name| self.typed.declarations.definition(self.context.library, name));
        match definition.map(|definition| &definition.shape) {
            Some(TypeShape::Enum(variants)) => variants.iter().all(|variant| variant.fields.is_empty()),
            _ => false,
        }
    }

    /// Returns whether the type is a record of data and files.
    fn is_form(&self, ty: &Ty) -> bool {
        self.fields_of_record(ty).is_some() && self.field_of_no_form(ty).is_none()
    }

    fn fields_of_record(&self, ty: &Ty) -> Option<&[Field]> {
        let definition = self.typed.declarations.definition(self.context.library, ty.name()?)?;
        if let TypeShape::Record(fields) = &definition.shape { Some(fields) } else { None }
    }

    /// Returns the first field of a record that is neither data nor a file.
    fn field_of_no_form(&self, ty: &Ty) -> Option<&Field> {
        let is_file = |ty: &Type| match ty {
            Type::Option(part) | Type::List(part) => **part == Type::named(FORM_PART),
            ty => *ty == Type::named(FORM_PART),
        };
        let fits = |field: &Field| is_file(&field.ty) || self.is_data(&Ty::fixed(&field.ty), &mut Vec::new());
        self.fields_of_record(ty)?.iter().find(|field| !fits(field))
    }

    /// Returns whether values of the type are plain data.
    fn is_data(&self, ty: &Ty, seen: &mut Vec<Text>) -> bool {
        match ty {
            Ty::Function(_) | Ty::Unknown(_) => false,
            Ty::Error => true,
            Ty::Option(part) if matches!(**part, Ty::Option(_) | Ty::UNIT) => false,
            Ty::List(part) | Ty::Option(part) => self.is_data(part, seen),
            Ty::Map(pair) => self.is_word(&pair.0) && self.is_data(&pair.1, seen),
            Ty::Result(_) => false,
            Ty::Tuple(parts) => parts.iter().all(|part| self.is_data(part, seen)),
            Ty::Plain(Type::Named(name)) => {
                if seen.contains(name) {
                    return true;
                }
                seen.push(name.clone());
                match self.typed.declarations.definition(self.context.library, name).map(|definition| &definition.shape)
                {
                    Some(TypeShape::Record(fields)) => fields.iter().all(|f| self.is_data(&Ty::fixed(&f.ty), seen)),
                    Some(TypeShape::Enum(variants)) => {
                        variants.iter().flat_map(|v| &v.fields).all(|f| self.is_data(&Ty::fixed(&f.ty), seen))
                    }
                    _ => false,
                }
            }
            Ty::Plain(plain) => !matches!(plain, Type::Never | Type::Failure | Type::Bytes | Type::Parameter(_)),
        }
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
        let near = nearest(&shown, known.iter().map(String::as_str)).map(str::to_owned);
        let diagnostic = match near {
            Some(near) => diagnostic.suggest(format!("did you mean `{near}`?"), callee.span, near),
            None if known.is_empty() => diagnostic,
            None => diagnostic.hint(format!("the sources are {}", listed(&known))),
        };
        self.report(diagnostic);
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

/// The note on types that one word of a request can have.
const WORDS: &str =
    "one word can be a `Text`, `Int`, `Float`, `Bool`, `Size`, `Duration`, `Time`, or a variant without payload";
