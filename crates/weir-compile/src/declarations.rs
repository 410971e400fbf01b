//! The declarations of a file: used modules, types, `fn`s, shared values, constraints and services.

mod kept;

use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

use indexmap::{IndexMap, IndexSet};
use weir_host::{Library, Text, Type, TypeDefinition, Value};
use weir_syntax::ast::{Name, Path};
use weir_syntax::{Code, Diagnostic, Span};

use crate::program_files::FileModules;
use crate::suggest::nearest;
use crate::symbol::{Reference, Symbol};
use crate::types::Ty;

/// The declarations of a program. A declaration in a module has the name of the module before its own: `orders.total`.
#[derive(Clone, Default)]
pub(crate) struct Declarations {
    /// The names in each file.
    pub(crate) files: Vec<FileScope>,
    /// The index of the current file.
    pub(crate) file: usize,
    /// The places that name a symbol, of the file that is being declared or checked.
    pub(crate) references: Vec<Reference>,
    /// True if declaring them reported nothing.
    pub(crate) is_clean: bool,
    /// Several checkers and the cache share them when they no longer change.
    items: Arc<DeclaredItems>,
}

/// The declarations by their names in the program.
#[derive(Default)]
pub(crate) struct DeclaredItems {
    pub(crate) types: IndexMap<Text, DeclaredType>,
    pub(crate) functions: IndexMap<Arc<str>, DeclaredFn>,
    pub(crate) shared: IndexMap<Arc<str>, DeclaredShared>,
    /// The tables. Each is also a shared value.
    pub(crate) tables: IndexMap<Arc<str>, DeclaredTable>,
    pub(crate) config: IndexMap<Arc<str>, DeclaredConfig>,
    pub(crate) constants: IndexMap<Arc<str>, DeclaredConstant>,
    pub(crate) aliases: IndexMap<Text, DeclaredAlias>,
    pub(crate) constraints: IndexMap<Arc<str>, DeclaredConstraint>,
    pub(crate) services: IndexSet<Arc<str>>,
}

impl Deref for Declarations {
    type Target = DeclaredItems;

    fn deref(&self) -> &DeclaredItems {
        &self.items
    }
}

impl DerefMut for Declarations {
    /// # Panics
    /// Panics if another checker or the cache shares them.
    fn deref_mut(&mut self) -> &mut DeclaredItems {
        Arc::get_mut(&mut self.items).expect("declarations change only while one checker has them")
    }
}

/// The names in a file.
#[derive(Clone, Default)]
pub(crate) struct FileScope {
    /// The name of the module that the file is; empty for the main file.
    pub(crate) module: Text,
    /// The offset at which the file begins.
    start: u32,
    /// The index of the first item of the file in the tree.
    first_item: usize,
    /// For each name that the file declares, the name in the program; empty for the main file, where they are the same.
    names: Arc<IndexMap<Arc<str>, Arc<str>>>,
    /// The used modules, by the name that they have in the file.
    pub(crate) modules: IndexMap<Arc<str>, ImportedModule>,
    /// The modules in `use` items that do not exist. They are reported once.
    pub(crate) unknown_modules: IndexSet<Arc<str>>,
    /// For each variant name, the enums of the file that have it.
    pub(crate) variants: Arc<IndexMap<Text, Vec<Text>>>,
    /// The places in the declarations of the file that name a symbol.
    pub(crate) references: Arc<Vec<Reference>>,
    /// The declarations of the file.
    pub(crate) own: OwnDeclarations,
}

/// The indices of the declarations of one file in the maps of the program. They are neighbours there, because files are
/// declared one after the other.
#[derive(Clone, Default)]
pub(crate) struct OwnDeclarations {
    pub(crate) types: Range<usize>,
    pub(crate) aliases: Range<usize>,
    functions: Range<usize>,
    shared: Range<usize>,
    constants: Range<usize>,
    constraints: Range<usize>,
}

#[derive(Clone)]
pub(crate) struct ImportedModule {
    pub(crate) module: Text,
    /// The index of the file, for a module of the program.
    pub(crate) file: Option<usize>,
    pub(crate) span: Span,
    pub(crate) used: bool,
}

