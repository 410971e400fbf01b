//! Dead code: operations whose result is not used, and whose evaluation cannot be observed, are removed.
//!
//! *Source.* Ohua thesis §4.2.1, where the explicit-data-dependency form shows which bindings nothing depends on;
//! backward liveness over single-assignment bindings (Cytron et al., TOPLAS 1991, §7.1).
//!
//! *Law.* An operation may go if its result is used nowhere and it has no effect, cannot end the flow and does not
//! wait: primitives that cannot fail, `pure` calls of `total` functions, `reads` of `total` functions that return no
//! failure, and switches of such operations. Loops stay, because plans name repeated bodies by their numbers. A call that
//! may fault stays, because the fault would end the flow. A call site that goes is a [`FormerSite`](crate::program::FormerSite).

use std::collections::BTreeSet;

use super::facts::Facts;
use crate::expr::{Block, Var};

pub(super) fn run(body: &mut Block, facts: &mut Facts<'_>) {
    DeadCode { facts, used: BTreeSet::new() }.block(body);
}

struct DeadCode<'r, 'a> {
    facts: &'r mut Facts<'a>,
    /// The variables that are used behind this point.
    used: BTreeSet<Var>,
}

impl DeadCode<'_, '_> {
    /// Leaves dead bindings out, from the last to the first: a variable is used only behind its binding.
    fn block(&mut self, block: &mut Block) {
        self.used.extend(block.result.variable());
        let mut kept = Vec::with_capacity(block.lets.len());
        for mut binding in std::mem::take(&mut block.lets).into_iter().rev() {
            if !self.used.contains(&binding.bound.var) && self.facts.is_removable(&binding.op) {
                self.facts.removed(&binding.op, None);
                continue;
            }
            binding.op.blocks_mut().for_each(|inner| self.block(inner));
            self.used.extend(binding.op.uses());
            kept.push(binding);
        }
        kept.reverse();
        block.lets = kept;
    }
}
