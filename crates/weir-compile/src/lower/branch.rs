//! Branches: joins open blocks, and lowers exits.

use weir_host::{Failure, FailureKind, Type, Value};
use weir_ir::expr::{ArmTest, Atom, Block, Let, LoopExit, Op, Origin, Variable};
use weir_ir::prim::Prim;
use weir_syntax::Span;

use super::block_builder::{
    BlockExits, ClosingRules, InlineFrameId, OpenArm, OpenBlock, Terminator, VariableSupply, yield_exit_value,
    yield_value,
};
use super::{BLOCKS_MAX, DeferredHandler, InlineFrameKind, Lowering};

impl<'a> Lowering<'a, '_> {
    /// Builds an arm of a switch.
    pub(super) fn arm(
        &mut self,
        test: ArmTest,
        payload: Vec<Variable>,
        body: impl FnOnce(&mut Self) -> Atom,
    ) -> OpenArm {
        OpenArm { test, payload, body: self.build_block(body) }
    }

    /// Appends a switch whose value has the type `ty` and continues after it.
    pub(super) fn switch(&mut self, subject: Atom, arms: Vec<OpenArm>, ty: &Type, span: Span) -> Atom {
        let end = Terminator::Switch { subject, arms, origin: self.origin(span) };
        self.join(OpenBlock { lets: Vec::new(), end }, ty, span)
    }

    /// Appends an open block whose value has the type `ty` and continues after it.
    pub(super) fn join(&mut self, open_block: OpenBlock, ty: &Type, span: Span) -> Atom {
        if self.builder().has_ended() {
            return Atom::Value(Value::Unit);
        }
        let exits = open_block.exits();
        if exits.is_empty() {
            return self.join_without_exits(open_block, ty, span);
        }
        if open_block.fall_through_count() <= 1 {
            let value = self.builder().continue_in(open_block);
            self.bound_depth(span);
            return value;
        }
        let step = self.control_flow_type(ty, &exits);
        let block = self.close_to_control_flow(open_block, ty, &exits);
        let value = self.splice(block, &step, span);
        self.branch_on_control_flow(value, ty, &exits, span)
    }

    pub(super) fn bound_depth(&mut self, span: Span) {
        if self.builders.iter().map(super::block_builder::BlockBuilder::depth).sum::<usize>() > BLOCKS_MAX {
            self.too_large_here(span, "split this statement: bind its parts with `let`");
        }
    }

    /// Appends a block without exits, whose value is that of its last switch.
    fn join_without_exits(&mut self, open_block: OpenBlock, ty: &Type, span: Span) -> Atom {
        let yields = open_block.yields();
        let block = self.close_without_exits(open_block, ty);
        let value = self.splice(block, ty, span);
        if !yields {
            self.builder().end(Terminator::Diverge);
        }
        value
    }

    /// Closes a block without exits.
    pub(super) fn close_without_exits(&mut self, open_block: OpenBlock, ty: &Type) -> Block {
        let mut rules =
            ClosingRules { vars: &mut self.vars, ty: ty.clone(), fall: &yield_value, leave: &yield_exit_value };
        open_block.close(&mut rules)
    }

    /// Appends the bindings of a block.
    pub(super) fn splice(&mut self, block: Block, _ty: &Type, span: Span) -> Atom {
        self.operations += block.lets.len();
        if self.operations > super::OPERATIONS_MAX {
            self.too_large(span);
        }
        self.builder().lets_mut().extend(block.lets);
        block.result
    }

    /// Returns the type of a control-flow value: `Ok(value)` continues, `Err(…)` exits one of the targets.
    pub(super) fn control_flow_type(&self, ty: &Type, exits: &BlockExits) -> Type {
        Type::result(ty.clone(), self.exit_type(&exits.targets))
    }

    /// Returns the type that encodes an exit: the result of the only target, or `Ok` for the first and `Err` for the
    /// others.
    fn exit_type(&self, targets: &[InlineFrameId]) -> Type {
        match targets {
            [] => Type::Unit,
            [last] => self.result_of(*last),
            [first, others @ ..] => Type::result(self.result_of(*first), self.exit_type(others)),
        }
    }

    fn result_of(&self, frame: InlineFrameId) -> Type {
        match self.deferred.get(&frame) {
            Some(deferred) => deferred.leaves.clone(),
            None => self.frames.iter().find(|known| known.id == frame).map_or(Type::Unit, |known| known.result.clone()),
        }
    }

    /// Closes a block so that it yields a control-flow value.
    pub(super) fn close_to_control_flow(&mut self, open_block: OpenBlock, ty: &Type, exits: &BlockExits) -> Block {
        let step = self.control_flow_type(ty, exits);
        let targets = &exits.targets;
        let leaving: Vec<Type> = (0..targets.len()).map(|at| self.exit_type(&targets[at..])).collect();
        let fall = |vars: &mut VariableSupply, lets: &mut Vec<Let>, value: Atom| {
            vars.variant(lets, Value::OK, value, step.clone())
        };
        let leave = |vars: &mut VariableSupply, lets: &mut Vec<Let>, frame: InlineFrameId, value: Atom| {
            let at = targets.iter().position(|target| *target == frame).unwrap_or(0);
            let mut value = value;
            if at + 1 < targets.len() {
                value = vars.variant(lets, Value::OK, value, leaving[at].clone());
            }
            for outer in leaving[..at].iter().rev() {
                value = vars.variant(lets, Value::ERR, value, outer.clone());
            }
            vars.variant(lets, Value::ERR, value, step.clone())
        };
        let mut rules = ClosingRules { vars: &mut self.vars, ty: step.clone(), fall: &fall, leave: &leave };
        open_block.close(&mut rules)
    }

    /// Branches on a control-flow value: continues with the value of `Ok` and exits on `Err`.
    pub(super) fn branch_on_control_flow(&mut self, step: Atom, ty: &Type, exits: &BlockExits, span: Span) -> Atom {
        if self.builder().has_ended() {
            return Atom::Value(Value::Unit);
        }
        let value = self.vars.variable("", ty.clone());
        let going = OpenBlock { lets: Vec::new(), end: Terminator::FallThrough(Atom::Var(value.var)) };
        let leaving = self.vars.variable("", self.exit_type(&exits.targets));
        let left = self.exit_block(Atom::Var(leaving.var), (&exits.targets, exits.how), span);
        let arms = vec![
            OpenArm { test: ArmTest::Tag(Value::OK), payload: vec![value], body: going },
            OpenArm { test: ArmTest::Tag(Value::ERR), payload: vec![leaving], body: left },
        ];
        let open_block =
            OpenBlock { lets: Vec::new(), end: Terminator::Switch { subject: step, arms, origin: self.origin(span) } };
        let value = self.builder().continue_in(open_block);
        self.bound_depth(span);
        value
    }

    fn exit_block(&mut self, leaving: Atom, (targets, how): (&[InlineFrameId], LoopExit), span: Span) -> OpenBlock {
        let end = match targets {
            [] => Terminator::Diverge,
            [last] => return self.exit_or_handle(*last, (leaving, how), span),
            [first, others @ ..] => {
                let result = self.vars.variable("", self.result_of(*first));
                let further = self.vars.variable("", self.exit_type(others));
                let body = self.exit_or_handle(*first, (Atom::Var(result.var), how), span);
                let deeper = self.exit_block(Atom::Var(further.var), (others, how), span);
                let arms = vec![
                    OpenArm { test: ArmTest::Tag(Value::OK), payload: vec![result], body },
                    OpenArm { test: ArmTest::Tag(Value::ERR), payload: vec![further], body: deeper },
                ];
                Terminator::Switch { subject: leaving, arms, origin: self.origin(span) }
            }
        };
        OpenBlock { lets: Vec::new(), end }
    }

    /// Returns a block that exits to this target, or the handler that was deferred to the end of a step, loop or race, if this is behind it.
    fn exit_or_handle(&mut self, target: InlineFrameId, (leaving, how): (Atom, LoopExit), span: Span) -> OpenBlock {
        let is_behind = |deferred: &&DeferredHandler<'_>| {
            self.steps.len() <= deferred.step
                && self.loops.len() <= deferred.around_loop
                && self.races.len() <= deferred.around_race
        };
        match self.deferred.get(&target).filter(is_behind).cloned() {
            Some(deferred) => self.build_block(|lowering| lowering.handle_deferred(&deferred, leaving, span)),
            None => OpenBlock { lets: Vec::new(), end: Terminator::Exit(target, leaving, how) },
        }
    }

    /// Exits the body: ends the flow, or returns from the inlined `fn`.
    pub(super) fn exit_body(&mut self, result: Atom, ty: &Type, span: Span) -> Atom {
        let frame = self.body_frame();
        let result = self.commit_steps_in(frame, (result, ty), span);
        self.exit_frame(frame, result, LoopExit::Return, span)
    }

    /// Exits a frame, and all frames inside it, with its result, in this way.
    pub(super) fn exit_frame(&mut self, at: usize, result: Atom, how: fn(Origin) -> LoopExit, span: Span) -> Atom {
        let (id, kind) = (self.frames[at].id, self.frames[at].kind);
        if kind == InlineFrameKind::Flow {
            self.settle(span);
            return self.emit(Op::Return(result), Type::Never, span);
        }
        if !self.builder().has_ended() {
            let how = how(self.origin(span));
            self.builder().end(Terminator::Exit(id, result, how));
        }
        Atom::Value(Value::Unit)
    }

    /// Ends the flow with a failure.
    pub(super) fn fail(&mut self, failure: Atom, span: Span) -> Atom {
        self.emit(Op::Fail(failure), Type::Never, span)
    }

    /// Ends the flow with an internal failure, at an unreachable place.
    pub(super) fn never_reached(&mut self, span: Span) -> Atom {
        let failure = Failure::new(FailureKind::Program, "this is never reached");
        self.fail(Atom::Value(Value::Failure(Box::new(failure))), span)
    }

    /// Ends the flow with an internal failure for a value without a case. The exhaustiveness check rules this out, up
    /// to its limit.
    pub(super) fn no_case(&mut self, span: Span) -> Atom {
        let failure = Failure::new(FailureKind::Program, "no arm of a match takes this value");
        self.fail(Atom::Value(Value::Failure(Box::new(failure))), span)
    }

    /// Branches on a `Result` or `Option`: the value it holds, or `otherwise` applied to the failure, if any.
    pub(super) fn match_fallible(
        &mut self,
        outcome: FallibleValue,
        ty: &Type,
        span: Span,
        otherwise: impl FnOnce(&mut Self, Option<Atom>) -> Atom,
    ) -> Atom {
        let FallibleValue { subject, of } = outcome;
        let (held_ty, failure_ty, tags) = match &of {
            Type::Result(pair) => (pair.0.clone(), Some(pair.1.clone()), (Value::OK, Value::ERR)),
            Type::Option(some) => ((**some).clone(), None, (Value::SOME, Value::NONE)),
            _ => return subject,
        };
        let held = self.vars.variable("", held_ty);
        let value = Atom::Var(held.var);
        let failure = failure_ty.map(|ty| self.vars.variable("", ty));
        let failed = failure.as_ref().map(|failure| Atom::Var(failure.var));
        let arms = vec![
            self.arm(ArmTest::Tag(tags.0), vec![held], |_| value),
            self.arm(ArmTest::Tag(tags.1), failure.into_iter().collect(), |lowering| otherwise(lowering, failed)),
        ];
        self.switch(subject, arms, ty, span)
    }

    /// Returns a tuple of the atoms, or the only one.
    pub(super) fn together(&mut self, atoms: Vec<Atom>, types: &[Type], span: Span) -> Atom {
        match <[Atom; 1]>::try_from(atoms) {
            Ok([only]) => only,
            Err(atoms) => self.prim(Prim::Record, atoms, Type::Tuple(types.into()), span),
        }
    }
}

/// A `Result` or `Option`, with its type.
pub(super) struct FallibleValue {
    pub(super) subject: Atom,
    pub(super) of: Type,
}
