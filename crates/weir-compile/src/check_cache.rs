//! What is known of a file from its last check, so that after an edit only what could have changed is looked at again.
//!
//! A `fn` that no flow reaches is lowered only to be checked, and most of them are right. Its *fingerprint* is of all the
//! text that it depends on: its own, that of every `fn` that it calls, and that of the types, shared values and constraints
//! of the file. If this text had nothing wrong with it before, it has nothing wrong now, wherever it stands.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use weir_syntax::ast::{ItemKind, Tree};

use crate::typed_tree::TypedTree;

/// What is known from the last check of a file, under the same library.
#[derive(Clone, Default, Debug)]
pub struct CheckCache {
    /// The fingerprints of what nothing was said of. Two texts have one fingerprint once in 2⁶⁴ edits.
    clean: BTreeSet<u64>,
}

impl CheckCache {
    /// Whether nothing was said of a text with this fingerprint.
    pub(crate) fn knows(&self, fingerprint: u64) -> bool {
        self.clean.contains(&fingerprint)
    }

    /// Keeps what this check found, and forgets what was found before.
    pub(crate) fn keep(&mut self, clean: BTreeSet<u64>) {
        self.clean = clean;
    }
}

/// The fingerprints of the `fn`s of one state of a file.
pub(crate) struct Fingerprints<'a> {
    typed: &'a TypedTree,
    /// Of each `fn`'s own text, by its index.
    own: Vec<u64>,
    /// Of what every `fn` may depend on.
    surroundings: u64,
}

impl<'a> Fingerprints<'a> {
    pub(crate) fn new(tree: &Tree, typed: &'a TypedTree, text: &str) -> Self {
        let of_item = |at: usize| fingerprint(&text[tree.items[at].span.range()]);
        let own = typed.declarations.functions.values().map(|declared| of_item(declared.item)).collect();
        let mut surroundings = DefaultHasher::new();
        for (at, item) in tree.items.iter().enumerate() {
            let matters = match item.kind {
                ItemKind::Use(_) | ItemKind::Shared(_) | ItemKind::Constraint(_) => true,
                ItemKind::Record(_) | ItemKind::Enum(_) | ItemKind::FailureHandler(_) => true,
                ItemKind::Function(_) | ItemKind::Service(_) | ItemKind::Entry(_) | ItemKind::Test(_) => false,
            };
            if matters {
                of_item(at).hash(&mut surroundings);
            }
        }
        Fingerprints { typed, own, surroundings: surroundings.finish() }
    }

    /// Of the `fn` of this index, with all that it calls.
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
