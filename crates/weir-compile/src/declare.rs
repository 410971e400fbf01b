//! What a file declares at its top level, and what it may use of the library.

use std::sync::Arc;

use indexmap::{IndexMap, IndexSet};
use weir_host::{Field, Library, Text, Type, TypeDefinition, TypeShape, Variant};
use weir_syntax::ast::{self, ItemKind, Name};
use weir_syntax::{Code, Diagnostic, Span};

use crate::index::{Entity, Reference};
use crate::suggest::nearest;
use crate::types::Ty;

/// The declarations of a file.
#[derive(Default)]
pub(crate) struct Declarations {
    /// The modules that are used, by what the file calls them.
    pub(crate) modules: IndexMap<Arc<str>, UsedModule>,
    /// The modules that are used and that there are not: said once.
    pub(crate) unknown_modules: IndexSet<Arc<str>>,
    pub(crate) types: IndexMap<Text, DeclaredType>,
    /// The enums that have a variant of this name.
    pub(crate) variants: IndexMap<Text, Vec<Text>>,
    pub(crate) functions: IndexMap<Arc<str>, DeclaredFn>,
    pub(crate) shared: IndexMap<Arc<str>, DeclaredShared>,
    pub(crate) constraints: IndexMap<Arc<str>, Span>,
    /// Every place that names something.
    pub(crate) references: Vec<Reference>,
}

pub(crate) struct UsedModule {
    pub(crate) module: Text,
    pub(crate) span: Span,
    pub(crate) used: bool,
}

pub(crate) struct DeclaredType {
    pub(crate) definition: TypeDefinition,
    pub(crate) span: Span,
}

pub(crate) struct DeclaredFn {
    /// The index of its item in the tree.
    pub(crate) item: usize,
    pub(crate) parameters: Vec<DeclaredParameter>,
    pub(crate) result: Ty,
    /// Where the result's type is written, or the name where none is.
    pub(crate) result_span: Span,
}

pub(crate) struct DeclaredParameter {
    pub(crate) name: Arc<str>,
    pub(crate) span: Span,
    pub(crate) ty: Ty,
    pub(crate) has_default: bool,
}

pub(crate) struct DeclaredShared {
    pub(crate) item: usize,
    pub(crate) span: Span,
    /// Known once its value is checked.
    pub(crate) ty: Ty,
}

/// Reads the declarations of a tree.
pub(crate) fn declare(tree: &ast::Tree, library: &Library, diagnostics: &mut Vec<Diagnostic>) -> Declarations {
    let mut declarer =
        Declarer { library, tree, declarations: Declarations::default(), taken: IndexMap::new(), diagnostics };
    declarer.uses();
    declarer.type_names();
    declarer.type_shapes();
    declarer.values();
    declarer.declarations
}

struct Declarer<'a> {
    library: &'a Library,
    tree: &'a ast::Tree,
    declarations: Declarations,
    /// The places of the names that are taken, values in lower case and types in upper case.
    taken: IndexMap<Arc<str>, Span>,
    diagnostics: &'a mut Vec<Diagnostic>,
}

