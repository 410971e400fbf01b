//! Repeated keys: warns of a map literal in which two keys are equal, so that one of the values is lost.
//!
//! Only keys that are constant expressions or names of locals are compared: values never change.

use std::collections::BTreeMap;

use weir_host::Value;
use weir_syntax::ast::{Expr, ExprKind, MapEntry};
use weir_syntax::{Code, Diagnostic, Span};

use crate::typed_tree::{Resolution, TypedTree};

/// The warnings of every key of a map literal that is equal to an earlier one.
pub(super) struct RepeatedKeySearch<'t> {
    typed: &'t TypedTree,
    pub(super) found: Vec<Diagnostic>,
}

/// A key whose value is known to be equal to another one.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum ComparableKey {
    Constant(Value),
    /// A local, by its number.
    Local(u32),
}

impl<'t> RepeatedKeySearch<'t> {
    pub(super) fn new(typed: &'t TypedTree) -> Self {
        RepeatedKeySearch { typed, found: Vec::new() }
    }

    /// Looks at an expression, without its children.
    pub(super) fn expr(&mut self, expr: &Expr) {
        if let ExprKind::Map(entries) = &expr.kind {
            self.entries(entries);
        }
    }

    fn comparable(&self, key: &Expr) -> Option<ComparableKey> {
        match self.typed.resolutions.get(&key.id) {
            Some(Resolution::Local(local)) => Some(ComparableKey::Local(local.0)),
            _ => self.typed.constant(key).ok().map(ComparableKey::Constant),
        }
    }

    fn entries(&mut self, entries: &[MapEntry]) {
        let mut earlier: BTreeMap<ComparableKey, usize> = BTreeMap::new();
        for (at, entry) in entries.iter().enumerate() {
            let Some(key) = self.comparable(&entry.key) else { continue };
            if let Some(first) = earlier.insert(key, at) {
                let (lost, next) = (entries[first].key.span, entries[first + 1].key.span);
                let diagnostic = Diagnostic::new(Code::RepeatedKey, "a map literal has the same key twice")
                    .at(entry.key.span, "this value replaces the first")
                    .because(lost, "the first value is lost")
                    .suggest(
                        "remove the first of the two entries, or change its key",
                        Span { end: next.start, ..lost },
                        "",
                    );
                self.found.push(diagnostic);
            }
        }
    }
}
