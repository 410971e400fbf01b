//! Traversal of the expression IR: one table of the operands, blocks and binders of each operation.
//!
//! The table is the `match` in the macro below, which is expanded for shared and for mutable references. The verifier, the
//! printer, the lowering, the passes and the checks of the compiler walk programs by the functions that follow from it, so
//! that a new operation is one row here. They match on [`Op`] only if an operation needs a treatment of its own.

use std::collections::BTreeSet;

use super::{Arm, Atom, Block, Let, Op, Var, Variable};

/// The number of times that a block runs when its operation is evaluated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Runs {
    /// Exactly once: the body of an atomic step.
    #[default]
    Once,
    /// At most once: an arm of a switch, of which exactly one runs.
    IfChosen,
    /// Once for each element or round.
    Repeatedly,
    /// Once, unless it is cancelled before its end.
    UnlessCancelled,
}

macro_rules! traversal {
    ($Parts:ident, $Scope:ident, $parts:ident, $operands:ident, $scopes:ident, $blocks:ident,
     $iter:ident, $as_option:ident, $one:path $(, $mutable:tt)?) => {
        /// The parts of an operation, by their multiplicity.
        #[derive(Default)]
        struct $Parts<'a> {
            operands: &'a $($mutable)? [Atom],
            single: Option<&'a $($mutable)? Atom>,
            arms: &'a $($mutable)? [Arm],
            bodies: &'a $($mutable)? [Block],
            /// The variables that the only body binds.
            binders: [&'a $($mutable)? [Variable]; 2],
            runs: Runs,
        }

        /// A block of an operation, with the variables that the operation binds in it.
        pub struct $Scope<'a> {
            /// The variables that the operation binds in the block.
            pub binders: [&'a $($mutable)? [Variable]; 2],
            /// The block.
            pub block: &'a $($mutable)? Block,
            /// The number of times that it runs.
            pub runs: Runs,
        }

        impl Op {
            fn $parts(&$($mutable)? self) -> $Parts<'_> {
                let none = $Parts::default();
                match self {
                    Op::Prim(_, operands) => $Parts { operands, ..none },
                    Op::Call(call) => $Parts { operands: &$($mutable)? call.arguments, ..none },
                    Op::Switch { subject, arms } => {
                        $Parts { single: Some(subject), arms, runs: Runs::IfChosen, ..none }
                    }
                    Op::Map { list, element, body } => $Parts {
                        single: Some(list),
                        bodies: $one(body),
                        binders: [$one(element), Default::default()],
                        runs: Runs::Repeatedly,
                        ..none
                    },
                    Op::Fold { list, init, state, element, body } => $Parts {
                        operands: init,
                        single: Some(list),
                        bodies: $one(body),
                        binders: [state, $one(element)],
                        runs: Runs::Repeatedly,
                        ..none
                    },
                    Op::Loop { init, state, body, at_most: _ } => $Parts {
                        operands: init,
                        bodies: $one(body),
                        binders: [state, Default::default()],
                        runs: Runs::Repeatedly,
                        ..none
                    },
                    Op::Atomic { constraints: _, session, body } => {
                        $Parts { single: session.$as_option(), bodies: $one(body), ..none }
                    }
                    Op::Within { limit, body } => $Parts {
                        single: Some(limit),
                        bodies: $one(body),
                        runs: Runs::UnlessCancelled,
                        ..none
                    },
                    Op::Race { bodies } => $Parts { bodies, runs: Runs::UnlessCancelled, ..none },
                    Op::Return(atom) | Op::Fail(atom) => $Parts { single: Some(atom), ..none },
                }
            }

            /// Returns the operands, without those of inner blocks.
            pub fn $operands(&$($mutable)? self) -> impl Iterator<Item = &$($mutable)? Atom> {
                let parts = self.$parts();
                parts.operands.$iter().chain(parts.single)
            }

            /// Returns the blocks with their binders.
            pub fn $scopes(&$($mutable)? self) -> impl Iterator<Item = $Scope<'_>> {
                let parts = self.$parts();
                let (runs, mut binders) = (parts.runs, Some(parts.binders));
                let arms = parts.arms.$iter().map(move |arm| $Scope {
                    binders: [&$($mutable)? arm.payload, Default::default()],
                    block: &$($mutable)? arm.body,
                    runs,
                });
                let bodies = parts.bodies.$iter().map(move |block| {
                    let binders = binders.take().unwrap_or_default();
                    $Scope { binders, block, runs }
                });
                arms.chain(bodies)
            }

            /// Returns the blocks.
            pub fn $blocks(&$($mutable)? self) -> impl Iterator<Item = &$($mutable)? Block> {
                self.$scopes().map(|scope| scope.block)
            }
        }
    };
}

traversal!(Parts, Scope, parts, operands, scopes, blocks, iter, as_ref, std::slice::from_ref);
traversal!(
    PartsMut,
    ScopeMut,
    parts_mut,
    operands_mut,
    scopes_mut,
    blocks_mut,
    iter_mut,
    as_mut,
    std::slice::from_mut,
    mut
);

impl<'a> Scope<'a> {
    /// Returns the variables that the operation binds in the block.
    pub fn variables(&self) -> impl Iterator<Item = &'a Variable> + use<'a> {
        self.binders.into_iter().flatten()
    }
}

impl Op {
    /// Returns the variables that the operation binds in its blocks.
    pub fn binders(&self) -> impl Iterator<Item = &Variable> {
        self.scopes().flat_map(|scope| scope.variables())
    }

    /// Returns the variables among its operands, without those that only inner blocks use.
    pub fn uses(&self) -> impl Iterator<Item = Var> {
        self.operands().filter_map(Atom::variable)
    }
}

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
