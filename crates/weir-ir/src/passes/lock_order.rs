//! Lock ordering: a step takes all locks that anything inside it needs before its own, in the strongest mode that is needed.
//!
//! *Source.* Flux (USENIX 2006) §3.1.1. The paper hoists at nodes that carry a constraint; a nested node without its own
//! constraint escaped the original compiler. Here every call inside a step counts, with or without a constraint.
//!
//! *Law.* All locks are taken in one canonical order, that of [`Resource`], so that flows never wait for each other in a
//! cycle. If a step holds a lock and something inside it takes an earlier one, the earlier lock is hoisted to the step, in
//! the mode (reader or writer) that the inner use needs; a lock of the step that an inner use needs for writing is taken for
//! writing at once. A step that holds more, or for longer, excludes more interleavings and allows no new ones.
//!
//! The rewrite goes from the outermost step inwards and subtracts what outer steps hold, so that one pass suffices. Every
//! `fn`, branch, handler and loop is inlined, so that nesting in the source is nesting of blocks. A constraint per session is
//! a lock for each session. A resource has one scope in a program, so that the session locks take the position of the
//! resource in the order. Each call takes the shared value itself last, and waits for nothing while it holds it
//! ([`crate::graph::Program::session_scoped`]).
//!
//! The checker runs this rewrite before all other checks, because it reports what was hoisted, and warns of what a step
//! holds. In the list of passes it orders programs that were written in the expression IR.

use std::collections::{BTreeMap, BTreeSet};

use weir_host::{Library, Mode, Passing, Resource};

use super::facts::Facts;
use crate::expr::{Atom, Block, Call, Constraint, Let, Op, Origin, Program};

/// A lock that was hoisted to a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hoisting {
    /// The resource of the lock.
    pub resource: Resource,
    /// The mode in which the step takes it.
    pub mode: Mode,
    /// True if it is the lock of the flow's session.
    pub per_session: bool,
    /// The place inside the step that needs it.
    pub at: Origin,
    /// The step.
    pub step: Origin,
    /// The last lock that the step held before, which comes behind this one in the order.
    pub last: Resource,
    /// True if everything in the step uses the resource, so that the step holds it no longer than they do.
    pub is_used_throughout: bool,
}

/// Orders the locks of all flows of a program, and returns what was hoisted.
pub fn order_locks(program: &mut Program, library: &Library) -> Vec<Hoisting> {
    let per_session = session_scoped(program);
    let mut hoisted = Vec::new();
    for flow in program.entries.iter_mut().flat_map(|entry| &mut entry.flows) {
        hoisted.append(&mut order(&mut flow.body, &per_session, library));
    }
    hoisted
}

pub(super) fn run(body: &mut Block, facts: &mut Facts<'_>) {
    order(body, facts.session_scoped(), facts.library());
}

/// Returns the resources that steps of the program hold per session.
pub(super) fn session_scoped(program: &Program) -> BTreeSet<Resource> {
    let mut found = BTreeSet::new();
    for flow in program.entries.iter().flat_map(|entry| &entry.flows) {
        each_step(&flow.body, &mut |constraints, _| {
            found.extend(constraints.iter().filter(|held| held.per_session).map(|held| held.resource.clone()));
        });
    }
    found
}

fn order(body: &mut Block, per_session: &BTreeSet<Resource>, library: &Library) -> Vec<Hoisting> {
    let mut session = None;
    each_step(body, &mut |_, of| session = session.take().or(of.cloned()));
    let mut ordering = LockOrdering { per_session, library, session, hoisted: Vec::new() };
    ordering.block(body, &BTreeSet::new());
    ordering.hoisted
}

fn each_step(block: &Block, visit: &mut dyn FnMut(&[Constraint], Option<&Atom>)) {
    block.each_binding(&mut |binding| {
        if let Op::Atomic { constraints, session, .. } = &binding.op {
            visit(constraints, session.as_ref());
        }
    });
}

/// A lock that a block takes.
#[derive(Clone, Debug)]
struct LockUse {
    mode: Mode,
    /// True if it is the lock of the flow's session.
    per_session: bool,
    /// The first place that takes it.
    at: Origin,
}

/// The locks that a block takes, by resource and scope. `false`, the session's lock, comes first.
type LockUses = BTreeMap<(Resource, bool), LockUse>;

struct LockOrdering<'a> {
    per_session: &'a BTreeSet<Resource>,
    library: &'a Library,
    /// The session of the flow, the same in all its steps.
    session: Option<Atom>,
    hoisted: Vec<Hoisting>,
}

