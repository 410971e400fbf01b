//! The lost-update lint: warns of flows whose changes depend on reads that another flow may have made stale.
//!
//! A change that depends on a read of the same value, in another atomic step, loses the update of a flow that comes
//! between. Over several values (*write skew*), two flows A and B can end as after neither order if
//!
//! 1. A reads `x`, a change of A depends on that read, and B changes `x`;
//! 2. A and B both use `y`, in such a way that their order matters;
//! 3. one of them can come between the two uses of the other (cf. Fekete et al., "Making Snapshot Isolation
//!    Serializable", TODS 2005, whose cycles of two transactions these are).
//!
//! The order of two uses matters if one is a change and the other a read that a change depends on, or if both are
//! changes and one depends on a read, unless both commute, as additions and insertions under a new number do. A change that
//! depends on the same value within one step, such as a call that takes the value by `&mut`, counts as independent: changes of
//! that kind are assumed to commute.
//!
//! A read of `before` is the permission of the request, which counts from the moment of the read: no step can hold a `before` and
//! its route together. So it makes no fault with a use of the route, except for a lost update.

use std::collections::{BTreeMap, BTreeSet};

use weir_host::Text;
use weir_ir::expr::{Block, Origin, Program};
use weir_ir::program::AT_END;
use weir_syntax::ast::ItemKind;
use weir_syntax::{Code, Diagnostic, Span};

use self::uses::{BodyUses, SharedUse, UseKind};
use crate::context::CheckContext;
use crate::declarations::Declarations;
use crate::typed_tree::TypedTree;

mod advice;
mod table_advice;
mod uses;

/// Checks the flows of a program, each against every flow that may run at the same time.
pub(crate) fn check(program: &Program, typed: &TypedTree, context: &mut CheckContext<'_>) {
    let befores = spans_of_befores(context);
    let is_in_before = |origin: Origin| {
        let called_at = program.inlined_calls_around(origin).last().map_or(origin, |(_, call)| call.called_at);
        befores.iter().any(|before| before.start <= called_at.start && called_at.end <= before.end)
    };
    let mut flows = Vec::new();
    for (number, entry) in program.entries.iter().enumerate() {
        for (index, flow) in entry.flows.iter().enumerate() {
            let at_end = index == AT_END && flow.route.is_none();
            flows.push((number, at_end, FlowUses::of(&flow.body, typed, context, &is_in_before)));
        }
    }
    for (entry, at_end, flow) in &flows {
        let concurrent = flows.iter().filter(|(other, other_ends, _)| other != entry || !(*at_end || *other_ends));
        let others: Vec<&FlowUses> = concurrent.map(|(_, _, other)| other).collect();
        report(flow, &others, typed, context);
    }
}

/// Checks a body against itself.
pub(crate) fn check_body(body: &Block, typed: &TypedTree, context: &mut CheckContext<'_>) {
    let flow = FlowUses::of(body, typed, context, &|_| false);
    report(&flow, &[&flow], typed, context);
}

/// Returns the places of the bodies that run before those of routes.
fn spans_of_befores(context: &CheckContext<'_>) -> Vec<Span> {
    let services = context.tree().items.iter().filter_map(|item| match &item.kind {
        ItemKind::Service(service) => Some(service),
        _ => None,
    });
    services.flat_map(|service| service.befores().map(|before| before.span)).collect()
}

/// The part that a use has in a conflict.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    /// A read that a change depends on.
    DecidingRead,
    /// A change that depends on a read.
    DependentChange,
    /// A change that depends on nothing that another flow can change.
    IndependentChange,
    /// A change that depends on a read, and that commutes with others of its kind.
    DependentAddition,
    /// A change that depends on nothing, and that commutes with others of its kind.
    IndependentAddition,
}

impl Role {
    const ALL: [Role; 5] = [
        Role::DecidingRead,
        Role::DependentChange,
        Role::IndependentChange,
        Role::DependentAddition,
        Role::IndependentAddition,
    ];

    /// Returns whether the order of two uses of one value matters.
    fn conflicts(self, other: Role) -> bool {
        let both = |test: fn(Role) -> bool| test(self) && test(other);
        !(both(|role| role == Role::DecidingRead) || both(Role::is_independent) || both(Role::is_addition))
    }

    fn is_independent(self) -> bool {
        matches!(self, Role::IndependentChange | Role::IndependentAddition)
    }

    fn is_addition(self) -> bool {
        matches!(self, Role::DependentAddition | Role::IndependentAddition)
    }

    /// Returns the role of a change that depends on a read.
    fn dependent(self) -> Role {
        if self.is_addition() { Role::DependentAddition } else { Role::DependentChange }
    }
}

/// Two uses by one flow, by index.
#[derive(Clone, Copy)]
struct UsePair {
    first: usize,
    second: usize,
}

/// The values of a pair of uses, and the role of the use that is in conflict with the other flow's.
type PairKey = (Text, Text, Role);

