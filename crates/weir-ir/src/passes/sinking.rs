//! Sinking: a total operation whose result only one arm of a later switch uses moves into that arm.
//!
//! *Source.* Ohua thesis §4.2.1: bindings float inward as far as possible, so that work is done only where its result
//! is needed (let-floating: Peyton Jones, Partain and Santos, ICFP 1996). Batching floats bindings the other way, out
//! of arms, to bring I/O calls together; it therefore runs after this pass.
//!
//! *Law.* The operation is total: it has no effect, cannot end the flow and does not wait, so that its evaluation
//! cannot be observed. Its operands never change, so that it yields the same in the arm. Every use of its result lies
//! in that one arm, which runs at most once for each evaluation of the block. Nothing moves into bodies that run more
//! than once, hold a constraint or may be cancelled.

use std::collections::BTreeMap;

use super::facts::Facts;
use crate::expr::{Block, Let, Op, Var};

pub(super) fn run(body: &mut Block, facts: &mut Facts<'_>) {
    sink(body, facts);
}

/// The place of all uses of a variable behind its binding.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Uses {
    /// One arm of one binding, counted from the last binding of the block.
    InArm(usize, usize),
    /// Anywhere else, or in several places.
    Elsewhere,
}

/// Sinks the bindings of a block, from the last to the first, and then those of its inner blocks.
fn sink(block: &mut Block, facts: &Facts<'_>) {
    let mut uses: BTreeMap<Var, Uses> = BTreeMap::new();
    uses.extend(block.result.variable().map(|var| (var, Uses::Elsewhere)));
    // The bindings that stay, from the last to the first.
    let mut kept: Vec<Let> = Vec::with_capacity(block.lets.len());
    // The bindings that sink into each arm, from the last to the first.
    let mut sunk: BTreeMap<(usize, usize), Vec<Let>> = BTreeMap::new();
    for binding in std::mem::take(&mut block.lets).into_iter().rev() {
        match uses.get(&binding.bound.var) {
            Some(&Uses::InArm(at, arm)) if facts.is_total(&binding.op) => {
                note(&mut uses, binding.op.uses(), Uses::InArm(at, arm));
                sunk.entry((at, arm)).or_default().push(binding);
            }
            _ => {
                note_all(&mut uses, &binding, kept.len());
                kept.push(binding);
            }
        }
    }
    for ((at, arm), mut bindings) in sunk {
        if let Op::Switch { arms, .. } = &mut kept[at].op {
            bindings.reverse();
            arms[arm].body.lets.splice(0..0, bindings);
        }
    }
    kept.reverse();
    block.lets = kept;
    block.lets.iter_mut().flat_map(|binding| binding.op.blocks_mut()).for_each(|inner| sink(inner, facts));
}

fn note_all(uses: &mut BTreeMap<Var, Uses>, binding: &Let, at: usize) {
    note(uses, binding.op.uses(), Uses::Elsewhere);
    let is_switch = matches!(binding.op, Op::Switch { .. });
    for (arm, block) in binding.op.blocks().enumerate() {
        let place = if is_switch { Uses::InArm(at, arm) } else { Uses::Elsewhere };
        block.each_operand(&mut |atom| note(uses, atom.variable(), place));
    }
}

fn note(uses: &mut BTreeMap<Var, Uses>, vars: impl IntoIterator<Item = Var>, place: Uses) {
    for var in vars {
        let known = uses.entry(var).or_insert(place);
        if *known != place {
            *known = Uses::Elsewhere;
        }
    }
}
