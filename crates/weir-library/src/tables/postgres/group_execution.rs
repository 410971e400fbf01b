//! The execution of groups of changes (`write_groups`).

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::runtime::Handle;
use tokio::task::yield_now;
use tokio_postgres::Error;
use weir::{Failure, SeenCommits, Value};

use super::PostgresDatabase;
use super::beginning::Beginning;
use super::commit_numbers::CommitNumber;
use super::connection::{Executed, SqlStatement};
use super::errors::{StatementError, explain, is_invalid_statement};
use super::group_statements::GroupStatements;
use super::io::begin_task;
use super::queued_change::{QueuedChange, WokenFlows};
use super::sent_statement::SentStatement;
use super::whole_transactions::prepared_alone;
use super::write_groups::WriteGroup;
use super::writer::PostgresWriter;

/// The answer to a group: those of its changes, unless the database has refused one, or their failure.
type GroupAnswer = Result<Option<Vec<Result<Value, Failure>>>, StatementError>;

/// The execution of a group that is sent when it is first polled. It has an allocation of its own: its thousands of bytes would be copied
/// with each future that contains it.
type GroupExecution<T> = Pin<Box<dyn Future<Output = Result<T, StatementError>> + Send>>;

impl PostgresDatabase {
    /// Begins to execute the changes that wait, on the event loop of this thread.
    pub(super) fn begin_groups(self: &Arc<Self>) {
        let io = &self.connector.io.handle;
        let event_loop = Handle::try_current().unwrap_or_else(|_| io.clone());
        let is_io = event_loop.id() == io.id();
        let running = RunningGroups { database: Arc::clone(self), is_io, is_through: false };
        begin_task(&event_loop, running.run());
    }

    /// Executes a group, without a thread as far as nothing has to be waited for before it is sent. Returns whether the flows have
    /// their answers.
    async fn run_group(self: &Arc<Self>, group: WriteGroup) -> bool {
        let WriteGroup { changes, may_join, is_durable } = group;
        let durable = if is_durable { self.send_durable(&changes) } else { None };
        let left = if let Some(durable) = durable {
            let answer = durable.await;
            // No flow has this task.
            let mut task = SeenCommits::default();
            let _entered = task.enter();
            let answer = answer.map(|(executed, before)| {
                self.made_durable(before);
                GroupStatements::of(&changes).answers(&executed)
            });
            self.answer_group(changes, answer)
        } else {
            let sent = if may_join { self.send_group(&changes) } else { None };
            match sent {
                Some(sent) => {
                    let answer = sent.await;
                    let mut task = SeenCommits::default();
                    let _entered = task.enter();
                    self.end_group(changes, answer)
                }
                None => Some(changes),
            }
        };
        let Some(left) = left else { return true };
        let (database, may_join) = (Arc::clone(self), may_join && self.groups.may_join());
        let executing = self.connector.io.handle.spawn_blocking(move || database.execute_group(left, may_join));
        executing.await.is_ok()
    }

    /// Executes once more what a crash of the database has taken back, so that a connection that is new overwrites what it has to.
    fn ready_for_groups(&self) -> Result<(), StatementError> {
        // What was answered before is noted.
        drop(self.lock_writer());
        self.await_placed_commits()?;
        self.recovered()
    }

    /// Sends a group, whose commit waits for the disk, on the connection that this event loop drives; `None` if something has to be
    /// waited for before. The answer has what was executed before.
    fn send_durable(
        self: &Arc<Self>,
        group: &[QueuedChange],
    ) -> Option<GroupExecution<(Vec<Executed>, CommitsBefore)>> {
        if self.check().is_err() {
            return None;
        }
        let database = Arc::downgrade(self);
        let recovered = move || database.upgrade().map_or(Ok(()), |database| database.ready_for_groups());
        let pipeline = self.group_connections.of_this_loop(&self.connector, recovered)?;
        let parts = GroupStatements::of(group);
        let statements = parts.statements();
        let prepared = pipeline.prepared(&statements).filter(|prepared| !prepared.is_empty())?;
        let sent = SentStatement::keep(&statements, &prepared);
        let (beginning, before) = match self.group_commit.get() {
            Some(group_commit) => (
                Beginning::Durable,
                CommitsBefore { executed: group_commit.executed_count(), unsynced: self.unsynced.last() },
            ),
            None => (Beginning::AtOnce, CommitsBefore { executed: 0, unsynced: None }),
        };
        let limit = self.limit();
        Some(Box::pin(async move {
            let statements: Vec<SqlStatement<'_>> = sent.iter().map(SentStatement::again).collect();
            Ok((pipeline.write(&beginning, (&statements, &prepared), limit).await?, before))
        }))
    }