#[derive(Clone)]
pub(crate) struct DeclaredType {
    /// True if other modules may use it.
    pub(crate) public: bool,
    pub(crate) definition: TypeDefinition,
    pub(crate) span: Span,
    /// The number of records and enums that it nests in one another, itself included.
    pub(crate) depth: usize,
}

#[derive(Clone)]
pub(crate) struct DeclaredFn {
    /// True if other modules may use it.
    pub(crate) public: bool,
    /// The index of its file.
    pub(crate) file: usize,
    /// The index of the item in the tree.
    pub(crate) item: usize,
    /// The names of its type parameters, in the order in which its signature mentions them.
    pub(crate) type_parameters: Vec<Text>,
    pub(crate) parameters: Vec<DeclaredParameter>,
    pub(crate) result: Ty,
    /// The span of the result type, or of the name if no result type is written.
    pub(crate) result_span: Span,
}

#[derive(Clone)]
pub(crate) struct DeclaredParameter {
    pub(crate) name: Arc<str>,
    pub(crate) span: Span,
    pub(crate) ty: Ty,
    /// The default as source text, in one line.
    pub(crate) default: Option<Text>,
}

/// A declared `config` or `secret`.
pub(crate) struct DeclaredConfig {
    /// The index of the item in the tree.
    pub(crate) item: usize,
    pub(crate) ty: Ty,
    pub(crate) secret: bool,
}

/// A declared `const`.
#[derive(Clone)]
pub(crate) struct DeclaredConstant {
    /// True if other modules may use it.
    pub(crate) public: bool,
    /// The index of the item in the tree.
    pub(crate) item: usize,
    pub(crate) span: Span,
    /// [`Ty::Error`] until the value is checked, which is done before it is needed.
    pub(crate) ty: Ty,
    /// `None` until the value is checked, and if it has an error.
    pub(crate) value: Option<Value>,
}

/// A declared `type`.
#[derive(Clone)]
pub(crate) struct DeclaredAlias {
    /// True if other modules may use it.
    pub(crate) public: bool,
    /// The index of the item in the tree.
    pub(crate) item: usize,
    pub(crate) span: Span,
    /// The type that it stands for; [`Ty::Error`] until that is resolved, and if it has an error.
    pub(crate) ty: Ty,
}

#[derive(Clone)]
pub(crate) struct DeclaredShared {
    pub(crate) item: usize,
    pub(crate) span: Span,
    /// [`Ty::Error`] until the initial value is checked.
    pub(crate) ty: Ty,
    /// True if each session has its own value.
    pub(crate) per_session: bool,
}

/// A declared constraint.
#[derive(Clone)]
pub(crate) struct DeclaredConstraint {
    /// True if steps of other modules may hold it.
    pub(crate) public: bool,
    /// The index of the item in the tree.
    pub(crate) item: usize,
    pub(crate) span: Span,
    /// True if all steps hold it per session.
    pub(crate) per_session: bool,
}

impl FileScope {
    /// Returns the names in a file of which nothing is declared yet. It begins at the offset `start` and at the item
    /// `first_item`.
    pub(crate) fn of_module(module: Text, start: u32, first_item: usize) -> Self {
        FileScope { module, start, first_item, ..Self::default() }
    }

    /// Returns the name in the program of a name that the file declares; an empty one if it declares none.
    pub(crate) fn whole<'n>(&'n self, name: &'n str) -> &'n str {
        if self.module.is_empty() { name } else { self.names.get(name).map_or("", |whole| whole) }
    }
}

/// Returns the name of a table in the database: its own, without that of its module.
pub(crate) fn name_in_database(table: &str) -> &str {
    table.rsplit('.').next().unwrap_or(table)
}

/// A declared table.
#[derive(Default)]
pub(crate) struct DeclaredTable {
    /// True if other modules may use it.
    pub(crate) public: bool,
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
    /// The database that has the table, if other programs have declared it.
    pub(crate) existing: Option<DeclaredDatabase>,
    pub(crate) references: Vec<DeclaredReference>,
    pub(crate) migration: Option<DeclaredMigration>,
}

