//! The evaluation of one flow: its operations, one after the other, over one table of variables.

use std::collections::{BTreeMap, BTreeSet};

use weir_host::{Failure, FailureKind, Value};

use super::Evaluator;
use super::rules::{failure_of, put_together, rounds_exceeded, taken_apart, test_holds};
use crate::expr::{Arm, Atom, Block, Let, LoopExit, Op, Origin, TRANSACTION_ATTEMPTS_MAX, Var, Variable};
use crate::prim::{self, Prim};

/// An early end of a flow, before the end of its body.
pub(super) enum FlowEnd {
    /// With an answer.
    Return(Value),
    /// With a failure by [`Op::Fail`].
    Fail(Box<Failure>),
    /// With the failure of another operation, which [`Op::Catch`] catches.
    OperationFailed(Box<Failure>),
    /// Not the flow, but the body of the [`Op::Within`] whose limit has this number: the time is up.
    TimeUp(usize),
    /// Not the flow, but the last body of the [`Op::Race`] with this number: those before have ended first, so.
    Overtaken(usize, Box<Result<Value, FlowEnd>>),
}

impl From<Box<Failure>> for FlowEnd {
    fn from(failure: Box<Failure>) -> Self {
        FlowEnd::OperationFailed(failure)
    }
}

impl<'p> Evaluator<'p> {
    /// Evaluates a body.
    pub(super) fn flow(
        &mut self,
        place: (usize, usize),
        body: &'p Block,
        parameters: &[Variable],
        inputs: Vec<Value>,
    ) -> Result<Value, Box<Failure>> {
        let mut flow =
            FlowEvaluation { evaluator: self, place, variables: BTreeMap::new(), move_only: BTreeSet::new() };
        for (parameter, input) in parameters.iter().zip(inputs) {
            flow.bind(parameter, input);
        }
        let hidden = flow.evaluator.limits.hide();
        let end = flow.block(body);
        self.limits.show(hidden);
        match end {
            Ok(value) | Err(FlowEnd::Return(value)) => Ok(value),
            Err(FlowEnd::Fail(failure) | FlowEnd::OperationFailed(failure)) => Err(failure),
            Err(FlowEnd::TimeUp(_) | FlowEnd::Overtaken(..)) => {
                unreachable!("the limits and races outside of the flow are hidden")
            }
        }
    }
}

/// The evaluation of one flow.
pub(super) struct FlowEvaluation<'e, 'p> {
    pub(super) evaluator: &'e mut Evaluator<'p>,
    /// The entry and the flow, by which states are found.
    pub(super) place: (usize, usize),
    pub(super) variables: BTreeMap<Var, Value>,
    /// The variables whose values may be move-only, by their types: looking for a move-only value in every value would
    /// take quadratic time for one that grows.
    pub(super) move_only: BTreeSet<Var>,
}

