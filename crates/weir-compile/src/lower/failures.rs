//! Lowers failures: to the innermost matching handler, to the caller of a `fn`, or to the end of the flow.
//!
//! A failing `?` searches the frames from the innermost outwards. A handler of a frame matches if it names the function
//! that failed, or a `fn` inside the frame that the failure propagates through. A `fn` that returns a `Result` keeps
//! the failure as its `Err`. A handler runs in its own frame: it sees that frame's parameters, its value is that
//! frame's result, and its own failures go to the handlers further out.

use weir_host::{Type, Value};
use weir_ir::expr::Atom;
use weir_ir::prim::Prim;
use weir_syntax::Span;
use weir_syntax::ast::{Block, Expr, FailureHandler, ItemKind, StatementKind, Tree};

use super::{Binding, InlineFrameKind, Lowering};
use crate::typed_tree::{CallTarget, FailureTarget};

impl<'a> Lowering<'a, '_> {
    /// Lowers `fail(why)`; if `says`, wraps the text in a `Failure`.
    pub(super) fn fail_with(&mut self, expr: &'a Expr, says: bool, why: Vec<Atom>, ty: Option<Type>) -> Atom {
        let to = self.typed.tries.get(&expr.id).map_or(FailureTarget::Flow, |of| of.to);
        let (failure, ty) = match says {
            true => (self.prim(Prim::Failure, why, Type::Failure, expr.span), Type::Failure),
            false => (why.into_iter().next().unwrap_or(Atom::Value(Value::Unit)), ty.unwrap_or(Type::Failure)),
        };
        self.failed(failure, &ty, (to, None), expr.span)
    }

    /// Lowers the failure of a `?`.
    pub(super) fn failed(
        &mut self,
        failure: Atom,
        ty: &Type,
        (to, of): (FailureTarget, Option<&CallTarget>),
        span: Span,
    ) -> Atom {
        let mut failed: Vec<CallTarget> = of.cloned().into_iter().collect();
        if to == FailureTarget::Retry {
            let frame = self.frames.iter().rposition(|frame| frame.kind == InlineFrameKind::Retry).unwrap_or(0);
            return self.exit_with_err(frame, failure, span);
        }
        let body = self.body_frame();
        let frames = if to == FailureTarget::Caller { body..body + 1 } else { 0..self.frames.len() };
        for at in frames.rev() {
            if let Some(handler) = self.handler_in(at, &failed, ty) {
                return self.handle(at, handler, failure, span);
            }
            failed.extend(self.frames[at].function.map(CallTarget::Function));
        }
        if to == FailureTarget::Caller { self.exit_with_err(body, failure, span) } else { self.fail(failure, span) }
    }

    fn exit_with_err(&mut self, at: usize, failure: Atom, span: Span) -> Atom {
        let result = self.frames[at].result.clone();
        let err = self.prim(Prim::Variant(Value::ERR), vec![failure], result, span);
        self.exit_frame(at, err, span)
    }

    /// Returns the frame's handler for a failure of one of these callees.
    fn handler_in(&self, at: usize, failed: &[CallTarget], ty: &Type) -> Option<&'a FailureHandler> {
        self.frames[at].handlers.iter().copied().find(|handler| {
            let Some(of) = self.typed.handlers.get(&handler.span.start) else { return false };
            let named = of.local.is_some();
            failed.contains(&of.target) && (!named || of.failure.to_type() == *ty)
        })
    }

    fn handle(&mut self, at: usize, handler: &'a FailureHandler, failure: Atom, span: Span) -> Atom {
        let inner = self.frames.split_off(at + 1);
        // Failures of a handler are handled neither by itself nor by the handlers before it.
        let handlers = self.frames[at].handlers.clone();
        let position = handlers.iter().position(|known| known.span == handler.span).map_or(0, |found| found + 1);
        self.frames[at].handlers.drain(..position);
        let outer_names = std::mem::replace(&mut self.names, self.frames[at].parameters.clone());
        if let Some(local) = self.typed.handlers.get(&handler.span.start).and_then(|of| of.local) {
            self.names.insert(local, Binding::Atom(failure));
        }
        let value = self.block(&handler.body);
        self.names = outer_names;
        self.frames[at].handlers = handlers;
        // A flow without an answer drops the value of a handler of the file.
        let nothing = self.frames[at].result == Type::Unit;
        let left = self.exit_frame(at, if nothing { Atom::Value(Value::Unit) } else { value }, span);
        self.frames.extend(inner);
        left
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

/// Returns the handlers of the file.
pub(super) fn handlers_of_file(tree: &Tree) -> impl Iterator<Item = &FailureHandler> {
    tree.items.iter().filter_map(|item| match &item.kind {
        ItemKind::FailureHandler(handler) => Some(handler),
        _ => None,
    })
}
