//! Look-ups: an entry of a map is looked up after what its text computes next without it.
//!
//! In `m.with(key, (m[key] else { 0 }) + order.price * order.count)`, the product stands between the look-up and the change
//! of the entry. If it is computed first, the entry is looked up, changed and put back in one, and the rounds of a `fold` may
//! run on several cores.
//!
//! *Law.* The look-up and the choice of a value for a missing entry are total, and what they read never changes, so that they
//! yield the same later. They pass primitives only, none of which uses the map or what was found.

use weir_host::Type;

use super::facts::Facts;
use crate::expr::{Atom, Block, Let, Op};
use crate::prim::Prim;

pub(super) fn run(body: &mut Block, facts: &mut Facts<'_>) {
    move_look_ups(body, facts);
}

fn move_look_ups(block: &mut Block, facts: &Facts<'_>) {
    for at in (0..block.lets.len().saturating_sub(1)).rev() {
        let (head, behind) = block.lets.split_at(at + 2);
        if is_look_up(&head[at], &head[at + 1], facts) {
            let passed = behind.iter().take_while(|next| may_pass(next, &head[at..])).count();
            block.lets[at..at + 2 + passed].rotate_left(2);
        }
    }
    block.lets.iter_mut().flat_map(|binding| binding.op.blocks_mut()).for_each(|inner| move_look_ups(inner, facts));
}

/// Returns true if one binding looks an entry up, and the next chooses between what it found and a value for a missing one.
fn is_look_up(found: &Let, chosen: &Let, facts: &Facts<'_>) -> bool {
    let Op::Switch { subject, arms } = &chosen.op else { return false };
    let is_total = |binding: &Let| matches!(binding.op, Op::Prim(..)) && facts.is_total(&binding.op);
    // Only a list has no element under some indices.
    let is_map =
        |atom: &Atom| atom.variable().and_then(|var| facts.ty(var)).is_some_and(|ty| matches!(ty, Type::Map(_)));
    matches!(&found.op, Op::Prim(Prim::Index, operands) if operands.first().is_some_and(is_map))
        && facts.is_pure(&found.op)
        && subject.variable() == Some(found.bound.var)
        && arms.iter().all(|arm| arm.body.yields() && arm.body.lets.iter().all(is_total))
        && arms.iter().all(|arm| facts.is_steady(&arm.body.result))
}

/// Returns true if a binding may be evaluated before the look-up behind which it stands.
fn may_pass(binding: &Let, look_up: &[Let]) -> bool {
    let map = look_up[0].op.operands().next().and_then(Atom::variable);
    let is_free = |used| Some(used) != map && look_up.iter().all(|earlier| earlier.bound.var != used);
    // A new list stays where it is: engines push its elements to the list of the entry instead of making it.
    let may_move = matches!(&binding.op, Op::Prim(prim, _) if *prim != Prim::List);
    may_move && binding.op.uses().all(is_free)
}
