//! Copies of operations of a `fold` whose failures are kept: a value that depends on an operation that may fail is a `Result` in the
//! `for`. A read keeps its failure, a primitive is replaced by its checked form, and a `fail` by its failure.
//!
//! An operation that needs such values is evaluated in arms that have them; if there is a failure instead, its result is this failure.
//! The `fold` fails at the place of the operation, and never comes to what depends on it. Operations that do not need the value of
//! such an operation stay outside of its arms, and wait for nothing that they did not wait for before.

use std::collections::BTreeSet;

use weir_host::{Type, Value};

use super::has_failure;
use super::moving::{Mover, result_arms};
use crate::expr::{Arm, Atom, Block, Call, Let, LoopExit, Op, Var, Variable};
use crate::prim::Prim;

/// Makes the value that takes the place of one of this type if there is a failure.
type OfFailure<'f, 'a> = fn(&mut Mover<'f, 'a>, &Type, &Variable, &mut Vec<Let>) -> Atom;

impl<'f, 'a> Mover<'f, 'a> {
    /// Returns true if the result of an operation depends on an operation whose failure is kept.
    pub(super) fn may_fail(&self, op: &Op) -> bool {
        let is_kept = |atom: &Atom| atom.variable().is_some_and(|var| self.kept.contains(&var));
        let mut needs_kept = op.operands().any(is_kept);
        op.blocks().for_each(|block| block.each_operand(&mut |atom| needs_kept |= is_kept(atom)));
        self.keeps && (needs_kept || has_failure(op, self.facts))
    }

    /// Adds a copy of a binding that may fail; returns its variable, a `Result`.
    pub(super) fn copy_kept(&mut self, binding: &Let, lets: &mut Vec<Let>) -> Variable {
        let kept: BTreeSet<Var> = binding.op.uses().filter(|var| self.kept.contains(var)).collect();
        let kept: Vec<Var> = kept.into_iter().collect();
        let of_result = Type::result(binding.bound.ty.clone(), Type::Failure);
        let outside = std::mem::replace(&mut self.origin, binding.origin);
        let made = self.with_values(&kept, Mover::failed, lets, &mut |mover, lets| {
            mover.kept_op(&binding.op, (&binding.bound.ty, &of_result), lets)
        });
        self.origin = outside;
        self.renamed.insert(binding.bound.var, made.var);
        self.kept.insert(binding.bound.var);
        made
    }

    /// Has `make` make a value, and returns it, in arms that have the values of these variables of the `fold`.
    pub(super) fn with_values(
        &mut self,
        kept: &[Var],
        of_failure: OfFailure<'f, 'a>,
        lets: &mut Vec<Let>,
        make: &mut dyn FnMut(&mut Self, &mut Vec<Let>) -> Variable,
    ) -> Variable {
        let Some((var, others)) = kept.split_first() else { return make(self, lets) };
        let ty = self.facts.ty(*var).cloned().expect("the flow binds the variable");
        let (value, failure) = (self.facts.variable(ty), self.facts.variable(Type::Failure));
        let result = self.renamed.insert(*var, value.var).expect("a kept variable has a copy");
        self.kept.remove(var);
        let mut inner = Vec::new();
        let made = self.with_values(others, of_failure, &mut inner, make);
        self.renamed.insert(*var, result);
        self.kept.insert(*var);
        let going = Block { lets: inner, result: Atom::Var(made.var) };
        let mut inner = Vec::new();
        let instead = of_failure(self, &made.ty, &failure, &mut inner);
        let failed = Block { lets: inner, result: instead };
        let op = Op::Switch { subject: Atom::Var(result), arms: result_arms((value, going), (failure, failed)) };
        self.push(op, made.ty, lets)
    }

    /// Adds a `Result` of this type with a failure.
    pub(super) fn failed(&mut self, ty: &Type, failure: &Variable, lets: &mut Vec<Let>) -> Atom {
        Atom::Var(self.variant(Value::ERR, Atom::Var(failure.var), ty, lets).var)
    }

    fn variant(&mut self, tag: u32, payload: Atom, ty: &Type, lets: &mut Vec<Let>) -> Variable {
        self.push(Op::Prim(Prim::Variant(tag), vec![payload]), ty.clone(), lets)
    }

