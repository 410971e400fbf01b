//! Lowers failures: to the innermost matching handler, to the caller of a `fn`, or to the end of the flow.
//!
//! A failing `?` searches the frames from the innermost outwards. A handler of a frame matches if it names the function
//! that failed, or a `fn` inside the frame that the failure propagates through. A `fn` that returns a `Result` keeps
//! the failure as its `Err`. A handler runs in its own frame: it sees that frame's parameters, its value is that
//! frame's result, and its own failures go to the handlers further out. A failure in an atomic step leaves the step before
//! its handler runs, unless the handler is inside the step: no other flow waits for a handler (Flux §2.4). A failure in a `for` or
//! `fold` leaves the loop before a handler of the flow runs, so that calls in its rounds gather as those in a `fn` do. A failure in a body of
//! a `race` leaves the race, which that body has won, before a handler outside of the race runs: no other body can win meanwhile.

use weir_host::{FailureKind, Text, Type, Value};
use weir_ir::expr::{Atom, LoopExit};
use weir_ir::prim::Prim;
use weir_syntax::Span;
use weir_syntax::ast::{Block, Expr, FailureHandler, ItemKind, Pattern, PatternKind, StatementKind, Tree};

use super::block_builder::{InlineFrameId, Terminator};
use super::handled_calls::ArgumentAtoms;
use super::{Binding, Callable, DeferredHandler, InlineFrame, InlineFrameKind, Lowering};
use crate::lang_items::FAILURE_KIND;
use crate::typed_tree::{CallTarget, FailureTarget};
use crate::types::Ty;

