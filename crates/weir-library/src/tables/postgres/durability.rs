//! Durability of commits in PostgreSQL: one sync of its log for all commits that were executed before.
//!
//! A program that is alone in its schema commits without waiting for the disk (`synchronous_commit=off`), so that the next
//! transaction can begin; a flow waits for the disk before its answer. The log is one sequence: a commit that waits for the
//! disk makes all commits before it durable. Such a commit, on a connection of its own, is a sync.
//!
//! *Other programs* would see rows that are not durable yet. Therefore each program holds a shared advisory lock while its writer
//! is connected. A transaction commits without waiting only if it gets that lock exclusively ([`COUNT_COMMIT`](super::commit_numbers::COUNT_COMMIT)), which it does not
//! beside another program. A program that joins makes durable what is there ([`JoinAnswer`]).
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

use parking_lot::Mutex;
use weir::Failure;

use super::commit_marks::{CommitMark, CommitMarks, CommitsAtJoin};
use super::commit_numbers::{COUNT_BITS, CommitNumber};
use super::connection::PostgresConnection;
use super::connector::PostgresConnector;
use super::errors::{StatementError, failure};
use super::join_answer::JoinAnswer;
use super::sent_statement::SentStatement;
use super::unanswered_commits::{UnansweredCommit, UnansweredCommits};
use super::writes_since_crash::WritesSinceCrash;

/// Begins the transaction that executes lost ones once more. It waits for the disk.
const REDO: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ; LOCK TABLE \"weir_database\" IN EXCLUSIVE MODE; \
    UPDATE \"weir_numbers\" SET \"last\" = \"last\" + 1 WHERE \"table\" = ''";
/// The number of commits after which a sync begins, even if nobody waits for it.
const UNSYNCED_MAX: usize = 1_000;
/// About the bytes of the statements of commits after which a sync begins, even if nobody waits for it. Chosen by judgement: a flow that
/// writes large rows waits for the disk only at its end, and the program should not hold them all until then.
const UNSYNCED_BYTES_MAX: usize = 8 << 20;

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
    /// About the bytes of those that were noted since the last sync.
    bytes: usize,
    /// The last commit that the database had when this program joined last.
    joined: Option<CommitNumber>,
    /// The timeline of the server, on which everything is noted.
    timeline: Option<String>,
    /// The transaction of the last commit that a standby has got before it was promoted, while what was lost is not executed again.
    before_promotion: Option<String>,
    /// The last commit that was seen to be durable, or the last join of this program.
    durable: Option<CommitNumber>,
    /// The number of commits that were noted since, which this program has counted.
    count: i64,
    /// The highest number among these.
    last: Option<CommitNumber>,
    /// The commits without an answer.
    unanswered: UnansweredCommits,
}

impl NotedCommits {
    /// Notes that this program has joined, and the last commit that it has found.
    fn joined(&mut self, found: CommitNumber) {
        self.joined = Some(found);
        let join = CommitNumber((found.programs() + 1) << COUNT_BITS | found.count());
        (self.durable, self.last, self.count) = (Some(join), Some(join), 0);
    }

    /// Returns whether the database has given the number of a commit twice, so that it is an older one than before, such as a backup
    /// that was restored. Other programs that have joined since count, too.
    fn is_given_again(&mut self, number: CommitNumber) -> bool {
        let (Some(joined), Some(last)) = (self.joined, self.last) else { return false };
        if number.programs() != last.programs() {
            return false;
        }
        self.count += 1;
        let last = CommitNumber(last.0.max(number.0));
        self.last = Some(last);
        self.count > last.count() - joined.count()
    }

    /// Notes that everything which is noted is on this timeline.
    fn is_on_timeline(&mut self, timeline: Option<String>) {
        (self.timeline, self.before_promotion) = (timeline, None);
    }

    /// Returns the transaction of the last commit that a standby has got before it was promoted, which is empty if nobody knows it; `None` if
    /// none was promoted. A join of this program hides it, unless it was found then.
    fn before_promotion(&mut self, joined: &JoinAnswer, is_joined: bool) -> Option<String> {
        let both = self.timeline.as_ref().zip(joined.timeline.as_ref());
        both.filter(|(old, new)| old != new)?;
        let counted = if is_joined { String::new() } else { joined.counted.clone() };
        Some(self.before_promotion.get_or_insert(counted).clone())
    }

    /// Returns whether the database has lost commits that were durable. `joins` are the numbers of the last commits that programs have
    /// found when they joined.
    fn has_lost_durable(&self, last: CommitNumber, joins: &[CommitNumber]) -> bool {
        let Some(durable) = self.durable else { return false };
        match durable.programs() == last.programs() {
            true => last.count() < durable.count(),
            false if last.programs() < durable.programs() => true,
            false => {
                let mut next = joins.iter().filter(|join| join.programs() == durable.programs() + 1);
                next.any(|found| found.count() < durable.count())
            }
        }
    }
}

/// The fate of a commit that was to be noted.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotedCommit {
    /// It is noted, or durable.
    Kept,
    /// It is noted, and a sync should begin.
    Due,
    /// The program has joined once more before, and the database may have lost it; or the database is an older one.
    Lost,
}

#[derive(Debug)]
struct UnsyncedCommit {
    number: CommitNumber,
    statements: Vec<SentStatement>,
}

