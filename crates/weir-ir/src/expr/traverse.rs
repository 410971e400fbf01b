//! Traversal of the expression IR: functions that walk blocks by the tables of the operations.

use std::collections::BTreeSet;

use super::{Atom, Block, Let, Op, Var, Variable};

impl Atom {
    /// Returns the variable, if the operand is one.
    #[must_use]
    pub fn variable(&self) -> Option<Var> {
        match self {
            Atom::Var(var) => Some(*var),
            Atom::Value(_) | Atom::Shared(_) => None,
        }
    }

    /// Returns the name of the shared value, if the operand is one.
    #[must_use]
    pub fn shared(&self) -> Option<&weir_host::Text> {
        match self {
            Atom::Shared(name) => Some(name),
            Atom::Var(_) | Atom::Value(_) => None,
        }
    }
}

impl Block {
    /// Returns a block without bindings, which yields `()`.
    pub(crate) fn empty() -> Block {
        Block { lets: Vec::new(), result: Atom::Value(weir_host::Value::Unit) }
    }

    /// Returns true if the block yields its result, and does not end the flow before.
    #[must_use]
    pub fn yields(&self) -> bool {
        self.lets.last().is_none_or(|last| last.bound.yields())
    }

    /// Visits every binding of the block and of all blocks within, each before the blocks of its operation.
    pub fn each_binding<'a>(&'a self, see: &mut impl FnMut(&'a Let)) {
        for binding in &self.lets {
            see(binding);
            binding.op.blocks().for_each(|inner| inner.each_binding(see));
        }
    }

    /// Visits every binding as [`Self::each_binding`] does, to change it.
    pub fn each_binding_mut(&mut self, see: &mut impl FnMut(&mut Let)) {
        for binding in &mut self.lets {
            see(binding);
            binding.op.blocks_mut().for_each(|inner| inner.each_binding_mut(see));
        }
    }

    /// Visits every operand of the block and of all blocks within, results included.
    pub fn each_operand<'a>(&'a self, see: &mut impl FnMut(&'a Atom)) {
        for binding in &self.lets {
            binding.op.operands().for_each(&mut *see);
            binding.op.blocks().for_each(|inner| inner.each_operand(see));
        }
        see(&self.result);
    }

    /// Visits every operand as [`Self::each_operand`] does, to change it.
    pub fn each_operand_mut(&mut self, see: &mut impl FnMut(&mut Atom)) {
        for binding in &mut self.lets {
            binding.op.operands_mut().for_each(&mut *see);
            binding.op.blocks_mut().for_each(|inner| inner.each_operand_mut(see));
        }
        see(&mut self.result);
    }

    /// Returns true if the block or one within uses the variable.
    #[must_use]
    pub fn mentions(&self, var: Var) -> bool {
        let here = |atom: &Atom| *atom == Atom::Var(var);
        let within = |op: &Op| op.operands().any(here) || op.blocks().any(|inner| inner.mentions(var));
        here(&self.result) || self.lets.iter().any(|binding| within(&binding.op))
    }

    /// Returns the variables that the block uses and does not bind, in ascending order; `parameters` are bound too.
    #[must_use]
    pub fn free_variables(&self, parameters: &[&Variable]) -> Vec<Var> {
        let mut used = BTreeSet::new();
        self.each_operand(&mut |atom| used.extend(atom.variable()));
        let mut bound: BTreeSet<Var> = parameters.iter().map(|variable| variable.var).collect();
        self.each_binding(&mut |binding| {
            bound.insert(binding.bound.var);
            bound.extend(binding.op.binders().map(|variable| variable.var));
        });
        // Variables are unique within a flow, so that what is bound anywhere in the block is free nowhere in it.
        used.difference(&bound).copied().collect()
    }
}