/// The conversion of the rows of a table, whose type was another one before.
pub(crate) struct DeclaredMigration {
    /// The type of the rows before: a record.
    pub(crate) old: Text,
    pub(crate) columns: Vec<TableColumn>,
    /// The index of the `fn` that converts a row.
    pub(crate) change: usize,
    /// True if the rows are converted in several transactions.
    pub(crate) batched: bool,
    pub(crate) span: Span,
}

/// Columns that hold the key of a row of a table.
pub(crate) struct DeclaredReference {
    /// The columns, in the order of the key.
    pub(crate) columns: Vec<usize>,
    /// The name of the other table.
    pub(crate) target: Arc<str>,
    /// True if a row is deleted with the row that it references.
    pub(crate) cascade: bool,
}

impl DeclaredTable {
    /// Returns the declaration in one line: `table users: User key id auto unique name`.
    pub(crate) fn signature(&self, name: &str) -> String {
        let row = self.row.as_ref().map_or("_", Text::as_str);
        let key = self.named(&self.key);
        let auto = if self.auto { " auto" } else { "" };
        let indexes = self.indexes.iter().map(|(columns, unique)| {
            let word = if *unique { "unique" } else { "index" };
            format!(" {word} {}", self.named(columns))
        });
        let references = self.references.iter().map(|reference| {
            let cascade = if reference.cascade { " cascade" } else { "" };
            format!(" references {}: {}{cascade}", self.named(&reference.columns), reference.target)
        });
        let clauses: String = indexes.chain(references).collect();
        let place = match (&self.soft, &self.existing) {
            (Some(_), _) => " soft",
            (None, Some(_)) => " existing",
            (None, None) => "",
        };
        format!("table {name}: {row} key {key}{auto}{clauses}{place}")
    }

