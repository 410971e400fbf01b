//! Rows that an open transaction knows: nobody else writes them until it ends.
//!
//! * *The last number of a table* to which it has added a row. So its next rows have numbers before the database has executed their
//!   insertions, which can be placed.
//! * *Rows that it has written or read*, and not deleted since. So it needs not look for them before it writes rows that reference them.
//!
//! A trigger or foreign key may add and delete rows, too: if the schema has one that does, nothing is known. One that the program has not
//! noticed, or another program, may take a number. Then the transaction is executed again, and the database gives the numbers of the table
//! from then on.

use std::mem::take;

use foldhash::fast::RandomState;
use indexmap::IndexSet;
use weir::{Failure, Value};

use super::PostgresDatabase;
use super::errors::StatementError;
use super::expected_rows::RowOf;
use super::placed_change::SitedChange;
use super::table::PostgresTable;
use super::table_layout::TableLayout;
use crate::tables::row::fields;
use crate::tables::rows::RowChange;
use crate::tables::transaction_number::is_repeated;

/// Maximum number of existing rows that were noted last; as many before them are known, too. Chosen by judgement.
const LATEST_MAX: usize = 1_024;

/// The rows that the open transaction knows.
#[derive(Default)]
pub(super) struct TransactionRows {
    last_numbers: Vec<(usize, i64)>,
    /// The existing rows that were noted last.
    latest: IndexSet<RowOf, RandomState>,
    /// Existing rows that were noted before.
    earlier: IndexSet<RowOf, RandomState>,
}

impl TransactionRows {
    fn last_number(&self, table: &TableLayout) -> Option<i64> {
        self.last_numbers.iter().find(|(of, _)| *of == table.identity()).map(|(_, number)| *number)
    }

    fn note_number(&mut self, table: &TableLayout, number: i64) {
        match self.last_numbers.iter_mut().find(|(of, _)| *of == table.identity()) {
            Some((_, last)) => *last = (*last).max(number),
            None => self.last_numbers.push((table.identity(), number)),
        }
    }

    fn note_existing(&mut self, table: &TableLayout, row: impl FnOnce() -> RowOf) {
        if !table.schema.referenced_by.is_empty() && !table.may_interfere() {
            self.add_existing(row());
        }
    }

    fn add_existing(&mut self, row: RowOf) {
        if self.latest.len() >= LATEST_MAX {
            self.earlier = take(&mut self.latest);
        }
        self.latest.insert(row);
    }

    fn exists(&self, row: &RowOf) -> bool {
        self.latest.contains(row) || self.earlier.contains(row)
    }

    fn forget_existing(&mut self) {
        (self.latest, self.earlier) = Default::default();
    }

    /// Notes that a row is placed. Returns false if its number is not the next one.
    pub(super) fn place(&mut self, row: &RowOf, of: &SitedChange) -> bool {
        if let Some(number) = of.table.number_of(&of.change) {
            if self.last_number(&of.table).and_then(|last| last.checked_add(1)) != Some(number) {
                return false;
            }
            self.note_number(&of.table, number);
        }
        self.note_existing(&of.table, || row.clone());
        true
    }

    /// Notes a change that the database has answered by the key of the row.
    fn note_changed(&mut self, table: &TableLayout, change: &RowChange, key: &Value) {
        if table.may_interfere() {
            // It may have deleted any row.
            return self.forget_existing();
        }
        match (change, key) {
            (RowChange::Insert(_), Value::Int(number)) if table.schema.auto => self.note_number(table, *number),
            // The number that a program chooses may not be the last one.
            (RowChange::Upsert(_), Value::Int(number)) if self.last_number(table).is_some() => {
                self.note_number(table, *number);
            }
            _ => {}
        }
        self.note_existing(table, || table.row_of_key(key.clone()));
    }
}

