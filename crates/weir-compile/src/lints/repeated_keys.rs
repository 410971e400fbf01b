//! Repeated keys: warns of a map literal in which two keys are equal, so that one of the values is lost.
//!
//! Only keys that are constant expressions or names of locals are compared: values never change.

use std::collections::BTreeMap;

use weir_host::Value;
use weir_syntax::ast::{Expr, ExprKind, MapEntry};
use weir_syntax::{Code, Diagnostic, Edit, Span};

use super::total_expressions::TotalExpressions;
use crate::context::CheckContext;
use crate::typed_tree::{LocalId, Resolution, TypedTree};
use crate::whole_lines::has_comment;

/// The warnings of every key of a map literal that is equal to an earlier one.
pub(super) struct RepeatedKeySearch<'t> {
    text: &'t str,
    total: TotalExpressions<'t>,
    typed: &'t TypedTree,
    pub(super) found: Vec<Diagnostic>,
}

/// A key whose value is known to be equal to another one.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum ComparableKey {
    Constant(Value),
    /// A local, by its number.
    Local(LocalId),
}

impl<'t> RepeatedKeySearch<'t> {
    pub(super) fn new(context: &CheckContext<'t>, typed: &'t TypedTree) -> Self {
        let total = TotalExpressions { library: context.library, typed };
        RepeatedKeySearch { text: context.text, total, typed, found: Vec::new() }
    }

    /// Looks at an expression, without its children.
    pub(super) fn expr(&mut self, expr: &Expr) {
        if let ExprKind::Map(entries) = &expr.kind {
            self.entries(entries);
        }
    }

    fn comparable(&self, key: &Expr) -> Option<ComparableKey> {
        match self.typed.resolution(key.id) {
            Some(Resolution::Local(local)) => Some(ComparableKey::Local(*local)),
            _ => self.typed.constant(key).ok().map(ComparableKey::Constant),
        }
    }

    fn entries(&mut self, entries: &[MapEntry]) {
        let mut earlier: BTreeMap<ComparableKey, usize> = BTreeMap::new();
        for (at, entry) in entries.iter().enumerate() {
            let Some(key) = self.comparable(&entry.key) else { continue };
            if let Some(first) = earlier.insert(key, at) {
                let diagnostic = Diagnostic::new(Code::RepeatedKey, "a map literal has the same key twice")
                    .at(entry.key.span, "this value replaces the first")
                    .because(entries[first].key.span, "the first value is lost");
                let advice = "keep the key once, with the second value, or change one of the keys";
                self.found.push(match self.joined(&entries[first..=at]) {
                    Some(Edit { span, replacement }) => diagnostic.suggest(advice, span, replacement),
                    None => diagnostic.hint(advice),
                });
            }
        }
    }

    /// Returns the edit that joins the first and the last entry, whose keys are equal: the map has the key at the position of
    /// the first entry, with the value of the last. `None` if that could change what the program does: the lost value has
    /// an effect or may fail, the kept one would be evaluated before a value between them, or a key between them may be the
    /// same when the program runs, whose value would then win.
    fn joined(&self, entries: &[MapEntry]) -> Option<Edit> {
        let [first, between @ .., last] = entries else { return None };
        let is_constant = |entry: &MapEntry| matches!(self.comparable(&entry.key), Some(ComparableKey::Constant(_)));
        let differ = is_constant(first) && between.iter().all(is_constant);
        let keeps_order = between.is_empty() || (differ && self.total.contain(&last.value));
        let kept =
            Span { start: first.value.span.end, end: between.last().unwrap_or(first).value.span.end, ..first.key.span };
        let replaced = Span { start: first.value.span.start, end: last.value.span.end, ..first.key.span };
        if !keeps_order || !self.total.contain(&first.value) || has_comment(self.text, replaced) {
            return None;
        }
        let replacement = format!("{}{}", self.text.get(last.value.span.range())?, self.text.get(kept.range())?);
        Some(Edit { span: replaced, replacement })
    }
}
