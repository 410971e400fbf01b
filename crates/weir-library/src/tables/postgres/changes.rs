//! Changes of one row in PostgreSQL: their statements and answers.

use std::sync::Arc;

use weir::{Failure, SeenCommits, Value};

use super::connection::{Executed, SqlStatement};
use super::errors::StatementError;
use super::placed_change::SitedChange;
use super::publications::Publications;
use super::queued_change::QueuedChange;
use super::rows_by_keys::row_of;
use super::table::PostgresTable;
use super::table_layout::TableLayout;
use crate::tables::constraint;
use crate::tables::failure_site::FailureSite;
use crate::tables::insertion::{columns_beside_key, given_columns};
use crate::tables::program_owned::ProgramOwned;
use crate::tables::row::fields;
use crate::tables::rows::{ChangeAnswered, LaterAnswer, LaterChange, RowChange, TableRows};
use crate::tables::sql_value::{Bound, key_parameters};
use crate::tables::statements::parameters;
use crate::tables::write_sets::TableWrite;

/// Maximum number of bytes of the texts and byte strings of a row. A message has 1 GiB at most, in which a text or byte string may take
/// two bytes for each of its own: those that are escaped, and those of placed changes.
const ROW_BYTES_MAX: usize = 500_000_000;
/// The same of a change that is executed together with up to 255 others, as one message.
const QUEUED_BYTES_MAX: usize = 1 << 20;

impl PostgresTable {
    /// Executes a change.
    pub(super) fn change(&self, transaction: i64, change: RowChange) -> Result<Value, Failure> {
        let change = self.stored_change(change)?;
        if !self.may_answer_unreadable_row(&change) {
            return self.execute_change(transaction, &change);
        }
        let mut answer = Value::Unit;
        self.together(transaction, &mut || {
            answer = self.execute_change(transaction, &change)?;
            Ok(())
        })?;
        Ok(answer)
    }

    fn execute_change(&self, transaction: i64, change: &RowChange) -> Result<Value, Failure> {
        self.forget_deleted(change);
        let (parameters, published) = (self.change_parameters(change), self.publications(change));
        let Some(statements) = self.change_statements(change, &parameters, &published) else {
            return self.change_answer(change, None);
        };
        let executed = self.database.write(transaction, &statements);
        let of = (&*self.layout, change);
        let executed = executed.map_err(|error| self.database.refused_change(transaction, of, &error))?;
        let answer = self.change_answer(change, executed.first())?;
        self.database.note_changed(transaction, (&self.layout, change), &answer);
        Ok(answer)
    }

    /// Forgets which rows exist before one is deleted.
    fn forget_deleted(&self, change: &RowChange) {
        if matches!(change, RowChange::Delete(_)) {
            self.database.forget_existing();
        }
    }

    /// Begins a change in a transaction; `None` if it needs a thread.
    pub(super) fn begin_change(&self, transaction: i64, change: &RowChange) -> Option<LaterAnswer> {
        // The thread of a statement gives the failure of a row that cannot be stored.
        let change = self.stored_change(change.clone()).ok()?;
        // A large row is a statement of its own.
        if change.text_bytes() > QUEUED_BYTES_MAX {
            return None;
        }
        if self.may_answer_unreadable_row(&change) {
            return None;
        }
        self.forget_deleted(&change);
        let executing = {
            let (parameters, published) = (self.change_parameters(&change), self.publications(&change));
            let statements = self.change_statements(&change, &parameters, &published)?;
            self.database.execute_later(transaction, &statements, false)?
        };
        let (table, database) = (Arc::clone(&self.layout), Arc::clone(&self.database));
        Some(Box::pin(async move {
            let executed = executing.await;
            let executed = executed.map_err(|error| database.refused_change(transaction, (&table, &change), &error))?;
            let answer = table.change_answer(&change, executed.first())?;
            database.note_changed(transaction, (&table, &change), &answer);
            Ok(answer)
        }))
    }

    /// Returns whether the answer of a change is known before the database has executed it, if the numbers of rows are. The database may
    /// change or keep rows by what somebody has added.
    pub(super) fn places(&self, change: &RowChange) -> bool {
        let is_placed = match change {
            RowChange::Insert(_) | RowChange::Replace(..) => true,
            RowChange::Upsert(_) => !self.schema.auto,
            RowChange::Delete(_) => false,
        };
        is_placed && !self.may_interfere()
    }

