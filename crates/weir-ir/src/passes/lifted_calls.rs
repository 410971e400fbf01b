//! Lifting of calls out of a `fold`: a read that needs nothing of the rounds before is made in a `for` over the same list, whose
//! rounds overlap and gather, and the `fold` goes over its results.
//!
//! *Source.* Ohua thesis §4.2.3: the fission of `map(λx. f(io(x)))` at its call. Lists that an `if` filters are folds too, and so is a
//! `for` whose body may leave its `fn`.
//!
//! *Law.* The call reads or is pure, so that nobody can tell whether and when it has run, and its operands depend on the
//! element and on total operations only. Nothing in the body writes, so the call sees in the `for` what it sees in the `fold`; so does
//! a call that gathers and borrows a shared value, such as a table. The body neither returns nor is in part an atomic step, a time
//! limit or a race, out of which nothing moves. A failure that the call returns is a value, on which the body decides in its turn: so
//! the `fold` fails where it failed. A call in an arm is made in the `for` under the same condition, if that needs nothing of the
//! rounds before: so no call is made for an arm that is not taken. It may be made although an operation before it fails. The state of a
//! `fold` that a failure leaves ([`LoopExit::Failure`]) decides whether a round does anything; a call passes this decision too, as it
//! passes the failure of a flow. It does not pass a `return`.
//!
//! * `early` finds the part of a body that the `for` evaluates, its [`early::EarlyPart`].
//! * `moving` moves it there.

use weir_host::{Passing, Type, World};

use super::facts::Facts;
use crate::expr::{Atom, Block, Call, Let, LoopExit, Op, Variable};
use crate::prim::Prim;

mod early;
mod moving;

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
    let Op::Fold { list, state, element, body, exit, .. } = &mut fold.op else { return None };
    if !facts.never_changes(element.var) || !is_read_only(body, facts) {
        return None;
    }
    let left = state.first().filter(|_| matches!(exit, LoopExit::Failure(_))).map(|state| state.var);
    let early = early::of_body(body, state, left, facts);
    if early.is_empty() {
        return None;
    }
    let own = Variable { name: element.name.clone(), ..facts.variable(element.ty.clone()) };
    let (made, row) = moving::move_out(body, element, &own, &early, fold.origin, facts);
    let rows = facts.variable(Type::list(row.ty.clone()));
    let op = Op::Map { list: std::mem::replace(list, Atom::Var(rows.var)), element: own, body: made };
    let bound = std::mem::replace(element, row.clone());
    let taken = Op::Prim(Prim::Field(0), vec![Atom::Var(row.var)]);
    body.lets.insert(0, Let { bound, op: taken, origin: fold.origin });
    Some(Let { bound: rows, op, origin: fold.origin })
}

/// Returns true if the operation is moved with its result, and not copied: a call, or an operation with blocks.
fn is_moved(op: &Op) -> bool {
    matches!(op, Op::Call(_)) || op.blocks().next().is_some()
}

/// Returns true if the operation is worth being lifted: a call that waits or gathers, or a branch or loop that makes one.
fn is_lifted(op: &Op, facts: &Facts<'_>) -> bool {
    match op {
        Op::Call(call) => is_slow(call, facts),
        op => op.blocks().any(|block| block.lets.iter().any(|inner| is_lifted(&inner.op, facts))),
    }
}

/// Returns true for an operation that cannot fail, also if it calls functions that wait or gather: their failures are values.
fn is_total_but_for_reads(op: &Op, facts: &Facts<'_>) -> bool {
    let total = |block: &Block| block.lets.iter().all(|inner| is_total_but_for_reads(&inner.op, facts));
    match op {
        Op::Call(call) if is_slow(call, facts) => true,
        Op::Switch { .. } | Op::Map { .. } | Op::Fold { .. } => op.blocks().all(total),
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