impl<'p> FlowEvaluation<'_, 'p> {
    pub(super) fn bind(&mut self, variable: &Variable, value: Value) {
        if self.evaluator.is_move_only(&variable.ty) {
            self.move_only.insert(variable.var);
        }
        self.variables.insert(variable.var, value);
    }

    pub(super) fn block(&mut self, block: &'p Block) -> Result<Value, FlowEnd> {
        if !self.evaluator.work.begin_block() {
            return Err(work_exceeded());
        }
        for binding in &block.lets {
            self.binding(binding)?;
        }
        Ok(self.value(&block.result))
    }

    fn binding(&mut self, binding: &'p Let) -> Result<(), FlowEnd> {
        let value = self.op(&binding.op, binding.origin);
        if let Err(FlowEnd::Fail(_) | FlowEnd::OperationFailed(_)) = &value {
            // The innermost operation is the first to see its failure.
            self.evaluator.failed_at.get_or_insert(binding.origin);
        }
        let value = value?;
        if let Some(limit) = self.evaluator.limits.expired() {
            return Err(FlowEnd::TimeUp(limit));
        }
        if !self.evaluator.work.make(&value) {
            return Err(work_exceeded());
        }
        self.bind(&binding.bound, value);
        Ok(())
    }

    /// Returns the operand's value: a clone, or the value itself if it is move-only, which is then moved out.
    pub(super) fn value(&mut self, atom: &Atom) -> Value {
        match atom {
            Atom::Var(var) => match self.variables.get_mut(var) {
                Some(value) if self.move_only.contains(var) => prim::move_or_clone(value),
                Some(value) => value.clone(),
                None => Value::Absent,
            },
            Atom::Value(value) => value.clone(),
            Atom::Shared(name) => self.evaluator.shared(name).map_or(Value::Absent, |shared| shared.read().clone()),
        }
    }

    fn op(&mut self, op: &'p Op, origin: Origin) -> Result<Value, FlowEnd> {
        match op {
            Op::Prim(prim, operands) => self.prim(*prim, operands),
            Op::Call(call) => self.call(call),
            Op::Switch { subject, arms } => self.switch(subject, arms),
            Op::Map { list, element, body } => self.map(list, element, body),
            Op::Fold { list, init, state, element, body, exit } => {
                let value = self.fold(list, init, (state, element), body)?;
                let failed = matches!(exit, LoopExit::Failure(_)) && matches!(value, Value::Variant(Value::ERR, _));
                self.evaluator.left_by_failure |= failed;
                Ok(value)
            }
            Op::Loop { init, state, body, at_most } => self.repeat(init, state, body, *at_most),
            Op::Atomic { constraints, restores, session, body, .. } => {
                if let Some(session) = session {
                    let session = self.value(session);
                    self.evaluator.begin_session(constraints, &session)?;
                }
                let hidden = self.evaluator.limits.hide();
                let kept = self.evaluator.values_of(restores);
                let value = self.block(body);
                self.evaluator.restore_unless_completed(kept, constraints);
                self.evaluator.limits.show(hidden);
                value
            }
            Op::Within { limit, body } => self.within(limit, body),
            Op::Race { bodies } => self.race(bodies),
            Op::Transaction { is_last, body } => self.transaction(is_last, body),
            Op::Catch { body } => match self.block(body) {
                Ok(value) => Ok(Value::ok(value)),
                Err(FlowEnd::OperationFailed(failure)) => Ok(Value::err(self.evaluator.caught(*failure, origin))),
                Err(end) => Err(end),
            },
            Op::Return(answer) => Err(FlowEnd::Return(self.value(answer))),
            Op::Fail(failure) => Err(FlowEnd::Fail(failure_of(self.value(failure)))),
        }
    }

    /// Returns true if the operand may be move-only.
    pub(super) fn is_moved(&self, atom: &Atom) -> bool {
        matches!(atom, Atom::Var(var) if self.move_only.contains(var))
    }

    /// Puts back the rest of an operand after it was read or taken apart.
    pub(super) fn give_back(&mut self, atom: &Atom, rest: Value) {
        if let Atom::Var(var) = atom {
            self.variables.insert(*var, rest);
        }
    }

    fn prim(&mut self, prim: Prim, atoms: &[Atom]) -> Result<Value, FlowEnd> {
        let mut operands: Vec<Value> = atoms.iter().map(|atom| self.value(atom)).collect();
        if !atoms.iter().any(|atom| self.is_moved(atom)) {
            return Ok(prim.apply(&operands.iter().collect::<Vec<_>>())?);
        }
        let value = prim.apply_moving(&mut operands)?;
        for (atom, rest) in atoms.iter().zip(operands) {
            self.give_back(atom, rest);
        }
        Ok(value)
    }

    fn switch(&mut self, subject: &Atom, arms: &'p [Arm]) -> Result<Value, FlowEnd> {
        let mut tested = self.value(subject);
        let chosen =
            arms.iter().find(|arm| test_holds(&arm.test, &tested)).expect("the verifier has seen an arm for it");
        for (variable, index) in chosen.payload.iter().zip(0..) {
            let part = match self.is_moved(subject) {
                true => Prim::Payload(index).apply_moving(std::slice::from_mut(&mut tested))?,
                false => Prim::Payload(index).apply(&[&tested])?,
            };
            self.bind(variable, part);
        }
        self.give_back(subject, tested);
        self.block(&chosen.body)
    }

    fn elements(&mut self, list: &Atom) -> Vec<Value> {
        match self.value(list) {
            Value::List(mut elements) => prim::elements(&mut elements),
            other => panic!("the verifier let {other:?} pass for a list"),
        }
    }

    fn map(&mut self, list: &Atom, element: &Variable, body: &'p Block) -> Result<Value, FlowEnd> {
        let mut mapped = Vec::new();
        for value in self.elements(list) {
            self.bind(element, value);
            mapped.push(self.block(body)?);
        }
        Ok(Value::list(mapped))
    }

    fn fold(
        &mut self,
        list: &Atom,
        init: &[Atom],
        (state, element): (&[Variable], &Variable),
        body: &'p Block,
    ) -> Result<Value, FlowEnd> {
        let mut values: Vec<Value> = init.iter().map(|atom| self.value(atom)).collect();
        for value in self.elements(list) {
            self.bind_all(state, values);
            self.bind(element, value);
            let next = self.block(body)?;
            values = if state.len() == 1 { vec![next] } else { taken_apart(next) };
        }
        Ok(put_together(values))
    }

    fn repeat(&mut self, init: &[Atom], state: &[Variable], body: &'p Block, at_most: u64) -> Result<Value, FlowEnd> {
        let mut values: Vec<Value> = init.iter().map(|atom| self.value(atom)).collect();
        for _ in 0..at_most {
            self.bind_all(state, values);
            values = taken_apart(self.block(body)?);
            if values.pop() == Some(Value::Bool(true)) {
                return Ok(put_together(values));
            }
        }
        Err(FlowEnd::OperationFailed(rounds_exceeded(at_most)))
    }

    fn transaction(&mut self, is_last: &Variable, body: &'p Block) -> Result<Value, FlowEnd> {
        let failed_before = self.evaluator.failed_at;
        for _ in 1..TRANSACTION_ATTEMPTS_MAX {
            self.bind(is_last, Value::Bool(false));
            match self.block(body) {
                Err(FlowEnd::OperationFailed(failure)) if failure.is_refusal() => {
                    self.evaluator.failed_at = failed_before;
                }
                ended => return ended,
            }
        }
        self.bind(is_last, Value::Bool(true));
        self.block(body)
    }

    fn bind_all(&mut self, variables: &[Variable], values: Vec<Value>) {
        variables.iter().zip(values).for_each(|(variable, value)| self.bind(variable, value));
    }
}

/// Returns the end of a flow that has exceeded the bound of the work, which nothing catches.
fn work_exceeded() -> FlowEnd {
    FlowEnd::Fail(Box::new(Failure::new(FailureKind::Limit, "the evaluation was bounded, and exceeds its bound")))
}
