//! Collects the declarations of a file: used modules and types here, and everything else in the modules below.

mod clause_values;
mod existing_tables;
mod migrations;
mod references;
mod tables;
mod type_order;
mod type_resolution;
mod values;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use indexmap::IndexMap;
use weir_host::{Field, Text, Type, TypeDefinition, TypeShape, Value, Variant};
use weir_syntax::ast::{self, ItemKind, Name};
use weir_syntax::{Code, Diagnostic, Span};

use crate::context::CheckContext;
use crate::declarations::{Declarations, DeclaredAlias, DeclaredType, FileScope, ImportedModule};
use crate::dialects;
use crate::lang_items::{HTML, TABLES};
use crate::suggest::nearest;
use crate::symbol::{Reference, Symbol};
use crate::types::Ty;
pub(crate) use type_resolution::{TypeParameters, private_item, resolve_type};

/// The declarations of files that an edit left valid: those of an earlier check, and the indices of the files.
pub(crate) type KeptDeclarations = Option<(Arc<Declarations>, BTreeSet<usize>)>;

/// Collects the declarations of a tree, except for those that `kept` finds when it is known which modules each file uses.
pub(crate) fn declare(
    context: &mut CheckContext<'_>,
    kept: impl FnOnce(&CheckContext<'_>, &Declarations) -> KeptDeclarations,
) -> Declarations {
    let reported = context.reported();
    let mut declarer = Declarer::new(context);
    declarer.uses();
    declarer.kept = kept(declarer.context, &declarer.declarations);
    declarer.main_file_items();
    declarer.type_names();
    declarer.type_shapes();
    declarer.values();
    declarer.existing_tables();
    declarer.references();
    declarer.migrations();
    declarer.private_types();
    declarer.keep_references();
    declarer.declarations.file = 0;
    declarer.declarations.is_clean = declarer.context.reported() == reported;
    declarer.declarations
}

struct Declarer<'a, 'c> {
    context: &'a mut CheckContext<'c>,
    declarations: Declarations,
    /// The declarations that are taken over.
    kept: KeptDeclarations,
    /// The spans of the declared names, by file. Values are lower case and types upper case, so that they share one map.
    taken: IndexMap<(usize, Arc<str>), Span>,
}

impl<'a, 'c> Declarer<'a, 'c> {
    fn new(context: &'a mut CheckContext<'c>) -> Self {
        let modules = context.files.names().iter().cloned().enumerate();
        let scope =
            |(file, module)| FileScope::of_module(module, context.files.start(file), context.file_items(file).start);
        let files: Vec<FileScope> = modules.map(scope).collect();
        let files = if files.is_empty() { vec![FileScope::default()] } else { files };
        let declarations = Declarations::of_files(files);
        Declarer { context, declarations, kept: None, taken: IndexMap::new() }
    }

    /// Returns the earlier declarations that have those of a file, if they are taken over.
    fn kept(&self, file: usize) -> Option<Arc<Declarations>> {
        let (before, files) = self.kept.as_ref()?;
        files.contains(&file).then(|| before.clone())
    }

    /// Returns whether the declarations of a file are taken over.
    fn is_kept(&self, file: usize) -> bool {
        self.kept.as_ref().is_some_and(|(_, files)| files.contains(&file))
    }

    /// Returns whether the declarations of the file at an offset are taken over.
    fn is_kept_at(&self, offset: u32) -> bool {
        self.kept.is_some() && self.is_kept(self.declarations.file_at(offset))
    }
}

impl Declarer<'_, '_> {
    /// Begins with an item: its file is the current one.
    fn begin(&mut self, item: &ast::Item) {
        self.declarations.file = item.file.into();
    }

    /// Reports items of modules that only the main file may have.
    fn main_file_items(&mut self) {
        for item in &self.context.tree().items {
            self.begin(item);
            if self.declarations.file == 0 || self.is_kept(self.declarations.file) {
                continue;
            }
            let (what, advice) = match &item.kind {
                ItemKind::Service(_) => {
                    ("a service", "move it into the main file, and call functions of this module there")
                }
                ItemKind::Entry(_) => {
                    ("an entry point", "move it into the main file, and call functions of this module there")
                }
                ItemKind::Config(_) => {
                    ("a configured value", "declare it in the main file, and pass it to the functions of this module")
                }
                ItemKind::Library(_) => {
                    ("a library", "declare it in the main file; its modules can be used in every file")
                }
                ItemKind::FailureHandler(_) => {
                    ("a failure handler for all flows", "move it into the main file, or into the `fn`")
                }
                _ => continue,
            };
            let module = &self.declarations.here().module;
            let message = format!("the module `{module}` contains {what}");
            let text = &self.context.text[item.span.range()];
            let word = text.find(char::is_whitespace).unwrap_or(text.len()) as u32;
            let start = Span { end: item.span.start + word, ..item.span };
            let diagnostic = Diagnostic::new(Code::MainFileItem, message).at(start, "only the main file may have it");
            self.context.report(diagnostic.hint(advice));
        }
    }

    fn uses(&mut self) {
        for item in &self.context.tree().items {
            self.begin(item);
            match &item.kind {
                ItemKind::Use(used) => used.modules.iter().for_each(|module| self.use_module(module)),
                // A test of each file can call it.
                ItemKind::Service(service) => _ = self.declarations.services.insert(service.name.text.clone()),
                _ => {}
            }
        }
    }

    fn use_module(&mut self, used: &ast::UsedModule) {
        if used.name.is_missing() {
            return;
        }
        let (called, path) = (used.called(), used.path());
        let meant = self.context.files.meant(self.declarations.file, &path);
        let file = self.context.files.file(&meant);
        let module = match self.context.library.modules.get(&*path) {
            Some(module) => Some(module.name.clone()),
            None => file.map(|_| meant.clone()),
        };
        let Some(module) = module.filter(|_| !self.context.files.is_reported(&meant)) else {
            if !self.context.files.is_reported(&meant) {
                let diagnostic = self.unknown_module(used, &path);
                self.context.report(diagnostic);
            }
            self.declarations.here_mut().unknown_modules.insert(called.text.clone());
            return;
        };
        if module.as_str() == TABLES {
            let diagnostic = Diagnostic::new(Code::UnknownModule, "the module `tables` cannot be used by name")
                .at(used.name.span, "its functions are called on a table")
                .hint("declare a table, `table users: User key name`, and write `users.insert(…)`");
            self.context.report(diagnostic);
            self.declarations.here_mut().unknown_modules.insert(called.text.clone());
            return;
        }
        if self.take(called) {
            self.declarations.define(called, Symbol::Module(module.clone()));
            let entry = ImportedModule { module, file, span: used.span, used: false };
            self.declarations.here_mut().modules.insert(called.text.clone(), entry);
        }
    }

    fn unknown_module(&self, used: &ast::UsedModule, path: &str) -> Diagnostic {
        let place = used.folders.first().map_or(used.name.span, |first| first.span.to(used.name.span));
        let diagnostic = Diagnostic::new(Code::UnknownModule, format!("there is no module `{path}`"))
            .at(place, format!("neither in the library, nor a file `{}.weir` of the program", path.replace('.', "/")));
        let library = &self.context.library.modules;
        if let Some(first) = used.folders.first().filter(|first| library.contains_key(first.as_str())) {
            let members = Span { start: first.span.end, ..place };
            return diagnostic.fix(format!("modules are imported as a whole: write `use {first}`"), members, "");
        }
        let known = library.keys().chain(self.context.files.names()).map(Text::as_str);
        if let Some(advice) = dialects::module_named(path) {
            return diagnostic.hint(advice);
        }
        match nearest(path, known.filter(|name| !name.is_empty())) {
            Some(near) => diagnostic.suggest(format!("did you mean `{near}`?"), place, near),
            None => diagnostic.hint("create the file; modules in Rust are made by `weir new NAME --rust`"),
        }
    }

    /// Declares the name and returns true, or reports that it is taken.
    fn take(&mut self, name: &Name) -> bool {
        if name.is_missing() {
            return false;
        }
        if name.as_str() == HTML {
            let diagnostic = Diagnostic::new(Code::NameTaken, format!("`{name}` is the type of templates"))
                .at(name.span, "declared again here")
                .hint("choose another name");
            self.context.report(diagnostic);
            return false;
        }
        let key = (self.declarations.file, name.text.clone());
        if let Some(first) = self.taken.get(&key) {
            let diagnostic = Diagnostic::new(Code::NameTaken, format!("`{name}` is declared twice"))
                .at(name.span, "declared again here")
                .because(*first, "first declared here")
                .hint("rename one of them");
            self.context.report(diagnostic);
            return false;
        }
        self.taken.insert(key, name.span);
        true
    }

    fn type_names(&mut self) {
        for file in 0..self.declarations.files.len() {
            self.declarations.file = file;
            let begun = self.declarations.begin_file();
            match self.kept(file) {
                Some(before) => self.declarations.take_over_types(&before),
                None => self.context.file_items(file).for_each(|at| self.type_name(at)),
            }
            self.declarations.end_types(&begun);
        }
    }

    fn type_name(&mut self, at: usize) {
        let item = &self.context.tree().items[at];
        let name = match &item.kind {
            ItemKind::Alias(alias) => return self.alias(at, item.public.is_some(), &alias.name),
            ItemKind::Record(record) => &record.name,
            ItemKind::Enum(declared) => &declared.name,
            _ => return,
        };
        if self.take(name) {
            let whole: Text = (&*self.declarations.add_name(&name.text)).into();
            self.declarations.define(name, Symbol::Type(whole.clone()));
            let shape = TypeShape::Record(Vec::new());
            let definition = TypeDefinition { name: whole.clone(), doc: item.docs.text().into(), shape };
            let declared = DeclaredType { public: item.public.is_some(), definition, span: name.span, depth: 0 };
            self.declarations.types.insert(whole, declared);
        }
    }

    fn alias(&mut self, item: usize, public: bool, name: &Name) {
        if self.take(name) {
            let whole: Text = (&*self.declarations.add_name(&name.text)).into();
            self.declarations.define(name, Symbol::Type(whole.clone()));
            let declared = DeclaredAlias { public, item, span: name.span, ty: Ty::Error };
            self.declarations.aliases.insert(whole, declared);
        }
    }

    fn type_shapes(&mut self) {
        self.resolve_aliases();
        let tree = self.context.tree();
        for item in &tree.items {
            if self.is_kept(item.file.into()) {
                continue;
            }
            self.begin(item);
            let (name, shape) = match &item.kind {
                ItemKind::Record(record) => (&record.name, self.record(record)),
                ItemKind::Enum(declared) => (&declared.name, self.variants(declared)),
                _ => continue,
            };
            let whole: Text = self.declarations.own(&name.text).into();
            if let Some(declared) = self.declarations.types.get_mut(&whole)
                && declared.span == name.span
            {
                declared.definition.shape = shape;
            }
        }
        self.endless_types();
    }

    fn record(&mut self, record: &ast::Record) -> TypeShape {
        let (mut seen, mut external) = (BTreeMap::new(), BTreeMap::new());
        let mut fields = Vec::new();
        for field in &record.fields {
            if self.first_of(&mut seen, &field.name, "field") {
                self.no_function(&field.ty);
                let ty = self.resolve_type(&field.ty).to_type();
                let whole = self.declarations.own(&record.name.text);
                let symbol = Symbol::Field(whole.into(), (&*field.name.text).into());
                self.declarations.define(&field.name, symbol);
                let external = self.external_name(&mut external, field.external.as_ref(), &field.name);
                // The value is known when the default has been checked.
                let default = field.default.as_ref().map(|_| Value::Absent);
                fields.push(Field { name: (&*field.name.text).into(), ty, external, default });
            }
        }
        TypeShape::Record(fields)
    }

    fn variants(&mut self, declared: &ast::Enum) -> TypeShape {
        let (mut seen, mut external) = (BTreeMap::new(), BTreeMap::new());
        let mut variants = Vec::new();
        for variant in &declared.variants {
            if self.first_of(&mut seen, &variant.name, "variant") {
                let whole: Text = self.declarations.own(&declared.name.text).into();
                let variants_here = Arc::make_mut(&mut self.declarations.here_mut().variants);
                variants_here.entry((&*variant.name.text).into()).or_default().push(whole.clone());
                let symbol = Symbol::Variant(whole, (&*variant.name.text).into());
                self.declarations.define(&variant.name, symbol);
                let external = self.external_name(&mut external, variant.external.as_ref(), &variant.name);
                variants.push(Variant { external, ..self.variant(variant) });
            }
        }
        TypeShape::Enum(variants)
    }

    /// Reports a function in the type of a field.
    fn no_function(&mut self, ty: &ast::Type) {
        match &ty.kind {
            ast::TypeKind::Named { arguments: parts, .. } | ast::TypeKind::Tuple(parts) => {
                parts.iter().for_each(|part| self.no_function(part));
            }
            ast::TypeKind::Function { .. } => {
                let diagnostic = Diagnostic::new(Code::FunctionAsValue, "a field cannot hold a function")
                    .at(ty.span, "a function is only called, and passed to a `fn`")
                    .hint("name the choices in an `enum`, and `match` it where the function would be called");
                self.context.report(diagnostic);
            }
            ast::TypeKind::Error => {}
        }
    }

    fn variant(&mut self, variant: &ast::Variant) -> Variant {
        let mut fields = Vec::new();
        for (index, field) in variant.payload.iter().enumerate() {
            let index = index.to_string();
            let name = field.name.as_ref().map_or(&*index, |name| &*name.text);
            self.no_function(&field.ty);
            fields.push(Field::new(name, self.resolve_type(&field.ty).to_type()));
        }
        Variant::new(&variant.name.text, fields)
    }

    /// Returns the name of a field or variant outside the program, if it is another one. Reports one that is given twice.
    fn external_name(
        &mut self,
        seen: &mut BTreeMap<Arc<str>, Span>,
        external: Option<&ast::ExternalName>,
        name: &Name,
    ) -> Option<Text> {
        let (text, span) = external.map_or((&name.text, name.span), |external| (&external.text, external.span));
        if let Some(first) = seen.insert(text.clone(), span) {
            let message = format!("the name `{text}` is given twice");
            let diagnostic = Diagnostic::new(Code::NameTaken, message)
                .at(span, "also this one has this name outside the program")
                .because(first, "first given here")
                .hint("JSON and the like could not tell them apart: choose another name");
            self.context.report(diagnostic);
        }
        external.map(|external| (&*external.text).into())
    }

    fn first_of(&mut self, seen: &mut BTreeMap<Arc<str>, Span>, name: &Name, what: &str) -> bool {
        if name.is_missing() {
            return false;
        }
        if let Some(first) = seen.get(&name.text) {
            let diagnostic = Diagnostic::new(Code::NameTaken, format!("the {what} `{name}` is declared twice"))
                .at(name.span, "declared again here")
                .because(*first, "first declared here")
                .hint("rename one of them");
            self.context.report(diagnostic);
            return false;
        }
        seen.insert(name.text.clone(), name.span);
        true
    }

    /// Moves the references in the declarations of each file to those of the file.
    fn keep_references(&mut self) {
        let mut by_file: Vec<Vec<Reference>> = Vec::new();
        by_file.resize_with(self.declarations.files.len(), Vec::new);
        for reference in std::mem::take(&mut self.declarations.references) {
            by_file[self.declarations.file_at(reference.span.start)].push(reference);
        }
        for (file, references) in by_file.into_iter().enumerate() {
            // Those that are taken over name the used modules, too.
            if !self.is_kept(file) {
                self.declarations.files[file].references = references.into();
            }
        }
    }

    /// Reports public declarations that show private types.
    fn private_types(&mut self) {
        let mut found = Vec::new();
        let is_new = |span: Span| !self.is_kept_at(span.start);
        let functions = self.declarations.functions.iter();
        for (name, declared) in functions.filter(|(_, it)| it.public && is_new(it.result_span)) {
            let parameters = declared.parameters.iter().map(|parameter| (parameter.ty.to_type(), parameter.span));
            for (ty, span) in parameters.chain([(declared.result.to_type(), declared.result_span)]) {
                found.extend(self.private_in(&ty, &format!("the `fn` `{name}`"), span));
            }
        }
        for (name, declared) in self.declarations.aliases.iter().filter(|(_, it)| it.public && is_new(it.span)) {
            found.extend(self.private_in(&declared.ty.to_type(), &format!("the type `{name}`"), declared.span));
        }
        for (name, declared) in self.declarations.types.iter().filter(|(_, it)| it.public && is_new(it.span)) {
            for field in crate::types::fields_of(&declared.definition.shape) {
                found.extend(self.private_in(&field.ty, &format!("the type `{name}`"), declared.span));
            }
        }
        for (name, table) in self.declarations.tables.iter().filter(|(_, it)| it.public) {
            let (Some(row), Some(shared)) = (&table.row, self.declarations.shared.get(name)) else { continue };
            found.extend(self.private_in(&Type::named(row), &format!("the table `{name}`"), shared.span));
        }
        self.context.report_all(found);
    }

    /// Returns the error for a private type in the type of a public declaration.
    fn private_in(&self, ty: &Type, what: &str, span: Span) -> Option<Diagnostic> {
        let mut names = Vec::new();
        crate::types::names_in(ty, &mut names);
        let private = names.iter().filter_map(|name| Some((name, self.declarations.types.get(name)?)));
        let (name, declared) = private.into_iter().find(|(_, declared)| !declared.public)?;
        let diagnostic = Diagnostic::new(Code::PrivateType, format!("{what} is public and shows the private `{name}`"))
            .at(span, format!("has the type `{ty}`"))
            .because(declared.span, "declared here without `pub`")
            .hint(format!("write `pub` before the declaration of `{name}`"));
        Some(diagnostic)
    }

    fn resolve_type(&mut self, ty: &ast::Type) -> Ty {
        resolve_type(&mut self.declarations, self.context, ty, &mut TypeParameters::none())
    }
}
