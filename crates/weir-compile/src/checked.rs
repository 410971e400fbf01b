//! The result of checking a file.

use std::sync::Arc;

use weir_ir::expr;
use weir_syntax::{Diagnostic, Parsed};

use crate::program_files::FileModules;
use crate::typed_tree::TypedTree;
use crate::weir_modules::WeirModules;

/// The result of checking a file.
pub struct Checked {
    /// The tree and its comments.
    pub parsed: Parsed,
    /// The resolved names and types of the tree.
    pub typed: TypedTree,
    /// The program; `None` if there are errors.
    pub expr: Option<expr::Program>,
    /// The tests of the file: a program with one flow for each, in source order.
    pub tests: Option<expr::Program>,
    /// The modules of the library that are written in Weir.
    pub modules: Arc<WeirModules>,
    /// The files of the program.
    pub(crate) files: FileModules,
    /// The diagnostics, in source order.
    pub diagnostics: Vec<Diagnostic>,
}

impl Checked {
    /// Returns true if the file that has the byte at `offset` belongs to a library of the program.
    #[must_use]
    pub fn is_of_library(&self, offset: u32) -> bool {
        self.files.is_of_library(self.files.index_at(offset))
    }
}
