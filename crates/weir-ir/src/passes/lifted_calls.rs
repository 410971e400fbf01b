//! Lifting of calls out of a `fold`: a read that needs nothing of the rounds before is made in a `for` over the same list, whose
//! rounds overlap and gather, and the `fold` goes over its results.
//!
//! *Source.* Ohua thesis §4.2.3: the fission of `map(λx. f(io(x)))` at its call. Lists that an `if` filters are folds too.
//!
//! *Law.* The call reads or is pure, so that nobody can tell whether and when it has run, and its operands depend on the
//! element and on total operations only: so it is made for each element in any case. Nothing in the body writes, so the call
//! sees in the `for` what it sees in the `fold`; so does a call that gathers and borrows a shared value, such as a table. The body
//! neither returns nor is in part an atomic step, a time limit or a race, out of which nothing moves. A failure that the call returns
//! is a value, on which the body decides in its turn: so the `fold` fails where it failed. Each call stays where its branch is: one
//! that the body makes in any case is lifted by itself, and one in an arm of a `match` or `if` with all of it, if that needs nothing of
//! the rounds before and cannot fail.

use std::collections::{BTreeMap, BTreeSet};

use weir_host::{Passing, Type, World};

use super::facts::Facts;
use crate::expr::{Atom, Block, Call, Let, Op, Var, Variable};
use crate::prim::Prim;

pub(super) fn run(body: &mut Block, facts: &mut Facts<'_>) {
    let mut lets = Vec::with_capacity(body.lets.len());
    for mut binding in std::mem::take(&mut body.lets) {
        binding.op.blocks_mut().for_each(|inner| run(inner, facts));
        lets.extend(lifted(&mut binding, facts));
        lets.push(binding);
    }
    body.lets = lets;
}

/// Lifts the calls of a `fold`; returns the `for` that makes them, if there are any.
fn lifted(fold: &mut Let, facts: &mut Facts<'_>) -> Option<Let> {
    let origin = fold.origin;
    let Op::Fold { list, state, element, body, .. } = &mut fold.op else { return None };
    if !facts.never_changes(element.var) || !is_read_only(body, facts) {
        return None;
    }
    let moving = moving(body, state, facts);
    if moving.is_empty() {
        return None;
    }
    // The `for`: its element, copies of what the calls need, and the calls.
    let own = Variable { name: element.name.clone(), ..facts.variable(element.ty.clone()) };
    let mut renamed = BTreeMap::from([(element.var, own.var)]);
    let mut results = vec![own.clone()];
    let mut lets = Vec::new();
    for place in &moving {
        let mut copy = body.lets[*place].clone();
        copy.bound = Variable { name: copy.bound.name.clone(), ..facts.variable(copy.bound.ty.clone()) };
        copy.op.operands_mut().for_each(|atom| rename(atom, &renamed));
        copy.op.blocks_mut().for_each(|block| block.each_operand_mut(&mut |atom| rename(atom, &renamed)));
        renamed.insert(body.lets[*place].bound.var, copy.bound.var);
        if is_moved(&copy.op) {
            results.push(copy.bound.clone());
        }
        lets.push(copy);
    }
    let types = results.iter().map(|result| result.ty.clone());
    let row = facts.variable(Type::Tuple(types.collect()));
    let fields = results.iter().map(|result| Atom::Var(result.var));
    lets.push(Let { bound: row.clone(), op: Op::Prim(Prim::Record, fields.collect()), origin });
    let rows = facts.variable(Type::list(row.ty.clone()));
    let made = Block { lets, result: Atom::Var(row.var) };
    let op = Op::Map { list: std::mem::replace(list, Atom::Var(rows.var)), element: own, body: made };
    // The `fold`: takes the element and the results of the calls out of the row.
    let row = facts.variable(row.ty);
    let calls: Vec<usize> = moving.into_iter().filter(|place| is_moved(&body.lets[*place].op)).collect();
    for (place, field) in calls.into_iter().zip(1..) {
        body.lets[place].op = Op::Prim(Prim::Field(field), vec![Atom::Var(row.var)]);
    }
    let bound = std::mem::replace(element, row.clone());
    body.lets.insert(0, Let { bound, op: Op::Prim(Prim::Field(0), vec![Atom::Var(row.var)]), origin });
    Some(Let { bound: rows, op, origin })
}

