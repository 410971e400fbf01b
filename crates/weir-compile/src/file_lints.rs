//! The warnings about one file, which are kept after an edit of another one.

use std::collections::BTreeSet;
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
    /// The symbols of each item of the file, in their order.
    pub(crate) items: Vec<ItemSymbols>,
}

/// The symbols that an item of a file defines and names, without local names and those of the library.
#[derive(Default)]
pub(crate) struct ItemSymbols {
    pub(crate) defined: Vec<Symbol>,
    /// Each once.
    pub(crate) named: Vec<Symbol>,
}

/// A parameter of a `fn` that nothing reads.
pub(crate) struct UnusedParameter {
    pub(crate) name: Name,
    /// True if other modules may call the `fn`.
    pub(crate) is_public: bool,
}
