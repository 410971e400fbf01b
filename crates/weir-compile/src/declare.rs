//! Collects the declarations of a file: used modules, types, `fn`s, shared values, constraints and services.

mod tables;
mod type_resolution;

use std::sync::Arc;

use indexmap::IndexMap;
use weir_host::{Field, Text, Type, TypeDefinition, TypeShape, Variant};
use weir_syntax::ast::{self, ItemKind, Name};
use weir_syntax::{Code, Diagnostic, Span};

use crate::context::CheckContext;
use crate::declarations::{
    Declarations, DeclaredConfig, DeclaredFn, DeclaredParameter, DeclaredShared, DeclaredType, ImportedModule,
};
use crate::lang_items::{HTML, TABLES};
use crate::suggest::nearest;
use crate::symbol::Symbol;
use crate::types::Ty;
pub(crate) use type_resolution::{TypeParameters, resolve_type};

/// Collects the declarations of a tree.
pub(crate) fn declare(context: &mut CheckContext<'_>) -> Declarations {
    let mut declarer = Declarer { context, declarations: Declarations::default(), taken: IndexMap::new() };
    declarer.uses();
    declarer.type_names();
    declarer.type_shapes();
    declarer.values();
    declarer.declarations
}

struct Declarer<'a, 'c> {
    context: &'a mut CheckContext<'c>,
    declarations: Declarations,
    /// The spans of the declared names. Values are lower case and types upper case, so that they share one map.
    taken: IndexMap<Arc<str>, Span>,
}

