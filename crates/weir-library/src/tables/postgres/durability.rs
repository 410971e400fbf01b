//! Durability of commits in PostgreSQL: one sync of its log for all commits that were executed before.
//!
//! A program that is alone in its schema commits without waiting for the disk (`synchronous_commit=off`), so that the next
//! transaction can begin; a flow waits for the disk before its answer. The log is one sequence: a commit that waits for the
//! disk makes all commits before it durable. Such a commit, on a connection of its own, is a sync.
//!
//! *Other programs* would see rows that are not durable yet. Therefore each program holds a shared advisory lock while its writer
//! is connected. A transaction commits without waiting only if it gets that lock exclusively ([`COUNT_COMMIT`](super::commit_numbers::COUNT_COMMIT)), which it does not
//! beside another program. A program that joins makes durable what is there ([`JOIN`]).
//!
//! *A crash of the database* loses the last commits that are not durable, and cuts all connections. The program executes them
//! once more, before anything else: no other program of the schema has written meanwhile, so that they do the same. Others, such as
//! `psql`, may have: if one has written a table of theirs since the crash, they are not executed (`writes_since_crash`). To tell what is lost, each
//! transaction that does not wait counts the commits in `weir_numbers`, under an empty name. The upper bits of that number count
//! the programs that have joined: if another one has joined since, it may have written, and the failure is final. It may also have
//! counted commits, so each join notes how many it has found. A connection may be lost before the answer to a join, so that the program
//! joins once more: each notes which program has joined last.
//!
//! A commit that has been answered is noted here before the program can join once more, which needs the lock of the writer: flows that
//! wait for an answer hold it, or are in flight, or have placed their commit. If one is not noted in time, its flow is told that
//! nobody knows whether it has taken effect; it is not executed once more over what was written since. The join also tells the outcomes of
//! commits whose connection was lost before their answer (`unanswered_commits`).

use std::hash::{BuildHasher, Hasher, RandomState};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::time::timeout;
use weir::Failure;

use super::PostgresDatabase;
use super::commit_marks::{CommitMark, CommitMarks, CommitsAtJoin, row_of};
use super::commit_numbers::{COUNT_BITS, CommitNumber};
use super::connection::PostgresConnection;
use super::connector::{PostgresConnector, RECONNECT_PAUSE, RECONNECT_TIMEOUT};
use super::errors::{StatementError, failure};
use super::io::{begin_task, wait};
use super::sent_statement::SentStatement;
use super::unanswered_commits::{UnansweredCommit, UnansweredCommits};
use super::writes_since_crash::WritesSinceCrash;
use crate::tables::group_commit::{LogSync, SyncAnswer, SyncFailure, SyncWithoutThread};

/// Takes the lock of programs that have joined: from now on, others wait for the disk. The rows of joins long ago are deleted, and those in
/// which programs count commits that have joined then: one that still runs does not learn by them what a lost connection has done.
const JOIN: &str = "SELECT pg_advisory_lock_shared((1466263922::bigint << 32) | '\"weir_database\"'::regclass::oid::bigint); \
    BEGIN; LOCK TABLE \"weir_database\" IN EXCLUSIVE MODE; \
    INSERT INTO \"weir_numbers\" VALUES ('', 0) ON CONFLICT DO NOTHING; \
    SELECT \"last\", (SELECT \"last\" FROM \"weir_numbers\" WHERE \"table\" = 'JOINED'), \
    (SELECT \"last\" FROM \"weir_numbers\" WHERE \"table\" = 'MARKED'), \
    (SELECT string_agg(\"last\"::text, ' ') FROM \"weir_numbers\" WHERE \"table\" LIKE ' join %') FROM \"weir_numbers\" WHERE \"table\" = ''; \
    UPDATE \"weir_numbers\" SET \"last\" = (((\"last\" >> 40) + 1) << 40) | (\"last\" & 1099511627775) WHERE \"table\" = ''; \
    DELETE FROM \"weir_numbers\" WHERE \"table\" LIKE ' joined %'; \
    INSERT INTO \"weir_numbers\" SELECT 'JOINED', \"last\" >> 40 FROM \"weir_numbers\" WHERE \"table\" = ''; \
    INSERT INTO \"weir_numbers\" SELECT 'MARKED', (\"last\" >> 40) << 40 FROM \"weir_numbers\" WHERE \"table\" = '' ON CONFLICT DO NOTHING; \
    INSERT INTO \"weir_numbers\" SELECT ' join ' || (\"last\" >> 40), \"last\" FROM \"weir_numbers\" WHERE \"table\" = ''; \
    DELETE FROM \"weir_numbers\" WHERE (\"table\" LIKE ' commits %' OR \"table\" LIKE ' join %') \
    AND (\"last\" >> 40) < (SELECT (\"last\" >> 40) - 1024 FROM \"weir_numbers\" WHERE \"table\" = ''); \
    COMMIT";
