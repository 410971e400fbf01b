//! Durability of commits in PostgreSQL: one sync of its log for all commits that were executed before.
//!
//! A program that is alone in its schema commits without waiting for the disk (`synchronous_commit=off`), so that the next
//! transaction can begin; a flow waits for the disk before its answer. The log is one sequence: a commit that waits for the
//! disk makes all commits before it durable. Such a commit, on a connection of its own, is a sync.
//!
//! *Other programs* would see rows that are not durable yet. Therefore each program holds a shared advisory lock while its writer
//! is connected. A transaction commits without waiting only if it gets that lock exclusively ([`BEGIN`]), which it does not
//! beside another program. A program that joins makes durable what is there ([`JOIN`]).
//!
//! *A crash of the database* loses the last commits that are not durable, and cuts all connections. The program executes them
//! once more, before anything else: nobody else has written meanwhile, so that they do the same. To tell what is lost, each
//! transaction that does not wait counts the commits in `weir_numbers`, under an empty name. The upper bits of that number count
//! the programs that have joined: if another one has joined since, it may have written, and the failure is final.

use std::sync::{Arc, Weak};
use std::time::Instant;

use parking_lot::Mutex;
use weir::Failure;

use super::PostgresDatabase;
use super::connection::PostgresConnection;
use super::connector::{PostgresConnector, RECONNECT_PAUSE, RECONNECT_TIMEOUT};
use super::errors::{StatementError, failure};
use super::redo::RedoStatement;
use crate::tables::group_commit::{LogSync, SyncFailure};

/// Begins a transaction that has its turn. The answer is the number of its commit if it will not wait for the disk, and empty beside
/// another program. The number of the lock is `Weir` in ASCII, and that of the table.
pub(super) const BEGIN: &str = "BEGIN ISOLATION LEVEL SERIALIZABLE; LOCK TABLE \"weir_database\" IN EXCLUSIVE MODE; \
    UPDATE \"weir_numbers\" SET \"last\" = \"last\" + 1 WHERE \"table\" = '' AND CASE \
    WHEN pg_try_advisory_xact_lock((1466263922::bigint << 32) | '\"weir_database\"'::regclass::oid::bigint) \
    THEN set_config('synchronous_commit', 'off', true) = 'off' ELSE false END RETURNING \"last\"";
/// Joins the programs of the schema: from now on, others wait for the disk. The last row of the answer is the number of the last
/// commit that has not waited.
const JOIN: &str = "SELECT pg_advisory_lock_shared((1466263922::bigint << 32) | '\"weir_database\"'::regclass::oid::bigint); \
    BEGIN; LOCK TABLE \"weir_database\" IN EXCLUSIVE MODE; \
    INSERT INTO \"weir_numbers\" VALUES ('', 0) ON CONFLICT DO NOTHING; \
    SELECT \"last\" FROM \"weir_numbers\" WHERE \"table\" = ''; \
    UPDATE \"weir_numbers\" SET \"last\" = (((\"last\" >> 40) + 1) << 40) | (\"last\" & 1099511627775) WHERE \"table\" = ''; \
    COMMIT";
/// Begins the transaction that executes lost ones once more. It waits for the disk.
const REDO: &str = "BEGIN ISOLATION LEVEL SERIALIZABLE; LOCK TABLE \"weir_database\" IN EXCLUSIVE MODE; \
    UPDATE \"weir_numbers\" SET \"last\" = \"last\" + 1 WHERE \"table\" = ''";
/// A commit that waits for the disk. A transaction that writes nothing would not.
const SYNC: &str = "SELECT pg_logical_emit_message(true, 'weir', '')";
/// The number of bits that count commits.
const COUNT_BITS: u32 = 40;
/// The number of commits after which a sync begins, even if nobody waits for it.
const UNSYNCED_MAX: usize = 1_000;

/// The number of a commit that does not wait for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CommitNumber(pub(super) i64);

impl CommitNumber {
    fn count(self) -> i64 {
        self.0 & ((1 << COUNT_BITS) - 1)
    }

    fn programs(self) -> i64 {
        self.0 >> COUNT_BITS
    }
}

/// The commits that may not be durable yet, in their order.
#[derive(Debug, Default)]
pub(super) struct UnsyncedCommits(Mutex<Vec<UnsyncedCommit>>);