    /// Places a change in a transaction; `None` if it has to be waited for.
    pub(super) fn place_change(
        &self,
        transaction: i64,
        change: &RowChange,
        site: Option<&FailureSite>,
    ) -> Option<Result<Value, Failure>> {
        if !self.places(change) {
            return None;
        }
        let change = match self.stored_change(change.clone()) {
            Ok(change) => self.with_next_number(transaction, change)?,
            Err(failure) => return Some(Err(failure)),
        };
        let (table, site) = (Arc::clone(&self.layout), site.cloned());
        let kept = ProgramOwned::new(|| change.unshared_copy());
        let placed = SitedChange { transaction, table, change: kept, site };
        let (parameters, published) = (self.placed_parameters(&change), self.published(&[self.placed_write(&change)]));
        let own = self.placed_sql(&change).map(|sql| SqlStatement::new(sql, &parameters));
        let row = match &change {
            RowChange::Insert(row) | RowChange::Upsert(row) => self.row_of_key(self.schema.key_of(fields(row))),
            RowChange::Replace(key, _) | RowChange::Delete(key) => self.row_of_key(key.clone()),
        };
        let statements = own.map(|own| std::iter::once(own).chain(published.statements()).collect::<Vec<_>>());
        match statements {
            Some(statements) if !self.database.place(transaction, &statements, (&row, placed)) => None,
            _ => match self.number_of(&change) {
                Some(number) => Some(Ok(Value::Int(number))),
                None => Some(self.change_answer(&change, None)),
            },
        }
    }

    /// Queues a change that is no part of a transaction.
    pub(super) fn queue_change(&self, change: &RowChange, answered: ChangeAnswered) -> Option<LaterChange> {
        // The thread of a statement gives the failure of a row that cannot be stored.
        let change = self.stored_change(change.clone()).ok()?;
        // A large row is a statement of its own.
        if change.text_bytes() > QUEUED_BYTES_MAX {
            return None;
        }
        let (queued, answer) = QueuedChange::new((Arc::clone(&self.layout), change), answered);
        let is_further = SeenCommits::current().first_own != 0;
        if self.database.groups.push(is_further, || queued)? {
            self.database.begin_groups();
        }
        let database = Arc::clone(&self.database);
        Some(Box::pin(async move {
            let lost = || (Err(database.failure(&StatementError::Unknown)), None);
            answer.await.unwrap_or_else(lost)
        }))
    }
}

impl TableLayout {
    /// Returns a change with its row as the database stores it.
    pub(super) fn stored_change(&self, change: RowChange) -> Result<RowChange, Failure> {
        let change = match change {
            RowChange::Insert(row) => RowChange::Insert(self.schema.stored(row)?),
            RowChange::Upsert(row) => RowChange::Upsert(self.schema.stored(row)?),
            RowChange::Replace(key, row) => {
                let row = self.schema.replacement(&key, row)?;
                RowChange::Replace(key, row)
            }
            RowChange::Delete(key) => RowChange::Delete(key),
        };
        self.check_length(change.text_bytes())?;
        Ok(change)
    }

    /// Fails if a row with texts and byte strings of so many bytes is too long for a message.
    pub(super) fn check_length(&self, text_bytes: usize) -> Result<(), Failure> {
        match text_bytes > ROW_BYTES_MAX {
            true => Err(constraint::longer_than_a_row(&self.schema, ("PostgreSQL", "500,000,000"))),
            false => Ok(()),
        }
    }

    pub(super) fn change_parameters<'c>(&'c self, change: &'c RowChange) -> Vec<Bound<'c>> {
        let schema = &self.schema;
        match change {
            RowChange::Insert(row) => parameters(schema, given_columns(schema).into_iter(), fields(row)),
            RowChange::Upsert(row) => parameters(schema, 0..schema.columns.len(), fields(row)),
            RowChange::Replace(_, row) => {
                parameters(schema, schema.key.iter().copied().chain(columns_beside_key(schema)), fields(row))
            }
            RowChange::Delete(key) => key_parameters(schema, key),
        }
    }

    /// Returns the parameters of the statement that places a change ([`placed_sql`](TableLayout::placed_sql)).
    fn placed_parameters<'c>(&'c self, change: &'c RowChange) -> Vec<Bound<'c>> {
        match change {
            RowChange::Insert(row) => parameters(&self.schema, 0..self.schema.columns.len(), fields(row)),
            _ => self.change_parameters(change),
        }
    }

    /// Returns the statement that places a change, whose row has a number; `None` if it changes nothing.
    pub(super) fn placed_sql(&self, change: &RowChange) -> Option<&str> {
        match (change, &self.statements.insert_numbered) {
            (RowChange::Insert(_), Some(numbered)) => Some(&numbered.one),
            _ => self.change_sql(change),
        }
    }

    pub(super) fn publications(&self, change: &RowChange) -> Publications {
        let schema = &self.schema;
        match change {
            RowChange::Insert(_) if schema.auto && schema.existing.is_none() => {
                Publications::of_numbered(self.program, schema)
            }
            RowChange::Insert(_) if schema.auto => self.published(&[TableWrite::of_any(schema)]),
            _ => self.published(&[self.placed_write(change)]),
        }
    }

