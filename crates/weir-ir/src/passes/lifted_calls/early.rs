//! The part of the body of a `fold` that can be evaluated before the `fold`: reads, and what they need.
//!
//! An operation is *early* if it needs nothing of the rounds before, only reads, and its failures can be values. What an arm of a
//! switch computes and decides stays at its place, so that the `fold` fails there; the `for` computes it too. So the arms of a switch
//! whose subject is early have early parts of their own, unless the switch only reads and cannot fail. The value of a switch is early
//! if that of each arm is, or if the arm ends with an early failure.

use std::collections::{BTreeMap, BTreeSet};

use super::{Changes, can_keep_failures, has_failure, is_gathered, is_lifted, is_moved, is_total_but_for_reads};
use crate::expr::{Arm, ArmTest, Atom, Block, Let, Op, Var, Variable};
use crate::passes::facts::Facts;
use weir_host::{Type, Value};

/// The part of a block of the body of a `fold` that the `for` before it evaluates.
#[derive(Default)]
pub(super) struct EarlyPart {
    /// By the position of the binding in the block.
    pub(super) bindings: BTreeMap<usize, Early>,
}

/// The part of one binding that the `for` evaluates.
pub(super) enum Early {
    /// The operation, whose result the `fold` takes from there.
    Moved,
    /// The operation, which the `fold` evaluates too.
    Copied,
    /// A switch with what is early in each of its arms.
    Arms(EarlyArms),
    /// The early part of this arm of a switch on the state of the `fold`, in any case.
    Going(usize, EarlyPart),
}

/// The parts of the arms of a switch that the `for` evaluates.
pub(super) struct EarlyArms {
    pub(super) parts: Vec<EarlyPart>,
    /// True if the `for` needs the value of the switch, too.
    pub(super) has_value: bool,
}