impl Declarer<'_> {
    fn uses(&mut self) {
        for item in &self.tree.items {
            if let ItemKind::Use(used) = &item.kind {
                used.modules.iter().for_each(|module| self.use_module(module));
            }
        }
    }

    fn use_module(&mut self, used: &ast::UsedModule) {
        if used.name.is_missing() {
            return;
        }
        let called = used.alias.as_ref().unwrap_or(&used.name);
        let Some(module) = self.library.modules.get(used.name.as_str()) else {
            let mut diagnostic = Diagnostic::new(Code::UnknownModule, format!("there is no module `{}`", used.name))
                .at(used.name.span, "not found in the library");
            let known = self.library.modules.keys().map(Text::as_str);
            if let Some(near) = nearest(used.name.as_str(), known) {
                diagnostic = diagnostic.fix(format!("did you mean `{near}`?"), used.name.span, near);
            }
            self.diagnostics.push(diagnostic);
            self.declarations.unknown_modules.insert(called.text.clone());
            return;
        };
        if self.take(called) {
            self.declarations.define(called, Entity::Module(module.name.clone()));
            let entry = UsedModule { module: module.name.clone(), span: used.span, used: false };
            self.declarations.modules.insert(called.text.clone(), entry);
        }
    }

    /// Whether the name was still free.
    fn take(&mut self, name: &Name) -> bool {
        if name.is_missing() {
            return false;
        }
        if let Some(first) = self.taken.get(&name.text) {
            let diagnostic = Diagnostic::new(Code::NameTaken, format!("`{name}` is declared twice"))
                .at(name.span, "declared again here")
                .because(*first, "first declared here")
                .hint("give one of them another name");
            self.diagnostics.push(diagnostic);
            return false;
        }
        self.taken.insert(name.text.clone(), name.span);
        true
    }

    fn type_names(&mut self) {
        for item in &self.tree.items {
            let name = match &item.kind {
                ItemKind::Record(record) => &record.name,
                ItemKind::Enum(declared) => &declared.name,
                _ => continue,
            };
            if self.take(name) {
                self.declarations.define(name, Entity::Type((&*name.text).into()));
                let shape = TypeShape::Record(Vec::new());
                let definition = TypeDefinition { name: (&*name.text).into(), doc: item.docs.text().into(), shape };
                let declared = DeclaredType { definition, span: name.span };
                self.declarations.types.insert((&*name.text).into(), declared);
            }
        }
    }

    fn type_shapes(&mut self) {
        let tree = self.tree;
        for item in &tree.items {
            let (name, shape) = match &item.kind {
                ItemKind::Record(record) => (&record.name, self.record(record)),
                ItemKind::Enum(declared) => (&declared.name, self.variants(declared)),
                _ => continue,
            };
            if let Some(declared) = self.declarations.types.get_mut(&*name.text)
                && declared.span == name.span
            {
                declared.definition.shape = shape;
            }
        }
        self.infinite_types();
    }

    fn record(&mut self, record: &ast::Record) -> TypeShape {
        let mut seen: IndexMap<Arc<str>, Span> = IndexMap::new();
        let mut fields = Vec::new();
        for field in &record.fields {
            if self.first_of(&mut seen, &field.name, "field") {
                let ty = self.written(&field.ty).to_type();
                let entity = Entity::Field((&*record.name.text).into(), (&*field.name.text).into());
                self.declarations.define(&field.name, entity);
                fields.push(Field { name: (&*field.name.text).into(), ty });
            }
        }
        TypeShape::Record(fields)
    }

    fn variants(&mut self, declared: &ast::Enum) -> TypeShape {
        let mut seen: IndexMap<Arc<str>, Span> = IndexMap::new();
        let mut variants = Vec::new();
        for variant in &declared.variants {
            if self.first_of(&mut seen, &variant.name, "variant") {
                let enums = self.declarations.variants.entry((&*variant.name.text).into()).or_default();
                enums.push((&*declared.name.text).into());
                let entity = Entity::Variant((&*declared.name.text).into(), (&*variant.name.text).into());
                self.declarations.define(&variant.name, entity);
                variants.push(self.variant(variant));
            }
        }
        TypeShape::Enum(variants)
    }

    fn variant(&mut self, variant: &ast::Variant) -> Variant {
        let mut fields = Vec::new();
        for (index, field) in variant.payload.iter().enumerate() {
            let name = field.name.as_ref().map_or_else(|| index.to_string().into(), |name| (&*name.text).into());
            fields.push(Field { name, ty: self.written(&field.ty).to_type() });
        }
        Variant { name: (&*variant.name.text).into(), fields }
    }

    fn first_of(&mut self, seen: &mut IndexMap<Arc<str>, Span>, name: &Name, what: &str) -> bool {
        if name.is_missing() {
            return false;
        }
        if let Some(first) = seen.get(&name.text) {
            let diagnostic = Diagnostic::new(Code::NameTaken, format!("the {what} `{name}` is declared twice"))
                .at(name.span, "declared again here")
                .because(*first, "first declared here")
                .hint("give one of them another name");
            self.diagnostics.push(diagnostic);
            return false;
        }
        seen.insert(name.text.clone(), name.span);
        true
    }

    /// Reports records that hold themselves without end: no value of them could be made.
    fn infinite_types(&mut self) {
        let names: Vec<Text> = self.declarations.types.keys().cloned().collect();
        for name in names {
            if self.holds(&name, &name, &mut Vec::new()) {
                let span = self.declarations.types[&name].span;
                let diagnostic =
                    Diagnostic::new(Code::EndlessType, format!("the record `{name}` holds itself without end"))
                        .at(span, "no value of it could be made")
                        .hint(format!("put it into an `Option({name})` or a `List({name})`"));
                self.diagnostics.push(diagnostic);
                self.declarations.types[&name].definition.shape = TypeShape::Record(Vec::new());
            }
        }
    }

    /// Whether every value of the record `outer` holds one of `wanted`.
    fn holds(&self, outer: &Text, wanted: &Text, seen: &mut Vec<Text>) -> bool {
        if seen.contains(outer) {
            return false;
        }
        seen.push(outer.clone());
        let Some(TypeShape::Record(fields)) = self.declarations.types.get(outer).map(|ty| &ty.definition.shape) else {
            return false;
        };
        fields.iter().any(|field| self.type_holds(&field.ty, wanted, seen))
    }

    fn type_holds(&self, ty: &Type, wanted: &Text, seen: &mut Vec<Text>) -> bool {
        match ty {
            Type::Named(name) => name == wanted || self.holds(name, wanted, seen),
            Type::Tuple(parts) => parts.iter().any(|part| self.type_holds(part, wanted, seen)),
            _ => false,
        }
    }

    fn values(&mut self) {
        let tree = self.tree;
        for (at, item) in tree.items.iter().enumerate() {
            match &item.kind {
                ItemKind::Function(function) => self.function(at, function),
                ItemKind::Shared(shared) => {
                    if self.take(&shared.name) {
                        self.declarations.define(&shared.name, Entity::Shared((&*shared.name.text).into()));
                        let declared = DeclaredShared { item: at, span: shared.name.span, ty: Ty::Error };
                        self.declarations.shared.insert(shared.name.text.clone(), declared);
                    }
                }
                ItemKind::Constraint(constraint) => {
                    if self.take(&constraint.name) {
                        self.declarations.define(&constraint.name, Entity::Constraint((&*constraint.name.text).into()));
                        self.declarations.constraints.insert(constraint.name.text.clone(), constraint.name.span);
                    }
                }
                ItemKind::Service(service) => {
                    if self.take(&service.name) {
                        self.declarations.define(&service.name, Entity::Service((&*service.name.text).into()));
                    }
                }
                _ => {}
            }
        }
    }

    fn function(&mut self, item: usize, function: &ast::Function) {
        let mut seen: IndexMap<Arc<str>, Span> = IndexMap::new();
        let mut parameters = Vec::new();
        for parameter in &function.parameters {
            self.first_of(&mut seen, &parameter.name, "parameter");
            let ty = self.written(&parameter.ty);
            let (name, span) = (parameter.name.text.clone(), parameter.span);
            parameters.push(DeclaredParameter { name, span, ty, has_default: parameter.default.is_some() });
        }
        let result = function.returns.as_ref().map_or(Ty::UNIT, |ty| self.written(ty));
        let result_span = function.returns.as_ref().map_or(function.name.span, |ty| ty.span);
        if self.take(&function.name) {
            self.declarations.define(&function.name, Entity::Function((&*function.name.text).into()));
            let declared = DeclaredFn { item, parameters, result, result_span };
            self.declarations.functions.insert(function.name.text.clone(), declared);
        }
    }

    fn written(&mut self, ty: &ast::Type) -> Ty {
        written(&mut self.declarations, self.library, ty, self.diagnostics)
    }
}