/// Begins the transaction that executes lost ones once more. It waits for the disk.
const REDO: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ; LOCK TABLE \"weir_database\" IN EXCLUSIVE MODE; \
    UPDATE \"weir_numbers\" SET \"last\" = \"last\" + 1 WHERE \"table\" = ''";
/// A commit that waits for the disk. A transaction that writes nothing would not.
const SYNC: &str = "SELECT pg_logical_emit_message(true, 'weir', '')";
/// The number of commits after which a sync begins, even if nobody waits for it.
const UNSYNCED_MAX: usize = 1_000;

/// The commits that may not be durable yet.
#[derive(Debug)]
pub(super) struct UnsyncedCommits {
    noted: Mutex<NotedCommits>,
    /// The number by which the program knows its own joins.
    pub(super) program: u64,
}

impl Default for UnsyncedCommits {
    fn default() -> UnsyncedCommits {
        // Another random number for each state.
        UnsyncedCommits { noted: Mutex::default(), program: RandomState::new().build_hasher().finish() }
    }
}

#[derive(Debug, Default)]
struct NotedCommits {
    /// In their order.
    commits: Vec<UnsyncedCommit>,
    /// The last commit that the database had when this program joined last.
    joined: Option<CommitNumber>,
    /// The commits without an answer.
    unanswered: UnansweredCommits,
}

/// The fate of a commit that was to be noted.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotedCommit {
    /// It is noted, or durable.
    Kept,
    /// It is noted, and a sync should begin.
    Due,
    /// The program has joined once more before, and the database may have lost it.
    Lost,
}

#[derive(Debug)]
struct UnsyncedCommit {
    number: CommitNumber,
    statements: Vec<SentStatement>,
}

impl UnsyncedCommits {
    /// Notes a commit.
    pub(super) fn note(&self, number: CommitNumber, statements: Vec<SentStatement>) -> NotedCommit {
        let mut noted = self.noted.lock();
        if let Some(joined) = noted.joined.filter(|joined| number.programs() <= joined.programs()) {
            // To execute it later would overwrite what was written since.
            let is_durable = number.programs() == joined.programs() && number.count() <= joined.count();
            return if is_durable { NotedCommit::Kept } else { NotedCommit::Lost };
        }
        // Several tasks note commits.
        let at = noted.commits.partition_point(|commit| commit.number.0 < number.0);
        noted.commits.insert(at, UnsyncedCommit { number, statements });
        if noted.commits.len().is_multiple_of(UNSYNCED_MAX) { NotedCommit::Due } else { NotedCommit::Kept }
    }

    /// Returns the marks of the commits that follow.
    pub(super) fn marks(&self) -> CommitMarks {
        let joined = self.noted.lock().joined.unwrap_or(CommitNumber(0));
        CommitMarks::new(self.program, joined.programs() + 1)
    }

    /// Returns a commit without an answer, whose outcome the next join tells.
    pub(super) fn note_unanswered(&self, mark: CommitMark) -> UnansweredCommit {
        let mut noted = self.noted.lock();
        match noted.joined.filter(|joined| mark.programs() <= joined.programs()) {
            None => noted.unanswered.add(mark),
            // The program has joined before, and has made other commits since.
            Some(_) => UnansweredCommit::unknown(),
        }
    }

    /// Tells that nobody knows the outcomes of commits without answers, because this program does not join again.
    pub(super) fn forget_unanswered(&self) {
        self.noted.lock().unanswered.forget();
    }

    /// Returns whether everything is durable.
    pub(super) fn is_empty(&self) -> bool {
        self.noted.lock().commits.is_empty()
    }

    pub(super) fn last(&self) -> Option<CommitNumber> {
        self.noted.lock().commits.last().map(|commit| commit.number)
    }

    /// Forgets the commits up to a number, which are durable.
    pub(super) fn forget(&self, durable: CommitNumber) {
        self.noted.lock().commits.retain(|commit| commit.number.0 > durable.0);
    }
}

/// The fate of the commits that may not have been durable when the connection was lost.
enum Recovery {
    Whole,
    /// They cannot be executed once more, for this reason.
    Lost(String),
}

