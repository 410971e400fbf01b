//! Checks records and their fields.

use weir_host::TypeShape;
use weir_syntax::ast::{Expr, FieldValue, Name, Path};
use weir_syntax::{Code, Diagnostic, Span};

use super::{Expected, TypeChecker};
use crate::declarations::DeclaredTable;
use crate::suggest::{listed, nearest};
use crate::symbol::Symbol;
use crate::typed_tree::Resolution;
use crate::types::Ty;

impl<'a> TypeChecker<'a, '_> {
    /// Checks `object.name` outside a call: a field, a variant, or a function as a value.
    pub(super) fn field(&mut self, expr: &'a Expr, object: &'a Expr, name: &Name, expected: Option<&Ty>) -> Ty {
        if let Some(path) = super::names::path_of(expr)
            && let Some(ty) = self.path_value(expr, &path, expected)
        {
            return ty;
        }
        let ty = self.expr(object, None);
        let ty = self.inference.shallow(&ty);
        if name.is_missing() || ty == Ty::Error {
            return Ty::Error;
        }
        match self.field_of(&ty, name.as_str()) {
            Some((index, field)) => {
                self.typed.resolve(expr.id, Resolution::Field(index));
                self.refer_field(&ty, name);
                field
            }
            None => self.no_field(object.span, &ty, name),
        }
    }

    pub(super) fn refer_field(&mut self, record: &Ty, name: &Name) {
        if let Some(of) = record.name() {
            self.refer(name.span, Symbol::Field(of.clone(), name.as_str().into()));
        }
    }

    /// Returns the index and type of a record's field.
    pub(super) fn field_of(&self, ty: &Ty, name: &str) -> Option<(u32, Ty)> {
        let definition = self.typed.declarations.definition(self.context.library, ty.name()?)?;
        let TypeShape::Record(fields) = &definition.shape else { return None };
        let index = fields.iter().position(|field| field.name.as_str() == name)?;
        Some((index as u32, Ty::fixed(&fields[index].ty)))
    }

    fn no_field(&mut self, object: Span, ty: &Ty, name: &Name) -> Ty {
        let resolved = self.inference.resolve(ty);
        if let Ty::Unknown(_) = resolved {
            return self.unknown_here(object, &resolved);
        }
        let mut diagnostic = Diagnostic::new(Code::UnknownField, format!("`{resolved}` has no field `{name}`"))
            .at(name.span, "no such field")
            .because(object, format!("this is `{resolved}`"));
        let fields = self.fields_of(&resolved);
        if let Some(near) = nearest(name.as_str(), fields.iter().map(String::as_str)) {
            diagnostic = diagnostic.suggest(format!("did you mean `{near}`?"), name.span, near);
        } else if !fields.is_empty() {
            diagnostic = diagnostic.hint(format!("it has {}", listed(&fields)));
        } else if self.has_method(&resolved, name.as_str()) {
            diagnostic = diagnostic.suggest(format!("call it: `{name}()`"), name.span.at_end(), "()");
        } else if let Ty::Result(_) = resolved {
            diagnostic = diagnostic.suggest("unwrap the value first, with `?` or `else { … }`", object.at_end(), "?");
        } else if let Ty::Option(_) = resolved {
            diagnostic = diagnostic.hint("unwrap the value first: `(value else { return … })`, or `match` it");
        } else if let Some(advice) = self.dialect_method(&resolved, name) {
            diagnostic = super::names::advised(diagnostic, name, advice);
        }
        self.report(diagnostic);
        Ty::Error
    }

    pub(super) fn fields_of(&self, ty: &Ty) -> Vec<String> {
        let definition = ty.name().and_then(|name| self.typed.declarations.definition(self.context.library, name));
        match definition.map(|definition| &definition.shape) {
            Some(TypeShape::Record(fields)) => fields.iter().map(|field| field.name.to_string()).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the indices of the fields of a record that a literal may leave out.
    fn fields_with_default(&self, ty: &Ty) -> Vec<usize> {
        let definition = ty.name().and_then(|name| self.typed.declarations.definition(self.context.library, name));
        match definition.map(|definition| &definition.shape) {
            Some(TypeShape::Record(fields)) => (0..fields.len()).filter(|at| fields[*at].default.is_some()).collect(),
            _ => Vec::new(),
        }
    }

    pub(super) fn record(&mut self, expr: &Expr, path: &Path, base: Option<&'a Expr>, fields: &'a [FieldValue]) -> Ty {
        let ty = self.record_type(path);
        if let Some(base) = base {
            self.expr(base, Some(&Expected::new(ty.clone(), path.span, format!("a `{path}` is made here"))));
        }
        let mut given: Vec<&Name> = Vec::new();
        for field in fields {
            let expected = self.field_expected(&ty, path, &field.name);
            self.expr(&field.value, expected.as_ref());
            if let Some(first) = given.iter().find(|name| name.text == field.name.text) {
                let diagnostic =
                    Diagnostic::new(Code::RecordFields, format!("the field `{}` is set twice", field.name))
                        .at(field.name.span, "also given here")
                        .because(first.span, "first given here");
                self.report(diagnostic);
            }
            given.push(&field.name);
        }
        if base.is_none() {
            self.missing_fields(expr, path, &ty, &given);
        }
        ty
    }

    pub(super) fn record_type(&mut self, path: &Path) -> Ty {
        if path.last().is_missing() {
            return Ty::Error;
        }
        if let Some(whole) = self.type_named(&path.names) {
            let definition = self.typed.declarations.definition(self.context.library, &whole);
            if definition.is_some_and(|definition| matches!(definition.shape, TypeShape::Record(_))) {
                self.refer(path.last().span, Symbol::Type(whole.clone()));
                return Ty::named(&whole);
            }
        }
        let known = self.typed.declarations.types.iter();
        let records =
            known.filter(|(_, ty)| matches!(ty.definition.shape, TypeShape::Record(_))).map(|(name, _)| name.as_str());
        let diagnostic =
            Diagnostic::new(Code::UnknownType, format!("there is no record `{path}`")).at(path.span, "not declared");
        let near = nearest(path.last().as_str(), records).map(str::to_owned);
        let diagnostic = match near {
            Some(near) => diagnostic.suggest(format!("did you mean `{near}`?"), path.span, near),
            None if path.last().as_str() == "Failure" => {
                diagnostic.hint("create a failure from a text: `Failure(\"why\")`")
            }
            None => diagnostic.hint(format!("declare it: `record {} {{ … }}`", path.last())),
        };
        self.report(diagnostic);
        Ty::Error
    }

    fn field_expected(&mut self, ty: &Ty, path: &Path, name: &Name) -> Option<Expected> {
        if *ty == Ty::Error || name.is_missing() {
            return None;
        }
        match self.field_of(ty, name.as_str()) {
            Some((_, field)) => {
                self.refer_field(ty, name);
                let why = format!("the field `{name}` of `{path}` is `{field}`");
                Some(Expected::new(field, name.span, why))
            }
            None => {
                self.no_field(path.span, ty, name);
                Some(Expected::plain(Ty::Error))
            }
        }
    }

    /// Returns the innermost local of this type.
    fn local_of(&self, ty: &Ty) -> Option<&str> {
        let is_one = |id| self.inference.shallow(&self.typed.local(id).ty) == *ty;
        self.scope.innermost().find(|(_, id)| is_one(*id)).map(|(name, _)| name)
    }

    fn missing_fields(&mut self, expr: &Expr, path: &Path, ty: &Ty, given: &[&Name]) {
        let inserted = self.typed.of(expr.id).inserted_rows.get(&expr.id);
        let table = inserted.map(|row| (row.is_numbered, self.typed.declarations.tables.get(&row.table)));
        let table = table.and_then(|(is_numbered, table)| Some((is_numbered, table?)));
        let table = table.filter(|(_, table)| table.row.is_some() && table.row.as_ref() == ty.name());
        let is_given = |field: &String| given.iter().any(|name| name.as_str() == field);
        let may_omit = |at: usize| table.is_some_and(|(is_numbered, table)| table.may_omit(at, is_numbered));
        let with_default = self.fields_with_default(ty);
        let missing = self.fields_of(ty).into_iter().enumerate();
        let missing = missing.filter(|(at, field)| !is_given(field) && !may_omit(*at) && !with_default.contains(at));
        let (places, missing): (Vec<usize>, Vec<String>) = missing.unzip();
        if missing.is_empty() {
            return;
        }
        let (fields, are, them) = if missing.len() == 1 { ("field", "is", "it") } else { ("fields", "are", "them") };
        let mut diagnostic =
            Diagnostic::new(Code::RecordFields, format!("the {fields} {} of `{path}` {are} missing", listed(&missing)))
                .at(expr.span, "a field has no value")
                .hint(format!("add `{}: …`", missing[0]));
        if let Some(other) = self.local_of(ty) {
            let hint = format!("or take the other fields from `{other}`: `{path} {{ ..{other}, … }}`");
            diagnostic = diagnostic.hint(hint);
        }
        let fills = |table: &DeclaredTable| places.iter().all(|at| table.may_omit(*at, table.auto));
        let mut tables =
            self.typed.declarations.tables.iter().filter(|(_, of)| of.row.is_some() && of.row.as_ref() == ty.name());
        if inserted.is_none()
            && let Some((table, _)) = tables.find(|(_, table)| fills(table))
        {
            diagnostic = diagnostic.hint(format!("a record that stands in `{table}.insert(…)` may leave {them} out"));
        }
        self.report(diagnostic);
    }
}