/// The value of an arm: that of its block, or the failure with which it ends.
#[derive(Clone, Copy)]
pub(super) enum ArmValue<'a> {
    Yields(&'a Atom),
    Fails(&'a Atom),
}

impl<'a> ArmValue<'a> {
    /// Returns the value of a block of an arm, unless it ends in another way.
    pub(super) fn of(block: &'a Block) -> Option<ArmValue<'a>> {
        match block.lets.last() {
            Some(Let { op: Op::Fail(failure), .. }) => Some(ArmValue::Fails(failure)),
            Some(last) if last.bound.ty == Type::Never => None,
            _ => Some(ArmValue::Yields(&block.result)),
        }
    }

    pub(super) fn atom(self) -> &'a Atom {
        let (ArmValue::Yields(atom) | ArmValue::Fails(atom)) = self;
        atom
    }
}

impl EarlyPart {
    pub(super) fn is_empty(&self) -> bool {
        self.bindings.is_empty()
    }

    /// Returns true if nothing of the block is left that may fail or has an effect, once this part of it has moved.
    pub(super) fn leaves_only_total(&self, block: &Block, facts: &Facts<'_>) -> bool {
        let is_total = |op: &Op| is_total_but_for_reads(op, facts) && !has_failure(op, facts);
        block.lets.iter().enumerate().all(|(position, binding)| match (self.bindings.get(&position), &binding.op) {
            // The `fold` comes to what it evaluates again only if that has not failed in the `for`.
            (Some(Early::Moved | Early::Copied), _) => true,
            (Some(Early::Arms(early)), Op::Switch { arms, .. }) => {
                arms.iter().zip(&early.parts).all(|(arm, part)| part.leaves_only_total(&arm.body, facts))
            }
            (_, op) => is_total(op),
        })
    }
}

/// Returns the early part of the body of a `fold` with these states. `left` is the state if it says whether a failure has left the `fold`.
pub(super) fn of_body(
    body: &Block,
    (state, left): (&[Variable], Option<Var>),
    changes: &Changes,
    facts: &Facts<'_>,
) -> EarlyPart {
    let late = state.iter().map(|state| state.var).collect();
    let mut search = EarlySearch { facts, changes, left, late };
    let possible = search.block(body);
    search.needed(body, possible, &mut BTreeSet::new())
}

struct EarlySearch<'f, 'a> {
    facts: &'f Facts<'a>,
    changes: &'f Changes,
    left: Option<Var>,
    /// The variables of the body whose values are not early.
    late: BTreeSet<Var>,
}

impl EarlySearch<'_, '_> {
    /// Returns all that is early in a block.
    fn block(&mut self, block: &Block) -> EarlyPart {
        let mut part = EarlyPart::default();
        for (position, binding) in block.lets.iter().enumerate() {
            if let Some(early) = self.binding(binding) {
                part.bindings.insert(position, early);
            }
        }
        part
    }

    fn binding(&mut self, binding: &Let) -> Option<Early> {
        let Let { bound, op, .. } = binding;
        let never_changes = self.facts.never_changes(bound.var);
        if never_changes && self.needs_nothing_late(op) && self.is_whole(op) {
            return Some(if is_moved(op) { Early::Moved } else { Early::Copied });
        }
        self.late.insert(bound.var);
        let Op::Switch { subject, arms } = op else { return None };
        if self.left.is_some() && subject.variable() == self.left {
            let going = arms.iter().position(|arm| arm.test == ArmTest::Tag(Value::OK))?;
            self.late.extend(arms[going].payload.iter().map(|variable| variable.var));
            return Some(Early::Going(going, self.block(&arms[going].body)));
        }
        if !self.is_early(subject) {
            return None;
        }
        let parts = arms.iter().map(|arm| self.arm(arm)).collect();
        let has_value = never_changes && arms.iter().all(|arm| self.has_early_value(&arm.body));
        if has_value {
            self.late.remove(&bound.var);
        }
        Some(Early::Arms(EarlyArms { parts, has_value }))
    }

    /// Returns true if an operation that needs nothing late is evaluated by the `for` as a whole.
    fn is_whole(&self, op: &Op) -> bool {
        match op {
            Op::Switch { .. } => is_total_but_for_reads(op, self.facts),
            Op::Fail(_) => false,
            op => can_keep_failures(op, self.facts),
        }
    }

    fn arm(&mut self, arm: &Arm) -> EarlyPart {
        let changing = arm.payload.iter().map(|variable| variable.var).filter(|var| !self.facts.never_changes(*var));
        self.late.extend(changing);
        self.block(&arm.body)
    }

    fn has_early_value(&self, block: &Block) -> bool {
        ArmValue::of(block).is_some_and(|value| match value {
            ArmValue::Yields(value) => self.is_early(value),
            ArmValue::Fails(failure) => self.is_early(failure) && self.facts.is_of(failure, &Type::Failure),
        })
    }

    /// Returns true if everything that an operation needs is early, its blocks included, and nothing changes what it reads.
    fn needs_nothing_late(&self, op: &Op) -> bool {
        if matches!(op, Op::Call(call) if !self.changes.spare(call, self.facts)) {
            return false;
        }
        let borrows = matches!(op, Op::Call(call) if is_gathered(call, self.facts));
        let mut operands = op.operands().chain(op.blocks().map(|block| &block.result));
        let inner = || op.blocks().flat_map(|block| &block.lets);
        operands.all(|atom| self.is_early(atom) || borrows && atom.shared().is_some())
            && inner().all(|inner| self.needs_nothing_late(&inner.op))
    }

    fn is_early(&self, atom: &Atom) -> bool {
        self.facts.is_steady(atom) && atom.variable().is_none_or(|var| !self.late.contains(&var))
    }

    /// Returns the reads of a part and what they, and the variables in `needed`, need of it.
    fn needed(&self, block: &Block, part: EarlyPart, needed: &mut BTreeSet<Var>) -> EarlyPart {
        let mut kept = EarlyPart::default();
        for (position, early) in part.bindings.into_iter().rev() {
            let Let { bound, op, .. } = &block.lets[position];
            let early = match (early, op) {
                (Early::Going(going, inner), Op::Switch { arms, .. }) => {
                    Early::Going(going, self.needed(&arms[going].body, inner, needed))
                }
                (Early::Arms(EarlyArms { parts, has_value }), Op::Switch { arms, .. }) => {
                    let has_value = has_value && needed.contains(&bound.var);
                    let values = arms.iter().filter_map(|arm| ArmValue::of(&arm.body)).filter(|_| has_value);
                    needed.extend(values.filter_map(|value| value.atom().variable()));
                    let parts = arms.iter().zip(parts).map(|(arm, part)| self.needed(&arm.body, part, needed));
                    Early::Arms(EarlyArms { parts: parts.collect(), has_value })
                }
                (early, op) if needed.contains(&bound.var) || is_lifted(op, self.facts) => early,
                _ => continue,
            };
            match &early {
                Early::Going(_, inner) if inner.is_empty() => continue,
                Early::Going(..) => {}
                Early::Arms(arms) if !arms.has_value && arms.parts.iter().all(EarlyPart::is_empty) => continue,
                Early::Arms(_) => needed.extend(op.uses()),
                Early::Moved | Early::Copied => {
                    needed.extend(op.uses());
                    op.blocks().for_each(|block| needed.extend(block.free_variables(&[])));
                }
            }
            kept.bindings.insert(position, early);
        }
        kept
    }
}
