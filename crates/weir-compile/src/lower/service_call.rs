//! Lowers requests that tests make of services: every route of the service is inlined into the test, and the one that the
//! request matches runs.

use weir_host::{Text, Type, Value};
use weir_ir::caught_failure_type;
use weir_ir::expr::{ArmTest, Atom, Block as IrBlock, InlinedCallId, LoopExit, Op};
use weir_ir::prim::Prim;
use weir_syntax::Span;
use weir_syntax::ast::{Expr, ItemKind, Route, Service};

use super::block_builder::InlineFrameId;
use super::entry::UnreadBody;
use super::handled_calls::ArgumentAtoms;
use super::{Binding, InlineFrame, InlineFrameKind, Lowering, Names, failures};
use crate::lang_items::{CLIENT_RESPONSE, SERVICE_REQUEST};
use crate::typed_tree::{EntryInfo, RouteInfo};

/// Functions of the module `service` that the lowering calls.
const ANSWER: &str = "service.answer";
const FAILED: &str = "service.failed";
const INPUT: &str = "service.input";
const REFUSED: &str = "service.refused";
const ROUTE: &str = "service.route";

impl<'a> Lowering<'a, '_> {
    /// Lowers a request of a service, and returns its response.
    pub(super) fn call_service(
        &mut self,
        name: &Text,
        function: &Text,
        given: Vec<Option<Binding<'a>>>,
        (span, written): (Span, &[Option<&'a Expr>]),
    ) -> Atom {
        let entry = self.program.entries().iter().find_map(|info| match &self.tree.items[info.item].kind {
            ItemKind::Service(service) if *service.name.text == **name => Some((info, service)),
            _ => None,
        });
        let Some((info, service)) = entry else { return Atom::Value(Value::Unit) };
        self.asks_service = true;
        let name = Some(Binding::Atom(Atom::Value(Value::Text(name.clone()))));
        let given = std::iter::once(name).chain(given).collect();
        let written: Vec<_> = std::iter::once(None).chain(written.iter().copied()).collect();
        let request = self.call_host(function, given, Type::named(SERVICE_REQUEST), (span, &written));
        let route = self.service_call(ROUTE, vec![request.clone()], Type::Int, span);
        let mut arms = Vec::new();
        for ((index, at), routed) in service.routes().zip(0_i64..).zip(&info.routes) {
            let request = request.clone();
            let test = ArmTest::Value(Value::Int(at));
            arms.push(self.arm(test, Vec::new(), |lowering| {
                lowering.inline_route((info, service), (index, routed), &request, span)
            }));
        }
        let refused = request.clone();
        arms.push(self.arm(ArmTest::Otherwise, Vec::new(), |lowering| {
            lowering.service_call(REFUSED, vec![refused], info.answer.clone(), span)
        }));
        let response = self.switch(route, arms, &info.answer, span);
        self.service_call(ANSWER, vec![request, response], Type::named(CLIENT_RESPONSE), span)
    }

    fn service_call(&mut self, path: &str, arguments: Vec<Atom>, ty: Type, span: Span) -> Atom {
        let arguments = arguments.into_iter().map(|argument| Some(Binding::Atom(argument))).collect();
        self.call_host(&Text::from(path), arguments, ty, (span, &[]))
    }

    /// Lowers the body of a route, as if it were a `fn`. The handlers of the service and of the file apply in it, and those
    /// of the test do not.
    fn inline_route(
        &mut self,
        (info, service): (&EntryInfo, &'a Service),
        (route, routed): (&'a Route, &RouteInfo),
        request: &Atom,
        span: Span,
    ) -> Atom {
        let handlers = failures::handlers_of(&route.body)
            .chain(service.handlers())
            .chain(failures::handlers_of_file(self.context.tree()));
        self.frame_count += 1;
        let id = InlineFrameId(self.frame_count);
        let route_name = format!("{} {}", service.name, super::entry::name_of(route));
        let call_path = format!("{}{route_name}/", self.frame().call_path);
        let inlined_call = self.inlined_call(&route_name, span);
        let call_path = super::numbered(&mut self.call_paths, call_path);
        self.frames.push(InlineFrame {
            id,
            call_path,
            result: info.answer.clone(),
            kind: InlineFrameKind::Route,
            outer: None,
            function: None,
            called_at: span,
            inlined_call,
            arguments: ArgumentAtoms::new(),
            handlers: handlers.collect(),
            parameters: Names::new(),
            scope: self.scope(),
        });
        let (outer, session) = (std::mem::take(&mut self.names), self.session.clone());
        let mut open_block = self.build_block(|lowering| {
            let unread = lowering.unread_body((info, service), (route, routed));
            lowering.bind_inputs((routed, unread), request, span);
            lowering.keep_parameters();
            lowering.begin_session((service, route), &info.session_locals, &routed.locals);
            lowering.befores(service);
            lowering.read_body(unread, &info.answer);
            lowering.block(&route.body)
        });
        (self.names, self.session) = (outer, session);
        open_block.resolve_exits(id);
        let body = self.close_without_exits(open_block, &info.answer);
        let name = self.frames.pop().map(|frame| self.name_of_call(frame.inlined_call)).unwrap_or_default();
        self.answer_or_failure(body, (&info.answer, &name), span)
    }

    /// Evaluates the body of a route. The failure of an operation in it, such as a division by zero, is answered as the server
    /// does.
    fn answer_or_failure(&mut self, body: IrBlock, (answer, route): (&Type, &Text), span: Span) -> Atom {
        let caught = caught_failure_type();
        let outcome = self.emit(Op::Catch { body }, Type::result(answer.clone(), caught.clone()), span);
        let (response, failed) = (self.vars.variable("", answer.clone()), self.vars.variable("", caught));
        let (in_order, failure) = (Atom::Var(response.var), Atom::Var(failed.var));
        let name = Atom::Value(Value::Text(route.clone()));
        let arms = vec![
            self.arm(ArmTest::Tag(Value::OK), vec![response], |_| in_order),
            self.arm(ArmTest::Tag(Value::ERR), vec![failed], |lowering| {
                let position = lowering.prim(Prim::Field(1), vec![failure.clone()], Type::Int, span);
                let failure = lowering.prim(Prim::Field(0), vec![failure], Type::Failure, span);
                lowering.service_call(FAILED, vec![failure, name, position], answer.clone(), span)
            }),
        ];
        self.switch(outcome, arms, answer, span)
    }

    /// Returns the name of the `fn` or route of an inlined call.
    fn name_of_call(&self, call: Option<InlinedCallId>) -> Text {
        let call = call.and_then(|id| self.context.inlined_calls.get(id.0 as usize));
        call.map(|call| call.function.clone()).unwrap_or_default()
    }

    /// Answers a failure that nothing in the route handles, as the server does. The report of the test shows it with its place
    /// in the route.
    pub(super) fn answer_failure(&mut self, route: usize, failure: Atom, span: Span) -> Atom {
        let answer = self.frames[route].result.clone();
        let name = Value::Text(self.name_of_call(self.frames[route].inlined_call));
        let given = vec![failure, Atom::Value(name), Atom::Value(Value::Int(span.start.into()))];
        let response = self.service_call(FAILED, given, answer, span);
        self.exit_frame(route, response, LoopExit::Failure, span)
    }

    /// Binds the parameters of a route to the inputs of the request.
    fn bind_inputs(&mut self, (routed, unread): (&RouteInfo, Option<UnreadBody>), request: &Atom, span: Span) {
        for (index, (local, number)) in routed.locals.iter().zip(0_i64..).enumerate() {
            let is_unread = unread.is_some_and(|unread| unread.number == index);
            let ty = if is_unread { UnreadBody::ty() } else { self.local_type(*local) };
            let none = self.prim(Prim::List, Vec::new(), Type::list(ty.clone()), span);
            let arguments = vec![request.clone(), none, Atom::Value(Value::Int(number))];
            let input = self.service_call(INPUT, arguments, ty, span);
            self.names.insert(*local, Binding::Atom(input));
        }
    }
}
