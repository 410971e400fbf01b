//! Branches: where drafts are joined, and where a body leaves.

use weir_host::{Failure, FailureKind, Type, Value};
use weir_ir::expr::{ArmTest, Atom, Block, Let, Op, Variable};
use weir_ir::prim::Prim;
use weir_syntax::Span;

use super::draft::{Closing, Draft, DraftArm, End, FrameId, Vars};
use super::{BLOCKS_MAX, FrameKind, Lowering, origin, plain_fall, plain_leave};

impl Lowering<'_, '_> {
    /// Drafts an arm of a switch.
    pub(super) fn arm(
        &mut self,
        test: ArmTest,
        payload: Vec<Variable>,
        body: impl FnOnce(&mut Self) -> Atom,
    ) -> DraftArm {
        DraftArm { test, payload, body: self.scoped(body) }
    }

    /// A switch of drafted arms whose value has the type `ty`; goes on behind it.
    pub(super) fn switch(&mut self, subject: Atom, arms: Vec<DraftArm>, ty: &Type, span: Span) -> Atom {
        let end = End::Switch { subject, arms, origin: origin(span) };
        self.join(Draft { lets: Vec::new(), end }, ty, span)
    }

    /// Goes on behind a draft whose value has the type `ty`.
    pub(super) fn join(&mut self, draft: Draft, ty: &Type, span: Span) -> Atom {
        if self.scope().has_ended() {
            return Atom::Value(Value::Unit);
        }
        let mut targets = Vec::new();
        draft.targets(&mut targets);
        if targets.is_empty() {
            return self.join_plain(draft, ty, span);
        }
        if draft.falls() <= 1 {
            let value = self.scope().continue_in(draft);
            self.bound_depth(span);
            return value;
        }
        let step = self.steps(ty, &targets);
        let block = self.close_steps(draft, ty, &targets);
        let value = self.splice(block, &step, span);
        self.open_step(value, ty, &targets, span)
    }

    pub(super) fn bound_depth(&mut self, span: Span) {
        if self.scopes.iter().map(super::draft::Scope::depth).sum::<usize>() > BLOCKS_MAX {
            self.too_large_here(span, "give the parts of this statement names, with a `let` for each");
        }
    }

    /// Nobody leaves: the draft's bindings go here, its value is that of its last switch.
    fn join_plain(&mut self, draft: Draft, ty: &Type, span: Span) -> Atom {
        let yields = draft.yields();
        let block = self.close_plain(draft, ty);
        let value = self.splice(block, ty, span);
        if !yields {
            self.scope().end(End::Never);
        }
        value
    }

    /// The block of a draft that nobody leaves.
    pub(super) fn close_plain(&mut self, draft: Draft, ty: &Type) -> Block {
        let mut closing = Closing { vars: &mut self.vars, ty: ty.clone(), fall: &plain_fall, leave: &plain_leave };
        draft.close(&mut closing)
    }

    /// Puts a block's bindings here.
    pub(super) fn splice(&mut self, block: Block, _ty: &Type, span: Span) -> Atom {
        self.operations += block.lets.len();
        if self.operations > super::OPERATIONS_MAX {
            self.too_large(span);
        }
        self.scope().lets_mut().extend(block.lets);
        block.result
    }

    /// The type of a step: `Ok(value)` goes on, `Err(…)` leaves one of the targets.
    pub(super) fn steps(&self, ty: &Type, targets: &[FrameId]) -> Type {
        Type::result(ty.clone(), self.leaving(targets))
    }

    /// What leaves one of the targets: the result of a single one, else `Ok` of the first's or `Err` of the others'.
    fn leaving(&self, targets: &[FrameId]) -> Type {
        match targets {
            [] => Type::Unit,
            [last] => self.result_of(*last),
            [first, others @ ..] => Type::result(self.result_of(*first), self.leaving(others)),
        }
    }

    fn result_of(&self, frame: FrameId) -> Type {
        self.frames.iter().find(|known| known.id == frame).map_or(Type::Unit, |known| known.result.clone())
    }

