//! The connection that writes, and its open transaction.
//!
//! A transaction begins with the lock of `weir_database`, which its first statement waits for: so programs that share the
//! tables take turns. The lock is taken before the transaction has its snapshot (PostgreSQL, "Explicit Locking"), which
//! therefore has everything that was committed before. The snapshot lasts until the commit (`REPEATABLE READ`), so that the
//! server refuses a write of a row which another program that takes no turns has written meanwhile.
//!
//! A statement in a transaction has a savepoint: if the database refuses it, such as a row that breaks a rule, the program may
//! go on with the transaction. A *placed* statement has none: the transaction ends if it is refused (`placed_statements`).

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use weir::{Failure, FailureKind};

use super::beginning::{Beginning, PendingBegin, TransactionBegun, Turns};
use super::commit_marks::{CommitMark, CommitMarks};
use super::commit_numbers::CommitNumber;
use super::commit_outcome::{CommittedTransaction, commit_outcome};
use super::connection::{Executed, PostgresConnection, SqlStatement};
use super::errors::{StatementError, why_idle, why_lost};
use super::expected_rows::{ExpectedRows, RowOf};
use super::placed_statements::PlacedStatements;
use super::publications::{is_publication, without_publications};
use super::sent_statement::SentStatement;
use super::transaction_rows::TransactionRows;
use super::transaction_statements::{TransactionError, in_transaction};
use crate::tables::transaction_number::refused;

/// Maximum number of times that a transaction is tried.
pub(super) const ATTEMPTS_MAX: u32 = 8;
/// About the bytes of statements that an open transaction keeps in case that a crash of the server takes it back. Chosen by judgement:
/// to wait for the disk takes little longer than to write so much.
pub(super) const REDO_BYTES_MAX: usize = 8 << 20;
/// Has the commit of the transaction wait for the disk, as the database is set.
const WAIT_FOR_DISK: &str = "SET LOCAL synchronous_commit TO DEFAULT";
/// Time before the second attempt; before each further one twice as long.
const PAUSE: Duration = Duration::from_millis(2);

/// The connection that writes.
#[derive(Default)]
pub(super) struct PostgresWriter {
    /// The turns of its transactions.
    pub(super) turns: Turns,
    /// The connection; `None` before the first statement, and after it has failed.
    pub(super) connection: Option<Arc<PostgresConnection>>,
    /// The number of the open transaction; 0 if there is none.
    pub(super) transaction: i64,
    /// The number of the statement that waits for its answer without a thread; 0 if there is none. Others wait for that.
    pub(super) in_flight: u64,
    /// The number of statements that have waited so.
    pub(super) flights: u64,
    /// Its beginning, which was sent and whose answer nobody has taken yet.
    pub(super) begun: Option<PendingBegin>,
    /// True if it has asked for what it is about to read, and its flow has no answer of it.
    pub(super) is_unanswered: bool,
    /// True if a statement of it was sent that may write.
    has_written: bool,
    /// The rows that it has asked for.
    pub(super) expected: Arc<Mutex<ExpectedRows>>,
    /// The rows that it knows.
    pub(super) rows: TransactionRows,
    /// Its placed statements.
    pub(super) placed: Arc<Mutex<PlacedStatements>>,
    /// The number of the commit of the open transaction, if it will not wait for the disk.
    pub(super) unsynced: Option<CommitNumber>,
    /// The number of its commit, if that is counted.
    counted: Option<CommitNumber>,
    /// The mark of its commit, once that is about to be sent.
    mark: Option<CommitMark>,
    /// The marks of its commits; none in an existing database.
    pub(super) marks: Option<CommitMarks>,
    /// The statements with which the open transaction has written, if its commit will not wait for the disk.
    pub(super) redo: Vec<SentStatement>,
    /// About the bytes of these.
    redo_bytes: usize,
    /// True if the commit will wait for the disk although it is counted, because the statements are too large to be kept.
    waits_for_disk: bool,
    /// True if no program listens until the open transaction ends, so that it has nothing to publish.
    pub(super) is_unheard: bool,
    /// The number of the last transaction that was taken back, and why. It cannot go on.
    pub(super) lost: Option<(i64, Failure)>,
}

/// A transaction that has not waited for the disk: the number of its commit, and its statements.
pub(super) type UnsyncedTransaction = (CommitNumber, Vec<SentStatement>);

/// Waits before another attempt.
pub(super) fn pause(attempt: u32) {
    std::thread::sleep(PAUSE * 2_u32.pow(attempt.min(ATTEMPTS_MAX)));
}

impl PostgresWriter {
    /// Writes by this connection from now on. A transaction that was open on another one is taken back.
    pub(super) fn connect(&mut self, connection: PostgresConnection) -> &PostgresConnection {
        self.cut();
        self.connection.insert(Arc::new(connection))
    }

