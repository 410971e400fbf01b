//! Declares `fn`s, shared values, constraints, tables, configuration, constants and services by their names.

use std::collections::BTreeMap;
use std::sync::Arc;

use weir_host::Text;
use weir_syntax::ast::{self, ItemKind, Name};
use weir_syntax::{Code, Diagnostic, Span, print_on_one_line};

use super::{Declarer, TypeParameters, resolve_type};
use crate::declarations::{
    DeclaredConfig, DeclaredConstant, DeclaredConstraint, DeclaredFn, DeclaredParameter, DeclaredShared,
};
use crate::lang_items::TABLES;
use crate::symbol::Symbol;
use crate::types::Ty;

/// Maximum length of the source text of a default in a signature, in characters.
const DEFAULT_CHARS_MAX: usize = 80;

impl Declarer<'_, '_> {
    /// Declares the values of all files.
    pub(super) fn values(&mut self) {
        for file in 0..self.declarations.files.len() {
            self.declarations.file = file;
            let begun = self.declarations.begin_file();
            match self.kept(file) {
                Some(before) => self.declarations.take_over_values(&before),
                None => self.context.file_items(file).for_each(|at| self.value(at)),
            }
            self.declarations.end_values(&begun);
        }
    }

    fn value(&mut self, at: usize) {
        let item = &self.context.tree().items[at];
        match &item.kind {
            ItemKind::Function(function) => self.function(at, item.public.is_some(), function),
            ItemKind::Shared(shared) => self.shared(at, shared),
            ItemKind::Constraint(constraint) => self.constraint(at, item.public.is_some(), constraint),
            ItemKind::Table(table) => self.table(at, item.public.is_some(), table),
            ItemKind::Config(config) => self.config(at, config),
            ItemKind::Constant(constant) => self.constant(at, item.public.is_some(), &constant.name),
            ItemKind::Service(service) => self.service(service),
            _ => {}
        }
    }

    fn shared(&mut self, item: usize, shared: &ast::Shared) {
        let name = &shared.name;
        if self.take(name) {
            let whole = self.declarations.add_name(&name.text);
            self.declarations.define(name, Symbol::Shared((&*whole).into()));
            let per_session = shared.per_session;
            let declared = DeclaredShared { item, span: name.span, ty: Ty::Error, per_session };
            self.declarations.shared.insert(whole, declared);
        }
    }

    fn constraint(&mut self, item: usize, public: bool, constraint: &ast::Constraint) {
        let (name, per_session) = (&constraint.name, constraint.per_session);
        if self.take(name) {
            let whole = self.declarations.add_name(&name.text);
            if &*whole == TABLES {
                let diagnostic =
                    Diagnostic::new(Code::NameTaken, "`tables` is the constraint of the database of the tables")
                        .at(name.span, "declared again here")
                        .hint("choose another name; `atomic` around statements holds the tables by itself");
                self.context.report(diagnostic);
            }
            self.declarations.define(name, Symbol::Constraint((&*whole).into()));
            let declared = DeclaredConstraint { public, item, span: name.span, per_session };
            self.declarations.constraints.insert(whole, declared);
        }
    }

    fn config(&mut self, item: usize, config: &ast::Config) {
        let (name, secret) = (&config.name, config.secret);
        let ty = self.resolve_type(&config.ty);
        if self.take(name) {
            let whole = self.declarations.add_name(&name.text);
            self.declarations.define(name, Symbol::Config((&*whole).into()));
            self.declarations.config.insert(whole, DeclaredConfig { item, ty, secret });
        }
    }

    fn constant(&mut self, item: usize, public: bool, name: &Name) {
        if self.take(name) {
            let whole = self.declarations.add_name(&name.text);
            self.declarations.define(name, Symbol::Constant((&*whole).into()));
            let declared = DeclaredConstant { public, item, span: name.span, ty: Ty::Error, value: None };
            self.declarations.constants.insert(whole, declared);
        }
    }

    fn service(&mut self, service: &ast::Service) {
        let name = &service.name;
        if self.take(name) {
            self.declarations.define(name, Symbol::Service(name.as_str().into()));
        }
    }

    fn function(&mut self, item: usize, public: bool, function: &ast::Function) {
        let mut seen: BTreeMap<Arc<str>, Span> = BTreeMap::new();
        let mut parameters = Vec::new();
        let mut signature = TypeParameters::introduced_by(&function.name);
        for parameter in &function.parameters {
            self.first_of(&mut seen, &parameter.name, "parameter");
            let ty = resolve_type(&mut self.declarations, self.context, &parameter.ty, &mut signature);
            let (name, span) = (parameter.name.text.clone(), parameter.span);
            let default = parameter.default.as_ref().map(|default| self.signature_default(default));
            parameters.push(DeclaredParameter { name, span, ty, default });
        }
        let result = function.returns.as_ref();
        let result =
            result.map_or(Ty::UNIT, |ty| resolve_type(&mut self.declarations, self.context, ty, &mut signature));
        let result_span = function.returns.as_ref().map_or(function.name.span, |ty| ty.span);
        if self.take(&function.name) {
            let whole = self.declarations.add_name(&function.name.text);
            self.declarations.define(&function.name, Symbol::Function((&*whole).into()));
            let type_parameters = signature.into_names();
            let file = self.declarations.file;
            let declared = DeclaredFn { file, item, public, type_parameters, parameters, result, result_span };
            self.declarations.functions.insert(whole, declared);
        }
    }

    /// Returns a default on one line; `…` if that is too long for a signature. Only the tree of a file without syntax errors
    /// can be printed.
    fn signature_default(&self, default: &ast::Expr) -> Text {
        let is_here = |span: Span| self.declarations.file_at(span.start) == self.declarations.file;
        let is_of_file = |fault: &Diagnostic| fault.is_error() && fault.span().is_some_and(is_here);
        let line = match self.context.parsed.diagnostics.iter().any(is_of_file) {
            true => self.context.text.get(default.span.range()).unwrap_or_default().to_owned(),
            false => print_on_one_line(default),
        };
        if line.chars().count() > DEFAULT_CHARS_MAX || line.contains('\n') { "…".into() } else { line.into() }
    }
}
