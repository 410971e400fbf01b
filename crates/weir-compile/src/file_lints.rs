//! The warnings about one file, which are kept after an edit of another one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use weir_syntax::Diagnostic;
use weir_syntax::ast::Name;

use crate::symbol::Symbol;

/// The warnings about the bodies of one file.
pub(crate) struct FileLints {
    pub(crate) found: Vec<Diagnostic>,
    /// The parameters of `fn`s that nothing reads.
    pub(crate) unused_parameters: Vec<UnusedParameter>,
    /// The names of the arguments of all calls.
    pub(crate) argument_names: BTreeSet<Arc<str>>,
    pub(crate) symbols: FileSymbols,
}

/// The symbols that the items of a file define and name, without local names and those of the library. Items have their number
/// in the file.
#[derive(Default)]
pub(crate) struct FileSymbols {
    /// The item that defines each symbol.
    pub(crate) defined: BTreeMap<Symbol, usize>,
    pub(crate) items: Vec<ItemSymbols>,
    /// The variants of the file's enums that the file itself does not name: the item and the number of the variant.
    pub(crate) unnamed_variants: Vec<(usize, usize)>,
}

/// The symbols that an item names, each once.
#[derive(Default)]
pub(crate) struct ItemSymbols {
    /// The items of the same file that define them.
    pub(crate) in_file: Vec<usize>,
    /// Symbols that other files define.
    pub(crate) elsewhere: Vec<Symbol>,
}

/// A parameter of a `fn` that nothing reads.
pub(crate) struct UnusedParameter {
    pub(crate) name: Name,
    /// True if other modules may call the `fn`.
    pub(crate) is_public: bool,
}
