//! The verifier's report: the rule that is broken, the place and the reason.

use std::fmt;

/// A broken rule at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule that is broken.
    pub rule: Rule,
    /// The entry and flow, and the variable or node.
    pub place: String,
    /// The reason, one sentence without a full stop.
    pub what: String,
}

/// The rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// Every variable is bound once in its flow; call sites, nodes, shared values and entries have names of their own.
    Once,
    /// Every variable that is used was bound before and is in scope.
    Scope,
    /// Functions, sources, shared values and types that are named exist.
    Known,
    /// Operands and results have the types that the operation, the signature or the definition says.
    Types,
    /// The tests of a switch cover every value, and can hold.
    Cover,
    /// The payload of an arm has a name for each field, or none.
    Payload,
    /// Nothing follows an operation that never yields.
    Reach,
    /// Constraints are in the canonical order, each once, also in steps within steps; sessions are given where needed.
    Constraints,
    /// Blocks and bodies nest no deeper than [`crate::program::NESTING_MAX`].
    Nesting,
    /// The edges of a graph go from earlier nodes to later ones.
    Edges,
    /// Control is well nested: a node sees only what runs whenever it runs.
    Control,
    /// Nodes that may not overlap are ordered.
    Order,
    /// The resource uses of a node are those of its operation, and are held as it states.
    Uses,
    /// Atomic steps are begun and ended once, and are well nested.
    Steps,
    /// A primitive that a switch evaluates as part of its condition may be evaluated there.
    Conditions,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({:?})", self.place, self.what, self.rule)
    }
}

/// The violations so far, and the place that is being verified.
#[derive(Default)]
pub(super) struct Report {
    pub(super) place: String,
    pub(super) violations: Vec<Violation>,
}

impl Report {
    pub(super) fn add(&mut self, rule: Rule, at: &str, what: impl Into<String>) {
        let place = if at.is_empty() { self.place.clone() } else { format!("{}, {at}", self.place) };
        self.violations.push(Violation { rule, place, what: what.into() });
    }
}
