//! The declarations of a file: used modules, types, `fn`s, shared values, constraints and services.

use std::sync::Arc;

use indexmap::{IndexMap, IndexSet};
use weir_host::{Library, Text, TypeDefinition};
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
