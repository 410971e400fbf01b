//! The syncs of the log of the server, each of which makes all commits durable that were executed before (`durability`).

use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Instant;

use tokio::time::timeout;
use weir::Failure;

use super::PostgresDatabase;
use super::connection::PostgresConnection;
use super::connector::{PostgresConnector, RECONNECT_PAUSE, RECONNECT_TIMEOUT};
use super::durability::UnsyncedCommits;
use super::errors::{StatementError, failure};
use super::io::{begin_task, wait};
use crate::tables::group_commit::{LogSync, SyncAnswer, SyncFailure, SyncWithoutThread};

/// A commit that waits for the disk. A transaction that writes nothing would not.
const SYNC: &str = "SELECT pg_logical_emit_message(true, 'weir', '')";

/// The connection for syncs; `None` if it has failed. Statements that read use it if the server has no connection for them.
pub(super) type SyncConnection = Arc<tokio::sync::Mutex<Option<PostgresConnection>>>;

/// The log of a database, and the connection for its syncs.
pub(super) struct PostgresLog {
    connection: SyncConnection,
    database: Weak<PostgresDatabase>,
    connector: PostgresConnector,
    unsynced: Arc<UnsyncedCommits>,
}

impl PostgresLog {
    /// Connects, before the first commit: as long as this connection lives, the database has not crashed.
    pub(super) fn open(database: &Arc<PostgresDatabase>) -> Result<PostgresLog, StatementError> {
        let (connector, unsynced) = (database.connector.clone(), Arc::clone(&database.unsynced));
        let connection = Arc::clone(&database.sync_connection);
        *wait(connector.limit(), connection.lock()).ok_or(StatementError::NoAnswer)? = Some(connector.connect()?);
        Ok(PostgresLog { connection, database: Arc::downgrade(database), connector, unsynced })
    }

    fn try_sync(&mut self) -> Result<Result<(), Failure>, StatementError> {
        let mut place = wait(self.connector.limit(), self.connection.lock()).ok_or(StatementError::NoAnswer)?;
        let open = place.take().filter(|connection| !connection.is_closed());
        let connection = match open {
            Some(open) => open,
            None => {
                let connection = self.connector.connect()?;
                // The writer has the same crash behind it, perhaps without knowing.
                if let Some(database) = self.database.upgrade() {
                    database.reconnect()?;
                }
                connection
            }
        };
        let last = self.unsynced.last();
        self.connector.answered(async { Ok(connection.command(SYNC).await?) })?;
        *place = Some(connection);
        if let Some(last) = last {
            self.unsynced.forget(last);
        }
        Ok(Ok(()))
    }

    /// Returns the syncs that need no thread.
    pub(super) fn without_thread(&self) -> PostgresSyncs {
        PostgresSyncs {
            connection: Arc::clone(&self.connection),
            connector: self.connector.clone(),
            unsynced: Arc::clone(&self.unsynced),
        }
    }
}

/// Syncs on the thread of connections. One that fails is made once more by a thread, which connects again.
pub(super) struct PostgresSyncs {
    connection: SyncConnection,
    connector: PostgresConnector,
    unsynced: Arc<UnsyncedCommits>,
}

impl SyncWithoutThread for PostgresSyncs {
    fn sync(&self) -> SyncAnswer {
        let (place, unsynced, limit) =
            (Arc::clone(&self.connection), Arc::clone(&self.unsynced), self.connector.limit());
        Box::pin(async move {
            let mut place = place.lock().await;
            let connection = place.take().ok_or(())?;
            let last = unsynced.last();
            let synced = timeout(limit, connection.command(SYNC)).await;
            let is_synced = matches!(synced, Ok(Ok(())));
            if synced.is_ok() {
                *place = Some(connection);
            }
            drop(place);
            if let Some(last) = last.filter(|_| is_synced) {
                unsynced.forget(last);
            }
            if is_synced { Ok(()) } else { Err(()) }
        })
    }

    fn spawn(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        begin_task(&self.connector.io.handle, task);
    }
}

impl LogSync for PostgresLog {
    fn sync(&mut self) -> Result<(), SyncFailure> {
        let deadline = Instant::now() + RECONNECT_TIMEOUT;
        loop {
            match self.try_sync() {
                Ok(synced) => return synced.map_err(|failure| SyncFailure { failure, is_final: true }),
                Err(error) if error.is_lost() && Instant::now() < deadline => std::thread::sleep(RECONNECT_PAUSE),
                Err(error) => {
                    let why = failure(&self.connector.address, &error);
                    let message = format!("{}; nobody knows whether what was written last is durable", why.message);
                    return Err(SyncFailure { failure: Failure::new(why.kind, message), is_final: false });
                }
            }
        }
    }
}
