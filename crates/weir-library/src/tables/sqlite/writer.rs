//! The connection that writes, and its open transaction.
//!
//! The statements and transactions of a program are executed as a *group*, which is one transaction of the database. It is
//! committed when somebody waits for one of them, or reads what one has written. A statement that fails takes back only
//! itself. A transaction of the program is a *member* of the group. If it is taken back, the group is taken back, executed again
//! without it (`group_log`), and committed, so that a statement is executed again once at most for the sake of others.
//!
//! The group cannot be committed while a member is open. Who waits for it gives the member a moment. Then the member is *set
//! apart*: the group is taken back, executed again without the member, and committed, and the statements of the member are executed
//! again in a transaction of the database that it has for itself. They have the same results, because nobody else has written
//! meanwhile. So a transaction that takes long holds up nobody but those that want to write.

mod execution_again;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use weir::SeenCommits;

use super::connection::{BUSY_TIMEOUT, HELD_TIMEOUT};
use super::database_error::{explain, is_busy, is_damage};
use super::existing_files::ExistingFiles;
use super::group_log::{GroupLog, Redo};
use super::held_read::HeldRead;
use super::lost_transaction::{LostTransaction, after_failure_of_disk, is_of_rule};
use super::partial_failures::{PartialFailures, whole};
use crate::tables::group_commit::GroupCommit;
use crate::tables::transaction_number::only_reads;

/// Maximum number of rows that a transaction, or a statement, writes as part of a group: what may have to be written again.
pub(super) const MEMBER_ROWS_MAX: usize = 256;
/// Maximum number of statements of a group before it is committed.
const GROUP_STATEMENTS_MAX: usize = 4_096;
/// The same in bytes of their rows, which the program holds until then. Chosen by judgement: half of what the cache of the connection
/// takes.
const GROUP_BYTES_MAX: usize = 8 << 20;

/// The connection that writes.
#[derive(Debug)]
pub(in crate::tables) struct Writer {
    pub(in crate::tables) connection: Connection,
    /// The number of the open transaction; 0 if there is none.
    pub(super) transaction: i64,
    /// The last transaction that was lost.
    lost: Option<LostTransaction>,
    /// The commits of the database; `None` if each is durable when it is executed, so that there are no groups.
    pub(in crate::tables) commits: Option<Arc<GroupCommit>>,
    /// The files of a database of other programs.
    pub(super) existing: Option<Arc<ExistingFiles>>,
    /// The number of the first commit of the open group, if one is open.
    pub(super) group: Option<u64>,
    /// The number of the commit that is being made, if it is one by itself.
    counted: Option<u64>,
    /// The number of rows that the open transaction has written, if it is a member of the group.
    pub(super) member_rows: Option<usize>,
    /// The statements of the group.
    log: GroupLog,
    /// The tables whose statements are executed behind a savepoint.
    partial_failures: PartialFailures,
    /// True if somebody has changed the schema, and with it perhaps the number in the database that the note of the log has.
    pub(super) has_new_schema: bool,
    /// The version of the data in the transaction of the database, if such statements are possible.
    version: i64,
    /// The transaction of reads, which is open only while no other is.
    held_read: HeldRead,
    /// True if somebody waits for the end of the group, so that nobody joins it any more.
    pub(super) is_group_due: bool,
    /// The time at which a statement has waited in vain for another program that writes the database, if none has succeeded since.
    pub(in crate::tables) waited_in_vain: Option<Instant>,
    /// True from the moment at which such a program was noticed to the next statement that waits for none.
    pub(super) is_waited_for: Arc<AtomicBool>,
}

impl Writer {
    pub(in crate::tables) fn new(connection: Connection) -> Writer {
        Writer {
            connection,
            transaction: 0,
            lost: None,
            commits: None,
            existing: None,
            group: None,
            counted: None,
            member_rows: None,
            log: GroupLog::default(),
            partial_failures: PartialFailures::default(),
            has_new_schema: false,
            version: 0,
            held_read: HeldRead::default(),
            is_group_due: false,
            waited_in_vain: None,
            is_waited_for: Arc::default(),
        }
    }

