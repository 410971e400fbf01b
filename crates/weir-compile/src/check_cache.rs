//! The incremental check cache: fingerprints of the `fn`s that the last check found clean.
//!
//! A `fn` that no flow reaches is lowered only to be checked, and most such `fn`s have no errors. The *fingerprint* of
//! a `fn` hashes all the text that it depends on: its own, that of every `fn` that it calls, and that of the types,
//! shared values and constraints of the file. A `fn` whose fingerprint is cached had no diagnostics before and has none
//! after the edit, even if it moved.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use weir_syntax::ast::{ItemKind, Tree};

use crate::typed_tree::TypedTree;
use crate::weir_modules::WeirModules;

/// The cache of one file. It is valid only under one library.
#[derive(Clone, Default)]
pub struct CheckCache {
    /// The modules of the library that are written in Weir.
    pub(crate) modules: Arc<WeirModules>,
    /// The fingerprints of the `fn`s without diagnostics. The chance of a collision is 1 in 2⁶⁴ for each edit.
    clean: BTreeSet<u64>,
}

impl CheckCache {
    /// Returns whether the text with this fingerprint had no diagnostics.
    pub(crate) fn knows(&self, fingerprint: u64) -> bool {
        self.clean.contains(&fingerprint)
    }

    /// Replaces the cached fingerprints by those of this check.
    pub(crate) fn keep(&mut self, clean: BTreeSet<u64>) {
        self.clean = clean;
    }
}

/// The fingerprints of the `fn`s in one state of a file.
pub(crate) struct Fingerprints<'a> {
    typed: &'a TypedTree,
    /// The hash of each `fn`'s own text, by the index of the `fn`.
    own: Vec<u64>,
    /// The hash of all declarations that any `fn` may depend on.
    surroundings: u64,
}

impl<'a> Fingerprints<'a> {
    pub(crate) fn new(tree: &Tree, typed: &'a TypedTree, text: &str) -> Self {
        let of_item = |at: usize| fingerprint(&text[tree.items[at].span.range()]);
        let own = typed.declarations.functions.values().map(|declared| of_item(declared.item)).collect();
        let mut surroundings = DefaultHasher::new();
        for (at, item) in tree.items.iter().enumerate() {
            let matters = match item.kind {
                ItemKind::Use(_)
                | ItemKind::Library(_)
                | ItemKind::Shared(_)
                | ItemKind::Constraint(_)
                | ItemKind::Config(_)
                | ItemKind::Constant(_)
                | ItemKind::Alias(_) => true,
                ItemKind::Table(_) => true,
                ItemKind::Record(_) | ItemKind::Enum(_) | ItemKind::FailureHandler(_) => true,
                ItemKind::Function(_) | ItemKind::Service(_) | ItemKind::Entry(_) | ItemKind::Test(_) => false,
            };
            if matters {
                of_item(at).hash(&mut surroundings);
            }
        }
        Fingerprints { typed, own, surroundings: surroundings.finish() }
    }

    /// Returns the fingerprint of the `fn` with this index and everything that it calls.
    pub(crate) fn of(&self, at: usize) -> u64 {
        let mut reached = BTreeSet::from([at]);
        let mut open = vec![at];
        while let Some(at) = open.pop() {
            let callees = self.typed.fn_callees.get(at).into_iter().flatten();
            open.extend(callees.copied().filter(|callee| reached.insert(*callee)));
        }
        let mut whole = DefaultHasher::new();
        (self.own[at], self.surroundings).hash(&mut whole);
        let mut texts: Vec<u64> = reached.into_iter().map(|at| self.own[at]).collect();
        texts.sort_unstable();
        texts.hash(&mut whole);
        whole.finish()
    }
}

fn fingerprint(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
