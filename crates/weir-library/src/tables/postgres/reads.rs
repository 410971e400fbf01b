//! Statements that read and need no thread, on the connection of their event loop.

use std::num::NonZeroU64;
use std::sync::Arc;

use weir::{EarlierReads, Value};

use super::PostgresDatabase;
use super::connection::{Executed, SqlStatement};
use super::errors::StatementError;
use super::io::on_thread;
use super::pipelines::Pipeline;
use super::rows_by_keys::row_of;
use super::sent_statement::SentStatement;
use super::table::PostgresTable;
use crate::tables::read_notes::ReadNotes;
use crate::tables::rows::{SentRead, TableRead, TableRows};
use crate::tables::sql_value::key_parameters;

impl PostgresTable {
    /// Begins to read the row with a key; `None` if that needs a thread. Nothing is copied that only another attempt needs: this is
    /// the statement of most requests.
    pub(super) fn read_row_later(&self, of: TableRead, notes: Option<ReadNotes>) -> Option<SentRead> {
        let pipeline = self.database.read_pipeline()?;
        let prepared = pipeline.prepared_statement(&self.statements.get)?;
        let table = self.clone();
        let connection = pipeline.number();
        let answer = Box::pin(async move {
            let TableRead::Row(key) = &of else { return Err(table.database.failure(&StatementError::NoAnswer)) };
            let read = {
                let (sql, parameters) = (&table.statements.get, key_parameters(&table.schema, key));
                pipeline.read_row((sql, &prepared), &parameters, table.database.limit()).await
            };
            let found = match read {
                Ok(row) => row.map(|row| row_of(&table.schema, &row, 0)).transpose(),
                Err(error) if error.is_lost() => {
                    EarlierReads::answered().await;
                    // A thread may wait until there is a connection again.
                    let (io, again, key) = (table.database.connector.io.handle.clone(), table.clone(), key.clone());
                    let again = on_thread(&io, move || again.get(0, &key)).await;
                    again.unwrap_or_else(|| Err(table.database.failure(&StatementError::NoAnswer)))
                }
                Err(error) => Err(table.database.failure(&error)),
            };
            if let Some(notes) = notes {
                notes.note(&of, &table.database.connector.io.handle).await;
            }
            found.map(|row| row.map_or_else(Value::none, Value::some))
        });
        Some(SentRead { connection, answer })
    }
}

impl PostgresDatabase {
    /// Returns the connection of this event loop for statements that read, if it is there.
    fn read_pipeline(self: &Arc<Self>) -> Option<Arc<Pipeline>> {
        self.check().ok()?;
        let database = Arc::downgrade(self);
        let recovered = move || database.upgrade().map_or(Ok(()), |database| database.recovered());
        self.pipelines.of_this_loop(&self.connector, recovered)
    }

    /// Begins statements that read, all as the tables are at one moment, on the connection with this number; `None` if they need a
    /// thread.
    pub(super) fn read_later(
        self: &Arc<Self>,
        statements: &[SqlStatement<'_>],
    ) -> Option<(NonZeroU64, impl Future<Output = Result<Vec<Executed>, StatementError>> + Send + use<>)> {
        let pipeline = self.read_pipeline()?;
        let prepared = pipeline.prepared(statements)?;
        let connection = pipeline.number();
        let (sent, database) = (SentStatement::keep(statements, &prepared), Arc::clone(self));
        let executed = async move {
            let statements: Vec<SqlStatement<'_>> = sent.iter().map(SentStatement::again).collect();
            let read = pipeline.read(&statements, &prepared, database.limit()).await;
            if !read.as_ref().is_err_and(StatementError::is_lost) {
                return read;
            }
            drop(statements);
            EarlierReads::answered().await;
            // A thread may wait until there is a connection again.
            let io = database.connector.io.handle.clone();
            let again =
                on_thread(&io, move || database.read(0, &sent.iter().map(SentStatement::again).collect::<Vec<_>>()));
            again.await.unwrap_or(Err(StatementError::NoAnswer))
        };
        Some((connection, executed))
    }
}
