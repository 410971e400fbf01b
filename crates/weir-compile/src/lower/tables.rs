//! Lowers tables: their creation, and their statements.
//!
//! A table is a shared value, and a statement a call of the module `tables` that borrows it, so that locks, effects and
//! their checks are those of shared values.
//!
//! A step that writes a stored table holds the constraint of its database ([`super::databases`]).

use std::collections::BTreeSet;

use weir_host::{Mode, Passing, Resource, Signature, Text, Type, Value};
use weir_ir::expr::{ArmTest, Atom, Call, Constraint, Op};
use weir_ir::prim::Prim;
use weir_syntax::Span;
use weir_syntax::ast::{Expr, ExprId, ExprKind};

use super::branch::FallibleValue;
use super::paired_row::PairedRow;
use super::references::references;
use super::table_description::{numbers, option, record};
use super::{Binding, Lowering, TriedCall};
use crate::declarations::{DatabaseAddress, Declarations, DeclaredTable, TableColumn, name_in_database};
use crate::lang_items::{BEGIN, COMMIT, ROLL_BACK, TABLE, TABLES};
use crate::typed_tree::{FailureTarget, Resolution};

impl<'a> Lowering<'a, '_> {
    /// Returns the name of the table that an expression names.
    pub(super) fn table_named(&self, expr: &Expr) -> Option<Text> {
        let (ExprKind::Name(_) | ExprKind::Field { .. }) = &expr.kind else { return None };
        let Some(Resolution::Shared(name)) = self.typed.resolution(expr.id) else { return None };
        self.program.declarations.tables.contains_key(name).then(|| (&**name).into())
    }

    pub(super) fn table(&self, name: &str) -> &'a DeclaredTable {
        &self.program.declarations.tables[name]
    }

    /// Returns whether the table is stored, and not kept in memory only.
    pub(super) fn is_stored(&self, name: &str) -> bool {
        self.program.declarations.tables.get(name).is_some_and(|table| table.soft.is_none())
    }

    /// Returns the row type of a table.
    pub(super) fn row_type(&self, name: &str) -> Type {
        self.table(name).row.as_ref().map_or(Type::Unit, |row| Type::named(row))
    }

    /// Lowers the creation of a table, when the program starts.
    pub(super) fn opened(&mut self, name: &str, span: Span) -> Atom {
        let existing = self.table(name).existing.as_ref().map(|existing| {
            let address = match &existing.database {
                DatabaseAddress::Text(address) => Atom::Value(Value::Text(address.clone())),
                DatabaseAddress::Config(config) => self.configured(config, span),
            };
            let address = if let Atom::Value(address) = address { address } else { Value::text("") };
            record([address, Value::Bool(existing.writable), Value::Text(self.database_of(name))])
        });
        let schema = schema(name, &self.program.declarations, existing);
        self.migrated(name, &schema);
        let arguments = vec![Atom::Value(schema)];
        self.call_tables("open", arguments, Type::named(TABLE), span)
    }

    /// Returns the value of a column that an inserted record leaves out.
    pub(super) fn omitted(&self, literal: ExprId, ty: &Type, column: usize) -> Atom {
        let table =
            self.typed.of(literal).inserted_rows.get(&literal).map(|row| &self.typed.declarations.tables[&row.table]);
        let default = table.and_then(|table| table.columns.get(column)).and_then(|column| column.default.clone());
        let default = default.or_else(|| self.default_of_field(ty, column));
        Atom::Value(default.unwrap_or(if table.is_some() { Value::Int(0) } else { Value::Unit }))
    }

    /// Lowers `table[key]`.
    pub(super) fn row_at(&mut self, expr: &'a Expr, object: &'a Expr, key: &'a Expr) -> Atom {
        if let Some(PairedRow { row, keeps_failure }) = self.rows_read.get(&expr.id).cloned() {
            return match keeps_failure {
                true => self.prim(Prim::Unwrap, vec![row], self.ty(expr), expr.span),
                false => row,
            };
        }
        let Some(table) = self.table_named(object) else { return Atom::Value(Value::Unit) };
        let key = self.expr(key);
        let ty = self.ty(expr);
        self.call_tables("get", vec![Atom::Shared(table), outside(), key], ty, expr.span)
    }

    /// Lowers a statement of one row: the table, and the row or its key.
    pub(super) fn write_row(&mut self, path: &Text, given: Vec<Option<Binding<'a>>>, ty: &Type, span: Span) -> Atom {
        let mut given = given.into_iter();
        let table = given.next().flatten();
        let given = [table, Some(Binding::Atom(outside())), given.next().flatten()];
        self.call_host(path, given.into(), ty.clone(), (span, &[]))
    }

    /// Calls a function of the module `tables`, and returns its value. A failure ends the flow.
    pub(super) fn call_tables(&mut self, name: &str, arguments: Vec<Atom>, ty: Type, span: Span) -> Atom {
        self.call_tables_or(name, (arguments, ty), span, |lowering, failure| {
            lowering.failed(failure, &Type::Failure, (FailureTarget::Flow, None, Vec::new()), span)
        })
    }

    /// Calls a function of the module `tables`, and returns its value. `failed` lowers its failure.
    pub(super) fn call_tables_or(
        &mut self,
        name: &str,
        (arguments, ty): (Vec<Atom>, Type),
        span: Span,
        failed: impl FnOnce(&mut Self, Atom) -> Atom,
    ) -> Atom {
        let path: Text = format!("{TABLES}.{name}").into();
        let given = arguments.into_iter().map(|atom| Some(Binding::Atom(atom))).collect();
        if self.context.library.function(&path).is_some_and(|function| function.signature.failure.is_none()) {
            return self.call_host(&path, given, ty, (span, &[]));
        }
        let of = Type::result(ty.clone(), Type::Failure);
        let subject = self.call_host(&path, given, of.clone(), (span, &[]));
        self.match_fallible(FallibleValue { subject, of }, &ty, span, |lowering, failure| {
            failed(lowering, failure.unwrap_or(Atom::Value(Value::Unit)))
        })
    }

    /// Lowers a call of the module `tables`: in the transaction around it, or as a step of its own if it writes a stored
    /// table.
    pub(super) fn table_call(&mut self, mut call: Call, signature: &Signature, ty: Type, span: Span) -> Atom {
        let Some(Atom::Shared(table)) = call.arguments.first().cloned() else {
            return self.emit(Op::Call(call), ty, span);
        };
        let writes = signature.parameters.first().is_some_and(|parameter| parameter.passing == Passing::Change);
        if writes && ![BEGIN, COMMIT, ROLL_BACK].contains(&call.function.as_str()) {
            self.writes_in_function(&table, span);
        }
        let deletes = call.function.as_str().starts_with("tables.delete");
        let around = self.steps.iter().rposition(|step| step.transaction.is_some());
        let transaction = around.and_then(|step| Some((step, self.steps[step].transaction.clone()?)));
        if let Some((step, mut transaction)) = transaction {
            if transaction.tables.contains(&table) && (!transaction.is_own || !deletes) {
                if deletes {
                    self.names_all_cascades(&table, &transaction, span);
                }
                // `joined_table` only names a table: the transaction is that of the `join`.
                if let Some(number) = call.arguments.get_mut(1) {
                    *number = transaction.number.clone();
                }
                return self.call_in_transaction(call, (step, &transaction), (signature, ty), span);
            }
            if writes && !transaction.is_own {
                self.not_named(&table, &transaction, span);
            } else if writes {
                let joined: Vec<Text> = transaction.tables.iter().chain([&table]).cloned().collect();
                self.one_database(&joined, span);
                call.arguments[1] = transaction.number.clone();
                self.join_transaction(&mut transaction, &table, deletes);
                self.steps[step].transaction = Some(transaction);
            } else if self.is_beside(&table, &transaction) || transaction.is_own && !self.is_stored(&table) {
                // The transaction reads a stored table by the connection, and in the snapshot, of its own tables, and one in
                // memory that it has perhaps written.
                if let Some(number) = call.arguments.get_mut(1) {
                    *number = transaction.number.clone();
                }
                return self.call_in_transaction(call, (step, &transaction), (signature, ty), span);
            }
        }
        if !writes || self.database_to_write(&table).is_none() {
            return self.emit(Op::Call(call), ty, span);
        }
        self.settle_before_existing(std::iter::once(table.as_str()), span);
        let open_block = self.build_block(|lowering| lowering.emit(Op::Call(call), ty.clone(), span));
        self.step(open_block, (ty, None), span, |lowering, _| (lowering.writer_of(&table, deletes), Vec::new()))
    }

    /// Returns the constraints of a step that writes a table, or that deletes rows of it.
    pub(super) fn writer_of(&self, table: &Text, deletes: bool) -> Vec<Constraint> {
        let held = |resource| Constraint { resource, mode: Mode::Write, per_session: false };
        let others = if deletes { self.program.declarations.cascades_to(table) } else { BTreeSet::new() };
        let others = others.into_iter().map(|other| held(Resource::Shared((&*other).into())));
        let database = self.database_to_write(table);
        std::iter::once(held(Resource::Shared(table.clone()))).chain(others).chain(database).collect()
    }

    /// Lowers the call of `replace` inside `update`, and returns the result of the `update`.
    pub(super) fn replaced(
        &mut self,
        table: &Text,
        (key, row): (Atom, Atom),
        (ty, fails): (&Type, WriteFailure),
        span: Span,
    ) -> Atom {
        let row_type = self.row_type(table);
        let of = Type::result(row_type.clone(), Type::Failure);
        let given = [Atom::Shared(table.clone()), outside(), key, row];
        // The commit follows, whose failure is that of the `update`, too.
        let places = matches!(fails, WriteFailure::OfCommit);
        let site = places.then(|| Atom::Value(option(None)));
        let given = given.into_iter().chain(site).map(|atom| Some(Binding::Atom(atom))).collect();
        let function = if places { "place_replace" } else { "replace" };
        let subject = self.call_host(&format!("{TABLES}.{function}").into(), given, of.clone(), (span, &[]));
        let Type::Result(pair) = ty else { return subject };
        let stored = self.vars.variable("", row_type);
        let failure = self.vars.variable("", Type::Failure);
        let (row, failed) = (Atom::Var(stored.var), Atom::Var(failure.var));
        let arms = vec![
            self.arm(ArmTest::Tag(Value::OK), vec![stored], |lowering| {
                let some = lowering.prim(Prim::Variant(Value::SOME), vec![row], pair.0.clone(), span);
                lowering.prim(Prim::Variant(Value::OK), vec![some], ty.clone(), span)
            }),
            self.arm(ArmTest::Tag(Value::ERR), vec![failure], |lowering| {
                lowering.write_failed(failed, (ty, fails), span)
            }),
        ];
        self.switch(subject, arms, ty, span)
    }
}

