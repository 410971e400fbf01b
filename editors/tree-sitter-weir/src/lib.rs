//! The tree-sitter grammar of Weir, for programs that highlight or fold source code.

use tree_sitter_language::LanguageFn;

unsafe extern "C" {
    fn tree_sitter_weir() -> *const ();
}

/// The grammar.
// SAFETY: the function is the one that the generated parser defines, and it gives a static language.
pub const LANGUAGE: LanguageFn = unsafe { LanguageFn::from_raw(tree_sitter_weir) };

/// The highlighting query.
pub const HIGHLIGHTS_QUERY: &str = include_str!("../queries/highlights.scm");