impl UnsyncedCommit {
    /// Returns about the bytes of the statements.
    fn bytes(&self) -> usize {
        self.statements.iter().map(SentStatement::bytes).sum()
    }
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
        if noted.is_given_again(number) {
            return NotedCommit::Lost;
        }
        // Several tasks note commits.
        let at = noted.commits.partition_point(|commit| commit.number.0 < number.0);
        let (before, commit) = (noted.bytes, UnsyncedCommit { number, statements });
        noted.bytes += commit.bytes();
        noted.commits.insert(at, commit);
        let is_due = noted.commits.len().is_multiple_of(UNSYNCED_MAX)
            || noted.bytes / UNSYNCED_BYTES_MAX > before / UNSYNCED_BYTES_MAX;
        if is_due { NotedCommit::Due } else { NotedCommit::Kept }
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
        let mut noted = self.noted.lock();
        noted.commits.retain(|commit| commit.number.0 > durable.0);
        noted.bytes = noted.commits.iter().map(UnsyncedCommit::bytes).sum();
        noted.durable = noted.durable.filter(|before| before.0 > durable.0).or(Some(durable));
    }
}

/// The fate of the commits that may not have been durable when the connection was lost.
enum Recovery {
    Whole,
    /// They cannot be executed once more, for this reason.
    Lost(String),
    /// The database does not have commits that were durable.
    Older,
}

/// Joins the programs of the schema, and executes once more what the database has lost.
pub(super) fn join(
    connection: &PostgresConnection,
    connector: &PostgresConnector,
    unsynced: &UnsyncedCommits,
) -> Result<Result<(), Failure>, StatementError> {
    let recovered = connector.answered(recover(connection, connector, unsynced))?;
    let why = match recovered {
        Recovery::Whole => return Ok(Ok(())),
        Recovery::Lost(why) => format!(
            "has crashed, and has lost what was written last, before it was durable; it cannot be executed once more, because {why}; start \
             the program again"
        ),
        Recovery::Older => "has lost commits that were durable: a standby that was behind has been promoted, a backup was restored, or \
                            the server does not wait for its disk (`fsync`, `synchronous_commit`); numbers of rows may be given again; \
                            start the program again"
            .to_owned(),
    };
    Ok(Err(Failure::function(format!("the database {} {why}", connector.address))))
}

async fn recover(
    connection: &PostgresConnection,
    connector: &PostgresConnector,
    unsynced: &UnsyncedCommits,
) -> Result<Recovery, StatementError> {
    let joined = JoinAnswer::of(connection, unsynced.program).await?;
    let CommitsAtJoin { last, own_join, .. } = joined.commits;
    unsynced.noted.lock().unanswered.tell(joined.commits);
    if unsynced.noted.lock().has_lost_durable(last, &joined.joins) {
        return Ok(Recovery::Older);
    }
    let Some(lost) = LostCommits::take(unsynced, last, &joined.joins) else {
        unsynced.noted.lock().is_on_timeline(joined.timeline);
        return Ok(Recovery::Whole);
    };
    let is_own_join = own_join == Some(last.programs()) && last.programs() == lost.of_programs + 1;
    let why = match lost.of_programs == last.programs() || is_own_join {
        false => Some("another program was started since"),
        true => (!lost.is_whole).then_some("nobody knows how one of the statements has ended"),
    };
    if let Some(why) = why {
        lost.forget();
        return Ok(Recovery::Lost(why.to_owned()));
    }
    let redone = execute_again(&lost, &joined, connection).await;
    match redone.map_err(StatementError::from) {
        Ok(why) => {
            lost.forget();
            unsynced.noted.lock().is_on_timeline(joined.timeline);
            Ok(why.map_or(Recovery::Whole, Recovery::Lost))
        }
        // The next connection tries it again.
        Err(error) if error.is_lost() => Err(error),
        Err(error) => {
            lost.forget();
            Ok(Recovery::Lost(failure(&connector.address, &error).message.to_string()))
        }
    }
}

/// Executes lost commits once more. Returns why they cannot be, if others have written since.
async fn execute_again(
    lost: &LostCommits<'_>,
    joined: &JoinAnswer,
    connection: &PostgresConnection,
) -> Result<Option<String>, tokio_postgres::Error> {
    let is_joined = lost.of_programs != joined.commits.last.programs();
    let before_promotion = lost.unsynced.noted.lock().before_promotion(joined, is_joined);
    let writes = match before_promotion {
        None => Some(WritesSinceCrash::behind_checkpoint(connection).await?),
        Some(counted) => WritesSinceCrash::behind_commit(&counted),
    };
    let Some(writes) = writes else {
        return Ok(Some("nobody knows what other programs have written since a standby was promoted".to_owned()));
    };
    let statements: Vec<&SentStatement> = lost.commit.statements.iter().collect();
    connection.command(REDO).await?;
    if let Some(why) = writes.found(&statements, connection).await? {
        connection.command("ROLLBACK").await?;
        return Ok(Some(why));
    }
    SentStatement::execute(&statements, connection).await?;
    connection.command("COMMIT").await?;
    Ok(None)
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
        noted.joined(last);
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
    fn a_sync_begins_before_large_commits_are_many() {
        let unsynced = UnsyncedCommits::default();
        let sql = "x".repeat(UNSYNCED_BYTES_MAX / 2);
        let note = |count| unsynced.note(number(3, count), vec![SentStatement::of(&sql)]);
        assert_eq!([1, 2, 3, 4].map(note), [NotedCommit::Kept, NotedCommit::Due, NotedCommit::Kept, NotedCommit::Due]);
        unsynced.forget(number(3, 4));
        assert_eq!([5, 6].map(note), [NotedCommit::Kept, NotedCommit::Due]);
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
