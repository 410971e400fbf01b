//! The declarations of a file: used modules, types, `fn`s, shared values, constraints and services.

use std::sync::Arc;

use indexmap::{IndexMap, IndexSet};
use weir_host::{Library, Text, Type, TypeDefinition, Value};
use weir_syntax::ast::Name;
use weir_syntax::{Code, Diagnostic, Span};

use crate::suggest::nearest;
use crate::symbol::{Reference, Symbol};
use crate::types::Ty;

/// The declarations of a file.
#[derive(Default)]
pub(crate) struct Declarations {
    /// The used modules, by the name that they have in the file.
    pub(crate) modules: IndexMap<Arc<str>, ImportedModule>,
    /// The modules in `use` items that do not exist. They are reported once.
    pub(crate) unknown_modules: IndexSet<Arc<str>>,
    pub(crate) types: IndexMap<Text, DeclaredType>,
    /// For each variant name, the enums that have it.
    pub(crate) variants: IndexMap<Text, Vec<Text>>,
    pub(crate) functions: IndexMap<Arc<str>, DeclaredFn>,
    pub(crate) shared: IndexMap<Arc<str>, DeclaredShared>,
    /// The tables. Each is also a shared value.
    pub(crate) tables: IndexMap<Arc<str>, DeclaredTable>,
    pub(crate) config: IndexMap<Arc<str>, DeclaredConfig>,
    pub(crate) constraints: IndexMap<Arc<str>, Span>,
    /// Every place in the file that names a symbol.
    pub(crate) references: Vec<Reference>,
}

pub(crate) struct ImportedModule {
    pub(crate) module: Text,
    pub(crate) span: Span,
    pub(crate) used: bool,
}

pub(crate) struct DeclaredType {
    pub(crate) definition: TypeDefinition,
    pub(crate) span: Span,
}

pub(crate) struct DeclaredFn {
    /// The index of the item in the tree.
    pub(crate) item: usize,
    /// The names of its type parameters, in the order in which its signature mentions them.
    pub(crate) type_parameters: Vec<Text>,
    pub(crate) parameters: Vec<DeclaredParameter>,
    pub(crate) result: Ty,
    /// The span of the result type, or of the name if no result type is written.
    pub(crate) result_span: Span,
}

pub(crate) struct DeclaredParameter {
    pub(crate) name: Arc<str>,
    pub(crate) span: Span,
    pub(crate) ty: Ty,
    pub(crate) has_default: bool,
}

/// A declared `config` or `secret`.
pub(crate) struct DeclaredConfig {
    /// The index of the item in the tree.
    pub(crate) item: usize,
    pub(crate) ty: Ty,
    pub(crate) secret: bool,
}

pub(crate) struct DeclaredShared {
    pub(crate) item: usize,
    pub(crate) span: Span,
    /// [`Ty::Error`] until the initial value is checked.
    pub(crate) ty: Ty,
    /// True if each session has its own value.
    pub(crate) per_session: bool,
}

/// A declared table.
#[derive(Default)]
pub(crate) struct DeclaredTable {
    /// The type of its rows: a record, or `None` if the declaration has an error.
    pub(crate) row: Option<Text>,
    pub(crate) columns: Vec<TableColumn>,
    /// The columns of the key, by their indices.
    pub(crate) key: Vec<usize>,
    /// True if the table numbers its rows.
    pub(crate) auto: bool,
    /// The columns of each index, and true if no two rows agree in them.
    pub(crate) indexes: Vec<(Vec<usize>, bool)>,
    /// The limits of a table that is kept in memory only; `None` for one that is stored.
    pub(crate) soft: Option<SoftLimits>,
}

impl DeclaredTable {
    /// Returns the declaration in one line: `table users: User key name`.
    pub(crate) fn signature(&self, name: &str) -> String {
        let row = self.row.as_ref().map_or("_", Text::as_str);
        let key: Vec<&str> = self.key.iter().map(|at| self.columns[*at].name.as_str()).collect();
        let key = if let [only] = &key[..] { (*only).to_owned() } else { format!("({})", key.join(", ")) };
        let auto = if self.auto { " auto" } else { "" };
        let soft = if self.soft.is_some() { " soft" } else { "" };
        format!("table {name}: {row} key {key}{auto}{soft}")
    }
}

/// A column of a table.
pub(crate) struct TableColumn {
    pub(crate) name: Text,
    /// The type of the field.
    pub(crate) ty: Type,
    /// The type of a value, without `Option`: its name, or `Enum`.
    pub(crate) kind: &'static str,
    /// The variants of an enum.
    pub(crate) variants: Vec<Text>,
    pub(crate) optional: bool,
    pub(crate) default: Option<Value>,
}

/// The limits of a table that is kept in memory only.
#[derive(Clone, Copy, Default)]
pub(crate) struct SoftLimits {
    /// Nanoseconds after which a row that is not written again expires.
    pub(crate) ttl: Option<i64>,
    /// Maximum number of rows.
    pub(crate) at_most: Option<i64>,
}

impl Declarations {
    /// Returns the definition of a named type of the file or the library.
    pub(crate) fn definition<'d>(&'d self, library: &'d Library, name: &str) -> Option<&'d TypeDefinition> {
        self.types.get(name).map(|declared| &declared.definition).or_else(|| library.definition(name))
    }

    /// Records the declaration of a symbol.
    pub(crate) fn define(&mut self, name: &Name, symbol: Symbol) {
        self.references.push(Reference { span: name.span, symbol, defines: true });
    }

    /// Records a reference to a symbol.
    pub(crate) fn refer(&mut self, span: Span, symbol: Symbol) {
        self.references.push(Reference { span, symbol, defines: false });
    }

    /// Returns the diagnostic for a word before a dot that is no module of this file; `None` if it was reported before.
    pub(crate) fn unknown_module(&self, name: &Name, library: &Library) -> Option<Diagnostic> {
        if self.unknown_modules.contains(&name.text) || name.is_missing() {
            return None;
        }
        if library.modules.contains_key(name.as_str()) {
            let top = Span { start: 0, end: 0, ..name.span };
            let diagnostic =
                Diagnostic::new(Code::ModuleNotUsed, format!("the module `{name}` is not used in this file"))
                    .at(name.span, "a module of the library")
                    .fix(format!("add `use {name}` at the top of the file"), top, format!("use {name}\n"));
            return Some(diagnostic);
        }
        let diagnostic = Diagnostic::new(Code::UnknownModule, format!("there is no module `{name}`"))
            .at(name.span, "not found in the library");
        let known = self.modules.keys().map(|name| &**name).chain(library.modules.keys().map(Text::as_str));
        Some(match nearest(name.as_str(), known) {
            Some(near) => diagnostic.suggest(format!("did you mean `{near}`?"), name.span, near),
            None => diagnostic,
        })
    }
}
