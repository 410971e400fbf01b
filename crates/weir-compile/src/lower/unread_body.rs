//! Bodies of requests that a route reads itself, behind the bodies of `before`.
//!
//! What runs `before` the routes of a service often decides who may send a body at all, so that the header of a request has to
//! be enough for it. The flow of such a route begins with a `http.RequestBody`, which has not been read; a call of
//! `http.read_body` behind `before` waits for it, and returns the parameter of the route, or the answer that refuses the request.
//! A route whose session key is computed from the body reads it first, because the key is known in `before`.

use weir_host::{Text, Type, Value};
use weir_ir::expr::{ArmTest, Atom};
use weir_syntax::Span;
use weir_syntax::ast::{self, ParameterLocation};

use super::{Binding, Lowering};
use crate::lang_items::{HTTP_SOURCE, READ_BODY, REQUEST_BODY};
use crate::typed_tree::{EntryInfo, LocalId, RouteInfo};

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