    /// Fails if the transaction was taken back. Takes back another one that was left unfinished.
    pub(super) async fn enter(&mut self, transaction: i64) -> Result<(), StatementError> {
        self.check(transaction)?;
        if self.transaction != 0 && self.transaction != transaction {
            self.roll_back().await;
        }
        if self.transaction != 0 && self.connection.as_ref().is_none_or(|connection| connection.is_closed()) {
            return Err(self.lose(self.why_ended(self.transaction)));
        }
        if self.transaction == transaction
            && let Some(begun) = self.begun.take()
        {
            match begun.await {
                Ok(begun) => self.note_begun(Some(begun)),
                // Nothing of it is done, and it can begin anew.
                Err(_) => self.take_back(),
            }
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
        // The connection may be a new one.
        self.check(transaction)?;
        self.placed_answered(transaction).await?;
        let Some(connection) = self.connection.clone() else { return Err(self.lose(why_lost(transaction))) };
        let begins = self.transaction == 0;
        let statements = if !begins && self.is_unheard { without_publications(statements) } else { statements };
        let prepared = match connection.prepare(statements).await {
            Ok(prepared) => prepared,
            Err(error) if begins => return Err(error.into()),
            Err(error) => return self.executed(transaction, begins, Err(TransactionError::Aborted(error))),
        };
        let begin = match begins {
            true => Some(Beginning::prepare(&connection, self.turns).await?.pending(&connection)),
            false => None,
        };
        self.begin(transaction);
        if !reads {
            self.note_write(None);
        }
        let (begun, executed) = in_transaction(&connection, (statements, &prepared), begin, reads).await;
        self.note_begun(begun);
        if executed.is_ok() && !reads {
            self.note_written(|| SentStatement::keep(statements, &prepared));
            self.note_unheard(statements, executed.as_deref().unwrap_or_default());
        }
        self.executed(transaction, begins, executed)
    }

    /// Notes that statements of a transaction are sent, which begin it if there is none.
    pub(super) fn begin(&mut self, transaction: i64) {
        if self.transaction == 0 {
            (self.unsynced, self.redo, self.is_unheard) = (None, Vec::new(), false);
            (self.redo_bytes, self.waits_for_disk) = (0, false);
            (self.has_written, self.counted, self.mark) = (false, None, None);
            self.forget_placed();
        }
        self.transaction = transaction;
        self.is_unanswered = false;
    }

    /// Notes that the open transaction is about to write a row; `None` stands for any rows.
    pub(super) fn note_write(&mut self, of: Option<&RowOf>) {
        self.has_written = true;
        self.is_unanswered = false;
        self.expected.lock().written(of);
    }

    /// Returns a transaction whose commit is about to be sent.
    pub(super) fn committing(&self, number: i64) -> CommittedTransaction {
        let (has_written, mark) = (self.has_written, self.mark);
        CommittedTransaction { number, has_written, mark, placed: Arc::clone(&self.placed) }
    }

    /// Notes how the transaction has begun, if it has.
    pub(super) fn note_begun(&mut self, begun: Option<TransactionBegun>) {
        if let Some(begun) = begun {
            (self.unsynced, self.counted) = (begun.unsynced, begun.unsynced);
            self.is_unheard = begun.is_unheard;
        }
    }

    /// Notes what the transaction has written, if it may have to be executed once more.
    pub(super) fn note_written(&mut self, sent: impl FnOnce() -> Vec<SentStatement>) {
        if self.unsynced.is_some() {
            let sent = sent();
            let bytes: usize = sent.iter().map(SentStatement::bytes).sum();
            self.redo_bytes += bytes;
            if self.redo_bytes > REDO_BYTES_MAX {
                (self.unsynced, self.waits_for_disk, self.redo) = (None, true, Vec::new());
                return;
            }
            self.redo.extend(sent);
        }
    }

    pub(super) fn note_unheard(&mut self, statements: &[SqlStatement<'_>], executed: &[Executed]) {
        let mut each = statements.iter().zip(executed);
        self.is_unheard |= each.any(|(of, done)| is_publication(of) && done.count == 0);
    }

    /// Goes on behind the answer of statements.
    pub(super) fn executed(
        &mut self,
        transaction: i64,
        began: bool,
        executed: Result<Vec<Executed>, TransactionError>,
    ) -> Result<Vec<Executed>, StatementError> {
        match executed {
            Ok(executed) => Ok(executed),
            Err(TransactionError::Refused(error, at)) => Err(StatementError::Database(error, at)),
            Err(TransactionError::Aborted(error)) => {
                let error = StatementError::from(self.expected.lock().cause(error));
                self.take_back();
                if error.has_been_idle() {
                    return Err(self.lose_number(transaction, why_idle()));
                }
                // Nothing of a transaction is done that has just begun, and it can begin anew.
                if !began {
                    let failure = match error.conflict() {
                        Some(cause) => why_conflict(transaction, cause),
                        None => self.why_ended(transaction),
                    };
                    self.lost = Some((transaction, failure));
                }
                Err(error)
            }
        }
    }

    /// Waits for the placed statements of a transaction. Fails if one was refused: then it is taken back.
    pub(super) async fn placed_answered(&mut self, transaction: i64) -> Result<(), StatementError> {
        if self.transaction != transaction {
            return Ok(());
        }
        let Err(refused) = PlacedStatements::answered(&self.placed).await else { return Ok(()) };
        self.take_back();
        Err(self.lose_number(transaction, refused))
    }

    /// Commits the transaction, if it has begun. Returns it, if it has not waited for the disk.
    pub(super) async fn commit(&mut self, transaction: i64) -> Result<Option<UnsyncedTransaction>, StatementError> {
        self.check(transaction)?;
        if self.transaction != transaction {
            return Ok(None);
        }
        if self.begun.is_some() {
            // It has executed nothing.
            self.take_back();
            return Ok(None);
        }
        let open = self.connection.clone().filter(|connection| !connection.is_closed());
        let Some(connection) = open else { return Err(self.lose(self.why_ended(transaction))) };
        let placed = Arc::clone(&self.placed);
        // The database takes it back instead if it has refused one.
        let committing = self.begin_commit(&connection);
        let (committed, _) = tokio::join!(biased; committing, PlacedStatements::answered(&placed));
        self.committed(transaction, committed)
    }

    /// Sends what the open transaction executes before its commit, which is sent when the result is first polled. Fails if it has
    /// not taken effect, unless the database has refused what was placed.
    pub(super) fn begin_commit(
        &mut self,
        connection: &Arc<PostgresConnection>,
    ) -> impl Future<Output = Result<(), tokio_postgres::Error>> + Send + use<> {
        self.placed.lock().send();
        if self.waits_for_disk {
            connection.send_command(WAIT_FOR_DISK);
        }
        let marks = self.marks.as_mut().filter(|_| self.has_written);
        self.mark = marks.map(|marks| marks.next(self.counted));
        let marking = self.marks.zip(self.mark).and_then(|(marks, mark)| marks.statement(mark));
        let connection = Arc::clone(connection);
        async move {
            let Some(marking) = marking else { return connection.command("COMMIT").await };
            let (marked, committed) = tokio::join!(biased; connection.command(&marking), connection.command("COMMIT"));
            // The database takes the transaction back instead if the mark was refused.
            marked.and(committed)
        }
    }

    /// Goes on behind the answer to a commit. Returns the transaction, if it has not waited for the disk.
    pub(super) fn committed(
        &mut self,
        transaction: i64,
        committed: Result<(), tokio_postgres::Error>,
    ) -> Result<Option<UnsyncedTransaction>, StatementError> {
        let of = self.committing(transaction);
        let unsynced = self.end();
        let outcome = commit_outcome(&of, committed);
        if let Err(StatementError::TakenBack(failure)) = &outcome {
            self.lost = Some((transaction, failure.clone()));
        }
        outcome.map(|()| unsynced)
    }

    /// Ends the open transaction, whose commit is sent. Returns it, if it does not wait for the disk.
    pub(super) fn end(&mut self) -> Option<UnsyncedTransaction> {
        self.transaction = 0;
        self.forget_placed();
        self.unsynced.take().map(|number| (number, std::mem::take(&mut self.redo)))
    }

    /// Takes back the open transaction, if there is one.
    pub(super) async fn roll_back(&mut self) {
        if self.transaction == 0 {
            return;
        }
        self.transaction = 0;
        self.forget_placed();
        let failed = match &self.connection {
            Some(connection) => connection.command("ROLLBACK").await.is_err(),
            None => false,
        };
        if failed {
            // The database takes it back when the connection ends.
            self.connection.take().into_iter().for_each(|connection| connection.abort());
        }
    }

    /// Takes back the open transaction, before what the connection executes next.
    pub(super) fn take_back(&mut self) {
        self.transaction = 0;
        self.forget_placed();
        if let Some(connection) = &self.connection {
            connection.send_command("ROLLBACK");
        }
    }

    /// Gives up the connection, on which a statement may still be executed.
    pub(super) fn cut(&mut self) {
        self.forget_placed();
        if self.transaction != 0 {
            self.lost = Some((self.transaction, self.why_ended(self.transaction)));
            self.transaction = 0;
        }
        self.connection.take().into_iter().for_each(|connection| connection.abort());
    }

    /// Forgets what the transaction has asked for and placed, and the rows that it knows. What is not sent is never sent.
    pub(super) fn forget_placed(&mut self) {
        (self.begun, self.placed, self.rows) = (None, Arc::default(), TransactionRows::default());
        self.expected = Arc::clone(&self.placed.lock().expected);
    }

    /// Returns the failure of a transaction whose connection was lost before its commit was sent.
    fn why_ended(&self, transaction: i64) -> Failure {
        let was_idle = self.connection.as_ref().is_some_and(|connection| connection.was_idle());
        if was_idle { why_idle() } else { why_lost(transaction) }
    }

    fn lose(&mut self, failure: Failure) -> StatementError {
        let transaction = std::mem::take(&mut self.transaction);
        self.begun = None;
        self.lose_number(transaction, failure)
    }

    pub(super) fn lose_number(&mut self, transaction: i64, failure: Failure) -> StatementError {
        self.lost = Some((transaction, failure.clone()));
        StatementError::TakenBack(failure)
    }
}

fn why_conflict(transaction: i64, cause: &str) -> Failure {
    let why = format!("the transaction was rolled back, because {cause}");
    refused(transaction, Failure::new(FailureKind::Conflict, why))
}