    /// Begins the transaction if it is not open, after taking back another one that was left unfinished. The number 0 stands for a
    /// statement that is none of a transaction.
    pub(in crate::tables) fn enter(&mut self, transaction: i64) -> rusqlite::Result<()> {
        self.check_lost(transaction)?;
        if transaction != 0 && self.transaction == transaction {
            return Ok(());
        }
        self.bound_wait();
        self.roll_back()?;
        self.end_full_group();
        self.begin_group()?;
        if transaction != 0 {
            match self.group {
                Some(_) => {
                    self.member_rows = Some(0);
                    self.log.begin_member();
                }
                None => self.begin()?,
            }
            self.transaction = transaction;
        }
        Ok(())
    }

    /// Fails if the transaction was lost.
    fn check_lost(&self, transaction: i64) -> rusqlite::Result<()> {
        let lost = self.lost.as_ref().filter(|lost| lost.number == transaction);
        lost.map_or(Ok(()), |lost| Err(lost.error()))
    }

    /// Enters a transaction that reads. It begins before its first read, so that all of them are of one moment, and nobody else writes
    /// between them and what it writes. One that only reads keeps nobody from writing, unless it may depend on an open group.
    pub(in crate::tables) fn enter_to_read(&mut self, transaction: i64) -> rusqlite::Result<()> {
        self.check_lost(transaction)?;
        if self.transaction == transaction || !only_reads(transaction) {
            return self.enter(transaction);
        }
        self.roll_back()?;
        self.end_full_group();
        if self.group.is_some() {
            return self.enter(transaction);
        }
        self.bound_wait();
        self.end_held_read()?;
        self.execute("BEGIN")?;
        self.transaction = transaction;
        Ok(())
    }

    /// Ends the group, and sets its open member apart, if a statement follows that writes so many rows that it takes long, or with
    /// which the member has written too many: readers see by then what the group has written, and need not wait for the statement.
    pub(in crate::tables) fn bound_group(&mut self, rows: usize) -> rusqlite::Result<()> {
        match self.member_rows {
            Some(written) if written.saturating_add(rows) > MEMBER_ROWS_MAX || self.log.bytes() > GROUP_BYTES_MAX => {
                self.set_apart()
            }
            None if self.transaction == 0 && rows > MEMBER_ROWS_MAX && self.log.len() > 0 => {
                self.commit_group()?;
                self.begin_group()
            }
            _ => Ok(()),
        }
    }

    /// Runs a statement on a table, which leaves nothing if it fails.
    pub(in crate::tables) fn run<T>(
        &self,
        table: &str,
        statement: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        // Nobody keeps others from adding triggers while no transaction is open.
        match self.connection.is_autocommit() || self.partial_failures.may_occur(table) {
            true => whole(&self.connection, || statement(&self.connection)),
            false => statement(&self.connection),
        }
    }

    fn begin_group(&mut self) -> rusqlite::Result<()> {
        if self.group.is_none()
            && let Some(commits) = self.commits.clone()
        {
            self.begin()?;
            self.group_begun(&commits);
        }
        Ok(())
    }

    /// Notes that a group is open, and has it end soon, also if nothing is executed in it: an open group keeps other programs from
    /// writing.
    fn group_begun(&mut self, commits: &Arc<GroupCommit>) {
        self.group = Some(commits.executed_count() + 1);
        commits.begin_sync();
    }

    /// Ends the open group if nobody joins it any more.
    fn end_full_group(&mut self) {
        let is_full = self.log.len() >= GROUP_STATEMENTS_MAX || self.log.bytes() > GROUP_BYTES_MAX;
        if self.is_group_due || is_full {
            // If the group is lost, its flows know.
            _ = self.end_group();
        }
    }

    /// Begins the group if none is open, and no other program writes the database. Returns whether one is open.
    pub(super) fn begins_group_at_once(&mut self) -> bool {
        if self.transaction != 0 {
            return true;
        }
        self.end_full_group();
        if self.group.is_some() {
            return true;
        }
        let (limit, commits) = (self.busy_timeout(), self.commits.clone());
        let begun = self.end_held_read().and_then(|()| {
            self.connection.busy_timeout(Duration::ZERO)?;
            let begun = self.begin_immediate();
            self.connection.busy_timeout(limit).and(begun)
        });
        match (&begun, commits) {
            (Ok(()), Some(commits)) => {
                self.group_begun(&commits);
                self.note_outcome(None);
            }
            (Err(error), _) if is_busy(error) => self.is_waited_for.store(true, Ordering::Relaxed),
            // The statement fails, too, and says why.
            _ => return true,
        }
        begun.is_ok()
    }

