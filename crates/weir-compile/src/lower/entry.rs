//! Lowers entry points: routes of services, bodies of sources, and the arguments of sources.
//!
//! *Bodies of requests.* The bodies of `before` often decide who may send a body at all, so that the header of a request has
//! to be enough for them. The flow of such a route begins with a `http.RequestBody`, which has not been read; a call of
//! `http.read_body` behind `before` waits for it, and returns the parameter of the route, or the answer that refuses the request.
//! A route whose session key is computed from the body reads it first, because the key is known in `before`.

use weir_host::{ParameterFrom, Text, Type, Value};
use weir_ir::expr::{ArmTest, Atom, Block};
use weir_ir::prim::Prim;
use weir_ir::program::{Entry, Flow, FlowRoute, RouteParameter};
use weir_syntax::Span;
use weir_syntax::ast::{self, ItemKind, ParameterLocation, PathPart};

use super::{Binding, Lowering, failures, lower_flow, pattern_name};
use crate::context::CheckContext;
use crate::kept_flows::{self, FlowLowering};
use crate::lang_items::{HTTP_SOURCE, READ_BODY, REQUEST_BODY};
use crate::typed_tree::{ArgumentSource, EntryInfo, LocalId, RouteInfo, TypedTree};

pub(super) fn lower_entry<'a>(
    info: &EntryInfo,
    context: &mut CheckContext<'a>,
    typed: &'a TypedTree,
    flows_of: &mut FlowLowering<'_, 'a>,
) -> Entry<Block> {
    let tree = context.tree();
    let item = &tree.items[info.item];
    let (name, arguments, flows): (Text, _, _) = match &item.kind {
        ItemKind::Service(service) => {
            let flows = routes_of(service).zip(&info.routes);
            let flows = flows.map(|((place, route), routed)| {
                let parts = ("route", kept_flows::parts_of_route(tree, service, place));
                flows_of.flow(parts, context, typed, |context| {
                    lower_flow(context, typed, |lowering| lowering.route(info, service, route, routed))
                })
            });
            let flows = flows.collect();
            ((&*service.name.text).into(), &service.arguments[..], flows)
        }
        ItemKind::Entry(entry) => {
            let arguments: &[ast::Argument] = match &entry.source.kind {
                ast::ExprKind::Call { arguments, .. } => arguments,
                _ => &[],
            };
            let parts = |kind| (kind, kept_flows::parts_of_entry(tree, item.span));
            let elements = flows_of.flow(parts("for"), context, typed, |context| {
                lower_flow(context, typed, |lowering| lowering.entry(info, entry))
            });
            let end = entry.end.as_ref().map(|end| {
                flows_of.flow(parts("at end"), context, typed, |context| {
                    lower_flow(context, typed, |lowering| lowering.end(info, end))
                })
            });
            (info.source.clone(), arguments, std::iter::once(elements).chain(end).collect())
        }
        _ => (Text::default(), &[][..], Vec::new()),
    };
    let mut lowering = Lowering::new(context, typed);
    let arguments = lowering.source_arguments(info, arguments);
    Entry { name, source: info.source.clone(), arguments, ordered: info.ordered, flows }
}

/// Returns the routes of a service with their places.
fn routes_of(service: &ast::Service) -> impl Iterator<Item = (Span, &ast::Route)> {
    service.members.iter().filter_map(|member| match &member.kind {
        ast::ServiceMemberKind::Route(route) => Some((member.span, route)),
        _ => None,
    })
}

