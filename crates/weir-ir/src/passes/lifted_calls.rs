//! Lifting of calls out of a `fold`: a read that needs nothing of the rounds before is made in a `for` over the same list, whose
//! rounds overlap and gather, and the `fold` goes over its results.
//!
//! *Source.* Ohua thesis §4.2.3: the fission of `map(λx. f(io(x)))` at its call. Lists that an `if` filters are folds too, and so is a
//! `for` whose body may leave its `fn`.
//!
//! *Law.* The call reads or is pure, so that nobody can tell whether and when it has run, and its operands depend on the
//! element and on total operations only. Nothing in the body changes what the call reads, so it sees in the `for` what it sees in the
//! `fold`; so does a call that gathers and borrows a shared value, such as a table. The body neither returns nor has a time limit or a
//! race, which may be given up, and nothing moves out of an atomic step. A failure that the call returns is a value, on which the body decides in its turn: so
//! the `fold` fails where it failed. A failure with which the call itself ends the flow is a value too ([`Call::keeps_failure`]): the
//! `fold` fails with it in the round of the call, at its place, if it comes there, so that the first failure in the text remains the
//! one of the flow. A call in an arm is made in the `for` under the same condition, if that needs nothing of the
//! rounds before: so no call is made for an arm that is not taken. It may be made although an operation before it fails. The state of a
//! `fold` that a failure leaves ([`LoopExit::Failure`]) decides whether a round does anything; a call passes this decision too, as it
//! passes the failure of a flow. It does not pass a `return`.
//!
//! * `early` finds the part of a body that the `for` evaluates, its [`early::EarlyPart`].
//! * `moving` moves it there.
//! * `kept_failures` copies what needs the result of a call whose failure is kept.

use std::collections::BTreeSet;

use weir_host::{Mode, Resource, Type};

use super::facts::Facts;
use crate::expr::{Atom, Block, Call, Let, LoopExit, Op, Variable};
use crate::lower::{barriers, call_uses, needs};
use crate::prim::Prim;

mod early;
mod kept_failures;
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
    if !facts.never_changes(element.var) || may_return_or_be_given_up(body) {
        return None;
    }
    let left = state.first().filter(|_| matches!(exit, LoopExit::Failure(_))).map(|state| state.var);
    let changes = Changes::of(body, facts);
    let early = early::of_body(body, (&*state, left), &changes, facts);
    if early.is_empty() {
        return None;
    }
    let own = Variable { name: element.name.clone(), ..facts.variable(element.ty.clone()) };
    let keeps = *exit != LoopExit::Never || !early.leaves_only_total(body, facts);
    let (made, row) = moving::move_out(body, (element, &own), &early, (fold.origin, keeps), facts);
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

/// Returns true for an operation that cannot fail, but for calls of functions that wait or gather: their failures are kept.
fn is_total_but_for_reads(op: &Op, facts: &Facts<'_>) -> bool {
    let total = |block: &Block| block.lets.iter().all(|inner| is_total_but_for_reads(&inner.op, facts));
    match op {
        Op::Call(call) if is_slow(call, facts) => true,
        Op::Prim(Prim::Unwrap, _) => true,
        Op::Switch { .. } | Op::Map { .. } | Op::Fold { .. } => op.blocks().all(total),
        _ => op.blocks().next().is_none() && facts.is_total(op),
    }
}

fn is_slow(call: &Call, facts: &Facts<'_>) -> bool {
    facts.signature(&call.function).is_some_and(|signature| signature.effects.waits || signature.batch.is_some())
}

/// Returns true for an operation all of whose failures can be values of the `for`, and which only reads and computes.
fn can_keep_failures(op: &Op, facts: &Facts<'_>) -> bool {
    match op {
        Op::Prim(prim, _) => {
            facts.is_pure(op) && (!prim.may_fail() || *prim == Prim::Unwrap || prim.checked().is_some())
        }
        Op::Fail(failure) => facts.is_of(failure, &Type::Failure),
        Op::Switch { .. } | Op::Map { .. } | Op::Fold { .. } => {
            // A binding of no value stands at the end of a block that has none, which only a `fail` replaces.
            let keeps = |inner: &Let| inner.bound.ty != Type::Never || matches!(inner.op, Op::Fail(_));
            op.blocks().flat_map(|block| &block.lets).all(|inner| keeps(inner) && can_keep_failures(&inner.op, facts))
        }
        op => is_total_but_for_reads(op, facts),
    }
}

/// Returns true if an operation may end the flow by a failure that the `for` can keep: that of a read, of a primitive, or of a `fail`.
fn has_failure(op: &Op, facts: &Facts<'_>) -> bool {
    match op {
        Op::Call(call) => !call.keeps_failure && is_slow(call, facts),
        Op::Prim(prim, _) => prim.may_fail(),
        Op::Fail(_) => true,
        op => op.blocks().any(|block| block.lets.iter().any(|inner| has_failure(&inner.op, facts))),
    }
}

/// Returns true if an operation of a block, or of one within, returns, or may be given up.
fn may_return_or_be_given_up(block: &Block) -> bool {
    let mut found = false;
    block.each_binding(&mut |binding| {
        found |= matches!(binding.op, Op::Within { .. } | Op::Race { .. } | Op::Return(_));
    });
    found
}

/// The resources that the body of a `fold` changes.
struct Changes {
    changed: BTreeSet<Resource>,
    /// The barriers that the body calls.
    barriers: BTreeSet<Resource>,
}

impl Changes {
    fn of(body: &Block, facts: &Facts<'_>) -> Changes {
        let needed = needs(body, facts.library());
        let changed = needed.into_iter().filter(|(_, mode)| *mode == Mode::Write).map(|(resource, _)| resource);
        Changes { changed: changed.collect(), barriers: barriers(body, facts.library()) }
    }

    /// Returns true if the body changes nothing that a call in it uses; so the call changes nothing either.
    fn spare(&self, call: &Call, facts: &Facts<'_>) -> bool {
        facts.signature(&call.function).is_some_and(|signature| {
            let uses = call_uses(signature, call, &self.barriers);
            uses.iter().all(|usage| !self.changed.contains(&usage.resource))
        })
    }
}

fn is_gathered(call: &Call, facts: &Facts<'_>) -> bool {
    facts.signature(&call.function).is_some_and(|signature| signature.batch.is_some())
}