/// The uses of one flow, summarised by pairs of values `x` and `y`.
struct FlowUses {
    body: BodyUses,
    /// True for each use of a `before`.
    of_before: Vec<bool>,
    /// For each read, the changes that depend on it.
    decided: Vec<Vec<usize>>,
    /// Deciding reads of `x` with a use of `y`.
    reads: BTreeMap<PairKey, UsePair>,
    /// Deciding reads of `x` before a use of `y` in another step; one for each such use.
    split_reads: BTreeMap<PairKey, BTreeMap<usize, UsePair>>,
    /// Changes of `x` with a use of `y`.
    changes: BTreeMap<PairKey, UsePair>,
    /// Uses of `y` before a change of `x` in another step.
    split_changes: BTreeMap<PairKey, UsePair>,
}

impl FlowUses {
    fn of(
        body: &Block,
        typed: &TypedTree,
        context: &CheckContext<'_>,
        is_in_before: &dyn Fn(Origin) -> bool,
    ) -> FlowUses {
        let body = BodyUses::of(body, typed, context.library);
        let mut flow = FlowUses {
            of_before: body.uses.iter().map(|found| is_in_before(found.origin)).collect(),
            decided: decided(&body),
            body,
            reads: BTreeMap::new(),
            split_reads: BTreeMap::new(),
            changes: BTreeMap::new(),
            split_changes: BTreeMap::new(),
        };
        let roles = roles(&flow.body, &flow.decided);
        for (x, role_of_x) in roles.iter().enumerate() {
            for (y, role_of_y) in roles.iter().enumerate() {
                if let (Some(role_of_x), Some(role_of_y)) = (role_of_x, role_of_y) {
                    flow.pair((x, *role_of_x), (y, *role_of_y));
                }
            }
        }
        flow
    }

    fn pair(&mut self, (x, role_of_x): (usize, Role), (y, role_of_y): (usize, Role)) {
        // In the executions with the use of `y`, the read must decide about some change.
        let decides = || self.decided[x].iter().any(|change| !self.body.are_exclusive(*change, y));
        if self.body.are_exclusive(x, y) || (role_of_x == Role::DecidingRead && !decides()) {
            return;
        }
        let key = (self.body.uses[x].shared.clone(), self.body.uses[y].shared.clone(), role_of_y);
        if role_of_x == Role::DecidingRead {
            let pair = UsePair { first: x, second: y };
            if self.body.is_split(x, y) && (self.is_lost_update(pair) || !self.is_permission(pair)) {
                self.split_reads.entry(key.clone()).or_default().entry(y).or_insert(pair);
            }
            self.reads.entry(key).or_insert(pair);
        } else {
            let pair = UsePair { first: y, second: x };
            if self.body.is_split(y, x) && !self.is_permission(pair) {
                self.split_changes.entry(key.clone()).or_insert(pair);
            }
            self.changes.entry(key).or_insert(pair);
        }
    }

    /// Returns whether the later use is a change that depends on the read, of the same value.
    fn is_lost_update(&self, pair: UsePair) -> bool {
        let later = self.at(pair.second);
        later.reads.contains(&pair.first) && later.shared == self.at(pair.first).shared
    }

    /// Returns whether the earlier use is a read that permits the request, and the later one is none of `before`.
    fn is_permission(&self, pair: UsePair) -> bool {
        self.of_before[pair.first] && !self.of_before[pair.second] && self.at(pair.first).kind == UseKind::Read
    }

    fn at(&self, index: usize) -> &SharedUse {
        &self.body.uses[index]
    }
}

/// Returns, for each read, the changes that depend on it; a dependence within one step on one value does not count.
fn decided(body: &BodyUses) -> Vec<Vec<usize>> {
    let mut decided = vec![Vec::new(); body.uses.len()];
    for (change, found) in body.uses.iter().enumerate() {
        for read in &found.reads {
            if body.uses[*read].shared != found.shared || !body.in_one_step(*read, change) {
                decided[*read].push(change);
            }
        }
    }
    decided
}

/// Returns the role of each use; `None` for a read that no change depends on.
fn roles(body: &BodyUses, decided: &[Vec<usize>]) -> Vec<Option<Role>> {
    let role = |found: &SharedUse| match found.kind {
        UseKind::Read => None,
        UseKind::Change if found.commutes => Some(Role::IndependentAddition),
        UseKind::Change => Some(Role::IndependentChange),
    };
    let mut roles: Vec<Option<Role>> = body.uses.iter().map(role).collect();
    for (read, changes) in decided.iter().enumerate().filter(|(_, changes)| !changes.is_empty()) {
        roles[read] = Some(Role::DecidingRead);
        for change in changes {
            roles[*change] = roles[*change].map(Role::dependent);
        }
    }
    roles
}

