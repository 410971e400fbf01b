//! Declares tables: checks that the rows can be stored, and resolves the clauses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use weir_host::{Field, Text, Type, TypeShape, Value};
use weir_syntax::ast::{self, Argument, Name, TableClause, TableClauseKind};
use weir_syntax::{Code, Diagnostic, Span};

use super::Declarer;
use crate::constant::constant;
use crate::declarations::{DeclaredShared, DeclaredTable, SoftLimits, TableColumn, name_in_database};
use crate::lang_items::TABLE;
use crate::suggest::nearest;
use crate::symbol::Symbol;
use crate::types::Ty;

impl Declarer<'_, '_> {
    pub(super) fn table(&mut self, item: usize, public: bool, table: &ast::TableDeclaration) {
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
                self.no_column(row, field, place);
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

    fn clauses(&mut self, table: &ast::TableDeclaration, declared: &mut DeclaredTable) {
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

    fn clause(&mut self, clause: &TableClause, declared: &mut DeclaredTable) {
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

    fn column(&mut self, name: &Name, declared: &DeclaredTable) -> Option<usize> {
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

    fn defaults(&mut self, arguments: &[Argument], declared: &mut DeclaredTable) {
        for (at, argument) in arguments.iter().enumerate() {
            let Some(name) = &argument.name else {
                self.table_fault(argument.span, "a default names its column".to_owned(), "write `column: value`");
                continue;
            };
            if arguments[..at].iter().any(|before| before.name.as_ref().is_some_and(|of| of.as_str() == name.as_str()))
            {
                self.table_fault(argument.span, format!("`{name}` has two defaults"), "remove one of them");
                continue;
            }
            let Some(at) = self.column(name, declared) else { continue };
            let column = &declared.columns[at];
            let Some(value) = self.default_of(column, &argument.value) else {
                let (message, hint) = no_default(name, column);
                self.table_fault(argument.value.span, message, &hint);
                continue;
            };
            let not_stored = match value {
                Value::Float(number) if number.is_nan() => Some("not a number"),
                Value::Size(size) if size >= i64::MAX.cast_unsigned() => Some("a size of 2^63 - 1 bytes or more"),
                _ => None,
            };
            if let Some(what) = not_stored {
                let message = format!("the default of `{name}` is {what}, which no table stores");
                self.table_fault(argument.value.span, message, "choose another default");
                continue;
            }
            declared.columns[at].default = Some(value);
        }
    }

    /// Returns the constant if it is of the column's type.
    fn default_of(&self, column: &TableColumn, value: &ast::Expr) -> Option<Value> {
        let variant = match &value.kind {
            ast::ExprKind::Name(name) => Some(name.as_str()),
            // `Kind.Small`
            ast::ExprKind::Field { object, name } => match &object.kind {
                ast::ExprKind::Name(of) if column.ty == Type::named(self.declarations.own(of.as_str())) => {
                    Some(name.as_str())
                }
                _ => None,
            },
            _ => None,
        };
        if let Some(tag) = column.variants.iter().position(|known| Some(known.as_str()) == variant)
            && !column.optional
        {
            return Some(Value::Variant(tag as u32, None));
        }
        let value = constant(value)?;
        let fits = match (&value, column.kind) {
            (Value::Variant(Value::NONE, None), _) => column.optional,
            _ if column.optional => false,
            (Value::Bool(_), "Bool") | (Value::Int(_), "Int") | (Value::Text(_), "Text") => true,
            (Value::Duration(_), "Duration") | (Value::Size(_), "Size") => true,
            (Value::Float(value), "Float") => !value.is_nan(),
            _ => false,
        };
        fits.then_some(value)
    }

    fn soft(&mut self, arguments: &[Argument]) -> SoftLimits {
        let mut limits = SoftLimits::default();
        for (at, argument) in arguments.iter().enumerate() {
            let name = argument.name.as_ref().map_or("", Name::as_str);
            if arguments[..at].iter().any(|before| before.name.as_ref().is_some_and(|of| of.as_str() == name)) {
                let message = format!("`soft` has `{name}` twice");
                self.table_fault(argument.span, message, "remove one of them");
            }
            match (name, constant(&argument.value)) {
                ("ttl", Some(Value::Duration(ttl))) if ttl > 0 => limits.ttl = Some(ttl),
                ("at_most", Some(Value::Int(rows))) if rows > 0 => limits.at_most = Some(rows),
                ("capacity", Some(Value::Size(bytes))) if bytes > 0 => limits.capacity = Some(bytes),
                _ => {
                    let message = "`soft` takes `ttl`, a duration, `at_most`, a number of rows, and `capacity`, a size";
                    let hint = "write constants above zero: `soft(ttl: 30m, at_most: 100_000, capacity: 64mb)`";
                    self.table_fault(argument.span, message.to_owned(), hint);
                }
            }
        }
        limits
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

/// Returns the message and the advice for a value that is no default of a column.
fn no_default(name: &Name, column: &TableColumn) -> (String, String) {
    if column.optional {
        return (
            format!("the only default of an `Option`, such as `{name}`, is `None`"),
            format!("write `{name}: None`"),
        );
    }
    match column.variants.first() {
        Some(variant) => (
            format!("the default of `{name}` is a variant of `{}`", column.ty),
            format!("write a variant, such as `{variant}`, or leave the column out"),
        ),
        None => (
            format!("the default of `{name}` is a literal of the type `{}`", column.ty),
            "write a literal and no name, or leave the column out".to_owned(),
        ),
    }
}