/// The type that a written one means.
pub(crate) fn written(
    declarations: &mut Declarations,
    library: &Library,
    ty: &ast::Type,
    diagnostics: &mut Vec<Diagnostic>,
) -> Ty {
    let mut writer = Writer { declarations, library, diagnostics };
    writer.ty(ty)
}

struct Writer<'a> {
    declarations: &'a mut Declarations,
    library: &'a Library,
    diagnostics: &'a mut Vec<Diagnostic>,
}

/// The types of the language that take no other types.
const PLAIN: [(&str, Ty); 10] = [
    ("Bool", Ty::BOOL),
    ("Int", Ty::INT),
    ("Float", Ty::FLOAT),
    ("Text", Ty::TEXT),
    ("Bytes", Ty::BYTES),
    ("Time", Ty::TIME),
    ("Duration", Ty::DURATION),
    ("Size", Ty::SIZE),
    ("Failure", Ty::FAILURE),
    ("Never", Ty::NEVER),
];

/// The types of the language that take other types, with their number.
const COMPOUND: [(&str, usize); 4] = [("List", 1), ("Option", 1), ("Map", 2), ("Result", 2)];

impl Writer<'_> {
    fn ty(&mut self, ty: &ast::Type) -> Ty {
        match &ty.kind {
            ast::TypeKind::Named { path, arguments } => self.named(path, arguments, ty.span),
            ast::TypeKind::Tuple(elements) if elements.is_empty() => Ty::UNIT,
            ast::TypeKind::Tuple(elements) => Ty::Tuple(elements.iter().map(|ty| self.ty(ty)).collect()),
            ast::TypeKind::Function { parameters, returns } => {
                let taken = parameters.iter().map(|ty| self.ty(ty)).collect();
                Ty::function(taken, returns.as_ref().map_or(Ty::UNIT, |ty| self.ty(ty)))
            }
            ast::TypeKind::Error => Ty::Error,
        }
    }

    fn named(&mut self, path: &ast::Path, arguments: &[ast::Type], span: Span) -> Ty {
        let mut parts: Vec<Ty> = arguments.iter().map(|ty| self.ty(ty)).collect();
        let Some((name, wanted)) = self.constructor(path) else { return Ty::Error };
        // `Result(T)` fails with a `Failure`, which is what most functions do.
        if path.qualifier().is_empty() && path.last().as_str() == "Result" && parts.len() == 1 {
            parts.push(Ty::FAILURE);
        }
        if parts.len() != wanted {
            let takes = if wanted == 1 { "1 type".to_owned() } else { format!("{wanted} types") };
            let diagnostic =
                Diagnostic::new(Code::TypeArguments, format!("`{path}` takes {takes}, not {}", parts.len()))
                    .at(span, if wanted == 0 { "takes no types in parentheses" } else { "the wrong number of types" })
                    .hint(format!("write `{}`", example(path, wanted)));
            self.diagnostics.push(diagnostic);
            return Ty::Error;
        }
        assemble(name, parts)
    }

    /// What the path names, and how many types it takes.
    fn constructor(&mut self, path: &ast::Path) -> Option<(Ty, usize)> {
        let last = path.last();
        if last.is_missing() {
            return None;
        }
        match path.qualifier() {
            [] => self.unqualified(last),
            [module] => self.qualified(path, module),
            _ => self.unknown(path, None),
        }
    }

    fn unqualified(&mut self, name: &Name) -> Option<(Ty, usize)> {
        let word = name.as_str();
        if self.declarations.types.contains_key(word) {
            self.declarations.refer(name.span, Entity::Type(word.into()));
            return Some((Ty::named(word), 0));
        }
        if let Some((_, ty)) = PLAIN.iter().find(|(plain, _)| *plain == word) {
            return Some((ty.clone(), 0));
        }
        if let Some((compound, count)) = COMPOUND.iter().find(|(compound, _)| *compound == word) {
            return Some((Ty::named(compound), *count));
        }
        let path = ast::Path { names: vec![name.clone()], span: name.span };
        let known = self.declarations.types.keys().map(Text::as_str);
        let known = known.chain(PLAIN.iter().map(|(name, _)| *name)).chain(COMPOUND.iter().map(|(name, _)| *name));
        let near = nearest(word, known).map(str::to_owned).or_else(|| self.elsewhere(word));
        self.unknown(&path, near)
    }

    /// The type of this name in a module of the library.
    fn elsewhere(&self, word: &str) -> Option<String> {
        let names = self.library.modules.values().flat_map(|module| module.types.keys());
        names.map(Text::as_str).find(|name| name.rsplit('.').next() == Some(word)).map(str::to_owned)
    }

    fn qualified(&mut self, path: &ast::Path, module: &Name) -> Option<(Ty, usize)> {
        let Some(used) = self.declarations.modules.get_mut(&module.text) else {
            self.diagnostics.extend(self.declarations.unknown_module(module, self.library));
            return None;
        };
        used.used = true;
        let used_module = used.module.clone();
        self.declarations.refer(module.span, Entity::Module(used_module.clone()));
        let whole = format!("{}.{}", used_module, path.last());
        let types = &self.library.modules.get(&used_module)?.types;
        if types.contains_key(whole.as_str()) {
            self.declarations.refer(path.last().span, Entity::Type(whole.as_str().into()));
            return Some((Ty::named(&whole), 0));
        }
        let near = nearest(&whole, types.keys().map(Text::as_str)).map(str::to_owned);
        self.unknown(path, near)
    }

    fn unknown(&mut self, path: &ast::Path, near: Option<String>) -> Option<(Ty, usize)> {
        let mut diagnostic =
            Diagnostic::new(Code::UnknownType, format!("there is no type `{path}`")).at(path.span, "not declared");
        diagnostic = match near {
            Some(near) => diagnostic.fix(format!("did you mean `{near}`?"), path.span, near),
            None => diagnostic.hint(format!("declare it: `record {} {{ … }}`", path.last())),
        };
        self.diagnostics.push(diagnostic);
        None
    }
}