    /// Adds an operation whose operands are values, and returns its `Result`.
    fn kept_op(&mut self, op: &Op, (ty, of_result): (&Type, &Type), lets: &mut Vec<Let>) -> Variable {
        let copy = self.renamed_operands(op);
        match (op, copy) {
            (Op::Prim(Prim::Unwrap, _), Op::Prim(_, operands)) => {
                self.push(Op::Prim(Prim::Copy, operands), of_result.clone(), lets)
            }
            (Op::Prim(prim, _), Op::Prim(_, operands)) if prim.may_fail() => {
                let checked = prim.checked().expect("the `for` only has primitives whose failures can be values");
                self.push(Op::Prim(checked, operands), of_result.clone(), lets)
            }
            (Op::Call(_), Op::Call(call)) if has_failure(op, self.facts) => {
                let call = Call { keeps_failure: true, ..call };
                self.push(Op::Call(call), of_result.clone(), lets)
            }
            (Op::Switch { arms, .. }, Op::Switch { subject, .. }) if self.may_fail(op) => {
                let arms = arms.iter().map(|arm| self.kept_arm(arm, of_result)).collect();
                self.push(Op::Switch { subject, arms }, of_result.clone(), lets)
            }
            (Op::Map { element, body, .. }, Op::Map { list, .. }) if self.may_fail(op) => {
                let Type::List(of) = ty else { unreachable!("a `for` yields a list") };
                let of_round = Type::result((**of).clone(), Type::Failure);
                let element = self.renewed(element);
                let body = self.kept_block(body, &of_round);
                let rounds = self.push(Op::Map { list, element, body }, Type::list(of_round), lets);
                self.joined(&rounds, (of, of_result), lets)
            }
            (Op::Fold { .. }, copy @ Op::Fold { .. }) if self.may_fail(op) => {
                self.kept_fold((op, copy), (ty, of_result), lets)
            }
            _ => {
                let value = self.push(self.renamed_op(op), ty.clone(), lets);
                self.variant(Value::OK, Atom::Var(value.var), of_result, lets)
            }
        }
    }

    /// Returns the operation with the operands of the `for`.
    fn renamed_operands(&self, op: &Op) -> Op {
        let mut copy = op.clone();
        copy.operands_mut().for_each(|atom| self.rename(atom));
        copy
    }

    fn kept_arm(&mut self, arm: &Arm, of_result: &Type) -> Arm {
        let payload = arm.payload.iter().map(|variable| self.renewed(variable)).collect();
        Arm { test: arm.test.clone(), payload, body: self.kept_block(&arm.body, of_result) }
    }

    /// Returns the block with copies of the bindings of one of the `fold`; it yields a `Result` of this type, with the first failure in
    /// it if there is one.
    fn kept_block(&mut self, block: &Block, of_result: &Type) -> Block {
        let mut lets = Vec::new();
        let mut kept = Vec::new();
        for binding in &block.lets {
            if let Op::Fail(failure) = &binding.op {
                let result = self.kept_end(failure, &kept, of_result, &mut lets);
                return Block { lets, result };
            }
            self.copy(binding, &mut lets);
            kept.extend(has_failure(&binding.op, self.facts).then_some(binding.bound.var));
        }
        let result = block.result.variable().filter(|var| self.kept.contains(var));
        kept.extend(result.filter(|result| !kept.contains(result)));
        if let ([only], Some(result)) = (&kept[..], result)
            && *only == result
        {
            return Block { lets, result: Atom::Var(self.renamed[&result]) };
        }
        let result = self.with_values(&kept, Mover::failed, &mut lets, &mut |mover, lets| {
            mover.variant(Value::OK, mover.renamed_atom(&block.result), of_result, lets)
        });
        Block { lets, result: Atom::Var(result.var) }
    }

    /// Adds the `Result` of this type of a block that ends with a failure, unless an earlier operation of it has failed: one of `earlier`.
    pub(super) fn kept_end(&mut self, failure: &Atom, earlier: &[Var], of_result: &Type, lets: &mut Vec<Let>) -> Atom {
        let of_failure = failure.variable().filter(|var| self.kept.contains(var) && !earlier.contains(var));
        let kept: Vec<Var> = earlier.iter().copied().chain(of_failure).collect();
        let failed = self.with_values(&kept, Mover::failed, lets, &mut |mover, lets| {
            mover.variant(Value::ERR, mover.renamed_atom(failure), of_result, lets)
        });
        Atom::Var(failed.var)
    }

    /// Adds the `Result` of this type of an operand of the `fold`.
    pub(super) fn kept_value(&mut self, value: &Atom, of_result: &Type, lets: &mut Vec<Let>) -> Atom {
        let value_in_for = self.renamed_atom(value);
        match value.variable().is_some_and(|var| self.kept.contains(&var)) {
            true => value_in_for,
            false => Atom::Var(self.variant(Value::OK, value_in_for, of_result, lets).var),
        }
    }