    /// Has the next statement wait no longer for another program than has passed since one has waited in vain. The flows wait for one
    /// another, so that without this each of them would wait for the program anew, and the last one for minutes.
    fn bound_wait(&self) {
        if self.waited_in_vain.is_some() {
            let set = self.connection.busy_timeout(self.busy_timeout());
            debug_assert!(set.is_ok(), "a connection takes any time limit");
        }
    }

    fn busy_timeout(&self) -> Duration {
        let passed = self.waited_in_vain.map_or(BUSY_TIMEOUT, |failed| failed.elapsed());
        passed.clamp(HELD_TIMEOUT, BUSY_TIMEOUT)
    }

    /// Has the next read, which is no part of a transaction, take no locks if reads are frequent. `end_later` has
    /// [`Writer::end_held_read`] be called.
    #[inline]
    pub(super) fn hold_read(&mut self, end_later: impl FnOnce() -> bool) -> rusqlite::Result<()> {
        debug_assert_eq!(self.transaction, 0, "a transaction reads by itself");
        if self.group.is_some() { Ok(()) } else { self.held_read.hold(&self.connection, end_later) }
    }

    /// Ends the transaction of reads, if it is open.
    pub(super) fn end_held_read(&mut self) -> rusqlite::Result<()> {
        self.held_read.end(&self.connection)
    }

    /// Begins a transaction of the database.
    fn begin(&mut self) -> rusqlite::Result<()> {
        self.check_existing()?;
        self.end_held_read()?;
        let begun = self.begin_immediate();
        self.note_outcome(begun.as_ref().err());
        begun
    }

    /// Fails if a file of a database of other programs was removed or replaced.
    fn check_existing(&self) -> rusqlite::Result<()> {
        self.existing.as_ref().map_or(Ok(()), |files| files.check())
    }

    fn begin_immediate(&mut self) -> rusqlite::Result<()> {
        self.execute("BEGIN IMMEDIATE")?;
        self.look_at_schema().inspect_err(|_| _ = self.connection.execute_batch("ROLLBACK"))
    }

    /// Looks for what may take back the transaction of the database that has just begun, or a part of it.
    fn look_at_schema(&mut self) -> rusqlite::Result<()> {
        self.has_new_schema |= self.partial_failures.look(&self.connection)?;
        if self.partial_failures.has_triggers() {
            self.commits.iter().for_each(|commits| commits.found_triggers());
        }
        if self.partial_failures.are_possible() {
            self.version = self.data_version()?;
        }
        Ok(())
    }

    /// Notes whether a statement has waited in vain for another program.
    fn note_outcome(&mut self, error: Option<&rusqlite::Error>) {
        let is_held = error.is_some_and(is_busy);
        if !is_held && self.is_waited_for.load(Ordering::Relaxed) {
            self.is_waited_for.store(false, Ordering::Relaxed);
        }
        if is_held || self.waited_in_vain.is_some() {
            self.waited_in_vain = is_held.then(Instant::now);
            let set = self.connection.busy_timeout(self.busy_timeout());
            debug_assert!(set.is_ok(), "a connection takes any time limit");
        }
    }

    fn execute(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute([]).map(|_| ())
    }

    /// Notes that a statement has succeeded, which has written at most these rows: one of the open transaction, or one that is none
    /// of a transaction, if the number is 0.
    pub(in crate::tables) fn executed(&mut self, transaction: i64, rows: usize, redo: impl FnOnce() -> Redo) {
        self.note_outcome(None);
        if transaction == 0 {
            self.commits.iter().for_each(|commits| commits.executed_in_group());
            if rows > MEMBER_ROWS_MAX {
                // If the group is lost, its flows know.
                _ = self.commit_group();
            } else if self.group.is_some() {
                self.log.push(redo);
            }
        } else if self.connection.is_autocommit() {
            self.refused(transaction, &after_failure_of_disk());
        } else if let Some(written) = &mut self.member_rows {
            *written = written.saturating_add(rows);
            self.log.push(redo);
        }
    }

    /// Notes that a statement has failed. An error with which the database takes back everything loses the open transaction. The
    /// group is lost, too, unless the error concerns this statement alone: a rule of the database has refused it, or it came to a
    /// damaged page. Then the others are executed again.
    pub(in crate::tables) fn refused(&mut self, transaction: i64, error: &rusqlite::Error) {
        self.note_outcome(Some(error));
        if is_damage(error) {
            self.leave_damaged();
        }
        if !self.connection.is_autocommit() {
            return;
        }
        let is_member = self.member_rows.take().is_some();
        if transaction != 0 {
            self.transaction = 0;
            self.lost = Some(LostTransaction::new(transaction, error));
        }
        if is_member {
            self.log.forget_member();
        }
        match transaction == 0 || is_member {
            true if is_of_rule(error) || is_damage(error) => self.execute_group_again(),
            true => self.lose_group(error),
            false => {}
        }
    }

