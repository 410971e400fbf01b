//! Declares tables: checks that the rows can be stored, and resolves the clauses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use weir_host::{Field, Text, Type, TypeShape};
use weir_syntax::ast::{self, Name, TableClause, TableClauseKind};
use weir_syntax::{Code, Diagnostic, Span};

use super::Declarer;
use crate::declarations::{DeclaredShared, DeclaredTable, TableColumn, name_in_database};
use crate::lang_items::TABLE;
use crate::suggest::nearest;
use crate::symbol::Symbol;
use crate::types::Ty;

impl<'c> Declarer<'_, 'c> {
    pub(super) fn table(&mut self, item: usize, public: bool, table: &'c ast::TableDeclaration) {
        let name = &table.name;
        if !self.take(name) {
            return;
        }
        let whole = self.declarations.add_name(&name.text);
        self.declarations.define(name, Symbol::Shared((&*whole).into()));
        let shared = DeclaredShared { item, span: name.span, ty: Ty::named(TABLE), per_session: false };
        self.declarations.shared.insert(whole.clone(), shared);
        let mut declared = DeclaredTable { public, ..DeclaredTable::default() };
        if let Some((row, fields)) = self.row_of(&table.row) {
            declared.columns = self.columns(&row, &fields, table.row.span);
            declared.row = (declared.columns.len() == fields.len()).then_some(row);
        }
        self.clauses(table, &mut declared);
        self.default_of_number(table, &mut declared);
        self.names_in_database(table, &declared);
        self.declarations.tables.insert(whole, declared);
    }

    /// Reports names that a database cannot hold beside each other: it does not distinguish the case of ASCII letters.
    fn names_in_database(&mut self, table: &ast::TableDeclaration, declared: &DeclaredTable) {
        let name = table.name.as_str();
        // The first of its search path are the catalogues of PostgreSQL.
        if ["weir_", "sqlite_", "pg_"].iter().any(|prefix| name.to_ascii_lowercase().starts_with(prefix)) {
            let message = format!("`{name}` is a name that the database reserves");
            let hint = "choose a name that does not begin with `weir_`, `sqlite_` or `pg_`";
            self.table_fault(table.name.span, message, hint);
        }
        let same = |known: &&Arc<str>| name_in_database(known).eq_ignore_ascii_case(name);
        if let Some(other) = self.declarations.tables.keys().find(same).cloned() {
            let whole = self.declarations.own(name);
            let message = format!("the tables `{other}` and `{whole}` would have one name in the database");
            let first = self.declarations.shared.get(&other).map(|shared| shared.span);
            let mut diagnostic = Diagnostic::new(Code::TableDeclaration, message)
                .at(table.name.span, "is the name in the database, without the module")
                .hint("rename one of them");
            if let Some(first) = first {
                diagnostic = diagnostic.because(first, "has this name already");
            }
            self.context.report(diagnostic);
        }
        let mut seen = BTreeSet::new();
        for column in &declared.columns {
            if !seen.insert(column.name.to_ascii_lowercase()) {
                let message = format!("two columns would have the name `{}` in the database", column.name);
                self.table_fault(table.row.span, message, "rename one of the fields");
            }
        }
    }

    /// Returns the record that the rows are, and its fields.
    pub(super) fn row_of(&mut self, row: &ast::Type) -> Option<(Text, Vec<Field>)> {
        let ty = self.resolve_type(row);
        let own = ty.name().and_then(|name| self.declarations.types.get_key_value(name));
        if let Some((name, declared)) = own
            && let TypeShape::Record(fields) = &declared.definition.shape
        {
            return Some((name.clone(), fields.clone()));
        }
        if ty != Ty::Error {
            let diagnostic = Diagnostic::new(Code::TableDeclaration, "the rows of a table are records of the program")
                .at(row.span, format!("this is `{ty}`"))
                .hint("declare a record: `record Row { name: Text }`");
            self.context.report(diagnostic);
        }
        None
    }

    pub(super) fn columns(&mut self, row: &Text, fields: &[Field], place: Span) -> Vec<TableColumn> {
        let columns = fields.iter().filter_map(|field| {
            let (inner, optional) = match &field.ty {
                Type::Option(inner) => (&**inner, true),
                other => (other, false),
            };
            let Some((kind, variants)) = self.kind_of(inner) else {
                if Ty::fixed(inner) != Ty::Error {
                    self.no_column(row, field, place);
                }
                return None;
            };
            let (name, ty) = (field.name.clone(), field.ty.clone());
            Some(TableColumn { name, ty, kind, variants, optional, default: None })
        });
        columns.collect()
    }

    /// Returns the kind of a column, and the variants of an enum; `None` if values of the type cannot be stored.
    fn kind_of(&self, ty: &Type) -> Option<(&'static str, Vec<Text>)> {
        let kind = match ty {
            Type::Bool => "Bool",
            Type::Int => "Int",
            Type::Float => "Float",
            Type::Text => "Text",
            Type::Bytes => "Bytes",
            Type::Time => "Time",
            Type::Duration => "Duration",
            Type::Size => "Size",
            Type::Named(name) => {
                let TypeShape::Enum(variants) = &self.declarations.types.get(name)?.definition.shape else {
                    return None;
                };
                let plain = !variants.is_empty() && variants.iter().all(|variant| variant.fields.is_empty());
                return plain.then(|| ("Enum", variants.iter().map(|variant| variant.name.clone()).collect()));
            }
            _ => return None,
        };
        Some((kind, Vec::new()))
    }

    fn no_column(&mut self, row: &Text, field: &Field, place: Span) {
        let message = format!("the field `{}` of `{row}` cannot be a column", field.name);
        let diagnostic = Diagnostic::new(Code::TableDeclaration, message)
            .at(place, format!("`{}` is `{}`", field.name, field.ty))
            .note("a column is a number, text, bytes, time, duration, size, truth value, or an enum without values")
            .hint("keep the parts of a list or record in a table of their own, with the key of this one");
        self.context.report(diagnostic);
    }

    fn clauses(&mut self, table: &'c ast::TableDeclaration, declared: &mut DeclaredTable) {
        let mut seen: BTreeMap<&str, Span> = BTreeMap::new();
        for clause in &table.clauses {
            let word = clause.kind.word();
            if let (Some(first), Some(hint)) = (seen.get(word), advice_for_second(&clause.kind)) {
                let diagnostic = Diagnostic::new(
                    Code::TableDeclaration,
                    format!("the table `{}` has two `{word}` clauses", table.name),
                )
                .at(clause.span, "the second one")
                .because(*first, "the first one")
                .hint(hint);
                self.context.report(diagnostic);
                continue;
            }
            seen.entry(word).or_insert(clause.span);
            self.clause(clause, declared);
        }
        if !seen.contains_key("key") && !table.name.is_missing() {
            let message = format!("the table `{}` has no key", table.name);
            self.table_fault(table.name.span, message, "name the columns that identify a row: `key name`");
        }
    }

    fn clause(&mut self, clause: &'c TableClause, declared: &mut DeclaredTable) {
        match &clause.kind {
            TableClauseKind::Key { columns, auto } => {
                declared.key = self.column_indices(columns, declared);
                declared.auto = auto.is_some();
                self.key(clause.span, declared);
            }
            TableClauseKind::Index(columns) | TableClauseKind::Unique(columns) => {
                let unique = matches!(clause.kind, TableClauseKind::Unique(_));
                let columns = self.column_indices(columns, declared);
                if !columns.is_empty() && !declared.indexes.contains(&(columns.clone(), unique)) {
                    declared.indexes.push((columns, unique));
                }
            }
            // Resolved when all tables, functions and configured values are declared.
            TableClauseKind::References { .. } | TableClauseKind::Migrate { .. } | TableClauseKind::Existing(_) => {}
            TableClauseKind::Default(arguments) => self.defaults(arguments, declared),
            TableClauseKind::Soft(arguments) => declared.soft = Some(self.soft(arguments)),
        }
    }

    /// Returns the indices of the columns with these names, and reports names that are no columns.
    pub(super) fn column_indices(&mut self, names: &[Name], declared: &DeclaredTable) -> Vec<usize> {
        let mut found = Vec::new();
        for name in names {
            match self.column(name, declared) {
                Some(at) if found.contains(&at) => {
                    self.table_fault(name.span, format!("`{name}` is named twice"), "remove it");
                }
                Some(at) => found.push(at),
                None => {}
            }
        }
        found
    }

    pub(super) fn column(&mut self, name: &Name, declared: &DeclaredTable) -> Option<usize> {
        let row = declared.row.clone()?;
        if name.is_missing() {
            return None;
        }
        let at = declared.columns.iter().position(|column| column.name.as_str() == name.as_str());
        if at.is_some() {
            self.declarations.refer(name.span, Symbol::Field(row, name.as_str().into()));
            return at;
        }
        let mut diagnostic = Diagnostic::new(Code::TableDeclaration, format!("`{row}` has no field `{name}`"))
            .at(name.span, "no such column");
        if let Some(near) = nearest(name.as_str(), declared.columns.iter().map(|column| column.name.as_str())) {
            diagnostic = diagnostic.suggest(format!("did you mean `{near}`?"), name.span, near);
        }
        self.context.report(diagnostic);
        None
    }

    fn key(&mut self, place: Span, declared: &DeclaredTable) {
        for column in declared.key.iter().map(|at| &declared.columns[*at]) {
            if column.optional || column.kind == "Float" {
                let message = format!("`{}` cannot be part of a key: it is `{}`", column.name, column.ty);
                self.table_fault(place, message, "choose columns that every row has, and that are no `Float`");
            }
        }
        let is_number = matches!(&declared.key[..], [only] if declared.columns[*only].ty == Type::Int);
        if declared.auto && declared.row.is_some() && !is_number {
            self.table_fault(
                place,
                "`auto` numbers the rows".to_owned(),
                "give it a key of one column of the type `Int`",
            );
        }
    }

    pub(super) fn table_fault(&mut self, place: Span, message: String, hint: &str) {
        let diagnostic = Diagnostic::new(Code::TableDeclaration, message).at(place, "in this declaration").hint(hint);
        self.context.report(diagnostic);
    }
}

/// Returns the advice for a second clause of a kind; `None` if a table may have several of these.
fn advice_for_second(kind: &TableClauseKind) -> Option<&'static str> {
    match kind {
        TableClauseKind::Key { .. } => {
            Some("remove one of them; a key of several columns is one clause: `key (shop, number)`")
        }
        TableClauseKind::Default(_) => Some("write all defaults in one clause: `default(stock: 0, open: true)`"),
        TableClauseKind::Soft(_) => Some("write all limits in one clause: `soft(ttl: 30m, at_most: 100_000)`"),
        TableClauseKind::Migrate { .. } => {
            Some("remove one of them; a later version has another `migrate` in its place")
        }
        TableClauseKind::Existing(_) => Some("remove one of them"),
        TableClauseKind::Index(_) | TableClauseKind::Unique(_) | TableClauseKind::References { .. } => None,
    }
}