    /// Notes that a group is durable, and what was executed before it was sent.
    fn made_durable(&self, CommitsBefore { executed, unsynced }: CommitsBefore) {
        if let Some(group_commit) = self.group_commit.get() {
            unsynced.into_iter().for_each(|last| self.unsynced.forget(last));
            group_commit.executed_durably(executed);
        }
    }

    /// Sends a group; `None` if something has to be waited for before.
    fn send_group(self: &Arc<Self>, group: &[QueuedChange]) -> Option<GroupExecution<Vec<Executed>>> {
        if self.check().is_err() {
            return None;
        }
        let mut writer = self.writer.try_lock().filter(|writer| writer.transaction == 0)?;
        let connection = writer.open_connection(0)?;
        let beginning = Beginning::prepared(&connection, writer.turns)?;
        let parts = GroupStatements::of(group);
        let statements = parts.statements();
        let prepared = connection.all_known(&statements).filter(|prepared| !prepared.is_empty())?;
        let sent = SentStatement::keep(&statements, &prepared);
        let flight = writer.begin_flight();
        drop(writer);
        let in_flight = GroupInFlight { database: Arc::clone(self), flight, is_answered: false };
        Some(Box::pin(async move {
            let mut in_flight = in_flight;
            let database = Arc::clone(&in_flight.database);
            let statements: Vec<SqlStatement<'_>> = sent.iter().map(SentStatement::again).collect();
            let executing = Box::pin(prepared_alone((&connection, &beginning), (&statements, &prepared)));
            let executed = database.limited(executing).await;
            drop(statements);
            in_flight.is_answered = executed.is_ok();
            // No flow has this task.
            let mut task = SeenCommits::default();
            let _entered = task.enter();
            let (executed, number) = executed.map_err(|_| StatementError::NoAnswer)??;
            // The writer is not connected anew before the commit is noted.
            database.committed(number.map(|number| (number, sent)))?;
            Ok(executed)
        }))
    }

    /// Gives flows the answers of their changes. Returns the group if nothing of it has happened, and each change may be executed
    /// by itself.
    fn end_group(
        &self,
        group: Vec<QueuedChange>,
        answer: Result<Vec<Executed>, StatementError>,
    ) -> Option<Vec<QueuedChange>> {
        let answer = answer.map(|executed| GroupStatements::of(&group).answers(&executed));
        self.answer_group(group, answer)
    }

    fn answer_group(&self, group: Vec<QueuedChange>, answer: GroupAnswer) -> Option<Vec<QueuedChange>> {
        match answer {
            Ok(Some(answers)) => {
                let commit = self.last_commit();
                let mut woken = WokenFlows::default();
                group.into_iter().zip(answers).for_each(|(queued, answer)| queued.end(answer, commit, &mut woken));
                None
            }
            // Nothing of the transaction has happened.
            Ok(None) | Err(StatementError::TakenBack(_)) => {
                self.groups.was_refused();
                Some(group)
            }
            Err(StatementError::Database(error, _)) => {
                if group.len() > 1 && is_invalid_statement(&error) {
                    self.log_invalid_group(&group, &error);
                }
                self.groups.was_refused();
                Some(group)
            }
            Err(failed) => {
                self.fail_group(group, &failed);
                None
            }
        }
    }

