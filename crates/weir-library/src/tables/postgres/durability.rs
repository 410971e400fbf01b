//! Durability of commits in PostgreSQL: one sync of its log for all commits that were executed before.
//!
//! A program that is alone in its schema commits without waiting for the disk (`synchronous_commit=off`), so that the next
//! transaction can begin; a flow waits for the disk before its answer. The log is one sequence: a commit that waits for the
//! disk makes all commits before it durable. Such a commit, on a connection of its own, is a sync.
//!
//! *Other programs* would see rows that are not durable yet. Therefore each program holds a shared advisory lock while its writer
//! is connected. A transaction commits without waiting only if it gets that lock exclusively ([`BEGIN`]), which it does not
//! beside another program. A program that connects first makes durable what is there ([`JOIN`]).
//!
//! *A crash of the database* loses commits that are not durable, and cuts all connections. After the connection for syncs was
//! lost, a sync checks that the commits since the last sync are still there, by the numbers of their transactions. If one is
//! lost, flows may have seen what is not there any more. As nobody knows which, that failure is final.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use weir::Failure;

use super::connection::PostgresConnection;
use super::connector::PostgresConnector;
use super::errors::{StatementError, failure};
use super::{RECONNECT_PAUSE, RECONNECT_TIMEOUT};
use crate::tables::group_commit::{LogSync, SyncFailure};

/// Begins a transaction that has its turn. The answer is the number of the transaction if it commits without waiting for the disk,
/// and empty beside another program. The number of the lock is `Weir` in ASCII, and that of the table.
pub(super) const BEGIN: &str = "BEGIN ISOLATION LEVEL SERIALIZABLE; LOCK TABLE \"weir_database\" IN EXCLUSIVE MODE; \
    SELECT set_config('synchronous_commit', 'off', true), txid_current() \
    WHERE pg_try_advisory_xact_lock((1466263922::bigint << 32) | '\"weir_database\"'::regclass::oid::bigint)";
/// Joins the programs of the schema: from now on, others wait for the disk.
pub(super) const JOIN: &str =
    "SELECT pg_advisory_lock_shared((1466263922::bigint << 32) | '\"weir_database\"'::regclass::oid::bigint); \
     SELECT pg_logical_emit_message(true, 'weir', '')";
/// A commit that waits for the disk. A transaction that writes nothing would not.
const SYNC: &str = "SELECT pg_logical_emit_message(true, 'weir', '')";

/// The commits that may not be durable yet.
#[derive(Debug, Default)]
pub(super) struct UnsyncedCommits(Mutex<Vec<UnsyncedCommit>>);

/// The last of the commits of a connection.
#[derive(Clone, Copy, Debug)]
struct UnsyncedCommit {
    /// The number of the connection.
    connection: u64,
    /// The number of the transaction.
    transaction: i64,
}

impl UnsyncedCommits {
    /// Notes a commit. Those of a connection are one sequence in the log: its last one is there only if all are.
    pub(super) fn note(&self, connection: u64, transaction: i64) {
        let commit = UnsyncedCommit { connection, transaction };
        let mut commits = self.0.lock();
        match commits.last_mut() {
            Some(last) if last.connection == connection => *last = commit,
            _ => commits.push(commit),
        }
    }

    fn all(&self) -> Vec<UnsyncedCommit> {
        self.0.lock().clone()
    }

    /// Forgets these commits, which are durable.
    fn forget(&self, durable: &[UnsyncedCommit]) {
        let is_durable = |commit: &UnsyncedCommit| durable.iter().any(|one| one.transaction == commit.transaction);
        self.0.lock().retain(|commit| !is_durable(commit));
    }
}

/// The log of a database, and the connection for its syncs.
pub(super) struct PostgresLog {
    connector: PostgresConnector,
    connection: Option<PostgresConnection>,
    unsynced: Arc<UnsyncedCommits>,
}

impl PostgresLog {
    /// Connects, before the first commit: as long as this connection lives, the database has not crashed.
    pub(super) fn open(
        connector: PostgresConnector,
        unsynced: Arc<UnsyncedCommits>,
    ) -> Result<PostgresLog, StatementError> {
        let connection = Some(connector.connect()?);
        Ok(PostgresLog { connector, connection, unsynced })
    }

    fn try_sync(&mut self) -> Result<Result<(), Failure>, StatementError> {
        let unsynced = self.unsynced.all();
        let open = self.connection.take().filter(|connection| !connection.is_closed());
        let connection = match open {
            Some(open) => open,
            None => {
                let connection = self.connector.connect()?;
                if let Some(lost) = self.lost(&connection, &unsynced)? {
                    return Ok(Err(lost));
                }
                connection
            }
        };
        self.connector.answered(async { Ok(connection.command(SYNC).await?) })?;
        self.connection = Some(connection);
        self.unsynced.forget(&unsynced);
        Ok(Ok(()))
    }

    /// Returns the failure if the database has lost one of these commits.
    fn lost(
        &self,
        connection: &PostgresConnection,
        unsynced: &[UnsyncedCommit],
    ) -> Result<Option<Failure>, StatementError> {
        if unsynced.is_empty() {
            return Ok(None);
        }
        let statuses = unsynced.iter().map(|commit| format!("txid_status({}) = 'committed'", commit.transaction));
        let sql = format!("SELECT {}", statuses.collect::<Vec<_>>().join(" AND "));
        let rows = self.connector.answered(async { Ok(connection.texts(&sql).await?) })?;
        let are_there = rows.first().and_then(|row| row.first()?.as_deref()) == Some("t");
        Ok((!are_there).then(|| {
            Failure::function(format!(
                "the database {} has crashed, and has lost what was written last, before it was durable; restart the program",
                self.connector.address
            ))
        }))
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