/// Joins the programs of the schema, and executes once more what the database has lost.
pub(super) fn join(
    connection: &PostgresConnection,
    connector: &PostgresConnector,
    unsynced: &UnsyncedCommits,
) -> Result<Result<(), Failure>, StatementError> {
    let recovered = connector.answered(recover(connection, connector, unsynced))?;
    Ok(match recovered {
        Recovery::Whole => Ok(()),
        Recovery::Lost(why) => Err(Failure::function(format!(
            "the database {} has crashed, and has lost what was written last, before it was durable; it cannot be executed once more, \
             because {why}; start the program again",
            connector.address
        ))),
    })
}

async fn recover(
    connection: &PostgresConnection,
    connector: &PostgresConnector,
    unsynced: &UnsyncedCommits,
) -> Result<Recovery, StatementError> {
    let joined = format!(" joined {:016x}", unsynced.program);
    let join = JOIN.replace("JOINED", &joined).replace("MARKED", &row_of(unsynced.program));
    let rows = connection.texts(&join).await?;
    let text = |column: usize| rows.last().and_then(|row| row.get(column)?.as_deref());
    let number = |column: usize| text(column).and_then(|text| text.parse().ok());
    let (last, own_join) = (number(0).map_or(CommitNumber(0), CommitNumber), number(1));
    let marked = number(2).map(CommitNumber);
    unsynced.noted.lock().unanswered.tell(CommitsAtJoin { last, own_join, marked });
    let joins: Vec<CommitNumber> =
        text(3).unwrap_or_default().split(' ').filter_map(|join| join.parse().ok()).map(CommitNumber).collect();
    let Some(lost) = LostCommits::take(unsynced, last, &joins) else { return Ok(Recovery::Whole) };
    let is_own_join = own_join == Some(last.programs()) && last.programs() == lost.of_programs + 1;
    let why = match lost.of_programs == last.programs() || is_own_join {
        false => Some("another program was started since"),
        true => (!lost.is_whole).then_some("nobody knows how one of the statements has ended"),
    };
    if let Some(why) = why {
        lost.forget();
        return Ok(Recovery::Lost(why.to_owned()));
    }
    let statements: Vec<&SentStatement> = lost.commit.statements.iter().collect();
    let redone = async {
        let writes = WritesSinceCrash::find(connection).await?;
        connection.command(REDO).await?;
        if let Some(table) = writes.first_table(&statements, connection).await? {
            connection.command("ROLLBACK").await?;
            return Ok(Some(table));
        }
        SentStatement::execute(&statements, connection).await?;
        connection.command("COMMIT").await?;
        Ok(None)
    };
    let redone: Result<Option<String>, tokio_postgres::Error> = redone.await;
    match redone.map_err(StatementError::from) {
        Ok(written) => {
            lost.forget();
            Ok(written.map_or(Recovery::Whole, |table| {
                Recovery::Lost(format!("another program, such as `psql`, has written `{table}` since"))
            }))
        }
        // The next connection tries it again.
        Err(error) if error.is_lost() => Err(error),
        Err(error) => {
            lost.forget();
            Ok(Recovery::Lost(failure(&connector.address, &error).message.to_string()))
        }
    }
}

/// Commits that the database has lost, as one commit. They are noted again unless they are forgotten, also if nobody waits any
/// longer until they have been executed once more: the next connection finds them.
struct LostCommits<'a> {
    commit: UnsyncedCommit,
    /// The number of programs that had joined when they were executed.
    of_programs: i64,
    /// False if one of them was not noted, without which the others must not be executed.
    is_whole: bool,
    unsynced: &'a UnsyncedCommits,
}