    /// Returns the names of columns, as a clause has them.
    fn named(&self, columns: &[usize]) -> String {
        let names: Vec<&str> = columns.iter().map(|at| self.columns[*at].name.as_str()).collect();
        if let [only] = &names[..] { (*only).to_owned() } else { format!("({})", names.join(", ")) }
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

/// A table that other programs have declared.
#[derive(Clone, PartialEq)]
pub(crate) struct DeclaredDatabase {
    pub(crate) database: DatabaseAddress,
    /// True if the program may write it.
    pub(crate) writable: bool,
}

/// The address of a database.
#[derive(Clone, PartialEq)]
pub(crate) enum DatabaseAddress {
    Text(Text),
    /// The value of the `config` with this name.
    Config(Arc<str>),
}

/// The limits of a table that is kept in memory only.
#[derive(Clone, Copy, Default)]
pub(crate) struct SoftLimits {
    /// Nanoseconds after which a row that is not written again expires.
    pub(crate) ttl: Option<i64>,
    /// Maximum number of rows.
    pub(crate) at_most: Option<i64>,
    /// Maximum number of bytes of all rows.
    pub(crate) capacity: Option<u64>,
}

impl SoftLimits {
    /// Returns whether rows may be lost at any time.
    pub(crate) fn forget(self) -> bool {
        self.ttl.is_some() || self.at_most.is_some() || self.capacity.is_some()
    }
}

impl Declarations {
    /// Returns the declarations of a program that has these files, and declares nothing yet.
    pub(crate) fn of_files(files: Vec<FileScope>) -> Self {
        Declarations { files, ..Self::default() }
    }

    /// Returns the existing database that has a table; `None` if the table is one of the program.
    pub(crate) fn existing_database(&self, table: &str) -> Option<&DatabaseAddress> {
        self.tables.get(table)?.existing.as_ref().map(|existing| &existing.database)
    }

    /// Returns whether a table may lose rows at any time, because it has a limit.
    pub(crate) fn may_lose_rows(&self, table: &str) -> bool {
        let limits = self.tables.get(table).and_then(|declared| declared.soft);
        limits.is_some_and(SoftLimits::forget)
    }

    /// Returns whether a resource is declared `per session`.
    pub(crate) fn is_of_sessions(&self, name: &str) -> bool {
        self.shared.get(name).is_some_and(|shared| shared.per_session)
            || self.constraints.get(name).is_some_and(|constraint| constraint.per_session)
    }

    /// Returns whether a file declares tables.
    pub(crate) fn has_tables(&self, file: usize) -> bool {
        let module = self.files[file].module.as_str();
        self.tables.keys().any(|table| table.rsplit_once('.').map_or("", |(module, _)| module) == module)
    }

    /// Returns the index of the file that has the byte at `offset`.
    pub(crate) fn file_at(&self, offset: u32) -> usize {
        self.files.partition_point(|file| file.start <= offset).saturating_sub(1)
    }

    /// Returns the name of the `fn` with this index.
    pub(crate) fn fn_name(&self, at: usize) -> Arc<str> {
        self.functions.get_index(at).map_or_else(|| "".into(), |(name, _)| name.clone())
    }

    /// Returns the name of the shared value with this index.
    pub(crate) fn shared_name(&self, at: usize) -> Arc<str> {
        self.shared.get_index(at).map_or_else(|| "".into(), |(name, _)| name.clone())
    }

    /// Returns the index of a `fn` that the checker has resolved.
    ///
    /// # Panics
    /// Panics if there is no such `fn`.
    pub(crate) fn fn_index(&self, name: &str) -> usize {
        self.functions.get_index_of(name).expect("a resolved name is declared")
    }

    /// Returns the names in the current file.
    pub(crate) fn here(&self) -> &FileScope {
        &self.files[self.file]
    }

    pub(crate) fn here_mut(&mut self) -> &mut FileScope {
        &mut self.files[self.file]
    }

    /// Returns the name in the program of a name that the current file declares; an empty one if it declares none.
    pub(crate) fn own<'n>(&'n self, name: &'n str) -> &'n str {
        self.here().whole(name)
    }

    /// Returns the name in the program of a declaration that a path in a file names, whether there is one or not; `None` if
    /// no file of the program can declare it.
    pub(crate) fn name_in_program(&self, file: usize, path: &Path) -> Option<Text> {
        match path.qualifier() {
            [] => Some(self.files[file].whole(path.last().as_str()).into()),
            [module] => {
                let file = self.files[file].modules.get(&module.text)?.file?;
                Some(self.files[file].whole(path.last().as_str()).into())
            }
            _ => None,
        }
    }

    /// Adds a name to the current file, and returns its name in the program.
    pub(crate) fn add_name(&mut self, name: &Arc<str>) -> Arc<str> {
        let here = self.here_mut();
        if here.module.is_empty() {
            return name.clone();
        }
        let whole: Arc<str> = format!("{}.{name}", here.module).into();
        Arc::make_mut(&mut here.names).insert(name.clone(), whole.clone());
        whole
    }

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
    /// `top` is the offset at which the current file begins.
    pub(crate) fn unknown_module(
        &self,
        name: &Name,
        library: &Library,
        files: &FileModules,
        top: u32,
    ) -> Option<Diagnostic> {
        if self.here().unknown_modules.contains(&name.text) || name.is_missing() {
            return None;
        }
        let of_library =
            library.modules.contains_key(name.as_str()).then(|| (name.to_string(), "a module of the library"));
        let known = of_library.or_else(|| {
            let path = files.loaded_module(self.file, name.as_str())?;
            Some((path.to_owned(), "a module of this program"))
        });
        if let Some((path, kind)) = known {
            let top = Span { start: top, end: top, ..name.span };
            let diagnostic =
                Diagnostic::new(Code::ModuleNotUsed, format!("the module `{path}` is not used in this file"))
                    .at(name.span, kind)
                    .fix(format!("add `use {path}` at the top of the file"), top, format!("use {path}\n"));
            return Some(diagnostic);
        }
        let diagnostic = Diagnostic::new(Code::UnknownModule, format!("there is no module `{name}`"))
            .at(name.span, "not found in the library");
        let known = self.here().modules.keys().map(|name| &**name).chain(library.modules.keys().map(Text::as_str));
        Some(match nearest(name.as_str(), known) {
            Some(near) => diagnostic.suggest(format!("did you mean `{near}`?"), name.span, near),
            None => diagnostic,
        })
    }
}