impl<'a> Lowering<'a, '_> {
    fn route(
        &mut self,
        info: &EntryInfo,
        service: &'a ast::Service,
        route: &'a ast::Route,
        routed: &RouteInfo,
    ) -> Flow<Block> {
        self.answers = true;
        let mut parameters = self.parameters(&routed.locals);
        let unread = self.unread_body((info, service), (route, routed));
        if let Some(parameter) = unread.and_then(|unread| parameters.get_mut(unread.number)) {
            parameter.ty = UnreadBody::ty();
        }
        let pattern = pattern_of(&route.path);
        let method = route.method.word();
        let handlers = failures::handlers_of(&route.body)
            .chain(service.handlers())
            .chain(failures::handlers_of_file(self.context.tree()));
        let body = self.flow(&info.answer, handlers.collect(), |lowering| {
            lowering.begin_session((service, route), &info.session_locals, &routed.locals);
            lowering.befores(service);
            lowering.read_body(unread, &info.answer);
            lowering.block(&route.body)
        });
        let parameters_before = service.befores().flat_map(|before| &before.parameters);
        let places = parameters_before.chain(&route.parameters).zip(&routed.defaults).map(|(parameter, default)| {
            RouteParameter {
                name: (&*parameter.parameter.name.text).into(),
                from: match parameter.place {
                    ParameterLocation::Path => ParameterFrom::Path,
                    ParameterLocation::Query => ParameterFrom::Query,
                    ParameterLocation::Body => ParameterFrom::Body,
                    ParameterLocation::Header => ParameterFrom::Header,
                    ParameterLocation::Cookie => ParameterFrom::Cookie,
                    ParameterLocation::UnprefixedCookie => ParameterFrom::UnprefixedCookie,
                    ParameterLocation::EncryptedCookie => ParameterFrom::EncryptedCookie,
                    ParameterLocation::Form => ParameterFrom::Form,
                },
                default: default.clone(),
            }
        });
        let route_of = FlowRoute {
            method: method.to_uppercase().into(),
            pattern: pattern.as_str().into(),
            parameters: places.collect(),
        };
        let name = name_of(route).into();
        Flow { name, route: Some(route_of), parameters, result: info.answer.clone(), body, former_sites: Vec::new() }
    }

    /// Lowers the bodies that run before that of a route. Their own handlers apply in them, and those of the route do not;
    /// the handlers of the route see the names that they declare.
    pub(super) fn befores(&mut self, service: &'a ast::Service) {
        for before in service.befores() {
            let handlers: Vec<_> = failures::handlers_of(&before.body)
                .chain(service.handlers())
                .chain(failures::handlers_of_file(self.context.tree()))
                .collect();
            self.see_handlers(&handlers);
            let of_route = self.replace_handlers(handlers);
            self.block(&before.body);
            self.replace_handlers(of_route);
        }
    }

    fn entry(&mut self, info: &EntryInfo, entry: &'a ast::Entry) -> Flow<Block> {
        self.answers = true;
        let element = self.vars.variable(pattern_name(&entry.pattern), info.element.clone().unwrap_or(Type::Unit));
        let handlers =
            failures::handlers_of(&entry.body).chain(failures::handlers_of_file(self.context.tree())).collect();
        let body = self.flow(&Type::Unit, handlers, |lowering| {
            lowering.bind(&entry.pattern, Atom::Var(element.var));
            lowering.keep_parameters();
            lowering.session = entry.session.as_ref().map(|session| lowering.expr(&session.value));
            lowering.block(&entry.body);
            Atom::Value(Value::Unit)
        });
        Flow {
            name: info.source.clone(),
            route: None,
            parameters: vec![element],
            result: Type::Unit,
            body,
            former_sites: Vec::new(),
        }
    }

    /// Lowers the `at end` block of a source.
    fn end(&mut self, info: &EntryInfo, end: &'a ast::Block) -> Flow<Block> {
        self.answers = true;
        let handlers = failures::handlers_of(end).chain(failures::handlers_of_file(self.context.tree())).collect();
        let body = self.flow(&Type::Unit, handlers, |lowering| {
            lowering.block(end);
            Atom::Value(Value::Unit)
        });
        let name = format!("{} at end", info.source).into();
        Flow { name, route: None, parameters: Vec::new(), result: Type::Unit, body, former_sites: Vec::new() }
    }

    fn source_arguments(&mut self, info: &EntryInfo, arguments: &'a [ast::Argument]) -> Block {
        let (module, name) = info.source.rsplit_once('.').unwrap_or(("", &info.source));
        let signature = self.context.library.modules.get(module).and_then(|module| module.sources.get(name));
        let parameters = signature.map_or(&[][..], |(signature, _)| &signature.parameters);
        let types = Type::Tuple(parameters.iter().map(|parameter| parameter.ty.clone()).collect());
        self.starting(&types, |lowering| {
            let span = arguments.first().map_or(Span::default(), |argument| argument.span);
            let atoms: Vec<Atom> = arguments.iter().map(|argument| lowering.expr(&argument.value)).collect();
            let placed = info.supplied.iter().zip(parameters).map(|(supplied, parameter)| match supplied {
                ArgumentSource::Argument(at) => atoms[*at].clone(),
                _ => Atom::Value(parameter.default.clone().unwrap_or(Value::Unit)),
            });
            let placed = placed.collect();
            lowering.prim(Prim::Record, placed, types.clone(), span)
        })
    }
}

