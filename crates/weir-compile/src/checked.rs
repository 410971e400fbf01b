//! The result of checking a file.

use std::sync::Arc;

use weir_host::Text;
use weir_ir::expr;
use weir_syntax::{Diagnostic, Edit, Parsed, SourceFile, SourceId, Span};

use crate::allowed;
use crate::program_files::{FileModules, ProgramFiles};
use crate::symbol::Symbol;
use crate::typed_tree::TypedTree;
use crate::weir_modules::WeirModules;

/// A part of a query that the program evaluates itself, because the table does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryRest {
    /// The place of the query, which is that of the call of the table.
    pub query: Span,
    /// A sentence about the program without its subject: ``keeps the rows with `m.size > 2` ``.
    pub what: String,
}

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
    /// The parts of queries of tables that the program evaluates itself.
    pub query_rests: Vec<QueryRest>,
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

    /// Returns the edit that silences a warning of the program, whose text this is: a comment above the code in which it begins.
    #[must_use]
    pub fn allow(&self, warning: &Diagnostic, text: &str) -> Option<Edit> {
        allowed::edit(warning, &self.parsed.tree, text)
    }

    /// Returns the name in the program of a name that is declared in the file at `offset`.
    #[must_use]
    pub fn whole_name(&self, offset: u32, name: &str) -> Text {
        match self.files.names().get(self.files.index_at(offset)) {
            Some(module) if !module.is_empty() => format!("{module}.{name}").into(),
            _ => name.into(),
        }
    }

    /// Returns the name of the module of the program that a `use` in the file at `offset` means.
    #[must_use]
    pub fn used_module(&self, offset: u32, path: &str) -> Option<Text> {
        let meant = self.files.meant(self.files.index_at(offset), path);
        self.files.file(&meant).map(|_| meant)
    }

    /// Returns the public items of a module of the program, each with its name in the module.
    #[must_use]
    pub fn public_items(&self, module: &str) -> Vec<(String, Symbol)> {
        let declarations = &self.typed.declarations;
        let functions = declarations.functions.iter().filter(|(_, declared)| declared.public);
        let functions = functions.map(|(name, _)| (&**name, Symbol::Function((&**name).into())));
        let types = declarations.types.iter().filter(|(_, declared)| declared.public);
        let types = types.map(|(name, _)| (name.as_str(), Symbol::Type(name.clone())));
        let aliases = declarations.aliases.iter().filter(|(_, declared)| declared.public);
        let aliases = aliases.map(|(name, _)| (name.as_str(), Symbol::Type(name.clone())));
        let constants = declarations.constants.iter().filter(|(_, declared)| declared.public);
        let constants = constants.map(|(name, _)| (&**name, Symbol::Constant((&**name).into())));
        let constraints = declarations.constraints.iter().filter(|(_, declared)| declared.public);
        let constraints = constraints.map(|(name, _)| (&**name, Symbol::Constraint((&**name).into())));
        let tables = declarations.tables.iter().filter(|(_, declared)| declared.public);
        let tables = tables.map(|(name, _)| (&**name, Symbol::Shared((&**name).into())));
        let all = functions.chain(types).chain(aliases).chain(constants).chain(constraints).chain(tables);
        let of_module = all.filter_map(|(whole, symbol)| {
            let (of, name) = whole.rsplit_once('.')?;
            (of == module).then(|| (name.to_owned(), symbol))
        });
        of_module.collect()
    }

    /// Parses the files of the program again, with other texts. `file` has the main file; `modules` are the names and the
    /// texts of the other files, in their order.
    #[must_use]
    pub fn with_texts(&self, source: SourceId, file: &mut SourceFile, modules: &[(String, String)]) -> ProgramFiles {
        ProgramFiles::with_texts(&self.files, source, file, modules)
    }
}