impl<'a> LostCommits<'a> {
    /// Takes the commits that the database does not have; `None` if there are none. A program that joins waits for the disk: what the
    /// database has is durable. `joins` are the numbers of the last commits that programs have found when they joined.
    fn take(unsynced: &'a UnsyncedCommits, last: CommitNumber, joins: &[CommitNumber]) -> Option<LostCommits<'a>> {
        let mut noted = unsynced.noted.lock();
        noted.joined = Some(last);
        let mut commits = std::mem::take(&mut noted.commits);
        drop(noted);
        // The program that has joined next has found those that were not lost. Later ones of the same number may be its own.
        let found = |of: i64| match of == last.programs() {
            true => Some(last),
            false => joins.iter().copied().find(|join| join.programs() == of + 1),
        };
        let is_lost =
            |number: CommitNumber| found(number.programs()).is_none_or(|found| number.count() > found.count());
        commits.retain(|commit| is_lost(commit.number));
        let of_programs = commits.first()?.number.programs();
        let first = found(of_programs).map_or(0, CommitNumber::count) + 1;
        let mut counts = (first..).zip(&commits);
        let is_whole = counts.all(|(count, commit)| commit.number.count() == count);
        let statements = commits.into_iter().flat_map(|commit| commit.statements).collect();
        let number = CommitNumber(((last.programs() + 1) << COUNT_BITS | last.count()) + 1);
        Some(LostCommits { commit: UnsyncedCommit { number, statements }, of_programs, is_whole, unsynced })
    }

    fn forget(mut self) {
        self.commit.statements.clear();
    }
}

impl Drop for LostCommits<'_> {
    fn drop(&mut self) {
        let UnsyncedCommit { number, statements } = &mut self.commit;
        if !statements.is_empty() {
            let (number, statements) = (*number, std::mem::take(statements));
            self.unsynced.noted.lock().commits.push(UnsyncedCommit { number, statements });
        }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    fn number(programs: i64, count: i64) -> CommitNumber {
        CommitNumber(programs << COUNT_BITS | count)
    }

    fn noted(unsynced: &UnsyncedCommits) -> Vec<(CommitNumber, usize)> {
        unsynced.noted.lock().commits.iter().map(|commit| (commit.number, commit.statements.len())).collect()
    }

    #[test]
    fn lost_commits_stay_noted_until_they_have_been_executed_once_more() {
        let unsynced = UnsyncedCommits::default();
        let statements = |count| (0..count).map(|_| SentStatement::of("SELECT 1")).collect();
        (1..=4).for_each(|count| _ = unsynced.note(number(3, count), statements(count)));
        assert!(LostCommits::take(&unsynced, number(3, 4), &[]).is_none(), "the database has all of them");
        assert_eq!(noted(&unsynced), []);

        let unsynced = UnsyncedCommits::default();
        (1..=4).for_each(|count| _ = unsynced.note(number(3, count), statements(count)));
        let lost = LostCommits::take(&unsynced, number(3, 2), &[]).expect("two are lost");
        assert_eq!((lost.of_programs, lost.commit.statements.len()), (3, 7));
        // Nobody waits for the answer any more, or the connection is lost again.
        drop(lost);
        assert_eq!(noted(&unsynced), [(number(4, 3), 7)]);

        let again = LostCommits::take(&unsynced, number(4, 2), &[]).expect("they are still lost");
        assert_eq!(again.of_programs, 4, "this program has joined once more, and no other");
        again.forget();
        assert_eq!(noted(&unsynced), []);
    }

    #[test]
    fn a_commit_that_is_noted_after_a_join_is_not_executed_once_more() {
        let unsynced = UnsyncedCommits::default();
        assert_eq!(unsynced.note(number(3, 1), Vec::new()), NotedCommit::Kept);
        assert!(LostCommits::take(&unsynced, number(3, 2), &[]).is_none());
        assert_eq!(unsynced.note(number(3, 2), Vec::new()), NotedCommit::Kept, "the database has it");
        assert_eq!(unsynced.note(number(3, 3), Vec::new()), NotedCommit::Lost);
        assert_eq!(unsynced.note(number(2, 1), Vec::new()), NotedCommit::Lost, "nobody knows");
        assert_eq!(noted(&unsynced), []);
        assert_eq!(unsynced.note(number(4, 3), Vec::new()), NotedCommit::Kept);
        assert_eq!(noted(&unsynced), [(number(4, 3), 0)]);
    }

    #[test]
    fn commits_are_lost_that_the_next_program_has_not_found_although_it_has_counted_as_many() {
        let taken = |last, joins: &[CommitNumber]| {
            let unsynced = UnsyncedCommits::default();
            (1..=4).for_each(|count| _ = unsynced.note(number(3, count), vec![SentStatement::of("SELECT 1")]));
            LostCommits::take(&unsynced, last, joins).map(|lost| lost.commit.statements.len())
        };
        assert_eq!(taken(number(5, 9), &[number(4, 4), number(5, 7)]), None);
        assert_eq!(taken(number(5, 9), &[number(5, 7), number(4, 2)]), Some(2));
        assert_eq!(taken(number(5, 9), &[number(5, 7)]), Some(4), "nobody knows what the next program has found");
    }

    #[test]
    fn commits_are_not_executed_once_more_without_one_before_them() {
        for (counts, is_whole) in [(&[3, 4, 5][..], true), (&[4, 5], false), (&[3, 5], false)] {
            let unsynced = UnsyncedCommits::default();
            counts.iter().for_each(|count| _ = unsynced.note(number(3, *count), Vec::new()));
            let lost = LostCommits::take(&unsynced, number(3, 2), &[]).expect("they are lost");
            assert_eq!(lost.is_whole, is_whole, "{counts:?}");
        }
    }
}