impl<'a> Lowering<'a, '_> {
    /// Lowers `fail(why)`; if `says`, wraps the text in a `Failure`.
    pub(super) fn fail_with(&mut self, expr: &'a Expr, says: bool, why: Vec<Atom>, ty: Option<Type>) -> Atom {
        let to = self.typed.of(expr.id).tries.get(&expr.id).map_or(FailureTarget::Flow, |of| of.to);
        let (failure, ty) = match says {
            true => (self.prim(Prim::Failure, why, Type::Failure, expr.span), Type::Failure),
            false => (why.into_iter().next().unwrap_or(Atom::Value(Value::Unit)), ty.unwrap_or(Type::Failure)),
        };
        self.failed(failure, &ty, (to, None, Vec::new()), expr.span)
    }

    /// Lowers the failure of a `?`. `of` is the callee that failed, if known, with the arguments of its call.
    pub(super) fn failed(
        &mut self,
        failure: Atom,
        ty: &Type,
        (to, of, arguments): (FailureTarget, Option<&CallTarget>, ArgumentAtoms),
        span: Span,
    ) -> Atom {
        let of = of.and_then(|of| self.callee(of));
        let of = of.as_ref();
        // No handler names the `fn`s of a module, whose numbers are not those of the program.
        let of = of.filter(|of| !(self.module.is_some() && matches!(of, CallTarget::Function(_))));
        let span = self.context.located(span);
        let mut failed: Vec<CallTarget> = of.cloned().into_iter().collect();
        let mut arguments = vec![arguments; failed.len()];
        if to == FailureTarget::Retry {
            let frame = self.failure_path().find(|at| self.frames[*at].kind == InlineFrameKind::Retry);
            return self.exit_with_err(frame.unwrap_or(0), failure, span);
        }
        let body = self.body_frame();
        let path: Vec<usize> = if to == FailureTarget::Caller { vec![body] } else { self.failure_path().collect() };
        for at in path {
            if let Some((handler, callee)) = self.handler_in(at, &failed, ty) {
                self.context.handlers.used(handler);
                let arguments = arguments.swap_remove(callee);
                let step = self.steps.iter().position(|step| step.frame_count > at);
                // Behind the `return` of a flow no round would ask for anything.
                let ends_flow = self.frames[at].kind == InlineFrameKind::Flow;
                let around_loop = self.loops.iter().position(|frame_count| ends_flow && *frame_count > at);
                let around_race = self.races.iter().position(|frame_count| *frame_count > at);
                if (step, around_loop, around_race) == (None, None, None) {
                    return self.handle(at, handler, (failure, arguments), span);
                }
                let step = step.unwrap_or(self.steps.len());
                let around_loop = around_loop.unwrap_or(self.loops.len());
                let around_race = around_race.unwrap_or(self.races.len());
                return self.defer((step, around_loop, around_race), (at, handler), (failure, ty), arguments);
            }
            if let Some(function) = self.frames[at].function.clone() {
                failed.push(CallTarget::Function(function));
                arguments.push(self.frames[at].arguments.clone());
            }
        }
        if to == FailureTarget::Caller {
            self.note_bypassed(body, of, failed, ty, span);
            let (failure, _) = self.propagated(failure, ty, of, (body, span));
            self.exit_with_err(body, failure, span)
        } else {
            self.report_bypassed(of);
            let failure = self.described(failure, ty, span);
            let route = self.failure_path().find(|at| self.frames[*at].kind == InlineFrameKind::Route);
            self.roll_back_steps_in(route, span);
            if let Some(route) = route {
                let (failure, span) = self.propagated(failure, &Type::Failure, of, (route, span));
                return self.answer_failure(route, failure, span);
            }
            let (failure, span) = self.propagated(failure, &Type::Failure, of, (0, span));
            self.fail(failure, span)
        }
    }

    /// Lowers the failure of the transaction of a step, as that of a `?` behind the step. `around` is the number of frames around the step.
    pub(super) fn step_failed(&mut self, around: usize, failure: Atom, span: Span) -> Atom {
        let Some(frame) = self.frame_that_fails(around) else {
            return self.failed(failure, &Type::Failure, (FailureTarget::Flow, None, Vec::new()), span);
        };
        let (failure, _) = self.propagated(failure, &Type::Failure, None, (frame, self.context.located(span)));
        self.exit_with_err(frame, failure, span)
    }

    /// Does the same for a failure of one of these kinds; every other one ends the flow. `ty` is the type of the value that the failure takes the
    /// place of.
    pub(super) fn step_failed_by(
        &mut self,
        kinds: &[FailureKind],
        around: usize,
        failure: Atom,
        (ty, span): (&Type, Span),
    ) -> Atom {
        if self.frame_that_fails(around).is_none() {
            return self.step_failed(around, failure, span);
        }
        let failed = failure.clone();
        self.if_of_kinds(kinds, failure, (ty, span), |lowering| lowering.step_failed(around, failed, span))
    }

    /// Goes on with `then` if a failure has one of these kinds; otherwise ends the flow with it.
    pub(super) fn if_of_kinds(
        &mut self,
        kinds: &[FailureKind],
        failure: Atom,
        (ty, span): (&Type, Span),
        then: impl FnOnce(&mut Self) -> Atom,
    ) -> Atom {
        let given = vec![Some(Binding::Atom(failure.clone()))];
        let of = self.call_host(&FAILURE_KIND.into(), given, Type::Text, (span, &[]));
        let mut is_of_kind = Atom::Value(Value::Bool(false));
        for (at, kind) in kinds.iter().enumerate() {
            let of = of.clone();
            let is_this = |lowering: &mut Self| {
                lowering.prim(Prim::Equal, vec![of, Atom::Value(Value::text(kind.name()))], Type::Bool, span)
            };
            is_of_kind = match at {
                0 => is_this(self),
                _ => self.choose(is_of_kind, &Type::Bool, span, |_| Atom::Value(Value::Bool(true)), is_this),
            };
        }
        self.choose(is_of_kind, ty, span, then, |lowering| {
            lowering.failed(failure, &Type::Failure, (FailureTarget::Flow, None, Vec::new()), span)
        })
    }

    /// Returns the frame of the `fn` or `retry` that fails if the transaction of a step does, if there is one. `around` is the number of
    /// frames around the step.
    pub(super) fn frame_that_fails(&self, around: usize) -> Option<usize> {
        let mut path = std::iter::successors(around.checked_sub(1), |at| self.frames[*at].outer);
        path.find(|at| self.frames[*at].kind != InlineFrameKind::Closure).filter(|at| {
            let InlineFrame { kind, result, .. } = &self.frames[*at];
            matches!(kind, InlineFrameKind::Function | InlineFrameKind::Retry)
                && matches!(result, Type::Result(pair) if pair.1 == Type::Failure)
        })
    }

    /// Returns the function that is called: that which a parameter stands for, or the callee itself; none for a closure.
    fn callee(&self, of: &CallTarget) -> Option<CallTarget> {
        let CallTarget::Local(local) = of else { return Some(of.clone()) };
        match self.names.get(local)? {
            Binding::Callable(Callable::Function(at, scope)) if scope.code.module.is_none() => {
                Some(CallTarget::Function(self.program.declarations.fn_name(*at)))
            }
            Binding::Callable(Callable::Host(path)) => Some(CallTarget::Host(path.clone())),
            _ => None,
        }
    }

    /// Returns the failure that ends a flow for a failure of a type of the program: its message shows the value.
    fn described(&mut self, failure: Atom, ty: &Type, span: Span) -> Atom {
        if *ty == Type::Failure {
            return failure;
        }
        let parts = self.shown(failure, &Ty::fixed(ty), 0, span);
        let message = self.prim(Prim::Interpolate, parts, Type::Text, span);
        self.prim(Prim::Failure, vec![message], Type::Failure, span)
    }

    /// Adds the `fn`s that a failure leaves, up to this frame, to its backtrace. Returns the failure, and the place outside of
    /// them where it goes on. `of` is the function that failed at `span`.
    fn propagated(
        &mut self,
        failure: Atom,
        ty: &Type,
        of: Option<&CallTarget>,
        (to, span): (usize, Span),
    ) -> (Atom, Span) {
        if *ty != Type::Failure {
            return (failure, span);
        }
        let mut failed = match of {
            Some(CallTarget::Host(path) | CallTarget::Weir(path)) => path.clone(),
            Some(CallTarget::Function(name)) => (&**name).into(),
            _ => Text::default(),
        };
        let (mut sites, mut at) = (Vec::new(), span);
        for frame in self.failure_path().take_while(|frame| *frame >= to).map(|frame| &self.frames[frame]) {
            let Some(function) = &frame.function else { continue };
            let name = Text::from(&**function);
            let parts = [Value::Text(failed), Value::Text(name.clone()), Value::Int(at.start.into())];
            sites.push(Value::Record(parts.into_iter().collect()));
            (failed, at) = (name, frame.called_at);
        }
        if sites.is_empty() {
            return (failure, span);
        }
        let sites = Atom::Value(Value::List(sites.into_iter().collect()));
        (self.prim(Prim::Propagate, vec![failure, sites], Type::Failure, span), at)
    }

    /// Leaves the step, loop or race with the failure, and with the arguments that the handler uses; the handler follows it.
    fn defer(
        &mut self,
        (step, around_loop, around_race): (usize, usize, usize),
        (frame, handler): (usize, &'a FailureHandler),
        (failure, ty): (Atom, &Type),
        arguments: ArgumentAtoms,
    ) -> Atom {
        self.roll_back_steps_in(Some(frame), handler.span);
        let (mut leaving, mut leaves) = (failure, ty.clone());
        if !handler.arguments.is_empty() {
            let types = handler.arguments.iter().map(|pattern| self.argument_type(pattern));
            leaves = Type::Tuple([leaves].into_iter().chain(types).collect());
            let unit = Atom::Value(Value::Unit);
            let given = arguments.into_iter().chain(std::iter::repeat(None));
            let used = handler.arguments.iter().zip(given).map(|(pattern, argument)| match pattern.kind {
                PatternKind::Wildcard => unit.clone(),
                _ => argument.unwrap_or_else(|| unit.clone()),
            });
            let parts = [leaving].into_iter().chain(used).collect();
            leaving = self.prim(Prim::Record, parts, leaves.clone(), handler.span);
        }
        let deferred = DeferredHandler { handler, frame, step, around_loop, around_race, leaves };
        let same = |known: &DeferredHandler<'_>| {
            known.handler.span == handler.span
                && (known.frame, known.step) == (frame, step)
                && (known.around_loop, known.around_race) == (around_loop, around_race)
                && known.leaves == deferred.leaves
        };
        let known = self.deferred.iter().find_map(|(id, known)| same(known).then_some(*id));
        let id = known.unwrap_or_else(|| {
            self.frame_count += 1;
            InlineFrameId(self.frame_count)
        });
        self.deferred.insert(id, deferred);
        if !self.builder().has_ended() {
            let how = LoopExit::Failure(self.origin(handler.span));
            self.builder().end(Terminator::Exit(id, leaving, how));
        }
        Atom::Value(Value::Unit)
    }

    /// Returns the type of the argument that a pattern of a handler stands for; that of nothing if it uses none.
    fn argument_type(&self, pattern: &Pattern) -> Type {
        match pattern.kind {
            PatternKind::Wildcard => Type::Unit,
            _ => self.pattern_type(pattern.id),
        }
    }

    /// Handles the failure with which a step, loop or race was left.
    pub(super) fn handle_deferred(&mut self, deferred: &DeferredHandler<'a>, left: Atom, span: Span) -> Atom {
        let types = match &deferred.leaves {
            Type::Tuple(types) if !deferred.handler.arguments.is_empty() => types,
            _ => return self.handle(deferred.frame, deferred.handler, (left, Vec::new()), span),
        };
        let fields = types.iter().zip(0..);
        let parts = fields.map(|(ty, at)| self.prim(Prim::Field(at), vec![left.clone()], ty.clone(), span));
        let mut parts = parts.collect::<Vec<_>>().into_iter();
        let failure = parts.next().unwrap_or(Atom::Value(Value::Unit));
        self.handle(deferred.frame, deferred.handler, (failure, parts.map(Some).collect()), span)
    }

    /// Notes that a failure goes to the caller of a `fn` as its `Err`, past a handler outside.
    fn note_bypassed(
        &mut self,
        body: usize,
        of: Option<&CallTarget>,
        mut failed: Vec<CallTarget>,
        ty: &Type,
        span: Span,
    ) {
        let Some(function) = self.frames[body].function.clone() else { return };
        // A handler of the `fn` itself sees the failure at its caller.
        failed.pop();
        let outside = self.failure_path().skip_while(|at| *at >= body);
        let bypassed = outside.into_iter().find_map(|at| self.handler_in(at, &failed, ty).map(|(handler, _)| handler));
        let inner = match of {
            Some(CallTarget::Function(inner)) => Some(inner.clone()),
            _ => None,
        };
        self.context.handlers.bypassed(function, inner, bypassed, span);
    }

    /// Warns of the handlers around this place that a failure has bypassed inside of the `fn` that failed: nothing
    /// handles it.
    fn report_bypassed(&mut self, of: Option<&CallTarget>) {
        let Some(CallTarget::Function(function)) = of else { return };
        let around = self.failure_path().flat_map(|at| self.frames[at].handlers.iter().copied());
        let around: Vec<&FailureHandler> = around.collect();
        for warning in self.context.handlers.around(function, &around) {
            self.context.report_once(warning);
        }
    }

    fn exit_with_err(&mut self, at: usize, failure: Atom, span: Span) -> Atom {
        let result = self.frames[at].result.clone();
        let err = self.prim(Prim::Variant(Value::ERR), vec![failure], result, span);
        self.exit_frame(at, err, LoopExit::Failure, span)
    }

    /// Returns the frame's handler for a failure of one of these callees, and the position of the callee.
    fn handler_in(&self, at: usize, failed: &[CallTarget], ty: &Type) -> Option<(&'a FailureHandler, usize)> {
        self.frames[at].handlers.iter().copied().find_map(|handler| {
            let of = self.program.handler(handler)?;
            let named = of.local.is_some();
            let callee = failed.iter().position(|callee| *callee == of.target)?;
            (!named || of.failure.to_type() == *ty).then_some((handler, callee))
        })
    }

    fn handle(
        &mut self,
        at: usize,
        handler: &'a FailureHandler,
        (failure, arguments): (Atom, ArgumentAtoms),
        span: Span,
    ) -> Atom {
        let inner = self.frames.split_off(at + 1);
        // Failures of a handler are handled neither by itself nor by the handlers before it.
        let handlers = self.frames[at].handlers.clone();
        let position = handlers.iter().position(|known| known.span == handler.span).map_or(0, |found| found + 1);
        self.frames[at].handlers.drain(..position);
        let outer_names = std::mem::replace(&mut self.names, self.frames[at].parameters.clone());
        if let Some(local) = self.program.handler(handler).and_then(|of| of.local) {
            self.names.insert(local, Binding::Atom(failure));
        }
        let scope = self.frames[at].scope.clone();
        let value = self.behind_statements_in(at, |lowering| {
            lowering.in_scope(scope, span, |lowering| {
                lowering.bind_arguments(handler, arguments);
                lowering.block(&handler.body)
            })
        });
        self.names = outer_names;
        self.frames[at].handlers = handlers;
        // A flow without an answer drops the value of a handler of the file.
        let nothing = self.frames[at].result == Type::Unit;
        let value = if nothing { Atom::Value(Value::Unit) } else { value };
        let left = self.exit_frame(at, value, LoopExit::Failure, span);
        self.frames.extend(inner);
        left
    }

    /// Binds the names that a handler gives to the arguments of the failed call.
    fn bind_arguments(&mut self, handler: &'a FailureHandler, arguments: ArgumentAtoms) {
        for (pattern, argument) in handler.arguments.iter().zip(arguments) {
            if !matches!(pattern.kind, PatternKind::Wildcard) {
                let argument = argument.unwrap_or(Atom::Value(Value::Unit));
                self.no_shared(std::slice::from_ref(&argument), pattern.span);
                self.bind(pattern, argument);
            }
        }
    }

    /// Replaces the handlers of the innermost frame, which see all names that are bound now; returns the ones before.
    pub(super) fn replace_handlers(&mut self, handlers: Vec<&'a FailureHandler>) -> Vec<&'a FailureHandler> {
        let before = self.frames.last_mut().map(|frame| std::mem::replace(&mut frame.handlers, handlers));
        self.keep_parameters();
        before.unwrap_or_default()
    }

    /// Keeps the bindings of the innermost frame's parameters, if its handlers may need them.
    pub(super) fn keep_parameters(&mut self) {
        let names = self.names.clone();
        if let Some(frame) = self.frames.last_mut().filter(|frame| !frame.handlers.is_empty()) {
            frame.parameters = names;
        }
    }
}

/// Returns the handlers of a body.
pub(super) fn handlers_of(block: &Block) -> impl Iterator<Item = &FailureHandler> {
    block.statements.iter().filter_map(|statement| match &statement.kind {
        StatementKind::FailureHandler(handler) => Some(handler),
        _ => None,
    })
}

/// Returns the handlers of the main file, the only one that may have some.
pub(super) fn handlers_of_file(tree: &Tree) -> impl Iterator<Item = &FailureHandler> {
    tree.items.iter().take_while(|item| item.file == 0).filter_map(|item| match &item.kind {
        ItemKind::FailureHandler(handler) => Some(handler),
        _ => None,
    })
}
