//! Statements that read and need no thread, on the connection of their event loop.

use std::sync::Arc;

use super::PostgresDatabase;
use super::connection::{Executed, SqlStatement};
use super::errors::StatementError;
use super::sent_statement::SentStatement;

impl PostgresDatabase {
    /// Begins statements that read, all as the tables are at one moment; `None` if they need a thread.
    pub(super) fn read_later(
        self: &Arc<Self>,
        statements: &[SqlStatement<'_>],
    ) -> Option<impl Future<Output = Result<Vec<Executed>, StatementError>> + Send + use<>> {
        let database = Arc::downgrade(self);
        let recovered = move || database.upgrade().map_or(Ok(()), |database| database.recovered());
        let pipeline = self.pipelines.of_this_loop(&self.connector, recovered)?;
        let prepared = pipeline.prepared(statements)?;
        let (sent, database) = (SentStatement::keep(statements, &prepared), Arc::clone(self));
        Some(async move {
            let statements: Vec<SqlStatement<'_>> = sent.iter().map(SentStatement::again).collect();
            let read = pipeline.read(&statements, &prepared, database.limit()).await;
            if !read.as_ref().is_err_and(StatementError::is_lost) {
                return read;
            }
            drop(statements);
            // A thread may wait until there is a connection again.
            let io = database.connector.io.handle.clone();
            let again =
                io.spawn_blocking(move || database.read(0, &sent.iter().map(SentStatement::again).collect::<Vec<_>>()));
            again.await.unwrap_or(Err(StatementError::NoAnswer))
        })
    }
}
