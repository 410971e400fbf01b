//! What the verifier reports: which rule is broken, where and how.

use std::fmt;

/// One thing that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule that is broken.
    pub rule: Rule,
    /// Where: the entry and flow, and the variable or node.
    pub place: String,
    /// What is wrong, in one sentence without a full stop.
    pub what: String,
}

/// The rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// Every variable is bound once in its flow; call sites, nodes, shared values and entries have names of their own.
    Once,
    /// What is used was bound before, and can be seen from there.
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
    /// Blocks and bodies nest no deeper than [`crate::parse::NESTING_MAX`].
    Nesting,
    /// The edges of a graph go from earlier nodes to later ones.
    Edges,
    /// Control is well nested: a node sees only what runs whenever it runs.
    Control,
    /// Nodes that may not overlap are ordered.
    Order,
    /// What a node says that it uses is what it uses, and is held where it says so.
    Uses,
    /// Atomic steps are begun and ended once, and are well nested.
    Steps,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({:?})", self.place, self.what, self.rule)
    }
}

/// What has been found, and where the verifier is.
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
