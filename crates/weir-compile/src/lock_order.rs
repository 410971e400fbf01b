//! Lock-order analysis: hoists constraints so that atomic steps cannot deadlock (Flux §3.1.1).
//!
//! All locks are taken in one canonical order, that of [`Resource`], so that flows never wait for each other in a
//! cycle. If a step holds a lock and something inside it takes an earlier one, the earlier lock is hoisted to the step,
//! in the mode (reader or writer) that the inner use needs. The analysis goes from the outermost step inwards and
//! subtracts what outer steps hold, so that one pass suffices. Every `fn`, branch, handler and loop is inlined, so that
//! nesting in the source is nesting of blocks. A lock that a step holds is not taken again.
//!
//! The paper hoists at nodes that carry a constraint; a nested node without its own constraint escaped the original
//! compiler. Here every call inside a step counts, with or without a constraint.
//!
//! A constraint per session is a lock for each session. A resource has one scope in a program, so that the session
//! locks take the position of the resource in the order. Each call takes the shared value itself last, and waits for
//! nothing while it holds it ([`weir_ir::graph::Program::session_scoped`]).

use std::collections::{BTreeMap, BTreeSet};

use weir_host::{Mode, Passing, Resource, Text};
use weir_ir::expr::{Atom, Block, Call, Constraint, Let, Op, Origin, Program};
use weir_syntax::{Code, Diagnostic, Span};

use crate::context::CheckContext;

/// Hoists constraints in every step of a program, and reports each hoisting.
pub(crate) fn order(program: &mut Program, context: &mut CheckContext<'_>) {
    let per_session = sessions_of(program);
    for entry in program.entries.iter().filter(|entry| entry.ordered) {
        entry.flows.iter().for_each(|flow| turns_in_steps(&flow.body, None, context));
    }
    let mut steps = LockOrdering { per_session, session: None, context };
    for flow in program.entries.iter_mut().flat_map(|entry| &mut entry.flows) {
        steps.session = session_of(&flow.body);
        steps.block(&mut flow.body, &BTreeSet::new());
    }
}

/// Reports calls of stateful functions inside a step, in a flow of an ordered source. Such a call waits at its ticket
/// gate for the earlier flows, and one of these may wait for a lock that the step holds.
fn turns_in_steps(block: &Block, step: Option<Origin>, context: &mut CheckContext<'_>) {
    for binding in &block.lets {
        let step = match &binding.op {
            Op::Atomic { .. } => step.or(Some(binding.origin)),
            _ => step,
        };
        if let (Op::Call(call), Some(step)) = (&binding.op, step)
            && context.library.function(&call.function).is_some_and(|function| function.signature.state.is_some())
        {
            let diagnostic = turn_in_step(call, binding.origin, step, context);
            context.report_once(diagnostic);
        }
        binding.op.blocks().for_each(|inner| turns_in_steps(inner, step, context));
    }
}

fn turn_in_step(call: &Call, at: Origin, step: Origin, context: &CheckContext<'_>) -> Diagnostic {
    Diagnostic::new(Code::TurnInStep, format!("`{}` waits for earlier flows inside an atomic step", call.function))
        .at(context.span(at), "called in the order of the source's elements")
        .because(keyword(context.span(step)), "the step begins here")
        .note("an earlier flow may wait for this step, and this step waits for that flow: a deadlock")
        .hint("call it before or after the step")
}

/// Returns the span of a step's keyword, `atomic`.
fn keyword(step: Span) -> Span {
    Span { end: (step.start + "atomic".len() as u32).min(step.end), ..step }
}

/// Returns the resources that are held per session.
fn sessions_of(program: &Program) -> BTreeSet<Resource> {
    let mut found = BTreeSet::new();
    for flow in program.entries.iter().flat_map(|entry| &entry.flows) {
        each_step(&flow.body, &mut |constraints, _| {
            found.extend(constraints.iter().filter(|held| held.per_session).map(|held| held.resource.clone()));
        });
    }
    found
}

fn session_of(block: &Block) -> Option<Atom> {
    let mut found = None;
    each_step(block, &mut |_, session| {
        if found.is_none() {
            found = session.cloned();
        }
    });
    found
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

struct LockOrdering<'a, 'c> {
    per_session: BTreeSet<Resource>,
    session: Option<Atom>,
    context: &'a mut CheckContext<'c>,
}

/// The locks that a block takes, by resource and scope. `false`, the session's lock, comes first.
type LockUses = BTreeMap<(Resource, bool), LockUse>;

impl LockOrdering<'_, '_> {
    /// Hoists constraints in the steps of a block; `held` holds the locks of the steps around it.
    fn block(&mut self, block: &mut Block, held: &BTreeSet<(Resource, bool)>) {
        for binding in &mut block.lets {
            self.binding(binding, held);
        }
    }

    fn binding(&mut self, binding: &mut Let, held: &BTreeSet<(Resource, bool)>) {
        let origin = binding.origin;
        match &mut binding.op {
            Op::Atomic { constraints, session, body } => {
                let mut within = self.locks_of(body);
                within.retain(|key, _| !held.contains(key));
                self.hoist(constraints, &within, origin);
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
        let parameters = self.context.parameters(&call.function);
        let mut locks = LockUses::new();
        for (atom, parameter) in call.arguments.iter().zip(parameters) {
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
    fn hoist(&mut self, constraints: &mut Vec<Constraint>, within: &LockUses, step: Origin) {
        for held in constraints.iter_mut() {
            if let Some(taken) = within.get(&(held.resource.clone(), !held.per_session)) {
                held.mode = held.mode.max(taken.mode);
            }
        }
        let Some(last) = constraints.last().map(|held| held.resource.clone()) else { return };
        for ((resource, _), taken) in within {
            let known = constraints.iter().any(|held| held.resource == *resource);
            if known || *resource >= last {
                continue;
            }
            let constraint =
                Constraint { resource: resource.clone(), mode: taken.mode, per_session: taken.per_session };
            constraints.push(constraint);
            self.hoisted(resource, &last, taken, step);
        }
        constraints.sort_by(|a, b| a.resource.cmp(&b.resource));
    }

    fn hoisted(&mut self, resource: &Resource, last: &Resource, taken: &LockUse, step: Origin) {
        let (name, last) = (name_of(resource), name_of(last));
        let cost = match taken.mode {
            Mode::Read => format!("no other flow can change `{name}` during the step"),
            Mode::Write => format!("every other flow that uses `{name}` waits during the step"),
        };
        let scope = if taken.per_session { " per session" } else { "" };
        let begin = keyword(self.context.span(step));
        let diagnostic =
            Diagnostic::new(Code::HoistedConstraint, format!("`{name}` is held for the whole step, not only while it is used"))
                .at(begin, format!("holds `{last}`, and therefore `{name}` too"))
                .because(self.context.span(taken.at), format!("uses `{name}`"))
                .note(format!("all flows take `{name}` before `{last}`: taking them in different orders could deadlock"))
                .note(cost)
                .fix(
                    format!("use `{name}` before or after the step, or make the step hold it: `atomic {name}{scope}, {last} {{ … }}`"),
                    begin.at_end(),
                    format!(" {name}{scope},"),
                );
        self.context.report_once(diagnostic);
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

fn name_of(resource: &Resource) -> Text {
    match resource {
        Resource::Shared(name) | Resource::Constraint(name) | Resource::World(name) | Resource::State(name) => {
            name.clone()
        }
    }
}
