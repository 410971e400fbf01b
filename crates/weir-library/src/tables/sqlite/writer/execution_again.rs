//! The statements of a group are executed again: without a member that is set apart or taken back, or behind a statement with which the
//! database has taken back its transaction.

use super::Writer;
use crate::tables::sqlite::database_error::hindered;
use crate::tables::sqlite::lost_transaction::LostTransaction;
use crate::tables::transaction_number::only_reads;

impl Writer {
    /// Takes back the transaction of the database in which a statement, also one that reads, has come to a damaged page: SQLite then
    /// refuses everything else that it writes, and its commit.
    pub(super) fn leave_damaged(&mut self) {
        let writes = self.group.is_some() || (self.transaction != 0 && !only_reads(self.transaction));
        if !writes || self.connection.is_autocommit() {
            return;
        }
        // If it cannot be read, the group is not executed again.
        self.version = self.data_version().unwrap_or(i64::MIN);
        _ = self.connection.execute_batch("ROLLBACK");
    }

    /// Executes the group again, which the database has taken back with a statement that it has refused, and commits it, so that a
    /// statement is executed again once at most for the sake of others. If that fails, the group is lost.
    pub(super) fn execute_group_again(&mut self) {
        if self.group.is_none() {
            return;
        }
        let again = match self.log.len() {
            0 => Ok(()),
            _ => self
                .go_on(0, self.version)
                .and_then(|()| self.log.repeat(&self.connection))
                .and_then(|()| self.execute("COMMIT")),
        };
        match again {
            Ok(()) => self.forget_group(),
            Err(error) => self.lose_all(&error),
        }
    }

    /// Commits the group without its open member, which goes on as a transaction of the database. If that fails, the member is lost.
    pub(in crate::tables::sqlite) fn set_apart(&mut self) -> rusqlite::Result<()> {
        if self.member_rows.take().is_none() {
            return Ok(());
        }
        let transaction = std::mem::take(&mut self.transaction);
        let apart = self.data_version().and_then(|version| match self.commit_without_member(version)? {
            true => Ok(()),
            false => self.go_on(transaction, version).and_then(|()| self.log.repeat_member(&self.connection)),
        });
        match &apart {
            Ok(()) => {
                self.transaction = transaction;
                self.forget_group();
            }
            Err(error) => {
                self.lost = Some(LostTransaction::new(transaction, error));
                self.lose_all(error);
            }
        }
        apart
    }

    /// Commits what the group has before its member, and returns whether the transaction of the database is still open, because
    /// nothing is before it. Takes the version of the data in the group.
    fn commit_without_member(&mut self, version: i64) -> rusqlite::Result<bool> {
        if !self.log.has_statements_before() {
            return Ok(true);
        }
        if self.log.has_member_statements() {
            self.execute("ROLLBACK")?;
            self.go_on(0, version)?;
            self.log.repeat_before(&self.connection)?;
        }
        self.execute("COMMIT")?;
        // It is no longer lost if what follows fails.
        self.group = None;
        self.commits.iter().for_each(|commits| commits.group_executed());
        Ok(false)
    }

    /// Takes back what was a member of the group, which is committed if it has to be executed again. If that fails, the group is lost.
    pub(super) fn take_back_member(&mut self) -> rusqlite::Result<()> {
        if !self.log.has_member_statements() {
            return Ok(());
        }
        let taken_back = match self.log.has_statements_before() {
            true => self.data_version().and_then(|version| self.commit_without_member(version).map(|_| ())),
            false => self.execute("ROLLBACK"),
        };
        match &taken_back {
            Ok(()) => self.forget_group(),
            Err(error) => self.lose_all(error),
        }
        taken_back
    }

    /// Begins a transaction of the database in which one of the program, or a group if the number is 0, goes on. Fails if another program
    /// has written since this version of the data, which it has read.
    fn go_on(&mut self, transaction: i64, version: i64) -> rusqlite::Result<()> {
        if only_reads(transaction) { self.execute("BEGIN") } else { self.begin() }?;
        if self.data_version()? == version { Ok(()) } else { Err(hindered()) }
    }

    /// Returns the version of the data, which changes when another connection commits.
    pub(super) fn data_version(&self) -> rusqlite::Result<i64> {
        self.connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))
    }
}
