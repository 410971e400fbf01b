//! The result of checking a file.

use weir_ir::expr;
use weir_syntax::{Diagnostic, Parsed};

use crate::typed_tree::TypedTree;

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
    /// The diagnostics, in source order.
    pub diagnostics: Vec<Diagnostic>,
}