    /// Says in the log, once for a database, that changes cannot be executed together: each by itself is slower, and succeeds.
    fn log_invalid_group(&self, group: &[QueuedChange], error: &Error) {
        if self.is_invalid_group_logged.swap(true, Ordering::Relaxed) {
            return;
        }
        let Some(log) = &self.connector.log else { return };
        let tables: BTreeSet<&str> = group.iter().map(|queued| queued.table.schema.name.as_str()).collect();
        let tables: Vec<String> = tables.into_iter().map(|name| format!("`{name}`")).collect();
        let why = explain(&self.connector.address, error).message;
        log.warn(format!(
            "changes of {} cannot be executed together, and are executed one by one, which is slower: {why}",
            tables.join(", ")
        ));
    }

    /// Executes a group on this thread.
    fn execute_group(&self, group: Vec<QueuedChange>, may_join: bool) {
        if let Err(lost) = self.check() {
            return self.fail_group(group, &lost);
        }
        let mut writer = self.lock_writer();
        let left = if may_join {
            let answer = self.execute_together(&mut writer, &group);
            self.answer_group(group, answer)
        } else {
            Some(group)
        };
        for queued in left.into_iter().flatten() {
            let answer = self.execute_queued(&mut writer, &queued);
            let commit = self.last_commit();
            queued.end(answer, commit, &mut WokenFlows::default());
        }
    }

    fn fail_group(&self, group: Vec<QueuedChange>, error: &StatementError) {
        let mut woken = WokenFlows::default();
        group.into_iter().for_each(|queued| queued.end(Err(self.failure(error)), None, &mut woken));
    }

    /// Returns the number of the last commit that has not waited for the disk; none if all do.
    fn last_commit(&self) -> Option<u64> {
        self.group_commit.get().map(|group_commit| group_commit.executed_count())
    }

    /// Executes changes as one transaction, all or none.
    fn execute_together(&self, writer: &mut PostgresWriter, group: &[QueuedChange]) -> GroupAnswer {
        let parts = GroupStatements::of(group);
        let statements = parts.statements();
        let executed = match statements.is_empty() {
            true => Vec::new(),
            false => self.execute(writer, 0, &statements, false)?,
        };
        Ok(parts.answers(&executed))
    }

    fn execute_queued(&self, writer: &mut PostgresWriter, queued: &QueuedChange) -> Result<Value, Failure> {
        let QueuedChange { table, change, .. } = queued;
        let (parameters, published) = (table.change_parameters(change), table.publications(change));
        let Some(statements) = table.change_statements(change, &parameters, &published) else {
            return table.change_answer(change, None);
        };
        let executed = self.again(|| self.execute(writer, 0, &statements, false));
        table.change_answer(change, executed.map_err(|error| table.refused(change, &error))?.first())
    }
}

/// The commits before a group that was sent.
struct CommitsBefore {
    /// The number of those that were executed.
    executed: u64,
    /// The number of the last one that had not waited for the disk.
    unsynced: Option<CommitNumber>,
}

/// A group whose answer is not there yet. If nobody waits for it any more, nobody knows what it has done.
struct GroupInFlight {
    database: Arc<PostgresDatabase>,
    /// The number by which the writer knows that it waits.
    flight: u64,
    is_answered: bool,
}

impl Drop for GroupInFlight {
    fn drop(&mut self) {
        let mut writer = self.database.writer.lock();
        if writer.land(self.flight) && !self.is_answered {
            writer.cut();
        }
        drop(writer);
        self.database.landed.notify_all();
    }
}

/// The execution of changes. If it ends before its time, such as with its event loop, the thread of connections goes on.
struct RunningGroups {
    database: Arc<PostgresDatabase>,
    /// True on the thread of connections.
    is_io: bool,
    /// True if no change waits any more.
    is_through: bool,
}

impl RunningGroups {
    /// Executes changes until none waits.
    async fn run(mut self) {
        loop {
            // What can run on this event loop may have changes as well.
            yield_now().await;
            let Some(group) = self.database.groups.next() else { break };
            if !self.database.run_group(group).await {
                return;
            }
        }
        self.is_through = true;
    }
}

impl Drop for RunningGroups {
    fn drop(&mut self) {
        if self.is_through {
            return;
        }
        if self.is_io {
            return self.database.groups.abandon();
        }
        let further = RunningGroups { database: Arc::clone(&self.database), is_io: true, is_through: false };
        begin_task(&self.database.connector.io.handle, further.run());
    }
}
