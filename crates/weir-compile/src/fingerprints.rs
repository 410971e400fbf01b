//! Fingerprints of `fn`s: hashes of all the text that a `fn` depends on, which tell whether an edit concerns it.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use weir_syntax::ast::{ItemKind, Tree};

use crate::declarations::DatabaseAddress;
use crate::file_keys::FileKeys;
use crate::program_files::fingerprint;
use crate::typed_tree::TypedTree;

/// The fingerprints of the `fn`s in one state of a program.
pub(crate) struct Fingerprints<'a> {
    typed: &'a TypedTree,
    keys: &'a FileKeys,
    /// The hash of each `fn`'s own text and of the declarations that it sees, by the index of the `fn`.
    own: Vec<u64>,
    /// The hash of what any `fn` may depend on.
    pub(crate) surroundings: u64,
}

impl<'a> Fingerprints<'a> {
    pub(crate) fn new(tree: &Tree, typed: &'a TypedTree, text: &str, keys: &'a FileKeys) -> Self {
        let of_item = |at: usize| fingerprint(&text[tree.items[at].span.range()]);
        let own = typed.declarations.functions.values().map(|declared| {
            let mut hasher = DefaultHasher::new();
            (of_item(declared.item), keys.surroundings(declared.file)).hash(&mut hasher);
            hasher.finish()
        });
        let own = own.collect();
        let mut surroundings = DefaultHasher::new();
        for (at, item) in tree.items.iter().enumerate() {
            // Handlers of the main file apply to all flows, and constraints of every file to calls everywhere.
            if matches!(item.kind, ItemKind::Constraint(_) | ItemKind::FailureHandler(_)) {
                of_item(at).hash(&mut surroundings);
            }
        }
        typed.per_session.hash(&mut surroundings);
        // The type of a shared value follows from the `fn`s that its first value calls.
        for (name, shared) in &typed.declarations.shared {
            (name, shared.ty.to_type()).hash(&mut surroundings);
        }
        // A table's database has the name of its first table, which may be one of a module that a flow does not see.
        for (name, table) in &typed.declarations.tables {
            let database = table.existing.as_ref().map(|existing| match &existing.database {
                DatabaseAddress::Text(address) => fingerprint(address),
                DatabaseAddress::Config(config) => {
                    typed.declarations.config.get(config).map_or(0, |declared| of_item(declared.item))
                }
            });
            (name, database).hash(&mut surroundings);
        }
        Fingerprints { typed, keys, own, surroundings: surroundings.finish() }
    }

    /// Returns the hash of the own text of the `fn` with this index, and of the declarations that it sees.
    pub(crate) fn own(&self, at: usize) -> u64 {
        self.own[at]
    }

    /// Returns the hash of the declarations that the code of a file sees.
    pub(crate) fn of_file(&self, file: usize) -> Option<u64> {
        self.keys.surroundings(file)
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
