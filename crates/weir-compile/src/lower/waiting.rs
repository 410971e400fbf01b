//! Lowers `within`, `race` and `retry`.

use weir_host::{Failure, FailureKind, Signature, Type, Value, World};
use weir_ir::expr::{ArmTest, Atom, Block as IrBlock, Op};
use weir_ir::prim::Prim;
use weir_syntax::ast::{Argument, Block, Expr};
use weir_syntax::{Code, Diagnostic, Span};

use super::block_builder::{BlockExits, InlineFrameId, OpenBlock};
use super::branch::FallibleValue;
use super::{Binding, InlineFrame, InlineFrameKind, Lowering, Names};
use crate::lang_items::{FAILURE_KIND, TABLES, WAIT_FOR_ATTEMPT};

/// The back-off of `retry` doubles after each try while it is shorter than this: a minute, in nanoseconds.
const BACKOFF_DOUBLES_UP_TO_NS: i64 = 60_000_000_000;

impl<'a> Lowering<'a, '_> {
    /// Lowers `value within limit` to `Ok(value)` or a timeout failure.
    pub(super) fn within(&mut self, expr: &'a Expr, value: &'a Expr, limit: &'a Expr) -> Atom {
        let span = expr.span;
        let limit = self.expr(limit);
        let (result, inner) = (self.ty(expr), self.ty(value));
        let open_block = self.build_block(|lowering| lowering.expr(value));
        let (body, exits) = self.close_any(open_block, &inner);
        let yields = if exits.is_empty() { inner.clone() } else { self.control_flow_type(&inner, &exits) };
        let some = Type::option(yields.clone());
        let outcome = self.emit(Op::Within { limit, body }, some.clone(), span);
        let same = inner == result;
        let wrapped = result.clone();
        let in_time = self.vars.variable("", yields);
        let atom = Atom::Var(in_time.var);
        let arms = vec![
            self.arm(ArmTest::Tag(Value::SOME), vec![in_time], |lowering| {
                let value =
                    if exits.is_empty() { atom } else { lowering.branch_on_control_flow(atom, &inner, &exits, span) };
                if same { value } else { lowering.prim(Prim::Variant(Value::OK), vec![value], wrapped, span) }
            }),
            self.arm(ArmTest::Tag(Value::NONE), Vec::new(), |_| {
                let failure = Failure::new(FailureKind::Timeout, "the time is up");
                Atom::Value(Value::err(Value::Failure(Box::new(failure))))
            }),
        ];
        self.switch(outcome, arms, &result, span)
    }

    /// Lowers `race { a, b }`. If one body may exit a `fn`, all yield control-flow values.
    pub(super) fn race(&mut self, expr: &'a Expr, bodies: &'a [Expr]) -> Atom {
        let ty = self.ty(expr);
        self.races.push(self.frames.len());
        let drafts: Vec<OpenBlock> =
            bodies.iter().map(|body| self.build_block(|lowering| lowering.expr(body))).collect();
        self.races.pop();
        let mut exits = BlockExits::default();
        drafts.iter().for_each(|open_block| open_block.add_exits(&mut exits));
        let yields = drafts.iter().any(OpenBlock::yields);
        let bodies = drafts.into_iter().map(|open_block| match exits.is_empty() {
            true => self.close_without_exits(open_block, &ty),
            false => self.close_to_control_flow(open_block, &ty, &exits),
        });
        let bodies: Vec<IrBlock> = bodies.collect();
        let bound = match (yields, exits.is_empty()) {
            (false, _) => Type::Never,
            (true, true) => ty.clone(),
            (true, false) => self.control_flow_type(&ty, &exits),
        };
        let value = self.emit(Op::Race { bodies }, bound, expr.span);
        if exits.is_empty() { value } else { self.branch_on_control_flow(value, &ty, &exits, expr.span) }
    }

    fn close_any(&mut self, open_block: OpenBlock, ty: &Type) -> (IrBlock, BlockExits) {
        let exits = open_block.exits();
        let block = if exits.is_empty() {
            self.close_without_exits(open_block, ty)
        } else {
            self.close_to_control_flow(open_block, ty, &exits)
        };
        (block, exits)
    }

    /// Lowers `retry(n) { … }` to a loop until the first `Ok`. Its state is the number of tries, the last result and,
    /// with a back-off, the next wait.
    pub(super) fn retry(&mut self, expr: &'a Expr, arguments: &'a [Argument], body: &'a Block) -> Atom {
        let span = expr.span;
        let result = self.ty(expr);
        let tries = self.typed.of(expr.id).at_most.get(&expr.id).copied().unwrap_or(1);
        let backoff =
            arguments.iter().find(|argument| argument.name.as_ref().is_some_and(|name| &*name.text == "backoff"));
        let backoff = backoff.map(|argument| self.expr(&argument.value));
        let waits = backoff.iter().map(|_| Type::Duration);
        let state_type = Type::tuple([Type::Int, Type::option(result.clone())].into_iter().chain(waits).collect());
        let pair = Type::tuple(vec![state_type.clone(), Type::Bool]);
        let state = self.vars.variable("tries", state_type.clone());
        let before = Atom::Var(state.var);
        let open_block = self.build_block(|lowering| {
            let tried = lowering.prim(Prim::Field(0), vec![before.clone()], Type::Int, span);
            let wait = backoff.as_ref().map(|_| lowering.prim(Prim::Field(2), vec![before], Type::Duration, span));
            let nothing = Atom::Value(Value::Int(0));
            let first = lowering.prim(Prim::Equal, vec![tried.clone(), nothing], Type::Bool, span);
            let mut writes_tables = false;
            let mut one_try = |lowering: &mut Self| {
                let (outcome, writes) = lowering.one_try(body, &result, tries, span);
                writes_tables = writes;
                outcome
            };
            let outcome = match &wait {
                None => one_try(lowering),
                Some(wait) => {
                    let waited = lowering.wait_before(first.clone(), wait.clone(), span);
                    let arm = lowering.arm(ArmTest::Otherwise, Vec::new(), one_try);
                    lowering.switch(waited, vec![arm], &result, span)
                }
            };
            let one = Atom::Value(Value::Int(1));
            let tried = lowering.prim(Prim::Add, vec![tried, one], Type::Int, span);
            let wait = wait.map(|wait| lowering.next_wait(first, wait, span));
            let kept =
                lowering.prim(Prim::Variant(Value::SOME), vec![outcome.clone()], Type::option(result.clone()), span);
            let next = [tried.clone(), kept].into_iter().chain(wait).collect();
            let next = lowering.prim(Prim::Record, next, state_type.clone(), span);
            let done = lowering.is_last_try((tried, outcome), (&result, writes_tables), tries, span);
            lowering.prim(Prim::Record, vec![next, done], pair.clone(), span)
        });
        let (none, outcome) = (Atom::Value(Value::Int(0)), Atom::Value(Value::none()));
        let init = [none, outcome].into_iter().chain(backoff).collect();
        let init = self.prim(Prim::Record, init, state_type.clone(), span);
        let (body, exits) = self.close_any(open_block, &pair);
        let last = if exits.is_empty() {
            self.emit(Op::Loop { init: vec![init], state: vec![state], body, at_most: tries }, state_type.clone(), span)
        } else {
            self.loop_with_exits(span, (init, state, body), (&state_type, &pair), &exits, tries)
        };
        let last = self.prim(Prim::Field(1), vec![last], Type::option(result.clone()), span);
        let of = Type::option(result.clone());
        self.match_fallible(FallibleValue { subject: last, of }, &result, span, |lowering, _| lowering.no_case(span))
    }

    /// Warns of a call inside a `retry` that changes the outside world and is not declared as repeatable.
    pub(super) fn retried(&mut self, signature: &Signature, span: Span) {
        let within = self.frames.iter().any(|frame| frame.kind == InlineFrameKind::Retry);
        // Whether a write of a table may be repeated depends on what follows it (`retried_writes`).
        let of_tables = signature.module.as_str() == TABLES;
        if !within || of_tables || signature.effects.world != World::Writes || signature.effects.idempotent {
            return;
        }
        let path = signature.path();
        let diagnostic = Diagnostic::new(Code::RetriedEffect, format!("`{path}` may happen more than once"))
            .at(span, "inside a `retry`, and not `idempotent`")
            .note("a try may fail after it has done its work")
            .hint(format!(
                "move `{path}` out of the `retry`, or declare it `idempotent` if repeating it changes nothing"
            ));
        self.context.report_once(diagnostic);
    }

    /// Waits before every try but the first. The try depends on the result, so that it cannot overlap the wait.
    fn wait_before(&mut self, first: Atom, wait: Atom, span: Span) -> Atom {
        self.choose(
            first,
            &Type::Bool,
            span,
            |_| Self::constant_true(),
            |lowering| {
                let given = vec![Some(Binding::Atom(wait))];
                let slept = lowering.call_host(&WAIT_FOR_ATTEMPT.into(), given, Type::Unit, (span, &[]));
                lowering.prim(Prim::Equal, vec![slept, Atom::Value(Value::Unit)], Type::Bool, span)
            },
        )
    }

    /// Returns the wait after this try.
    fn next_wait(&mut self, first: Atom, wait: Atom, span: Span) -> Atom {
        let same = wait.clone();
        self.choose(first, &Type::Duration, span, |_| same, |lowering| lowering.longer(wait, span))
    }

    /// Doubles the wait while it is below the bound.
    fn longer(&mut self, wait: Atom, span: Span) -> Atom {
        let bound = Atom::Value(Value::Duration(BACKOFF_DOUBLES_UP_TO_NS));
        let grows = self.prim(Prim::Less, vec![wait.clone(), bound], Type::Bool, span);
        let same = wait.clone();
        let twice = vec![wait, Atom::Value(Value::Int(2))];
        self.choose(
            grows,
            &Type::Duration,
            span,
            |lowering| lowering.prim(Prim::Multiply, twice, Type::Duration, span),
            |_| same,
        )
    }

    /// Lowers one try, whose result includes the failure of a `?` inside. Also returns whether it writes tables.
    fn one_try(&mut self, body: &'a Block, result: &Type, tries: u64, span: Span) -> (Atom, bool) {
        self.frame_count += 1;
        let id = InlineFrameId(self.frame_count);
        let site = self.frame().call_path.clone();
        self.frames.push(InlineFrame {
            id,
            call_path: site,
            result: result.clone(),
            kind: InlineFrameKind::Retry,
            outer: self.frames.len().checked_sub(1),
            function: None,
            called_at: span,
            inlined_call: self.frame().inlined_call,
            arguments: Vec::new(),
            handlers: Vec::new(),
            parameters: Names::new(),
            scope: self.scope(),
        });
        let value_type = body.value().map_or(Type::Unit, |value| self.ty(value));
        let mut open_block = self.build_block(|lowering| {
            let value = lowering.block(body);
            match value_type == *result || lowering.builder().has_ended() {
                true => value,
                false => lowering.prim(Prim::Variant(Value::OK), vec![value], result.clone(), span),
            }
        });
        open_block.resolve_exits(id);
        if tries > 1 {
            self.report_repeated_writes(&open_block, span);
        }
        let writes_tables = self.writes_tables_in(&open_block);
        let outcome = self.join(open_block, result, span);
        self.frames.pop();
        (outcome, writes_tables)
    }

    /// Returns whether the loop is done: after a success, after the last try, and after the failure of a write of which nobody knows
    /// whether it has taken effect, because another try may write twice.
    fn is_last_try(
        &mut self,
        (tried, outcome): (Atom, Atom),
        (result, writes_tables): (&Type, bool),
        tries: u64,
        span: Span,
    ) -> Atom {
        let bound = Atom::Value(Value::Int(i64::try_from(tries).unwrap_or(i64::MAX)));
        let was_last = |lowering: &mut Self| lowering.prim(Prim::GreaterOrEqual, vec![tried, bound], Type::Bool, span);
        let fails_by_failure = matches!(result, Type::Result(pair) if pair.1 == Type::Failure);
        if !writes_tables || !fails_by_failure {
            let fine = self.prim(Prim::IsVariant(Value::OK), vec![outcome], Type::Bool, span);
            return self.choose(fine, &Type::Bool, span, |_| Self::constant_true(), was_last);
        }
        let failure = self.vars.variable("", Type::Failure);
        let given = vec![Some(Binding::Atom(Atom::Var(failure.var)))];
        let arms = vec![
            self.arm(ArmTest::Tag(Value::ERR), vec![failure], |lowering| {
                let kind = lowering.call_host(&FAILURE_KIND.into(), given, Type::Text, (span, &[]));
                let uncertain = Atom::Value(Value::text(FailureKind::Uncertain.name()));
                let is_uncertain = lowering.prim(Prim::Equal, vec![kind, uncertain], Type::Bool, span);
                lowering.choose(is_uncertain, &Type::Bool, span, |_| Self::constant_true(), was_last)
            }),
            self.arm(ArmTest::Otherwise, Vec::new(), |_| Self::constant_true()),
        ];
        self.switch(outcome, arms, &Type::Bool, span)
    }
}