impl Declarer<'_, '_> {
    fn uses(&mut self) {
        for item in &self.context.tree().items {
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
        let Some(module) = self.context.library.modules.get(used.name.as_str()) else {
            let mut diagnostic = Diagnostic::new(Code::UnknownModule, format!("there is no module `{}`", used.name))
                .at(used.name.span, "not found in the library");
            let known = self.context.library.modules.keys().map(Text::as_str);
            diagnostic = match nearest(used.name.as_str(), known) {
                Some(near) => diagnostic.suggest(format!("did you mean `{near}`?"), used.name.span, near),
                None => diagnostic.hint("modules are written in Rust: `weir new NAME --rust` creates one"),
            };
            self.context.report(diagnostic);
            self.declarations.unknown_modules.insert(called.text.clone());
            return;
        };
        if module.name.as_str() == TABLES {
            let diagnostic = Diagnostic::new(Code::UnknownModule, "the module `tables` cannot be used by name")
                .at(used.name.span, "its functions are called on a table")
                .hint("declare a table, `table users: User key name`, and write `users.insert(…)`");
            self.context.report(diagnostic);
            self.declarations.unknown_modules.insert(called.text.clone());
            return;
        }
        if self.take(called) {
            self.declarations.define(called, Symbol::Module(module.name.clone()));
            let entry = ImportedModule { module: module.name.clone(), span: used.span, used: false };
            self.declarations.modules.insert(called.text.clone(), entry);
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
        if let Some(first) = self.taken.get(&name.text) {
            let diagnostic = Diagnostic::new(Code::NameTaken, format!("`{name}` is declared twice"))
                .at(name.span, "declared again here")
                .because(*first, "first declared here")
                .hint("rename one of them");
            self.context.report(diagnostic);
            return false;
        }
        self.taken.insert(name.text.clone(), name.span);
        true
    }

    fn type_names(&mut self) {
        for item in &self.context.tree().items {
            let name = match &item.kind {
                ItemKind::Record(record) => &record.name,
                ItemKind::Enum(declared) => &declared.name,
                _ => continue,
            };
            if self.take(name) {
                self.declarations.define(name, Symbol::Type((&*name.text).into()));
                let shape = TypeShape::Record(Vec::new());
                let definition = TypeDefinition { name: (&*name.text).into(), doc: item.docs.text().into(), shape };
                let declared = DeclaredType { definition, span: name.span };
                self.declarations.types.insert((&*name.text).into(), declared);
            }
        }
    }

    fn type_shapes(&mut self) {
        let tree = self.context.tree();
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
        self.endless_types();
    }

    fn record(&mut self, record: &ast::Record) -> TypeShape {
        let mut seen: IndexMap<Arc<str>, Span> = IndexMap::new();
        let mut fields = Vec::new();
        for field in &record.fields {
            if self.first_of(&mut seen, &field.name, "field") {
                let ty = self.resolve_type(&field.ty).to_type();
                let symbol = Symbol::Field((&*record.name.text).into(), (&*field.name.text).into());
                self.declarations.define(&field.name, symbol);
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
                let symbol = Symbol::Variant((&*declared.name.text).into(), (&*variant.name.text).into());
                self.declarations.define(&variant.name, symbol);
                variants.push(self.variant(variant));
            }
        }
        TypeShape::Enum(variants)
    }

    fn variant(&mut self, variant: &ast::Variant) -> Variant {
        let mut fields = Vec::new();
        for (index, field) in variant.payload.iter().enumerate() {
            let name = field.name.as_ref().map_or_else(|| index.to_string().into(), |name| (&*name.text).into());
            fields.push(Field { name, ty: self.resolve_type(&field.ty).to_type() });
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
                .hint("rename one of them");
            self.context.report(diagnostic);
            return false;
        }
        seen.insert(name.text.clone(), name.span);
        true
    }

    /// Reports records that contain themselves: such a value would be infinitely large.
    fn endless_types(&mut self) {
        let names: Vec<Text> = self.declarations.types.keys().cloned().collect();
        for name in names {
            if self.holds(&name, &name, &mut Vec::new()) {
                let span = self.declarations.types[&name].span;
                let diagnostic = Diagnostic::new(Code::EndlessType, format!("the record `{name}` contains itself"))
                    .at(span, "a value would be infinitely large")
                    .hint(format!("wrap it: `Option({name})` or `List({name})`"));
                self.context.report(diagnostic);
                self.declarations.types[&name].definition.shape = TypeShape::Record(Vec::new());
            }
        }
    }

    /// Returns whether every value of the record `outer` contains a value of the type `wanted`.
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
        let tree = self.context.tree();
        for (at, item) in tree.items.iter().enumerate() {
            match &item.kind {
                ItemKind::Function(function) => self.function(at, function),
                ItemKind::Shared(shared) => self.shared(at, shared),
                ItemKind::Constraint(constraint) => self.constraint(constraint),
                ItemKind::Table(table) => self.table(at, table),
                ItemKind::Config(config) => self.config(at, config),
                ItemKind::Service(service) => self.service(service),
                _ => {}
            }
        }
    }

    fn shared(&mut self, item: usize, shared: &ast::Shared) {
        let name = &shared.name;
        if self.take(name) {
            self.declarations.define(name, Symbol::Shared(name.as_str().into()));
            let per_session = shared.per_session;
            let declared = DeclaredShared { item, span: name.span, ty: Ty::Error, per_session };
            self.declarations.shared.insert(name.text.clone(), declared);
        }
    }

    fn constraint(&mut self, constraint: &ast::Constraint) {
        let name = &constraint.name;
        if self.take(name) {
            self.declarations.define(name, Symbol::Constraint(name.as_str().into()));
            self.declarations.constraints.insert(name.text.clone(), name.span);
        }
    }

    fn config(&mut self, item: usize, config: &ast::Config) {
        let (name, secret) = (&config.name, config.secret);
        let ty = self.resolve_type(&config.ty);
        if self.take(name) {
            self.declarations.define(name, Symbol::Config(name.as_str().into()));
            self.declarations.config.insert(name.text.clone(), DeclaredConfig { item, ty, secret });
        }
    }

    fn service(&mut self, service: &ast::Service) {
        let name = &service.name;
        if self.take(name) {
            self.declarations.define(name, Symbol::Service(name.as_str().into()));
        }
    }

    fn function(&mut self, item: usize, function: &ast::Function) {
        let mut seen: IndexMap<Arc<str>, Span> = IndexMap::new();
        let mut parameters = Vec::new();
        let mut signature = TypeParameters::introduced_by(&function.name);
        for parameter in &function.parameters {
            self.first_of(&mut seen, &parameter.name, "parameter");
            let ty = resolve_type(&mut self.declarations, self.context, &parameter.ty, &mut signature);
            let (name, span) = (parameter.name.text.clone(), parameter.span);
            parameters.push(DeclaredParameter { name, span, ty, has_default: parameter.default.is_some() });
        }
        let result = function.returns.as_ref();
        let result =
            result.map_or(Ty::UNIT, |ty| resolve_type(&mut self.declarations, self.context, ty, &mut signature));
        let result_span = function.returns.as_ref().map_or(function.name.span, |ty| ty.span);
        if self.take(&function.name) {
            self.declarations.define(&function.name, Symbol::Function((&*function.name.text).into()));
            let type_parameters = signature.into_names();
            let declared = DeclaredFn { item, type_parameters, parameters, result, result_span };
            self.declarations.functions.insert(function.name.text.clone(), declared);
        }
    }

    fn resolve_type(&mut self, ty: &ast::Type) -> Ty {
        resolve_type(&mut self.declarations, self.context, ty, &mut TypeParameters::none())
    }
}
