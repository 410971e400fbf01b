//! The connection that writes, and its open transaction.
//!
//! A transaction begins with the lock of `weir_database`, which its first statement waits for: so programs that share the
//! tables take turns. The lock is taken before the transaction has its snapshot (PostgreSQL, "Explicit Locking"), which
//! therefore has everything that was committed before. Transactions are `SERIALIZABLE`, so that those of other
//! programs, which take no turns, are noticed.
//!
//! A statement in a transaction has a savepoint: if the database refuses it, such as a row that breaks a rule, the program may
//! go on with the transaction.

use std::time::Duration;

use tokio_postgres::Statement;
use weir::{Failure, FailureKind};

use super::connection::{Executed, PostgresConnection, SqlStatement};
use super::durability::{COUNT_COMMIT, CommitNumber};
use super::errors::{StatementError, is_conflict, is_lost};
use super::publications::{is_publication, without_publications};
use super::sent_statement::SentStatement;

/// Begins a transaction when it is its turn.
const BEGIN: &str = "BEGIN ISOLATION LEVEL SERIALIZABLE; LOCK TABLE \"weir_database\" IN EXCLUSIVE MODE";
/// Begins a transaction in an existing database, whose programs take no turns.
const BEGIN_AT_ONCE: &str = "BEGIN ISOLATION LEVEL SERIALIZABLE";
/// Takes back a statement.
const TAKE_BACK: &str = "ROLLBACK TO SAVEPOINT statement; RELEASE SAVEPOINT statement";
/// Maximum number of times that a transaction is tried.
pub(super) const ATTEMPTS_MAX: u32 = 8;
/// Time before the second attempt; before each further one twice as long.
const PAUSE: Duration = Duration::from_millis(2);

/// The turns that programs take to write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Turns {
    /// One program after the other.
    #[default]
    Taken,
    /// None: the database is an existing one, whose other programs know nothing of turns.
    None,
}

/// The connection that writes.
#[derive(Default)]
pub(super) struct PostgresWriter {
    /// The turns of its transactions.
    pub(super) turns: Turns,
    /// The connection; `None` before the first statement, and after it has failed.
    pub(super) connection: Option<PostgresConnection>,
    /// The number of the open transaction; 0 if there is none.
    pub(super) transaction: i64,
    /// The number of the commit of the open transaction, if it will not wait for the disk.
    unsynced: Option<CommitNumber>,
    /// The statements with which the open transaction has written, in that case.
    pub(super) redo: Vec<SentStatement>,
    /// True if no program listens until the open transaction ends, so that it has nothing to publish.
    pub(super) is_unheard: bool,
    /// The number of the last transaction that was taken back, and why. It cannot go on.
    lost: Option<(i64, Failure)>,
}

/// A transaction that has not waited for the disk: the number of its commit, and its statements.
pub(super) type UnsyncedTransaction = (CommitNumber, Vec<SentStatement>);

