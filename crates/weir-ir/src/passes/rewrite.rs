//! Forward rewriting, which several passes share: bindings are visited in the order of evaluation, and a variable whose
//! value is known is replaced by that value everywhere behind its binding.

use std::collections::BTreeMap;

use super::facts::Facts;
use crate::expr::{Atom, Block, Let, Op, Var};
use crate::prim::Prim;

/// The analysis of a pass that rewrites forwards.
pub(super) trait Simplify {
    /// Returns the replacement of a binding, whose operands have been replaced already.
    fn simplify(&mut self, binding: &Let, facts: &mut Facts<'_>) -> Simplified;

    /// Begins a block: what the analysis learns from here on holds until the matching [`Self::leave`].
    fn enter(&mut self) {}

    /// Ends a block.
    fn leave(&mut self) {}
}

/// The replacement of a binding.
pub(super) enum Simplified {
    /// The binding stays.
    Keep,
    /// The operand stands for the bound variable.
    Value(Atom),
    /// The switch always chooses this arm; the operands stand for the payload of its variant.
    Arm(usize, Vec<Atom>),
}

/// Rewrites a flow's body.
pub(super) fn rewrite(body: &mut Block, facts: &mut Facts<'_>, analysis: &mut impl Simplify) {
    Rewriter { facts, analysis, known: BTreeMap::new() }.block(body);
}

struct Rewriter<'r, 'a, S> {
    facts: &'r mut Facts<'a>,
    analysis: &'r mut S,
    /// The operands that stand for variables.
    known: BTreeMap<Var, Atom>,
}

impl<S: Simplify> Rewriter<'_, '_, S> {
    fn block(&mut self, block: &mut Block) {
        self.analysis.enter();
        let mut lets = Vec::with_capacity(block.lets.len());
        self.lets(std::mem::take(&mut block.lets), &mut lets);
        block.lets = lets;
        self.replace(&mut block.result);
        self.analysis.leave();
    }

    fn lets(&mut self, from: Vec<Let>, to: &mut Vec<Let>) {
        for mut binding in from {
            binding.op.operands_mut().for_each(|atom| self.replace(atom));
            match self.analysis.simplify(&binding, self.facts) {
                Simplified::Value(atom) if self.may_stand_for(&binding, &atom) => {
                    self.known.insert(binding.bound.var, atom);
                }
                Simplified::Arm(index, payload) if self.may_be_chosen(&binding, index, &payload) => {
                    self.choose(binding, index, payload, to);
                }
                _ => {
                    binding.op.blocks_mut().for_each(|block| self.block(block));
                    to.push(binding);
                }
            }
        }
    }

    fn replace(&self, atom: &mut Atom) {
        if let Some(known) = atom.variable().and_then(|var| self.known.get(&var)) {
            *atom = known.clone();
        }
    }

    fn may_stand_for(&self, binding: &Let, atom: &Atom) -> bool {
        self.facts.never_changes(binding.bound.var) && self.facts.is_steady(atom)
    }

    /// Returns true if the other arms may go. An arm that never yields in the place of a switch that does would leave
    /// bindings behind that nothing reaches, and the states of calls are made before there are flows.
    fn may_be_chosen(&self, binding: &Let, index: usize, payload: &[Atom]) -> bool {
        let Op::Switch { arms, .. } = &binding.op else { return false };
        let yields = arms[index].body.yields() || !binding.bound.yields();
        let names = arms[index].payload.is_empty() || arms[index].payload.len() == payload.len();
        let mut others = arms.iter().enumerate().filter(|(other, _)| *other != index);
        yields && names && !others.any(|(_, arm)| self.facts.has_state(&arm.body))
    }

    /// Puts the bindings of an arm in the place of its switch.
    fn choose(&mut self, binding: Let, index: usize, payload: Vec<Atom>, to: &mut Vec<Let>) {
        let Op::Switch { mut arms, .. } = binding.op else { unreachable!("only a switch has arms") };
        let chosen = arms.swap_remove(index);
        arms.iter().for_each(|arm| self.facts.block_removed(&arm.body));
        for (variable, atom) in chosen.payload.into_iter().zip(payload) {
            self.bind(Let { bound: variable, op: Op::Prim(Prim::Copy, vec![atom]), origin: binding.origin }, to);
        }
        self.lets(chosen.body.lets, to);
        if binding.bound.yields() {
            let mut result = chosen.body.result;
            self.replace(&mut result);
            let op = Op::Prim(Prim::Copy, vec![result]);
            self.bind(Let { bound: binding.bound, op, origin: binding.origin }, to);
        }
    }

    /// Binds a copy, or lets its operand stand for the variable if neither ever changes.
    fn bind(&mut self, copy: Let, to: &mut Vec<Let>) {
        let operand = copy.op.operands().next().cloned();
        match operand.filter(|atom| self.may_stand_for(&copy, atom)) {
            Some(atom) => _ = self.known.insert(copy.bound.var, atom),
            None => to.push(copy),
        }
    }
}