impl TableLayout {
    /// Returns the number of a row that is inserted, if the table numbers its rows.
    pub(super) fn number_of(&self, change: &RowChange) -> Option<i64> {
        match (change, self.schema.auto, &*self.schema.key) {
            (RowChange::Insert(row), true, [key]) => match fields(row).get(*key) {
                Some(Value::Int(number)) => Some(*number),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the number of a new row that another row has, if that is why a statement was refused: something else has taken the number,
    /// such as a trigger, or another program behind the beginning of the transaction.
    pub(super) fn taken_number(&self, change: &RowChange, error: &StatementError) -> Option<i64> {
        let (columns, number) = error.broken_key()?;
        let is_key = self.columns_named(&columns)? == self.schema.key;
        let is_numbered = self.schema.auto && matches!(change, RowChange::Insert(_));
        (is_numbered && is_key && error.is_of_table(&self.schema.name)).then(|| number.parse().ok()).flatten()
    }
}

impl PostgresTable {
    /// Returns a change with the next number, if its row has one; `None` if the database has to give it.
    pub(super) fn with_next_number(&self, transaction: i64, change: RowChange) -> Option<RowChange> {
        match change {
            RowChange::Insert(row) if self.schema.auto => {
                let number = self.next_number(transaction)?;
                Some(RowChange::Insert(self.schema.renumbered(row, number)))
            }
            other => Some(other),
        }
    }

    /// Returns the number of the next row that a transaction inserts, if it knows it.
    pub(super) fn next_number(&self, transaction: i64) -> Option<i64> {
        let writer = self.database.writer.try_lock().filter(|_| !self.database.has_triggers())?;
        let last = (writer.transaction == transaction).then(|| writer.rows.last_number(&self.layout))?;
        last?.checked_add(1)
    }

    /// Returns whether a transaction knows that the row with a key exists.
    pub(super) fn knows_row(&self, transaction: i64, key: &Value) -> bool {
        if transaction == 0 || self.database.has_triggers() {
            return false;
        }
        let row = self.row_of_key(key.clone());
        let writer = self.database.writer.try_lock();
        writer.is_some_and(|writer| writer.transaction == transaction && writer.rows.exists(&row))
    }

    /// Notes that a transaction has found these rows.
    pub(super) fn note_found(&self, transaction: i64, keys: &[Value], found: &[Option<Value>]) {
        if transaction == 0 || self.schema.referenced_by.is_empty() {
            return;
        }
        let mut writer = self.database.writer.lock();
        if writer.transaction == transaction {
            let found = keys.iter().zip(found).filter(|(_, row)| row.is_some());
            found.for_each(|(key, _)| writer.rows.note_existing(&self.layout, || self.row_of_key(key.clone())));
        }
    }
}

impl PostgresDatabase {
    /// Returns the failure of a change. If another row has its number, its transaction is executed again: then it sees that row.
    pub(super) fn refused_change(
        &self,
        transaction: i64,
        (table, change): (&TableLayout, &RowChange),
        error: &StatementError,
    ) -> Failure {
        let failure = table.refused(change, error);
        if !is_repeated(transaction) || table.taken_number(change, error).is_none() {
            return failure;
        }
        let (mut writer, failure) = (self.writer.lock(), failure.refusal());
        if writer.transaction == transaction {
            writer.take_back();
        }
        writer.lose_number(transaction, failure.clone());
        failure
    }

    /// Notes the answer to a change of a transaction.
    pub(super) fn note_changed(&self, transaction: i64, (table, change): (&TableLayout, &RowChange), answer: &Value) {
        let key = match change {
            RowChange::Insert(_) | RowChange::Upsert(_) => answer,
            RowChange::Replace(key, _) => key,
            RowChange::Delete(_) => return,
        };
        let mut writer = self.writer.lock();
        if transaction == 0 || writer.transaction != transaction {
            return;
        }
        writer.rows.note_changed(table, change, key);
        let numbered = table.statements.insert_numbered.as_ref().map(|numbered| &numbered.one);
        let unprepared = writer.connection.as_ref().zip(numbered).filter(|(of, sql)| of.known(sql).is_none());
        if let Some((connection, sql)) = unprepared {
            connection.prepare_later(sql, &self.connector.io.handle);
        }
    }

    /// Forgets which rows exist, before a transaction deletes some.
    pub(super) fn forget_existing(&self) {
        self.writer.lock().rows.forget_existing();
    }

    /// Returns whether the schema has triggers or foreign keys, as far as the program has noticed.
    fn has_triggers(&self) -> bool {
        self.commits().is_some_and(|commits| commits.has_triggers())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_that_were_noted_last_are_known() {
        let mut rows = TransactionRows::default();
        let row = |number: usize| (1, Value::Int(number as i64));
        (0..3 * LATEST_MAX).for_each(|number| rows.add_existing(row(number)));
        assert!((2 * LATEST_MAX..3 * LATEST_MAX).all(|number| rows.exists(&row(number))));
        assert!(!rows.exists(&row(0)) && !rows.exists(&row(3 * LATEST_MAX)));
        rows.forget_existing();
        assert!(!rows.exists(&row(3 * LATEST_MAX - 1)));
    }
}