    /// Returns the type of a value in the `for` that may depend on failures.
    pub(super) fn type_in_for(&self, ty: &Type) -> Type {
        if self.keeps { Type::result(ty.clone(), Type::Failure) } else { ty.clone() }
    }

    /// Adds the `Result` of the list of what all rounds yield, or of the first failure.
    fn joined(&mut self, rounds: &Variable, (of, of_result): (&Type, &Type), lets: &mut Vec<Let>) -> Variable {
        let lists = Type::list(Type::list(of.clone()));
        let of_lists = Type::result(lists.clone(), Type::Failure);
        let of_round = Type::result(of.clone(), Type::Failure);
        let (state, element) = (self.facts.variable(of_lists.clone()), self.facts.variable(of_round));
        let mut body = Vec::new();
        let (so_far, value) = (self.facts.variable(lists.clone()), self.facts.variable(of.clone()));
        let next = self.going_on((&state, &so_far), &of_lists, &mut body, &mut |mover, lets| {
            mover.going_on((&element, &value), &of_lists, lets, &mut |mover, lets| {
                let operands = vec![Atom::Var(so_far.var), Atom::Var(value.var)];
                let next = mover.push(Op::Prim(Prim::Collect, operands), lists.clone(), lets);
                mover.variant(Value::OK, Atom::Var(next.var), &of_lists, lets)
            })
        });
        let op = Op::Fold {
            list: Atom::Var(rounds.var),
            init: vec![Atom::Value(Value::ok(Value::list(Vec::new())))],
            state: vec![state],
            element,
            body: Block { lets: body, result: Atom::Var(next.var) },
            exit: LoopExit::Never,
        };
        let all = self.push(op, of_lists, lets);
        let found = self.facts.variable(lists);
        self.going_on((&all, &found), of_result, lets, &mut |mover, lets| {
            let list = Op::Prim(Prim::Flatten, vec![Atom::Var(found.var)]);
            let list = mover.push(list, Type::list(of.clone()), lets);
            mover.variant(Value::OK, Atom::Var(list.var), of_result, lets)
        })
    }

    /// Adds a switch that yields what `make` makes if a `Result` has a value, and otherwise its failure.
    fn going_on(
        &mut self,
        (result, value): (&Variable, &Variable),
        ty: &Type,
        lets: &mut Vec<Let>,
        make: &mut dyn FnMut(&mut Self, &mut Vec<Let>) -> Variable,
    ) -> Variable {
        let failure = self.facts.variable(Type::Failure);
        let (mut inner, mut of_failure) = (Vec::new(), Vec::new());
        let going = make(self, &mut inner);
        let failed = self.failed(ty, &failure, &mut of_failure);
        let going = (value.clone(), Block { lets: inner, result: Atom::Var(going.var) });
        let failed = (failure, Block { lets: of_failure, result: failed });
        let op = Op::Switch { subject: Atom::Var(result.var), arms: result_arms(going, failed) };
        self.push(op, ty.clone(), lets)
    }

    /// Adds a `fold` whose state is a `Result` of that of the given one.
    fn kept_fold(&mut self, (fold, copy): (&Op, Op), (ty, of_result): (&Type, &Type), lets: &mut Vec<Let>) -> Variable {
        let (Op::Fold { state, element, body, .. }, Op::Fold { list, init, .. }) = (fold, copy) else {
            unreachable!("it is a `fold`")
        };
        let of_one = state.len() == 1;
        let init = match <[Atom; 1]>::try_from(init) {
            Ok([only]) => only,
            Err(init) => Atom::Var(self.push(Op::Prim(Prim::Record, init), ty.clone(), lets).var),
        };
        let init = Atom::Var(self.variant(Value::OK, init, of_result, lets).var);
        let element = self.renewed(element);
        let (of_fold, value) = (self.facts.variable(of_result.clone()), self.facts.variable(ty.clone()));
        let mut round = Vec::new();
        let next = self.going_on((&of_fold, &value), of_result, &mut round, &mut |mover, lets| {
            for (state, index) in state.iter().zip(0..) {
                let own = mover.renewed(state);
                let prim = if of_one { Prim::Copy } else { Prim::Field(index) };
                lets.push(Let { bound: own, op: Op::Prim(prim, vec![Atom::Var(value.var)]), origin: mover.origin });
            }
            let Block { lets: of_body, result } = mover.kept_block(body, of_result);
            lets.extend(of_body);
            mover.push(Op::Prim(Prim::Copy, vec![result]), of_result.clone(), lets)
        });
        let body = Block { lets: round, result: Atom::Var(next.var) };
        let op = Op::Fold { list, init: vec![init], state: vec![of_fold], element, body, exit: LoopExit::Never };
        self.push(op, of_result.clone(), lets)
    }
}
