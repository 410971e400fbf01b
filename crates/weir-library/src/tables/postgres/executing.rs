//! Statements and transactions of the database that a thread executes.

use std::sync::atomic::Ordering;

use weir::Failure;

use super::connecting::while_lost;
use super::connection::{Executed, PostgresConnection, SqlStatement};
use super::errors::StatementError;
use super::whole_transactions::execute_alone;
use super::writer::PostgresWriter;
use super::{PostgresDatabase, wait};
use crate::tables::transaction_number::{is_repeated, refused};

impl PostgresDatabase {
    /// Executes statements that write: in the transaction, or as one of their own if the number is 0; all or none. Changes of other
    /// flows that wait come before. Nobody queues another one meanwhile, because this flow holds the constraint of the database.
    pub(super) fn write(
        &self,
        transaction: i64,
        statements: &[SqlStatement<'_>],
    ) -> Result<Vec<Executed>, StatementError> {
        self.check()?;
        self.execute_in_turn(transaction, (statements, false))
    }

    /// Executes statements on the connection that writes. What is a transaction of its own, or begins one, is tried again as long as
    /// others hinder it, unless the whole transaction is executed again. One that is refused in the end cannot go on.
    fn execute_in_turn(
        &self,
        transaction: i64,
        (statements, reads): (&[SqlStatement<'_>], bool),
    ) -> Result<Vec<Executed>, StatementError> {
        self.groups.wait_idle();
        let mut writer = self.lock_writer();
        let ends = |error: &StatementError| {
            matches!(error, StatementError::TakenBack(_)) || (is_repeated(transaction) && error.is_conflict())
        };
        let executed = self.again_unless(ends, || self.execute(&mut writer, transaction, statements, reads));
        match executed {
            Err(error) if error.is_conflict() && transaction > 0 => {
                Err(writer.lose_number(transaction, refused(transaction, self.failure(&error))))
            }
            executed => self.refused_in(transaction, executed),
        }
    }

    /// Runs several statements that write, which take effect together or not at all: in the transaction, or as one of their
    /// own if the number is 0.
    pub(super) fn write_together<T>(
        &self,
        transaction: i64,
        statements: impl Fn(i64) -> Result<T, StatementError>,
    ) -> Result<T, StatementError> {
        if transaction != 0 {
            return self.in_savepoint(transaction, || statements(transaction));
        }
        // Each attempt is a transaction of its own.
        self.again_unless(
            |_| false,
            || {
                let number = self.own_transactions.fetch_sub(1, Ordering::Relaxed) - 1;
                let value = statements(number).inspect_err(|_| _ = self.roll_back(number))?;
                self.commit_once(number)?;
                Ok(value)
            },
        )
    }

    pub(super) fn in_savepoint<T>(
        &self,
        transaction: i64,
        statements: impl FnOnce() -> Result<T, StatementError>,
    ) -> Result<T, StatementError> {
        let command = |sql| {
            let command = [SqlStatement { sql, parameters: Vec::new() }];
            self.read(transaction, &command).map(|_| ())
        };
        command("SAVEPOINT rows")?;
        let before = self.writer.lock().redo.len();
        let value = statements();
        if value.is_err() {
            command("ROLLBACK TO SAVEPOINT rows")?;
            let mut writer = self.writer.lock();
            writer.redo.truncate(before);
            // The lock that keeps programs from listening may be one of those that were taken back.
            writer.is_unheard = false;
        }
        command("RELEASE SAVEPOINT rows")?;
        value
    }

    /// Executes statements that read, all as the tables are at one moment.
    pub(super) fn read(
        &self,
        transaction: i64,
        statements: &[SqlStatement<'_>],
    ) -> Result<Vec<Executed>, StatementError> {
        if transaction != 0 {
            return self.execute_in_turn(transaction, (statements, true));
        }
        while_lost(|| self.read_once(statements))
    }

    pub(super) fn read_once(&self, statements: &[SqlStatement<'_>]) -> Result<Vec<Executed>, StatementError> {
        self.check()?;
        let Some(reader) = self.take_reader()? else { return self.read_without_reader(statements) };
        let read = self.read_on(&reader, statements);
        let is_usable = !matches!(read, Err(StatementError::NoAnswer)) && !reader.is_closed();
        self.readers.put(is_usable.then_some(reader));
        read
    }

    /// Takes a connection that reads; `None` if there is none, because the server has no further connection.
    pub(super) fn take_reader(&self) -> Result<Option<PostgresConnection>, StatementError> {
        self.readers.take(self.limit(), &self.connector.spare, |permit| {
            let reader = self.connector.connect_on(&self.connector.io.handle, permit)?;
            self.recovered()?;
            Ok(reader)
        })
    }

    fn read_on(
        &self,
        connection: &PostgresConnection,
        statements: &[SqlStatement<'_>],
    ) -> Result<Vec<Executed>, StatementError> {
        self.answered(async {
            let prepared = connection.prepare(statements).await?;
            connection.read_at_one_moment(statements, &prepared).await
        })
    }

    /// Executes statements that read on a connection that is there for something else: the one that waits for the disk; in an existing
    /// database the one that writes, unless it has a transaction.
    fn read_without_reader(&self, statements: &[SqlStatement<'_>]) -> Result<Vec<Executed>, StatementError> {
        if let Some(group_commit) = self.group_commit.get() {
            let mut syncing = wait(self.limit(), self.sync_connection.lock()).ok_or(StatementError::NoAnswer)?;
            let Some(connection) = syncing.as_ref().filter(|connection| !connection.is_closed()) else {
                // A sync makes it anew.
                group_commit.begin_sync();
                return Err(StatementError::NoConnection);
            };
            let read = self.read_on(connection, statements);
            if matches!(read, Err(StatementError::NoAnswer)) {
                connection.abort();
                *syncing = None;
            }
            return read;
        }
        let _waiting = self.blocking.wait(statements);
        let mut writer = self.lock_writer();
        if writer.transaction != 0 {
            return Err(StatementError::NoConnection);
        }
        let read = self.read_on(self.connected(&mut writer)?, statements);
        if matches!(read, Err(StatementError::NoAnswer)) {
            writer.cut();
        }
        read
    }

    /// Executes once more what a crash of the database has taken back, which a connection that is new would not see.
    pub(super) fn recovered(&self) -> Result<(), StatementError> {
        match self.group_commit.get() {
            Some(group_commit) if !self.unsynced.is_empty() => wait(self.limit(), group_commit.settled())
                .map_or(Err(StatementError::NoAnswer), |settled| settled.map_err(StatementError::TakenBack)),
            _ => Ok(()),
        }
    }

    pub(super) fn execute(
        &self,
        writer: &mut PostgresWriter,
        transaction: i64,
        statements: &[SqlStatement<'_>],
        reads: bool,
    ) -> Result<Vec<Executed>, StatementError> {
        let _waiting = self.blocking.wait(statements);
        self.answered(writer.enter(transaction))?;
        let turns = writer.turns;
        let connection = self.connected(writer)?;
        let executed = match transaction {
            0 => self
                .answered(execute_alone((connection, turns), statements))
                .and_then(|(executed, unsynced)| self.committed(unsynced).map(|()| executed)),
            number => self.answered(writer.execute(number, statements, reads)),
        };
        if matches!(executed, Err(StatementError::NoAnswer)) {
            writer.cut();
        }
        executed
    }

    /// Commits a transaction. If that fails, nothing of it takes effect, unless the failure says that this is unknown.
    pub(super) fn commit(&self, transaction: i64) -> Result<(), Failure> {
        self.commit_once(transaction).map_err(|error| self.failure(&error))
    }

    pub(super) fn commit_once(&self, transaction: i64) -> Result<(), StatementError> {
        let mut writer = self.lock_writer();
        let committed = self.answered(writer.commit(transaction));
        if matches!(committed, Err(StatementError::NoAnswer)) {
            writer.cut();
        }
        let unanswered = self.unanswered(&committed);
        let noted = committed.and_then(|unsynced| self.committed(unsynced));
        drop(writer);
        let outcome = match unanswered {
            Some(commit) => wait(self.limit(), self.outcome(commit)).unwrap_or(Err(StatementError::Unknown)),
            None => noted,
        };
        self.await_placed_commits()?;
        self.refused_in(transaction, outcome)
    }

    /// Marks the error of a transaction that is executed again.
    pub(super) fn refused_in<T>(
        &self,
        transaction: i64,
        executed: Result<T, StatementError>,
    ) -> Result<T, StatementError> {
        executed.map_err(|error| match error.is_refusal() && is_repeated(transaction) {
            true => StatementError::TakenBack(self.failure(&error).refusal()),
            false => error,
        })
    }

    /// Takes back a transaction, if it is open. Fails if a placed statement was refused.
    pub(super) fn roll_back(&self, transaction: i64) -> Result<(), Failure> {
        if self.take_back(transaction) {
            return Ok(());
        }
        let mut writer = self.lock_writer();
        let placed = self.answered(writer.placed_answered(transaction));
        if writer.transaction == transaction && wait(self.limit(), writer.roll_back()).is_none() {
            writer.cut();
        }
        match placed.and_then(|()| writer.check(transaction)) {
            Err(StatementError::TakenBack(failure)) if failure.place().is_some() => Err(failure),
            _ => Ok(()),
        }
    }
}
