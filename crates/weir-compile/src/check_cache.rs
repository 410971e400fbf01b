//! The incremental check cache: results of the last check of a program that an edit leaves valid.
//!
//! 1. The tree of a file is kept while its text and its place stay the same (`program_files`).
//! 2. The resolved names and types of a file are kept while its key ([`FileKeys`]) stays the same, if checking it reported
//!    nothing.
//! 3. So are its declarations, if no declaration of the program had an error: of the last such program.
//! 4. A `fn` that no flow reaches is lowered only to be checked, and most such `fn`s have no errors. The *fingerprint* of
//!    a `fn` hashes all the text that it depends on: its own, that of every `fn` that it calls, and the declarations that
//!    they see. A `fn` whose fingerprint is cached had no diagnostics before and has none after the edit, even if it moved.
//! 5. The lowering of a flow is kept while its texts stay the same (`kept_flows`).
//!
//! The cache has the results of one state of one program, so that it takes no more memory than they do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use weir_host::Text;

use crate::declarations::Declarations;
use crate::declare::KeptDeclarations;
use crate::file_keys::FileKeys;
use crate::file_lints::FileLints;
use crate::kept_flows::KeptFlows;
use crate::program_files::{FileModules, KeptTrees};
use crate::typed_tree::{FileTypes, KeptFiles, TypedTree};
use crate::weir_modules::WeirModules;

/// The cache of one program. It is valid only under one library.
#[derive(Clone, Default)]
pub struct CheckCache {
    /// The modules of the library that are written in Weir.
    pub(crate) modules: Arc<WeirModules>,
    /// The parsed files of the program, for [`ProgramFiles::load_again()`](crate::ProgramFiles::load_again).
    pub trees: KeptTrees,
    /// The results of the files without diagnostics, each with its key, by the name of the module. The chance of a collision
    /// is 1 in 2⁶⁴ for each edit.
    types: BTreeMap<Text, (u64, Arc<FileTypes>)>,
    /// The declarations of the last program in which they had no errors, and the keys of its files.
    declared: Option<(FileKeys, Arc<Declarations>)>,
    /// The warnings about the bodies of each file, with the hash of everything that they depend on.
    lints: BTreeMap<Text, (u64, Arc<FileLints>)>,
    /// The flows and the tests whose lowering reported nothing.
    pub(crate) flows: KeptFlows,
    pub(crate) tests: KeptFlows,
    /// The fingerprints of the `fn`s without diagnostics.
    clean: BTreeSet<u64>,
}

impl CheckCache {
    /// Returns the declarations that are still valid. Those of the main file, which has kinds of its own, are collected again, and
    /// so are those of files with tables, which reference each other.
    pub(crate) fn kept_declarations(&self, keys: &FileKeys) -> KeptDeclarations {
        let (before, declarations) = self.declared.as_ref()?;
        let valid =
            (1..declarations.files.len()).filter(|at| keys.key(*at).is_some() && keys.key(*at) == before.key(*at));
        let valid = valid.filter(|at| !declarations.has_tables(*at));
        Some((declarations.clone(), valid.collect()))
    }

    /// Replaces the cached declarations by those of this check, unless they have errors.
    pub(crate) fn keep_declarations(&mut self, keys: &FileKeys, declarations: &Declarations) {
        if declarations.is_clean {
            self.declared = Some((keys.clone(), declarations.clone().into()));
        }
    }

    /// Returns the results that are still valid.
    pub(crate) fn kept(&self, files: &FileModules, keys: &FileKeys) -> KeptFiles {
        let known = files.names().iter().enumerate().filter_map(|(at, name)| Some((at, self.types.get(name)?)));
        let valid = known.filter(|(at, (key, _))| keys.key(*at) == Some(*key));
        valid.map(|(at, (_, types))| (at, types.clone())).collect()
    }

    /// Replaces the cached results by those of this check.
    pub(crate) fn keep_types(&mut self, files: &FileModules, keys: &FileKeys, typed: &TypedTree) {
        let clean = files.names().iter().zip(&typed.files).enumerate().filter(|(_, (_, types))| types.is_clean);
        let keyed = clean.filter_map(|(at, (name, types))| Some((name.clone(), (keys.key(at)?, types.clone()))));
        self.types = keyed.collect();
    }

    /// Returns the warnings of each file that are still valid.
    pub(crate) fn kept_lints(&self, names: &[Text], keys: &[Option<u64>]) -> Vec<Option<Arc<FileLints>>> {
        let known = names.iter().zip(keys).map(|(name, key)| {
            let (known, lints) = self.lints.get(name)?;
            (Some(*known) == *key).then(|| lints.clone())
        });
        known.collect()
    }

    /// Replaces the cached warnings by those of this check.
    pub(crate) fn keep_lints(&mut self, names: &[Text], keys: &[Option<u64>], lints: &[Arc<FileLints>]) {
        let keyed = names.iter().zip(keys).zip(lints);
        self.lints = keyed.filter_map(|((name, key), lints)| Some((name.clone(), ((*key)?, lints.clone())))).collect();
    }

    /// Returns whether the text with this fingerprint had no diagnostics.
    pub(crate) fn knows(&self, fingerprint: u64) -> bool {
        self.clean.contains(&fingerprint)
    }

    /// Replaces the cached fingerprints by those of this check.
    pub(crate) fn keep(&mut self, clean: BTreeSet<u64>) {
        self.clean = clean;
    }
}
