//! Checks tables: keyed reads, statements, and the clauses of queries.

use weir_host::{Mode, Passing, Resource, TypeShape};
use weir_syntax::ast::{
    Argument, AtomicResource, Expr, ExprKind, Name, Pattern, PatternKind, QueryClauses, QueryOrder, UnaryOperator,
};
use weir_syntax::{Code, Diagnostic, Span};

use super::arguments::{CallArguments, CalleeParameter};
use super::names::path_of;
use super::{Expected, TypeChecker};
use crate::declare::private_item;
use crate::lang_items::TABLE;
use crate::suggest::{listed, nearest};
use crate::table_statements;
use crate::typed_tree::{Demand, InsertedRow, Resolution};
use crate::types::Ty;

/// The reason for the type of a cursor.
pub(super) const CURSOR: &str =
    "a cursor is the `Option(Text)` that the page before has returned, and `None` before the first page";

impl<'a> TypeChecker<'a, '_> {
    /// Returns the index of the table that an expression names.
    pub(super) fn table_named(&self, expr: &Expr) -> Option<usize> {
        let declarations = &self.typed.declarations;
        match &expr.kind {
            ExprKind::Name(name) => {
                self.shared_index(name)?;
                declarations.tables.get_index_of(declarations.own(&name.text))
            }
            ExprKind::Field { object, name } => {
                let ExprKind::Name(module) = &object.kind else { return None };
                let file = self.module_file(module).filter(|_| self.names_module(module))?;
                declarations.tables.get_index_of(declarations.files[file].whole(&name.text))
            }
            _ => None,
        }
    }

    /// Returns the index of the shared value that an expression names: one of this file, or a table of another one.
    pub(super) fn shared_named(&self, expr: &Expr) -> Option<usize> {
        if let ExprKind::Name(name) = &expr.kind {
            return self.shared_index(name);
        }
        let (table, _) = self.typed.declarations.tables.get_index(self.table_named(expr)?)?;
        self.typed.declarations.shared.get_index_of(table)
    }

    /// Notes that an expression names a table of another module. Reports one that is private.
    pub(super) fn table_of_module(&mut self, expr: &Expr) {
        let ExprKind::Field { object, name } = &expr.kind else { return };
        let (ExprKind::Name(module), Some(table)) = (&object.kind, self.table_named(expr)) else { return };
        self.module(module);
        let Some((whole, declared)) = self.typed.declarations.tables.get_index(table) else { return };
        let hidden = self.typed.declarations.shared.get(whole).filter(|_| !declared.public);
        if let Some(place) = hidden.map(|shared| shared.span) {
            self.report(private_item(name, &shown(expr), place));
        }
    }

    /// Notes that an expression reads or writes a table.
    fn use_table(&mut self, object: &Expr, mode: Mode) {
        let Some(at) = self.shared_named(object) else { return };
        self.table_of_module(object);
        self.refer_shared(object, at);
        let whole = self.typed.declarations.shared_name(at);
        self.seen.own.touch(Resource::Shared((&*whole).into()), mode);
        self.typed.resolve(object.id, Resolution::Shared(whole));
        self.typed.of_mut(object.id).set_type(object.id, Ty::named(TABLE));
    }

    /// Notes the writes of the tables whose rows reference deleted ones, if the statement deletes rows.
    fn use_cascades(&mut self, table: usize, statement: &str) {
        let declarations = &self.typed.declarations;
        let Some((name, _)) = declarations.tables.get_index(table).filter(|_| statement.starts_with("delete")) else {
            return;
        };
        for other in declarations.cascades_to(name) {
            self.seen.own.touch(Resource::Shared((&*other).into()), Mode::Write);
        }
    }

    /// Checks `table[key]`, the row with the key.
    pub(super) fn row_at(&mut self, table: usize, object: &'a Expr, key: &'a Expr) -> Ty {
        self.use_table(object, Mode::Read);
        let declared = &self.typed.declarations.tables[table];
        let (row, wanted) = (declared.row(), declared.key_ty());
        let why = format!("the key of the table is `{wanted}`");
        self.expr(key, Some(&Expected::new(wanted, object.span, why)));
        Ty::option(row)
    }

    /// Returns the type of the elements of a `for` over a table.
    pub(super) fn rows_of(&mut self, table: usize, items: &'a Expr) -> Ty {
        self.use_table(items, Mode::Read);
        self.typed.declarations.tables[table].row()
    }

    /// Checks `table.name(…)`.
    pub(super) fn table_call(
        &mut self,
        table: usize,
        object: &'a Expr,
        name: &'a Name,
        given: CallArguments<'a>,
    ) -> Ty {
        let given = CallArguments { object: Some((object, Ty::named(TABLE))), ..given };
        let statement = self.meant_statement(name, given.arguments);
        let declared = &self.typed.declarations.tables[table];
        let Some((target, parameters, result)) = table_statements::statement(statement, declared) else {
            self.no_statement(object, name);
            return self.ignore(given);
        };
        let mode = if matches!(name.as_str(), "count" | "exists") { Mode::Read } else { Mode::Write };
        if mode == Mode::Write && declared.existing.as_ref().is_some_and(|existing| !existing.writable) {
            self.no_write(object, name);
        }
        self.use_table(object, mode);
        self.use_cascades(table, name.as_str());
        if matches!(name.as_str(), "insert" | "upsert") {
            self.inserted(table, &given, name.as_str() == "insert");
        }
        let passing = if mode == Mode::Write { Passing::Change } else { Passing::Borrow };
        let table_parameter = |passing| CalleeParameter {
            name: None,
            ty: Ty::named(TABLE),
            passing: Some(passing),
            has_default: false,
            place: None,
        };
        let of = |(name, ty, has_default): (&str, Ty, bool)| CalleeParameter {
            name: Some(name.into()),
            ty,
            passing: None,
            has_default,
            place: None,
        };
        let taken = std::iter::once(table_parameter(passing)).chain(parameters.into_iter().map(of)).collect();
        let (before, first) = (self.context.reported(), given.arguments.first());
        self.arguments(&format!("{}.{name}", shown(object)), target, taken, given);
        if let (Some(first), "exists") = (first.filter(|first| !is_closure(first)), name.as_str()) {
            let key = self.context.text_at(first.value.span);
            let hint = format!("ask for the row with a key: `{}[{key}] != None`", shown(object));
            self.context.advise_since(before, Code::TypeMismatch, &hint);
        }
        if (first, name.as_str()) == (None, "delete_all") {
            let hint = format!("delete every row: `{}.delete_all(|_| true)`", shown(object));
            self.context.advise_since(before, Code::MissingArgument, &hint);
        }
        result
    }

    /// Returns the name of a statement, or of the one on all rows that is meant if a condition stands in the place of the key.
    fn meant_statement<'n>(&mut self, name: &'n Name, arguments: &[Argument]) -> &'n str {
        let all = match (name.as_str(), arguments) {
            ("delete", [first]) if is_closure(first) => "delete_all",
            ("update", [first, _]) if is_closure(first) => "update_all",
            (statement, _) => return statement,
        };
        let diagnostic = Diagnostic::new(Code::TypeMismatch, format!("`{name}` takes the key of a row"))
            .at(arguments[0].value.span, "this is a condition")
            .suggest(format!("`{all}` is for all rows that fulfil a condition"), name.span, all);
        self.report(diagnostic);
        all
    }

    /// Notes that a record literal is a new row of a table, so that it may leave out columns. Reports a number that the
    /// table gives itself.
    fn inserted(&mut self, table: usize, given: &CallArguments<'a>, inserts: bool) {
        let [argument] = given.arguments else { return };
        let ExprKind::Record { base: None, fields, .. } = &argument.value.kind else { return };
        let Some((whole, declared)) = self.typed.declarations.tables.get_index(table) else { return };
        let whole = whole.clone();
        let is_numbered = inserts && declared.auto;
        let number = declared.key.first().filter(|_| is_numbered).map(|at| &declared.columns[*at].name);
        let written = fields.iter().find(|field| number.is_some_and(|number| field.name.as_str() == number.as_str()));
        if let Some(field) = written {
            let message = format!("`{}` is a number that the table gives to the row", field.name);
            let diagnostic = Diagnostic::new(Code::RecordFields, message)
                .at(field.name.span, "the key of the table is `auto`")
                .hint("leave it out: `insert` returns the number; `upsert` writes a row with a number that you choose");
            self.report(diagnostic);
        }
        let literal = argument.value.id;
        self.typed.of_mut(literal).inserted_rows.insert(literal, InsertedRow { table: whole, is_numbered });
    }

    /// Reports a write of a table of an existing database that the program only reads.
    fn no_write(&mut self, object: &Expr, name: &Name) {
        let table = shown(object);
        let diagnostic = Diagnostic::new(Code::ReadOnlyTable, format!("`{table}` is only read by this program"))
            .at(name.span, "writes the table")
            .hint("let the program write it: `existing(database: …, writable: true)` in the declaration");
        self.report(diagnostic);
    }

    fn no_statement(&mut self, object: &Expr, name: &Name) {
        self.use_table(object, Mode::Read);
        let mut diagnostic = Diagnostic::new(Code::UnknownMethod, format!("a table has no function `{name}`"))
            .at(name.span, "no such function")
            .because(object.span, "this is a table");
        let names = table_statements::STATEMENTS.map(|(name, _)| name);
        if let Some(advice) = table_statements::advice_on(name.as_str(), &shown(object)) {
            diagnostic = diagnostic.hint(advice);
        } else if let Some(near) = nearest(name.as_str(), names) {
            diagnostic = diagnostic.suggest(format!("did you mean `{near}`?"), name.span, near);
        } else {
            let (known, table): (Vec<String>, _) = (names.map(str::to_owned).into(), shown(object));
            let rest = format!("`{table}[key]` is a row, and `for row in {table}` a query");
            diagnostic = diagnostic.hint(format!("a table has {}; {rest}", listed(&known)));
        }
        self.report(diagnostic);
    }

    /// Reports a table that is held per session: a transaction excludes the flows of all sessions.
    pub(super) fn held_for_all(&mut self, resource: &AtomicResource) {
        let whole = self.held(&resource.path);
        if resource.per_session && whole.is_some_and(|whole| self.typed.declarations.tables.contains_key(&*whole)) {
            let message = format!("the table `{}` cannot be held per session", resource.path);
            let diagnostic = Diagnostic::new(Code::TransactionBody, message)
                .at(resource.span, "a transaction excludes the flows of all sessions")
                .hint("leave out `per session`");
            self.report(diagnostic);
        }
    }

    /// Checks the clauses of a `for` after its pattern is bound.
    pub(super) fn query_clauses(&mut self, table: Option<usize>, pattern: &Pattern, query: &'a QueryClauses) {
        if let Some(condition) = &query.condition {
            self.expr(condition, Some(&Expected::new(Ty::BOOL, condition.span, "a condition is a `Bool`")));
        }
        for key in &query.order {
            self.order_key(table, pattern, key);
        }
    }

    /// Checks the limit and the cursor of a query, which do not depend on the row.
    pub(super) fn query_limit(&mut self, table: Option<usize>, query: &'a QueryClauses) {
        if let Some(limit) = &query.limit {
            self.expr(limit, Some(&Expected::new(Ty::INT, limit.span, "a limit is an `Int`")));
        }
        let Some(after) = &query.after else { return };
        self.expr(after, Some(&Expected::new(Ty::option(Ty::TEXT), after.span, CURSOR)));
        if table.is_none() {
            self.no_query(
                after.span,
                "`after` belongs to a query of a table",
                "take a part of the list: `.skip(count)`",
            );
        } else if query.limit.is_none() {
            self.no_query(after.span, "a page has no `limit`", "say how many rows it has: `limit 50 after cursor`");
        }
    }

    fn order_key(&mut self, table: Option<usize>, pattern: &Pattern, key: &'a QueryOrder) {
        if let Some(at) = table
            && self.is_bare_column(at, pattern, &key.value)
        {
            return;
        }
        let ty = self.expr(&key.value, None);
        let span = key.value.span;
        let is_name = matches!(pattern.kind, PatternKind::Bind(_));
        if table.is_some() && !(is_name && is_column(pattern, &key.value)) {
            let advice = match &key.value.kind {
                ExprKind::Unary { operator: UnaryOperator::Negate, operand } if is_column(pattern, operand) => {
                    "write the column with `desc` behind it"
                }
                _ => "write `row.column`, where `row` is the name of the row; a list is ordered by any expression",
            };
            return self.no_query(span, "the rows of a table are ordered by their columns", advice);
        }
        let ty = self.inference.resolve(&ty);
        self.demand(&ty, Demand::OrderBy, span);
        if !self.may_order_by(&ty) {
            let other = match ty {
                _ if table.is_some() => "order by another column",
                Ty::Option(_) => "give `None` a place: `order by (value else { … })`",
                _ => "order by a number, text, time, truth value, or an enum without values",
            };
            self.no_query(span, &format!("values of the type `{ty}` have no order"), other);
        }
    }

    /// Returns whether `order by` takes values of the type: those that `<` compares, truth values, and variants of an enum without
    /// values, which have the order of their declaration.
    pub(super) fn may_order_by(&self, ty: &Ty) -> bool {
        let variants = ty.name().and_then(|name| match &self.typed.declarations.types.get(name)?.definition.shape {
            TypeShape::Enum(variants) => Some(variants),
            _ => None,
        });
        let is_plain = variants.is_some_and(|variants| variants.iter().all(|variant| variant.fields.is_empty()));
        ty.has_order() || *ty == Ty::BOOL || is_plain
    }

    /// Reports the name of a column without that of the row, and returns whether it is one.
    fn is_bare_column(&mut self, table: usize, pattern: &Pattern, value: &Expr) -> bool {
        let (Some(row), ExprKind::Name(column)) = (bound_name(pattern), &value.kind) else { return false };
        let columns = &self.typed.declarations.tables[table].columns;
        let is_column = columns.iter().any(|known| known.name.as_str() == column.as_str());
        if is_column {
            let whole = format!("{row}.{column}");
            let diagnostic = Diagnostic::new(Code::QueryForm, "the rows of a table are ordered by their columns")
                .at(value.span, "a column is a field of the row")
                .fix(format!("write `{whole}`"), value.span, whole);
            self.report(diagnostic);
        }
        is_column
    }

    fn no_query(&mut self, span: Span, message: &str, hint: &str) {
        self.report(Diagnostic::new(Code::QueryForm, message).at(span, "not possible here").hint(hint));
    }
}

fn is_closure(argument: &Argument) -> bool {
    matches!(argument.value.kind, ExprKind::Closure { .. })
}

/// Returns the name that a pattern binds.
fn bound_name(pattern: &Pattern) -> Option<&Name> {
    match &pattern.kind {
        PatternKind::Bind(name) => Some(name),
        _ => None,
    }
}

/// Returns whether an expression is a field of the name that a pattern binds.
fn is_column(pattern: &Pattern, value: &Expr) -> bool {
    let Some(row) = bound_name(pattern) else { return false };
    match &value.kind {
        ExprKind::Field { object, .. } => matches!(&object.kind, ExprKind::Name(name) if name.text == row.text),
        _ => false,
    }
}

fn shown(object: &Expr) -> String {
    path_of(object)
        .map_or_else(|| "table".to_owned(), |path| path.iter().map(Name::as_str).collect::<Vec<_>>().join("."))
}