/// The way of the failure of a part of a statement that reads before it writes.
#[derive(Clone)]
pub(super) enum WriteFailure {
    /// It is the result of the statement.
    Returned,
    /// It is the result of the statement, and so is that of the commit, which follows.
    OfCommit,
    /// It goes where that `?` passes it.
    Tried(TriedCall),
}

/// Returns the number of a statement that is in no transaction.
pub(super) fn outside() -> Atom {
    Atom::Value(Value::Int(0))
}

/// Returns the description of a table as a value of the type `tables.Schema`.
fn schema(name: &str, declarations: &Declarations, existing: Option<Value>) -> Value {
    let table = &declarations.tables[name];
    let index = |(columns, unique): &(Vec<usize>, bool)| record([numbers(columns), Value::Bool(*unique)]);
    let soft = table.soft.map(|limits| {
        let (ttl, at_most) = (limits.ttl.map(Value::Duration), limits.at_most.map(Value::Int));
        let capacity = limits.capacity.map(|bytes| Value::Int(i64::try_from(bytes).unwrap_or(i64::MAX)));
        record([option(ttl), option(at_most), option(capacity)])
    });
    let (references, referenced_by) = references(name, declarations);
    record([
        Value::text(name_in_database(name)),
        Value::list(table.columns.iter().map(|of| column(of, table.existing.is_some())).collect()),
        numbers(&table.key),
        Value::Bool(table.auto),
        Value::list(table.indexes.iter().map(index).collect()),
        option(soft),
        references,
        referenced_by,
        option(table.migration.as_ref().map(|migration| {
            let columns = migration.columns.iter().map(|of| column(of, false)).collect();
            record([Value::list(columns), Value::Bool(migration.batched)])
        })),
        option(existing),
    ])
}

fn column(column: &TableColumn, existing: bool) -> Value {
    let variants = column.variants.iter().map(|variant| Value::Text(variant.clone())).collect();
    let default = column.default.as_ref().and_then(|value| stored_text(value, column));
    record([
        Value::Text(column.name.clone()),
        Value::text(column.kind),
        Value::list(variants),
        Value::Bool(column.optional),
        option(default.map(|text| Value::text(&text))),
        Value::Bool(existing),
        Value::Bool(false),
    ])
}

/// Returns the text of a default in the database; `None` for an absent value.
fn stored_text(value: &Value, column: &TableColumn) -> Option<String> {
    match value {
        Value::Bool(value) => Some(i64::from(*value).to_string()),
        Value::Int(value) | Value::Duration(value) => Some(value.to_string()),
        Value::Size(value) => Some(value.to_string()),
        // A negative zero is stored as a zero.
        Value::Float(value) => Some(format!("{:?}", value + 0.0)),
        Value::Text(value) => Some(value.to_string()),
        Value::Variant(tag, None) if !column.optional => column.variants.get(*tag as usize).map(Text::to_string),
        _ => None,
    }
}
