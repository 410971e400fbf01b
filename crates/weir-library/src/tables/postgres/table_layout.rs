//! A table as its statements need it, beside the database that executes them.

use std::sync::Arc;

use weir::{Failure, Value};

use super::address::PostgresAddress;
use super::connection::Executed;
use super::errors::{StatementError, failure};
use super::expected_rows::RowOf;
use super::publications::Publications;
use super::row_triggers::RowTriggers;
use crate::tables::constraint;
use crate::tables::dialect::Dialect;
use crate::tables::schema::{IndexSchema, Schema};
use crate::tables::statements::TableStatements;
use crate::tables::write_sets::TableWrite;

/// A table without its database.
#[derive(Debug)]
pub(in crate::tables) struct TableLayout {
    pub(super) schema: Arc<Schema>,
    pub(super) statements: TableStatements,
    /// The number by which the program knows its own notifications.
    pub(super) program: u64,
    /// True if the database names the values of a row that breaks a unique index as [`SitedChange`](super::placed_change::SitedChange)
    /// does.
    pub(super) names_keys: bool,
    /// The triggers, rules and policies of the table.
    pub(super) triggers: Arc<RowTriggers>,
    /// The address of the database, for messages.
    address: PostgresAddress,
}

impl TableLayout {
    pub(super) fn new(schema: Schema, program: u64, address: &PostgresAddress) -> TableLayout {
        let statements = TableStatements::new(&schema, Dialect::Postgres);
        let unique = schema.indexes.iter().filter(|index| index.unique).flat_map(|index| &index.columns);
        let is_named = |at: &usize| !["Float", "Bytes"].contains(&&*schema.columns[*at].kind);
        let names_keys = schema.key.iter().chain(unique).all(is_named);
        TableLayout {
            schema: Arc::new(schema),
            statements,
            program,
            names_keys,
            triggers: Arc::default(),
            address: address.clone(),
        }
    }

    /// Returns whether the database may keep rows that are written, or store others, by what other programs or somebody has declared.
    pub(super) fn may_interfere(&self) -> bool {
        self.schema.existing.is_some() || self.triggers.may_interfere()
    }

    /// Returns whether a row that replaces another one is read back, because another one may be stored.
    pub(super) fn reads_back(&self) -> bool {
        self.schema.existing.is_some() || self.triggers.are_read_back()
    }

    /// Returns the statement that replaces the row with a key, if there is one. It returns the row as it is stored if that may be another
    /// one.
    pub(super) fn replacement(&self) -> Option<&String> {
        match self.reads_back() {
            true => self.statements.replace_returning.as_ref(),
            false => self.statements.replace.as_ref(),
        }
    }

    /// Returns the publications of writes; other programs than Weir's expect none.
    pub(super) fn published(&self, writes: &[TableWrite]) -> Publications {
        if self.schema.existing.is_some() {
            return Publications::none();
        }
        Publications::of(self.program, writes)
    }

    /// Returns the identity of the table within its program.
    pub(super) fn identity(&self) -> usize {
        Arc::as_ptr(&self.schema) as usize
    }

    /// Returns the identity of a row.
    pub(super) fn row_of_key(&self, key: Value) -> RowOf {
        (self.identity(), key)
    }

    /// Returns the failure of a row that breaks a unique index, which may be one of another version of the program.
    pub(super) fn taken(&self, (index, error): (&str, &StatementError), row: &[Value]) -> Failure {
        let schema = &self.schema;
        let named = |of: &&IndexSchema| Dialect::Postgres.index_name(schema, of) == index;
        if let Some(index) = schema.indexes.iter().find(named) {
            return constraint::taken(schema, &index.columns, row);
        }
        let broken = error.broken_key().map(|(columns, _)| columns).unwrap_or_default();
        let is_key = |name: &&str| schema.key.iter().any(|at| schema.columns[*at].name == **name);
        // An index of another program may take different keys for the same.
        let is_of_key = schema.existing.is_some() || (index.contains("_pkey") && error.is_of_table(&schema.name));
        if is_of_key && broken.iter().all(is_key) {
            return constraint::taken(schema, &schema.key, row);
        }
        constraint::taken_in_undeclared(schema, (index, &broken), row)
    }

    /// Returns the places of the columns with these names; `None` if the program does not declare one of them.
    pub(super) fn columns_named(&self, names: &[&str]) -> Option<Vec<usize>> {
        let columns = &self.schema.columns;
        names.iter().map(|name| columns.iter().position(|column| column.name == *name)).collect()
    }

    /// Returns the failure of a statement.
    pub(super) fn failure(&self, error: &StatementError) -> Failure {
        failure(&self.address, error)
    }

    /// Returns a whole number of the only row of an answer.
    pub(super) fn number(&self, executed: &Executed, column: usize) -> Result<i64, Failure> {
        let row = executed.rows()?.first().ok_or_else(|| Failure::function("the database has given no answer"))?;
        row.try_get(column).map_err(|error| self.failure(&StatementError::from(error)))
    }
}