/// Returns the name of a route's flow: `get /{name}`.
pub(super) fn name_of(route: &ast::Route) -> String {
    format!("{} {}", route.method.word(), pattern_of(&route.path))
}

/// Returns the path with its parameters in braces, as the source writes it.
fn pattern_of(path: &ast::RoutePath) -> String {
    let part = |part: &PathPart| match part {
        PathPart::Literal(text) => text.to_string(),
        PathPart::Parameter(name) => format!("{{{name}}}"),
        PathPart::Rest(name) => format!("{{{name}..}}"),
    };
    path.parts.iter().map(part).collect()
}

/// The parameter of a route that is the body of its request, and that the flow reads.
#[derive(Clone, Copy)]
pub(super) struct UnreadBody {
    /// Its number among the parameters of the route and of `before`.
    pub(super) number: usize,
    local: LocalId,
    span: Span,
}

impl UnreadBody {
    /// Returns the type of the parameter with which the flow begins.
    pub(super) fn ty() -> Type {
        Type::named(REQUEST_BODY)
    }
}

impl<'a> Lowering<'a, '_> {
    /// Returns the parameter of a route that its flow reads behind `before`.
    pub(super) fn unread_body(
        &self,
        (info, service): (&EntryInfo, &'a ast::Service),
        (route, routed): (&'a ast::Route, &RouteInfo),
    ) -> Option<UnreadBody> {
        let has_before = service.befores().next().is_some();
        if !has_before || info.source.as_str() != HTTP_SOURCE || self.context.library.function(READ_BODY).is_none() {
            return None;
        }
        let of_befores = service.befores().flat_map(|before| &before.parameters);
        let mut parameters = of_befores.chain(&route.parameters).zip(&routed.locals).enumerate();
        let is_body = |place| matches!(place, ParameterLocation::Body | ParameterLocation::Form);
        let (number, (parameter, local)) = parameters.find(|(_, (parameter, _))| is_body(parameter.place))?;
        let unread = UnreadBody { number, local: *local, span: parameter.parameter.span };
        (!self.session_reads(*local, (info, service, route))).then_some(unread)
    }

    /// Returns `true` if the session key of a route is computed from this parameter.
    fn session_reads(
        &self,
        parameter: LocalId,
        (info, service, route): (&EntryInfo, &'a ast::Service, &'a ast::Route),
    ) -> bool {
        if let Some(own) = &route.session {
            return self.mentions(parameter, &own.value);
        }
        let name = &self.typed.local(parameter).name;
        let mut same_name = info.session_locals.iter().filter(|local| self.typed.local(**local).name == *name);
        service.session().is_some_and(|session| same_name.any(|local| self.mentions(*local, &session.value)))
    }

    /// Reads the body, and answers a request in the place of the route if its body is refused.
    pub(super) fn read_body(&mut self, unread: Option<UnreadBody>, answer: &Type) {
        let Some(UnreadBody { local, span, .. }) = unread else { return };
        let Some(Binding::Atom(body)) = self.names.get(&local).cloned() else { return };
        let ty = self.local_type(local);
        let path = Text::from(READ_BODY);
        let result = Type::result(ty.clone(), answer.clone());
        let read = self.call_host(&path, vec![Some(Binding::Atom(body))], result, (span, &[]));
        let (value, refusal) = (self.vars.variable("", ty.clone()), self.vars.variable("", answer.clone()));
        let (found, refused) = (Atom::Var(value.var), Atom::Var(refusal.var));
        let arms = vec![
            self.arm(ArmTest::Tag(Value::OK), vec![value], |_| found),
            self.arm(ArmTest::Tag(Value::ERR), vec![refusal], |lowering| lowering.exit_body(refused, answer, span)),
        ];
        let value = Binding::Atom(self.switch(read, arms, &ty, span));
        self.names.insert(local, value.clone());
        if let Some(frame) = self.frames.last_mut() {
            // Handlers of the route may use its parameters.
            frame.parameters.insert(local, value);
        }
    }
}