/// Executes statements as one transaction, all or none. Also returns the transaction, if it has not waited for the disk.
pub(super) async fn execute_alone(
    (connection, turns): (&PostgresConnection, Turns),
    statements: &[SqlStatement<'_>],
) -> Result<(Vec<Executed>, Option<UnsyncedTransaction>), StatementError> {
    let prepared = connection.prepare(statements).await?;
    let beginning = Beginning::prepare(connection, turns).await?;
    let (began, executed, committed) = tokio::join!(
        biased;
        beginning.begin(connection),
        connection.execute(statements, &prepared),
        connection.command("COMMIT")
    );
    // All three are sent together: what comes back is no sign of what the database has done.
    let unsynced = began.map_err(|error| unknown_if_lost(error, 0))?;
    let executed = executed.map_err(|(at, error)| unknown_if_lost(error, at))?;
    committed.map_err(|error| unknown_if_lost(error, 0))?;
    Ok((executed, unsynced.map(|number| (number, SentStatement::keep(statements, &prepared)))))
}

/// The beginning of a transaction.
enum Beginning {
    /// It waits for its turn, and counts its commit by this statement.
    InTurn(Vec<Statement>),
    AtOnce,
}

impl Beginning {
    const COUNT: [SqlStatement<'static>; 1] = [SqlStatement { sql: COUNT_COMMIT, parameters: Vec::new() }];

    /// Prepares what the transaction executes first. Nothing is executed.
    async fn prepare(connection: &PostgresConnection, turns: Turns) -> Result<Beginning, tokio_postgres::Error> {
        match turns {
            Turns::Taken => Ok(Beginning::InTurn(connection.prepare(&Self::COUNT).await?)),
            Turns::None => Ok(Beginning::AtOnce),
        }
    }

    /// Begins the transaction. All is sent when this is first polled. Returns the number of its commit, if that will not wait for
    /// the disk.
    async fn begin(&self, connection: &PostgresConnection) -> Result<Option<CommitNumber>, tokio_postgres::Error> {
        let Beginning::InTurn(prepared) = self else {
            return connection.command(BEGIN_AT_ONCE).await.map(|()| None);
        };
        let count = Self::COUNT;
        let (began, counted) = tokio::join!(biased; connection.command(BEGIN), connection.execute(&count, prepared));
        began?;
        let counted = counted.map_err(|(_, error)| error)?;
        let row = counted.first().and_then(|counted| counted.rows.first());
        row.map(|row| row.try_get(0).map(CommitNumber)).transpose()
    }
}

/// Returns the error of a statement that may have been committed when the connection was lost.
fn unknown_if_lost(error: tokio_postgres::Error, at: usize) -> StatementError {
    if is_lost(&error) { StatementError::Unknown } else { StatementError::Database(error, at) }
}

/// Waits before another attempt.
pub(super) fn pause(attempt: u32) {
    std::thread::sleep(PAUSE * 2_u32.pow(attempt.min(ATTEMPTS_MAX)));
}

impl PostgresWriter {
    /// Writes by this connection from now on.
    pub(super) fn connect(&mut self, connection: PostgresConnection) -> &PostgresConnection {
        self.connection.insert(connection)
    }

    /// Fails if the transaction was taken back. Takes back another one that was left unfinished.
    pub(super) async fn enter(&mut self, transaction: i64) -> Result<(), StatementError> {
        self.check(transaction)?;
        if self.transaction != 0 && self.transaction != transaction {
            self.roll_back().await;
        }
        if self.transaction != 0 && self.connection.as_ref().is_none_or(PostgresConnection::is_closed) {
            return Err(self.lose(why_lost()));
        }
        Ok(())
    }

    /// Fails if the transaction was taken back.
    pub(super) fn check(&self, transaction: i64) -> Result<(), StatementError> {
        match &self.lost {
            Some((lost, failure)) if *lost == transaction && transaction != 0 => {
                Err(StatementError::TakenBack(failure.clone()))
            }
            _ => Ok(()),
        }
    }

    /// Executes statements in a transaction, all or none. The first ones begin it.
    pub(super) async fn execute(
        &mut self,
        transaction: i64,
        statements: &[SqlStatement<'_>],
        reads: bool,
    ) -> Result<Vec<Executed>, StatementError> {
        let Some(connection) = &self.connection else { return Err(self.lose(why_lost())) };
        let begins = self.transaction == 0;
        if begins {
            (self.unsynced, self.redo, self.is_unheard) = (None, Vec::new(), false);
        }
        let statements = if self.is_unheard { without_publications(statements) } else { statements };
        let mut unsynced = (self.unsynced, Vec::new());
        let begins_with = begins.then_some(self.turns);
        let executed = in_transaction(connection, statements, (begins_with, reads), &mut unsynced).await;
        self.unsynced = unsynced.0;
        self.redo.extend(unsynced.1);
        if begins && !matches!(executed, Err(TransactionError::NotBegun(_))) {
            self.transaction = transaction;
        }
        match executed {
            Ok(executed) => {
                let each = statements.iter().zip(&executed);
                self.is_unheard |= each.into_iter().any(|(of, done)| is_publication(of) && done.count == 0);
                Ok(executed)
            }
            Err(TransactionError::Refused(error, at)) => Err(StatementError::Database(error, at)),
            // Nothing of the transaction is done, and it can begin anew.
            Err(TransactionError::NotBegun(error)) => Err(error.into()),
            Err(TransactionError::Aborted(error)) if begins => {
                self.roll_back().await;
                Err(error.into())
            }
            Err(TransactionError::Aborted(error)) => {
                let error = StatementError::from(error);
                let failure = if error.is_conflict() { why_conflict() } else { why_lost() };
                self.transaction = transaction;
                self.roll_back().await;
                self.lost = Some((transaction, failure));
                Err(error)
            }
        }
    }

    /// Commits the transaction, if it has begun. Returns it, if it has not waited for the disk.
    pub(super) async fn commit(&mut self, transaction: i64) -> Result<Option<UnsyncedTransaction>, StatementError> {
        self.check(transaction)?;
        if self.transaction != transaction {
            return Ok(None);
        }
        self.transaction = 0;
        let open = self.connection.as_ref().filter(|connection| !connection.is_closed());
        let Some(connection) = open else { return Err(StatementError::TakenBack(why_lost())) };
        connection.command("COMMIT").await.map_err(|error| unknown_if_lost(error, 0))?;
        Ok(self.unsynced.take().map(|number| (number, std::mem::take(&mut self.redo))))
    }

    /// Takes back the open transaction, if there is one.
    pub(super) async fn roll_back(&mut self) {
        if self.transaction == 0 {
            return;
        }
        self.transaction = 0;
        let failed = match &self.connection {
            Some(connection) => connection.command("ROLLBACK").await.is_err(),
            None => false,
        };
        if failed {
            // The database takes it back when the connection ends.
            self.connection.take().into_iter().for_each(PostgresConnection::cut);
        }
    }

    /// Gives up the connection, on which a statement may still be executed.
    pub(super) fn cut(&mut self) {
        if self.transaction != 0 {
            self.lost = Some((self.transaction, why_lost()));
            self.transaction = 0;
        }
        self.connection.take().into_iter().for_each(PostgresConnection::cut);
    }

    fn lose(&mut self, failure: Failure) -> StatementError {
        self.lost = Some((self.transaction, failure.clone()));
        self.transaction = 0;
        StatementError::TakenBack(failure)
    }
}

/// An error of a statement in a transaction.
enum TransactionError {
    /// The transaction could not begin.
    NotBegun(tokio_postgres::Error),
    /// The statements were taken back, because the one at this place was refused. The transaction goes on.
    Refused(tokio_postgres::Error, usize),
    /// The transaction cannot go on.
    Aborted(tokio_postgres::Error),
}

/// Executes statements in a transaction. A statement that reads cannot be refused for a row, and needs no savepoint. If they begin
/// it, the number of `unsynced` is set if its commit will not wait for the disk; then the statements are added that were executed.
async fn in_transaction(
    connection: &PostgresConnection,
    statements: &[SqlStatement<'_>],
    (begins, reads): (Option<Turns>, bool),
    unsynced: &mut (Option<CommitNumber>, Vec<SentStatement>),
) -> Result<Vec<Executed>, TransactionError> {
    let prepared = match connection.prepare(statements).await {
        Ok(prepared) => prepared,
        Err(error) if begins.is_some() => return Err(TransactionError::NotBegun(error)),
        Err(error) => return Err(TransactionError::Aborted(error)),
    };
    let beginning = match begins {
        Some(turns) => Some(Beginning::prepare(connection, turns).await.map_err(TransactionError::NotBegun)?),
        None => None,
    };
    let command = async |wanted: bool, sql: &str| if wanted { connection.command(sql).await } else { Ok(()) };
    let (began, saved, executed, released) = tokio::join!(
        biased;
        async {
            match &beginning {
                Some(beginning) => beginning.begin(connection).await,
                None => Ok(unsynced.0),
            }
        },
        command(!reads, "SAVEPOINT statement"),
        connection.execute(statements, &prepared),
        command(!reads, "RELEASE SAVEPOINT statement")
    );
    let number = began.map_err(TransactionError::Aborted)?;
    saved.map_err(TransactionError::Aborted)?;
    match executed {
        Ok(executed) => {
            released.map_err(TransactionError::Aborted)?;
            let writes = number.is_some() && !reads;
            *unsynced = (number, if writes { SentStatement::keep(statements, &prepared) } else { Vec::new() });
            Ok(executed)
        }
        Err((_, error)) if reads || is_conflict(&error) => Err(TransactionError::Aborted(error)),
        Err((at, error)) => match connection.command(TAKE_BACK).await {
            Ok(()) => {
                unsynced.0 = number;
                Err(TransactionError::Refused(error, at))
            }
            Err(_) => Err(TransactionError::Aborted(error)),
        },
    }
}

fn why_lost() -> Failure {
    Failure::function("the transaction was taken back, because its connection to the database was lost")
}

fn why_conflict() -> Failure {
    Failure::new(
        FailureKind::Conflict,
        "the transaction was taken back, because another program has written the same rows",
    )
}