    /// Returns what a change writes whose row has a key.
    fn placed_write(&self, change: &RowChange) -> TableWrite {
        let schema = &self.schema;
        match change {
            RowChange::Insert(row) | RowChange::Upsert(row) => TableWrite::of_row(schema, &schema.key_of(fields(row))),
            RowChange::Replace(key, _) => TableWrite::of_replaced(schema, key),
            RowChange::Delete(key) => TableWrite::of_row(schema, key),
        }
    }

    /// Returns the statements of a change: its own, then those that publish it; `None` if it changes nothing.
    pub(super) fn change_statements<'c>(
        &'c self,
        change: &RowChange,
        parameters: &'c [Bound<'c>],
        published: &'c Publications,
    ) -> Option<Vec<SqlStatement<'c>>> {
        let own = SqlStatement::new(self.change_sql(change)?, parameters);
        Some(std::iter::once(own).chain(published.statements()).collect())
    }

    /// Returns the statement of a change; `None` if it changes nothing.
    pub(super) fn change_sql(&self, change: &RowChange) -> Option<&str> {
        Some(match change {
            RowChange::Insert(_) => &self.statements.insert,
            RowChange::Upsert(_) => &self.statements.upsert,
            RowChange::Replace(..) => self.replacement()?,
            RowChange::Delete(_) => &self.statements.delete,
        })
    }

    /// Returns the answer of a change from that of its own statement.
    pub(super) fn change_answer(&self, change: &RowChange, executed: Option<&Executed>) -> Result<Value, Failure> {
        let count = executed.map_or(0, |executed| executed.count);
        match change {
            RowChange::Insert(_) if self.schema.auto => {
                match executed.map(Executed::rows).transpose()?.and_then(<[_]>::first) {
                    // A view that somebody has put in the place of the table may tell no key.
                    Some(row) => row
                        .try_get::<_, Option<i64>>(0)
                        .map_err(|error| self.failure(&StatementError::from(error)))?
                        .map(Value::Int)
                        .ok_or_else(|| constraint::kept_out(&self.schema)),
                    None if self.may_interfere() => Err(constraint::kept_out(&self.schema)),
                    None => Err(constraint::no_number_given(&self.schema)),
                }
            }
            RowChange::Insert(row) if executed.is_some() && count == 0 => {
                Err(constraint::not_inserted(&self.schema, fields(row)))
            }
            RowChange::Upsert(row) if executed.is_some() && count == 0 && self.statements.replace.is_some() => {
                Err(constraint::not_inserted(&self.schema, fields(row)))
            }
            RowChange::Insert(row) | RowChange::Upsert(row) => Ok(self.schema.key_of(fields(row))),
            RowChange::Replace(_, row) => match executed {
                Some(_) if count == 0 => Err(constraint::not_replaced(&self.schema, fields(row))),
                // The statement has returned the row, because the database may have changed it.
                Some(executed) if !matches!(executed.rows(), Ok([])) => self.stored_row(executed),
                _ => Ok(row.clone()),
            },
            RowChange::Delete(_) => Ok(Value::Bool(count > 0)),
        }
    }

    /// Returns whether the answer of a change is a row that a trigger may have changed to one that cannot be read.
    pub(super) fn may_answer_unreadable_row(&self, change: &RowChange) -> bool {
        let answers_row = matches!(change, RowChange::Replace(..)) && self.reads_back();
        answers_row && self.schema.columns.iter().any(|column| matches!(&*column.kind, "Enum" | "Size"))
    }

    /// Returns the row that a change has stored.
    fn stored_row(&self, executed: &Executed) -> Result<Value, Failure> {
        let row = executed.rows()?.first().ok_or_else(|| Failure::function("the database has given no answer"))?;
        row_of(&self.schema, row, 0)
    }

    /// Returns the failure of a change. A broken rule is a failure that names it.
    pub(super) fn refused(&self, change: &RowChange, error: &StatementError) -> Failure {
        let row = match change {
            RowChange::Insert(row) | RowChange::Upsert(row) | RowChange::Replace(_, row) => fields(row),
            RowChange::Delete(_) => &[],
        };
        match error.broken_index() {
            Some((index, _)) if !row.is_empty() && self.schema.existing.is_none() => {
                let mut row = row.to_vec();
                if let (Some(number), [key]) = (self.taken_number(change, error), &self.schema.key[..]) {
                    row[*key] = Value::Int(number);
                }
                self.taken((index, error), &row)
            }
            // Another program has named the index.
            Some(_) if !row.is_empty() => {
                let key = error.broken_key();
                let columns = key.as_ref().and_then(|(columns, _)| self.columns_named(columns));
                if let (Some((_, number)), RowChange::Insert(_), true) = (&key, change, self.schema.auto)
                    && columns.as_ref() == Some(&self.schema.key)
                {
                    return constraint::number_taken(&self.schema, number);
                }
                columns.map_or_else(|| self.failure(error), |columns| constraint::taken(&self.schema, &columns, row))
            }
            _ => self.failure(error),
        }
    }
}