#[derive(Debug)]
struct UnsyncedCommit {
    number: CommitNumber,
    statements: Vec<RedoStatement>,
}

impl UnsyncedCommits {
    /// Notes a commit. Returns whether a sync should begin.
    pub(super) fn note(&self, number: CommitNumber, statements: Vec<RedoStatement>) -> bool {
        let mut commits = self.0.lock();
        commits.push(UnsyncedCommit { number, statements });
        commits.len().is_multiple_of(UNSYNCED_MAX)
    }

    /// Returns whether everything is durable.
    pub(super) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    fn last(&self) -> Option<CommitNumber> {
        self.0.lock().last().map(|commit| commit.number)
    }

    /// Forgets the commits up to a number, which are durable.
    fn forget(&self, durable: CommitNumber) {
        self.0.lock().retain(|commit| commit.number.0 > durable.0);
    }
}

/// The fate of the commits that may not have been durable when the connection was lost.
enum Recovery {
    Whole,
    /// They cannot be executed once more.
    Lost,
}

/// Joins the programs of the schema, and executes once more what the database has lost.
pub(super) fn join(
    connection: &PostgresConnection,
    connector: &PostgresConnector,
    unsynced: &UnsyncedCommits,
) -> Result<Result<(), Failure>, StatementError> {
    let recovered = connector.answered(recover(connection, unsynced))?;
    Ok(match recovered {
        Recovery::Whole => Ok(()),
        Recovery::Lost => Err(Failure::function(format!(
            "the database {} has crashed, and has lost what was written last, before it was durable; restart the program",
            connector.address
        ))),
    })
}

async fn recover(connection: &PostgresConnection, unsynced: &UnsyncedCommits) -> Result<Recovery, StatementError> {
    let rows = connection.texts(JOIN).await?;
    let last = rows.last().and_then(|row| row.first()?.as_ref()?.parse().ok()).map_or(CommitNumber(0), CommitNumber);
    // The join has waited for the disk: what is there is durable.
    let lost: Vec<UnsyncedCommit> = {
        let mut commits = unsynced.0.lock();
        commits.retain(|commit| commit.number.count() > last.count());
        std::mem::take(&mut *commits)
    };
    let Some(first) = lost.first() else { return Ok(Recovery::Whole) };
    if first.number.programs() != last.programs() {
        return Ok(Recovery::Lost);
    }
    // All of them are one commit now.
    let number = CommitNumber(((last.programs() + 1) << COUNT_BITS | last.count()) + 1);
    let lost = UnsyncedCommit { number, statements: lost.into_iter().flat_map(|commit| commit.statements).collect() };
    let statements: Vec<&RedoStatement> = lost.statements.iter().collect();
    let redone = async {
        connection.command(REDO).await?;
        RedoStatement::execute(&statements, connection).await?;
        connection.command("COMMIT").await
    };
    match redone.await {
        Ok(()) => Ok(Recovery::Whole),
        Err(error) => {
            let error = StatementError::from(error);
            if !error.is_lost() {
                return Ok(Recovery::Lost);
            }
            // The next connection tries it again.
            unsynced.0.lock().push(lost);
            Err(error)
        }
    }
}

/// The log of a database, and the connection for its syncs.
pub(super) struct PostgresLog {
    connection: Option<PostgresConnection>,
    database: Weak<PostgresDatabase>,
    connector: PostgresConnector,
    unsynced: Arc<UnsyncedCommits>,
}

impl PostgresLog {
    /// Connects, before the first commit: as long as this connection lives, the database has not crashed.
    pub(super) fn open(database: &Arc<PostgresDatabase>) -> Result<PostgresLog, StatementError> {
        let (connector, unsynced) = (database.connector.clone(), Arc::clone(&database.unsynced));
        let connection = Some(connector.connect()?);
        Ok(PostgresLog { connection, database: Arc::downgrade(database), connector, unsynced })
    }

    fn try_sync(&mut self) -> Result<Result<(), Failure>, StatementError> {
        let open = self.connection.take().filter(|connection| !connection.is_closed());
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
        self.connection = Some(connection);
        if let Some(last) = last {
            self.unsynced.forget(last);
        }
        Ok(Ok(()))
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