fn example(path: &ast::Path, wanted: usize) -> String {
    match wanted {
        0 => path.to_string(),
        1 => format!("{path}(Int)"),
        _ => format!("{path}(Text, Int)"),
    }
}

fn assemble(name: Ty, mut parts: Vec<Ty>) -> Ty {
    match (name.name().map(Text::as_str), parts.pop(), parts.pop()) {
        (Some("List"), Some(element), None) => Ty::list(element),
        (Some("Option"), Some(some), None) => Ty::option(some),
        (Some("Map"), Some(value), Some(key)) => Ty::map(key, value),
        (Some("Result"), Some(err), Some(ok)) => Ty::result(ok, err),
        _ => name,
    }
}

impl Declarations {
    /// The definition of a named type of the program or the library.
    pub(crate) fn definition<'d>(&'d self, library: &'d Library, name: &str) -> Option<&'d TypeDefinition> {
        self.types.get(name).map(|declared| &declared.definition).or_else(|| library.definition(name))
    }

    /// Notes that a name is declared here.
    fn define(&mut self, name: &Name, entity: Entity) {
        self.references.push(Reference { span: name.span, entity, defines: true });
    }

    /// Notes that a place names something.
    pub(crate) fn refer(&mut self, span: Span, entity: Entity) {
        self.references.push(Reference { span, entity, defines: false });
    }

    /// What to say of a word before a dot that is no module of this file; `None` where it is said already.
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
            Some(near) => diagnostic.fix(format!("did you mean `{near}`?"), name.span, near),
            None => diagnostic,
        })
    }
}