    fn lose_group(&mut self, error: &rusqlite::Error) {
        self.log.clear();
        if let Some((first, commits)) = self.group.take().zip(self.commits.as_ref()) {
            // A commit that is counted, and fails, tells its flow itself.
            let last = self.counted.map_or_else(|| commits.executed_count(), |counted| counted - 1);
            commits.lose((first, last), self.failure(error));
        }
    }

    /// Commits the open group, if there is one, without its open member. If that fails, the flows fail that have written in it.
    pub(in crate::tables) fn end_group(&mut self) -> rusqlite::Result<()> {
        if self.member_rows.is_some() { self.set_apart() } else { self.commit_group() }
    }

    fn commit_group(&mut self) -> rusqlite::Result<()> {
        self.is_group_due = false;
        if self.group.is_none() {
            return Ok(());
        }
        self.execute("COMMIT").inspect_err(|error| self.lose_all(error))?;
        self.forget_group();
        Ok(())
    }

    /// Forgets the group, which is committed, or has no statements any more.
    fn forget_group(&mut self) {
        (self.group, self.is_group_due) = (None, false);
        self.log.clear();
        self.commits.iter().for_each(|commits| commits.group_executed());
    }

    /// Takes back everything that is not committed.
    fn lose_all(&mut self, error: &rusqlite::Error) {
        if !self.connection.is_autocommit() {
            _ = self.connection.execute_batch("ROLLBACK");
        }
        self.lose_group(error);
    }

    fn failure(&self, error: &rusqlite::Error) -> weir::Failure {
        explain(Path::new(self.connection.path().unwrap_or_default()), error)
    }

    /// Commits a transaction, if it is open.
    pub(super) fn commit(&mut self, transaction: i64) -> rusqlite::Result<()> {
        self.check_lost(transaction)?;
        if self.transaction != transaction {
            return Ok(());
        }
        self.transaction = 0;
        if let Some(written) = self.member_rows.take() {
            // One that has written nothing is lost with what others have written in the group.
            let is_commit = written > 0 || self.log.len() > 0;
            self.commits.iter().filter(|_| is_commit).for_each(|commits| commits.executed_in_group());
            return Ok(());
        }
        if only_reads(transaction) {
            return self.execute("COMMIT").inspect_err(|_| _ = self.connection.execute_batch("ROLLBACK"));
        }
        self.counted(|writer| {
            writer.execute("COMMIT").inspect_err(|_| _ = writer.connection.execute_batch("ROLLBACK"))
        })?;
        self.check_existing()
    }

    /// Makes a commit, which is counted before readers see it: they ask afterwards how many commits there were.
    fn counted(&mut self, commit: impl FnOnce(&mut Writer) -> rusqlite::Result<()>) -> rusqlite::Result<()> {
        let Some(commits) = self.commits.clone() else { return commit(self) };
        let number = commits.count();
        self.counted = Some(number);
        let committed = commit(self);
        self.counted = None;
        commits.group_executed();
        committed.inspect(|()| SeenCommits::wrote(number))
    }

    /// Commits a transaction, if it is open, and the group of which it is a member. It counts as a commit only then, so that a
    /// flow which handles the failure is not told again that its commit is lost.
    pub(super) fn commit_at_once(&mut self, transaction: i64) -> rusqlite::Result<()> {
        if self.transaction != transaction || self.member_rows.take().is_none() {
            return self.commit(transaction);
        }
        self.transaction = 0;
        self.counted(Writer::commit_group)
    }

    /// Takes back the open transaction, if there is one, and commits the open group.
    pub(super) fn be_idle(&mut self) -> rusqlite::Result<()> {
        self.end_held_read()?;
        self.roll_back()?;
        self.end_group()
    }

    /// Takes back the open transaction, if there is one.
    pub(in crate::tables) fn roll_back(&mut self) -> rusqlite::Result<()> {
        if std::mem::take(&mut self.transaction) == 0 {
            return Ok(());
        }
        if self.member_rows.take().is_some() { self.take_back_member() } else { self.execute("ROLLBACK") }
    }
}