/// Reports the faults of a flow beside the others: one for each use, and nothing more of a read that loses an update.
fn report(flow: &FlowUses, others: &[&FlowUses], typed: &TypedTree, context: &mut CheckContext<'_>) {
    let report = FaultReport { flow, declarations: &typed.declarations, context };
    let (mut lost, mut rest) = (BTreeMap::new(), BTreeMap::new());
    let mut reads = BTreeSet::new();
    for ((x, y, role), pairs) in &flow.split_reads {
        let change = others.iter().find_map(|other| Some(other.at(in_conflict(&other.changes, x, y, *role)?.second)));
        let Some(change) = change else { continue };
        for pair in pairs.values() {
            if flow.is_lost_update(*pair) {
                reads.insert(pair.first);
                lost.entry(pair.second).or_insert_with(|| report.lost_update(*pair));
            } else {
                rest.entry(pair.second).or_insert_with(|| (pair.first, report.stale_read(*pair, change)));
            }
        }
    }
    for ((x, y, role), pair) in &flow.split_changes {
        let read = others.iter().find_map(|other| Some(other.at(in_conflict(&other.reads, x, y, *role)?.first)));
        let Some(read) = read else { continue };
        rest.entry(pair.second).or_insert_with(|| (pair.first, report.split_change(*pair, read)));
    }
    rest.retain(|later, (earlier, _)| !lost.contains_key(later) && !reads.contains(earlier));
    for diagnostic in lost.into_values().chain(rest.into_values().map(|(_, diagnostic)| diagnostic)) {
        context.report_once(diagnostic);
    }
}

/// Returns a pair of uses whose use of `y` conflicts with one of this role.
fn in_conflict(pairs: &BTreeMap<PairKey, UsePair>, x: &Text, y: &Text, role: Role) -> Option<UsePair> {
    let mut roles = Role::ALL.into_iter().filter(|other| role.conflicts(*other));
    roles.find_map(|other| pairs.get(&(x.clone(), y.clone(), other)).copied())
}

struct FaultReport<'a, 'c> {
    flow: &'a FlowUses,
    declarations: &'a Declarations,
    context: &'a CheckContext<'c>,
}

impl FaultReport<'_, '_> {
    fn lost_update(&self, pair: UsePair) -> Diagnostic {
        let (read, later) = (self.flow.at(pair.first), self.flow.at(pair.second));
        let message = format!("another flow may change `{}` between this read and this write", read.shared);
        let [read_at, written_at] = self.context.in_common_body(read.origin, later.origin);
        Diagnostic::new(Code::LostUpdate, message)
            .at(written_at.span, format!("{} depends on the read", written_at.named("this write")))
            .because(read_at.span, read_at.named(if read_at.function.is_some() { "read" } else { "read here" }))
            .hint(match self.flow.is_permission(pair) {
                true => format!("read `{}` again in the route, in one step with the write", read.shared),
                false => self.one_step(pair),
            })
    }

    /// Reports a read and a later use, between which another flow may change the value that was read.
    fn stale_read(&self, pair: UsePair, changed: &SharedUse) -> Diagnostic {
        let (read, later) = (self.flow.at(pair.first), self.flow.at(pair.second));
        let x = &read.shared;
        let diagnostic = if pair.first == pair.second {
            let message = format!("another flow may change `{x}` between this read and that of the next round");
            Diagnostic::new(Code::LostUpdate, message)
                .at(self.context.span(read.origin), "a write depends on this read, in several rounds")
        } else {
            let message =
                format!("another flow may change `{x}` between this read and the {} `{}`", noun(later), later.shared);
            let [read_at, later_at] = self.context.in_common_body(read.origin, later.origin);
            Diagnostic::new(Code::LostUpdate, message)
                .at(later_at.span, later_at.named(format!("the {} `{}`", noun(later), later.shared)))
                .because(read_at.span, read_at.named("a write depends on this read"))
        };
        diagnostic.because(self.context.span(changed.origin), format!("this changes `{x}`")).hint(self.one_step(pair))
    }

    /// Reports a use and a later change, between which another flow may read the value that is changed.
    fn split_change(&self, pair: UsePair, read: &SharedUse) -> Diagnostic {
        let (earlier, change) = (self.flow.at(pair.first), self.flow.at(pair.second));
        let (x, y) = (&change.shared, &earlier.shared);
        let message = format!("another flow may read `{x}` between the {} `{y}` and this write", noun(earlier));
        let [earlier_at, changed_at] = self.context.in_common_body(earlier.origin, change.origin);
        Diagnostic::new(Code::LostUpdate, message)
            .at(changed_at.span, changed_at.named(format!("the write of `{x}`")))
            .because(earlier_at.span, earlier_at.named(format!("the {} `{y}`", noun(earlier))))
            .because(self.context.span(read.origin), format!("a write depends on this read of `{x}`"))
            .hint(self.one_step(pair))
    }

    fn one_step(&self, pair: UsePair) -> String {
        advice::one_step(pair, &self.flow.body, self.declarations, self.context)
    }
}

fn noun(shared: &SharedUse) -> &'static str {
    match shared.kind {
        UseKind::Read => "read of",
        UseKind::Change => "write of",
    }
}