/// Returns the places of the calls of a body that can be lifted, and of what they need.
fn moving(body: &Block, state: &[Variable], facts: &Facts<'_>) -> BTreeSet<usize> {
    let mut bound: BTreeMap<Var, Option<usize>> = state.iter().map(|state| (state.var, None)).collect();
    let mut moving = BTreeSet::new();
    for (place, binding) in body.lets.iter().enumerate() {
        let needed: Option<Vec<usize>> = needed(&binding.op, &bound, facts);
        let is_call = is_lifted(&binding.op, facts);
        let is_total = binding.op.blocks().next().is_none() && facts.is_total(&binding.op);
        let moves = needed.is_some()
            && (is_call || is_total || is_total_but_for_reads(&binding.op, facts))
            && facts.never_changes(binding.bound.var);
        bound.insert(binding.bound.var, moves.then_some(place));
        if let Some(needed) = needed.filter(|_| moves && is_call) {
            let mut work = needed;
            moving.insert(place);
            while let Some(place) = work.pop() {
                if moving.insert(place) {
                    work.extend(self::needed(&body.lets[place].op, &bound, facts).unwrap_or_default());
                }
            }
        }
    }
    moving
}

/// Returns the places of the bindings that an operation needs; `None` if it needs one that cannot be moved, or the state.
fn needed(op: &Op, bound: &BTreeMap<Var, Option<usize>>, facts: &Facts<'_>) -> Option<Vec<usize>> {
    let mut places = Vec::new();
    let borrows = matches!(op, Op::Call(call) if is_gathered(call, facts));
    let results = op.blocks().map(|block| &block.result);
    for atom in op.operands().chain(results) {
        if !(facts.is_steady(atom) || borrows && atom.shared().is_some()) {
            return None;
        }
        // What the blocks of an operation bind is not known here.
        if let Some(known) = atom.variable().and_then(|var| bound.get(&var)) {
            places.push((*known)?);
        }
    }
    for inner in op.blocks().flat_map(|block| &block.lets) {
        places.extend(needed(&inner.op, bound, facts)?);
    }
    Some(places)
}

/// Returns true if the operation is moved with its result, and not copied: a call, or an operation with blocks.
fn is_moved(op: &Op) -> bool {
    matches!(op, Op::Call(_) | Op::Switch { .. })
}

/// Returns true if the operation is worth being lifted: a call that waits or gathers, or a branch that makes one.
fn is_lifted(op: &Op, facts: &Facts<'_>) -> bool {
    let lifted = |block: &Block| block.lets.iter().any(|inner| is_lifted(&inner.op, facts));
    match op {
        Op::Call(call) => is_slow(call, facts),
        Op::Switch { .. } => is_total_but_for_reads(op, facts) && op.blocks().any(lifted),
        _ => false,
    }
}

/// Returns true for an operation that cannot fail, also if it calls functions that wait or gather: their failures are values.
fn is_total_but_for_reads(op: &Op, facts: &Facts<'_>) -> bool {
    let total = |block: &Block| block.lets.iter().all(|inner| is_total_but_for_reads(&inner.op, facts));
    match op {
        Op::Call(call) if is_slow(call, facts) => true,
        Op::Switch { .. } => op.blocks().all(total),
        _ => op.blocks().next().is_none() && facts.is_total(op),
    }
}

fn is_slow(call: &Call, facts: &Facts<'_>) -> bool {
    facts.signature(&call.function).is_some_and(|signature| signature.effects.waits || signature.batch.is_some())
}

/// Returns true if nothing in a block writes, returns, or may be given up.
fn is_read_only(block: &Block, facts: &Facts<'_>) -> bool {
    block.lets.iter().all(|binding| {
        let is_read = match &binding.op {
            Op::Call(call) => reads(call, facts),
            Op::Atomic { .. } | Op::Within { .. } | Op::Race { .. } | Op::Return(_) => false,
            _ => true,
        };
        is_read && binding.op.blocks().all(|inner| is_read_only(inner, facts))
    })
}

fn reads(call: &Call, facts: &Facts<'_>) -> bool {
    let Some(signature) = facts.signature(&call.function) else { return false };
    let mut passed = call.arguments.iter().zip(&signature.parameters);
    let changes_shared = passed.any(|(atom, taken)| atom.shared().is_some() && taken.passing == Passing::Change);
    !changes_shared && signature.effects.world != World::Writes && signature.state.is_none()
}

fn is_gathered(call: &Call, facts: &Facts<'_>) -> bool {
    facts.signature(&call.function).is_some_and(|signature| signature.batch.is_some())
}

fn rename(atom: &mut Atom, renamed: &BTreeMap<Var, Var>) {
    if let Atom::Var(var) = atom
        && let Some(now) = renamed.get(var)
    {
        *var = *now;
    }
}