    /// The block of a draft, which yields a step.
    pub(super) fn close_steps(&mut self, draft: Draft, ty: &Type, targets: &[FrameId]) -> Block {
        let step = self.steps(ty, targets);
        let leaving: Vec<Type> = (0..targets.len()).map(|at| self.leaving(&targets[at..])).collect();
        let fall =
            |vars: &mut Vars, lets: &mut Vec<Let>, value: Atom| vars.variant(lets, Value::OK, value, step.clone());
        let leave = |vars: &mut Vars, lets: &mut Vec<Let>, frame: FrameId, value: Atom| {
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
        let mut closing = Closing { vars: &mut self.vars, ty: step.clone(), fall: &fall, leave: &leave };
        draft.close(&mut closing)
    }

    /// Goes on with the value of a step that goes on; the others leave.
    pub(super) fn open_step(&mut self, step: Atom, ty: &Type, targets: &[FrameId], span: Span) -> Atom {
        if self.scope().has_ended() {
            return Atom::Value(Value::Unit);
        }
        let value = self.vars.variable("", ty.clone());
        let going = Draft { lets: Vec::new(), end: End::Fall(Atom::Var(value.var)) };
        let leaving = self.vars.variable("", self.leaving(targets));
        let left = self.leave_draft(Atom::Var(leaving.var), targets, span);
        let arms = vec![
            DraftArm { test: ArmTest::Tag(Value::OK), payload: vec![value], body: going },
            DraftArm { test: ArmTest::Tag(Value::ERR), payload: vec![leaving], body: left },
        ];
        let draft = Draft { lets: Vec::new(), end: End::Switch { subject: step, arms, origin: origin(span) } };
        let value = self.scope().continue_in(draft);
        self.bound_depth(span);
        value
    }

    fn leave_draft(&mut self, leaving: Atom, targets: &[FrameId], span: Span) -> Draft {
        let end = match targets {
            [] => End::Never,
            [last] => End::Leave(*last, leaving),
            [first, others @ ..] => {
                let result = self.vars.variable("", self.result_of(*first));
                let further = self.vars.variable("", self.leaving(others));
                let body = Draft { lets: Vec::new(), end: End::Leave(*first, Atom::Var(result.var)) };
                let deeper = self.leave_draft(Atom::Var(further.var), others, span);
                let arms = vec![
                    DraftArm { test: ArmTest::Tag(Value::OK), payload: vec![result], body },
                    DraftArm { test: ArmTest::Tag(Value::ERR), payload: vec![further], body: deeper },
                ];
                End::Switch { subject: leaving, arms, origin: origin(span) }
            }
        };
        Draft { lets: Vec::new(), end }
    }

    /// Leaves the body: ends the flow, or the inlined `fn` with its result.
    pub(super) fn leave(&mut self, result: Atom, span: Span) -> Atom {
        self.leave_frame(self.body_frame(), result, span)
    }

    /// Leaves a frame with its result, and all frames within it.
    pub(super) fn leave_frame(&mut self, at: usize, result: Atom, span: Span) -> Atom {
        let (id, kind) = (self.frames[at].id, self.frames[at].kind);
        if kind == FrameKind::Flow {
            return self.emit(Op::Return(result), Type::Never, span);
        }
        if !self.scope().has_ended() {
            self.scope().end(End::Leave(id, result));
        }
        Atom::Value(Value::Unit)
    }

    /// Ends the flow with a failure.
    pub(super) fn fail(&mut self, failure: Atom, span: Span) -> Atom {
        self.emit(Op::Fail(failure), Type::Never, span)
    }

    /// Ends the flow where nothing gets to.
    pub(super) fn never_reached(&mut self, span: Span) -> Atom {
        let failure = Failure::new(FailureKind::Program, "this is never reached");
        self.fail(Atom::Value(Value::Failure(Box::new(failure))), span)
    }

    /// Ends the flow where a value has no case: the checker makes sure that none is without, up to its bound.
    pub(super) fn no_case(&mut self, span: Span) -> Atom {
        let failure = Failure::new(FailureKind::Program, "no arm of a match takes this value");
        self.fail(Atom::Value(Value::Failure(Box::new(failure))), span)
    }

    /// A value of two arms of a `Result` or `Option`: `held` with what it holds, `otherwise` with the failure if any.
    pub(super) fn outcome(
        &mut self,
        outcome: Outcome,
        ty: &Type,
        span: Span,
        otherwise: impl FnOnce(&mut Self, Option<Atom>) -> Atom,
    ) -> Atom {
        let Outcome { subject, of } = outcome;
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

    /// A tuple of atoms, or the only one.
    pub(super) fn together(&mut self, atoms: Vec<Atom>, types: &[Type], span: Span) -> Atom {
        match <[Atom; 1]>::try_from(atoms) {
            Ok([only]) => only,
            Err(atoms) => self.prim(Prim::Record, atoms, Type::Tuple(types.into()), span),
        }
    }
}

/// A `Result` or `Option`, with its type.
pub(super) struct Outcome {
    pub(super) subject: Atom,
    pub(super) of: Type,
}