impl LockOrdering<'_> {
    /// Hoists constraints in the steps of a block; `held` holds the locks of the steps around it.
    fn block(&mut self, block: &mut Block, held: &BTreeSet<(Resource, bool)>) {
        for binding in &mut block.lets {
            self.binding(binding, held);
        }
    }

    fn binding(&mut self, binding: &mut Let, held: &BTreeSet<(Resource, bool)>) {
        let origin = binding.origin;
        match &mut binding.op {
            Op::Atomic { constraints, session, body, .. } => {
                let mut within = self.locks_of(body);
                within.retain(|key, _| !held.contains(key));
                self.hoist(constraints, &within, (origin, body));
                if constraints.iter().any(|held| held.per_session) && session.is_none() {
                    session.clone_from(&self.session);
                }
                let mut held = held.clone();
                held.extend(constraints.iter().map(|held| (held.resource.clone(), !held.per_session)));
                self.block(body, &held);
            }
            op => op.blocks_mut().for_each(|body| self.block(body, held)),
        }
    }

    /// Returns all locks that a block takes, at any depth.
    fn locks_of(&self, block: &Block) -> LockUses {
        let mut locks = LockUses::new();
        block.each_binding(&mut |binding| {
            if let Op::Call(call) = &binding.op {
                join(&mut locks, self.call(call, binding.origin));
            } else if let Op::Atomic { constraints, .. } = &binding.op {
                let own = constraints.iter().map(|held| {
                    let taken = LockUse { mode: held.mode, per_session: held.per_session, at: binding.origin };
                    ((held.resource.clone(), !held.per_session), taken)
                });
                join(&mut locks, own.collect());
            }
        });
        locks
    }

    fn call(&self, call: &Call, at: Origin) -> LockUses {
        let mut locks = LockUses::new();
        let Some(function) = self.library.function(&call.function) else { return locks };
        for (atom, parameter) in call.arguments.iter().zip(&function.signature.parameters) {
            let Some(name) = atom.shared() else { continue };
            let resource = Resource::Shared(name.clone());
            // The lock is held during this call only, which waits for nothing else: it cannot be part of a cycle.
            if self.per_session.contains(&resource) {
                continue;
            }
            let mode = if parameter.passing == Passing::Change { Mode::Write } else { Mode::Read };
            join(&mut locks, LockUses::from([((resource, true), LockUse { mode, per_session: false, at })]));
        }
        locks
    }

    /// Hoists to a step the locks that are taken out of order inside it, and upgrades its read locks that inner uses
    /// need for writing.
    fn hoist(&mut self, constraints: &mut Vec<Constraint>, within: &LockUses, (step, body): (Origin, &Block)) {
        for held in constraints.iter_mut() {
            if let Some(taken) = within.get(&(held.resource.clone(), !held.per_session)) {
                held.mode = held.mode.max(taken.mode);
            }
        }
        let Some(last) = constraints.last().map(|held| held.resource.clone()) else { return };
        for ((resource, _), LockUse { mode, per_session, at }) in within {
            let known = constraints.iter().any(|held| held.resource == *resource);
            if known || *resource >= last {
                continue;
            }
            let (resource, mode, per_session) = (resource.clone(), *mode, *per_session);
            constraints.push(Constraint { resource: resource.clone(), mode, per_session });
            let is_used_throughout = self.uses_throughout(body, &resource);
            let last = last.clone();
            self.hoisted.push(Hoisting { resource, mode, per_session, at: *at, step, last, is_used_throughout });
        }
        constraints.sort_by(|a, b| a.resource.cmp(&b.resource));
    }

    /// Returns whether everything in a block that takes time holds the lock of the resource anyway.
    fn uses_throughout(&self, block: &Block, resource: &Resource) -> bool {
        block.lets.iter().all(|binding| match &binding.op {
            Op::Prim(..) | Op::Return(_) | Op::Fail(_) => true,
            Op::Call(call) => self.call(call, binding.origin).keys().any(|(taken, _)| taken == resource),
            Op::Atomic { constraints, .. } => constraints.iter().any(|held| held.resource == *resource),
            Op::Switch { arms, .. } => arms.iter().all(|arm| self.uses_throughout(&arm.body, resource)),
            _ => false,
        })
    }
}

fn join(locks: &mut LockUses, others: LockUses) {
    for (key, taken) in others {
        match locks.get_mut(&key) {
            Some(known) => known.mode = known.mode.max(taken.mode),
            None => _ = locks.insert(key, taken),
        }
    }
}
