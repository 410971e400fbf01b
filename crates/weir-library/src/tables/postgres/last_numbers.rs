//! The last numbers of tables, as an open transaction knows them: it has inserted a row before, and nobody else inserts one until it
//! ends. So its next rows have numbers before the database has executed their insertions, which can be placed.

use weir::Value;

use super::PostgresDatabase;
use super::placed_change::SitedChange;
use super::table::PostgresTable;
use super::table_layout::TableLayout;
use crate::tables::row::fields;
use crate::tables::rows::RowChange;

/// The last numbers of the tables to which the open transaction has added rows.
#[derive(Default)]
pub(super) struct LastNumbers(Vec<(usize, i64)>);

impl LastNumbers {
    fn of(&self, table: &TableLayout) -> Option<i64> {
        self.0.iter().find(|(of, _)| *of == table.identity()).map(|(_, number)| *number)
    }

    /// Notes the number of a row that was inserted.
    fn note(&mut self, table: &TableLayout, number: i64) {
        match self.0.iter_mut().find(|(of, _)| *of == table.identity()) {
            Some((_, last)) => *last = (*last).max(number),
            None => self.0.push((table.identity(), number)),
        }
    }

    /// Notes that a row is placed. Returns false if its number is not the next one.
    pub(super) fn place(&mut self, of: &SitedChange) -> bool {
        let Some(number) = of.table.number_of(&of.change) else { return true };
        let is_next = self.of(&of.table).and_then(|last| last.checked_add(1)) == Some(number);
        if is_next {
            self.note(&of.table, number);
        }
        is_next
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
        let writer = self.database.writer.try_lock()?;
        let last = (writer.transaction == transaction).then(|| writer.last_numbers.of(&self.layout))?;
        last?.checked_add(1)
    }
}

impl PostgresDatabase {
    /// Notes the answer to a change, which is the number of a row if the table numbers them.
    pub(super) fn note_number(&self, transaction: i64, (table, change): (&TableLayout, &RowChange), answer: &Value) {
        let (Some(numbered), Value::Int(number)) = (&table.statements.insert_numbered, answer) else { return };
        let is_insertion = match change {
            RowChange::Insert(_) => true,
            RowChange::Upsert(_) => false,
            RowChange::Replace(..) | RowChange::Delete(_) => return,
        };
        let mut writer = self.writer.lock();
        if transaction == 0 || writer.transaction != transaction {
            return;
        }
        // The number that a program chooses may not be the last one.
        if is_insertion || writer.last_numbers.of(table).is_some() {
            writer.last_numbers.note(table, *number);
        }
        if let Some(connection) = writer.connection.as_ref().filter(|of| of.known(&numbered.one).is_none()) {
            connection.prepare_later(&numbered.one, &self.connector.io.handle);
        }
    }
}
