//! Changes that are placed, and their failures.

use std::fmt::Write as _;
use std::sync::Arc;

use tokio_postgres::Statement;
use weir::{Failure, Value};

use super::connection::PostgresConnection;
use super::errors::StatementError;
use super::sent_statement::SentStatement;
use super::table_layout::TableLayout;
use crate::tables::escaped_text::escaped;
use crate::tables::failure_site::FailureSite;
use crate::tables::program_owned::ProgramOwned;
use crate::tables::row::fields;
use crate::tables::row_change::RowChange;
use crate::tables::sql_value::{Bound, SqlValue};
use crate::tables::transaction_number::refused;

/// Bytes of the texts and byte strings of a row up to which no index refuses them as too long.
const INDEXED_BYTES_MAX: usize = 2_000;

/// A change of a row of a table, and the place in the program to which its failure belongs.
pub(super) struct SitedChange {
    /// The number of its transaction.
    pub(super) transaction: i64,
    pub(super) table: Arc<TableLayout>,
    /// Another thread may release it, behind the end of the flow.
    pub(super) change: ProgramOwned<RowChange>,
    pub(super) site: Option<FailureSite>,
}

/// A change that is placed, with its statements, the first of which makes its failure.
pub(super) struct PlacedChange {
    pub(super) connection: Arc<PostgresConnection>,
    pub(super) of: SitedChange,
    pub(super) sent: Vec<SentStatement>,
    pub(super) prepared: Vec<Statement>,
}

impl SitedChange {
    /// Returns the statement that makes several changes of this kind, and its parameters are lists of those of each; `None` if each
    /// change needs statements of its own.
    pub(super) fn statement_of_many(&self) -> Option<&str> {
        match &*self.change {
            // The database has to tell which row it has refused.
            RowChange::Insert(_) if self.table.names_keys => match &self.table.statements.insert_numbered {
                Some(numbered) => Some(&numbered.many),
                None => self.table.statements.insert_many.as_deref(),
            },
            RowChange::Replace(..) => self.table.statements.replace_many.as_deref(),
            _ => None,
        }
    }

    /// Returns whether a row that others have may be a reason to refuse the change.
    pub(super) fn may_be_refused(&self) -> bool {
        let schema = &self.table.schema;
        // A number that something else has taken has the transaction executed again.
        let has_number = self.table.number_of(&self.change).is_some();
        let is_new = !has_number && matches!(*self.change, RowChange::Insert(_) | RowChange::Delete(_));
        let is_unique = schema.indexes.iter().any(|index| index.unique);
        is_new || schema.existing.is_some() || is_unique || self.change.text_bytes() > INDEXED_BYTES_MAX
    }

    /// Returns whether the row may reference one that another change writes. Whatever looks for it, such as a foreign key, has to find it.
    pub(super) fn may_reference(&self, other: &SitedChange) -> bool {
        self.table.schema.references.iter().any(|reference| reference.target == other.table.schema.name)
    }

    fn key(&self) -> Option<&Value> {
        match &*self.change {
            RowChange::Replace(key, _) | RowChange::Delete(key) => Some(key),
            RowChange::Insert(_) | RowChange::Upsert(_) => None,
        }
    }

    /// Returns whether both changes may be one statement, as far as only they matter.
    pub(super) fn joins(&self, other: &SitedChange) -> bool {
        let is_alike = Arc::ptr_eq(&self.table, &other.table)
            && self.statement_of_many().is_some()
            && self.statement_of_many() == other.statement_of_many();
        // Of several new rows for a key, the database would take any.
        is_alike && self.site == other.site && (self.key().is_none() || self.key() != other.key())
    }

    /// Returns whether the database may have refused this row, of several, with an error.
    fn is_named_by(&self, error: &StatementError) -> bool {
        let RowChange::Insert(row) = &*self.change else { return false };
        let Some((columns, values)) = error.broken_key() else { return false };
        let Some(columns) = self.table.columns_named(&columns) else { return false };
        let schema = &self.table.schema;
        let mut own = String::new();
        for (number, at) in columns.into_iter().enumerate() {
            own.push_str(if number > 0 { ", " } else { "" });
            match Bound::new(&fields(row)[at], &schema.columns[at]).stored() {
                SqlValue::Integer(value) => _ = write!(own, "{value}"),
                SqlValue::Bool(value) => own.push(if value { 't' } else { 'f' }),
                SqlValue::Text(text) => own.push_str(&escaped(text)),
                SqlValue::Null | SqlValue::Real(_) | SqlValue::Bytes(_) => return false,
            }
        }
        own == values
    }

    /// Returns the failure of the change.
    fn refused(&self, error: &StatementError) -> Failure {
        let mut failure = self.table.refused(&self.change, error);
        let is_number_taken = self.table.taken_number(&self.change, error).is_some();
        if is_number_taken {
            // From now on, the database gives each number.
            self.table.triggers.have_kept_row();
        }
        if is_number_taken || error.is_refusal() {
            failure = refused(self.transaction, failure);
        }
        match &self.site {
            Some(site) => site.failure(failure),
            None => failure,
        }
    }

    /// Returns the failure of changes of which the database has refused one.
    pub(super) fn refused_one(changes: &[SitedChange], error: &StatementError) -> Option<Failure> {
        let named = changes.iter().find(|change| changes.len() > 1 && change.is_named_by(error));
        named.or(changes.first()).map(|change| change.refused(error))
    }
}

impl PlacedChange {
    /// Returns about the bytes of its statements.
    pub(super) fn bytes(&self) -> usize {
        self.sent.iter().map(SentStatement::bytes).sum()
    }
}
