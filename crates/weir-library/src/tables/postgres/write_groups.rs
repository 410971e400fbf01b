//! Groups of changes: what several flows write while the connection that writes is busy is one transaction.
//!
//! 1. A flow that holds the lock of the table queues its change. The order of the queue is that of the changes, so that the flow
//!    needs the lock no longer.
//! 2. A thread executes what waits as one transaction, in one round trip ([`PostgresDatabase::write`] of all statements).
//! 3. If the database refuses it, nothing of it has happened: each change becomes a transaction of its own, so that the one
//!    that was to blame is refused, and the others are not.
//! 4. Each change notes its commit before its flow gets the answer.
//!
//! A transaction of the program begins when no change waits ([`WriteGroups::wait_idle`]). None can be queued until it ends,
//! because its flow holds the constraint `tables`, without which nobody queues one.

use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;
use weir::{Failure, Value};

use super::PostgresDatabase;
use super::connection::{Executed, SqlStatement};
use super::errors::StatementError;
use super::publications::Publications;
use super::table::PostgresTable;
use super::writer::PostgresWriter;
use crate::tables::rows::{ChangeAnswered, LaterChange, RowChange};
use crate::tables::sql_value::Bound;

/// Maximum number of changes in one transaction.
const GROUP_MAX: usize = 256;
/// Maximum number of changes that wait; further ones need threads, whose number is bounded, so that the program notices that
/// it is overloaded.
const WAITING_MAX: usize = 4_096;
/// Number of changes that are transactions of their own after one of a group was refused. Chosen by judgement: a program whose
/// changes are refused often would execute them twice.
const ALONE_AFTER_REFUSAL: usize = 64;

/// The changes that wait.
#[derive(Default)]
pub(super) struct WriteGroups {
    queue: Mutex<WriteQueue>,
    idle: Condvar,
}

#[derive(Default)]
struct WriteQueue {
    waiting: Vec<QueuedChange>,
    /// True while a thread executes changes.
    is_running: bool,
    /// The number of changes that are executed alone.
    alone: usize,
}

struct QueuedChange {
    table: PostgresTable,
    change: RowChange,
    answered: ChangeAnswered,
    flow: oneshot::Sender<(Result<Value, Failure>, Option<u64>)>,
}

impl WriteGroups {
    /// Blocks the thread until every change is executed that waits.
    pub(super) fn wait_idle(&self) {
        let mut queue = self.queue.lock();
        while queue.is_running {
            self.idle.wait(&mut queue);
        }
    }

    /// Takes the next changes, and returns whether they may be one transaction; `None` if there are none.
    fn next(&self) -> Option<(Vec<QueuedChange>, bool)> {
        let mut queue = self.queue.lock();
        if queue.waiting.is_empty() {
            queue.is_running = false;
            self.idle.notify_all();
            return None;
        }
        let count = queue.waiting.len().min(GROUP_MAX);
        let group: Vec<QueuedChange> = queue.waiting.drain(..count).collect();
        let may_join = queue.alone == 0;
        queue.alone = queue.alone.saturating_sub(count);
        Some((group, may_join))
    }
}

/// Ends the work of the thread, also if it panics: those who wait see that their changes have no answer.
struct RunningGroups<'d>(&'d WriteGroups);

impl Drop for RunningGroups<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut queue = self.0.queue.lock();
            queue.waiting.clear();
            queue.is_running = false;
            self.0.idle.notify_all();
        }
    }
}

impl PostgresTable {
    /// Queues a change that is no part of a transaction.
    pub(super) fn queue_change(&self, change: &RowChange, answered: ChangeAnswered) -> Option<LaterChange> {
        // The thread of a statement gives the failure of a row that cannot be stored.
        let change = self.stored_change(change.clone()).ok()?;
        let (flow, answer) = oneshot::channel();
        let groups = &self.database.groups;
        let mut queue = groups.queue.lock();
        if queue.waiting.len() >= WAITING_MAX {
            return None;
        }
        queue.waiting.push(QueuedChange { table: self.clone(), change, answered, flow });
        if !std::mem::replace(&mut queue.is_running, true) {
            let database = Arc::clone(&self.database);
            self.database.connector.io.handle.spawn_blocking(move || database.execute_groups());
        }
        drop(queue);
        let database = Arc::clone(&self.database);
        Some(Box::pin(async move {
            let lost = |_| (Err(database.failure(&StatementError::Unknown)), None);
            answer.await.unwrap_or_else(lost)
        }))
    }
}

impl QueuedChange {
    fn end(self, answer: Result<Value, Failure>, commit: Option<u64>) {
        (self.answered)(&answer);
        // The flow may have been cancelled.
        _ = self.flow.send((answer, commit));
    }
}

impl PostgresDatabase {
    fn execute_groups(&self) {
        let _running = RunningGroups(&self.groups);
        while let Some((group, may_join)) = self.groups.next() {
            self.execute_group(group, may_join);
        }
    }

    fn execute_group(&self, group: Vec<QueuedChange>, may_join: bool) {
        if let Err(lost) = self.check() {
            return group.into_iter().for_each(|queued| queued.end(Err(self.failure(&lost)), None));
        }
        let mut writer = self.writer.lock();
        if may_join && group.len() > 1 {
            match self.execute_together(&mut writer, &group) {
                Ok(answers) => {
                    let commit = self.last_commit();
                    group.into_iter().zip(answers).for_each(|(queued, answer)| queued.end(answer, commit));
                    return;
                }
                // Nothing of the transaction has happened.
                Err(StatementError::Database(..) | StatementError::TakenBack(_)) => {
                    self.groups.queue.lock().alone = ALONE_AFTER_REFUSAL;
                }
                Err(failed) => {
                    return group.into_iter().for_each(|queued| queued.end(Err(self.failure(&failed)), None));
                }
            }
        }
        for queued in group {
            let answer = self.execute_queued(&mut writer, &queued);
            let commit = self.last_commit();
            queued.end(answer, commit);
        }
    }

    /// Returns the number of the last commit that has not waited for the disk; none if all do.
    fn last_commit(&self) -> Option<u64> {
        self.group_commit.get().map(|group_commit| group_commit.executed_count())
    }

    /// Executes changes as one transaction, all or none.
    fn execute_together(
        &self,
        writer: &mut PostgresWriter,
        group: &[QueuedChange],
    ) -> Result<Vec<Result<Value, Failure>>, StatementError> {
        let parts: Vec<(Vec<Bound<'_>>, Publications)> = group
            .iter()
            .map(|queued| (queued.table.change_parameters(&queued.change), queued.table.publications(&queued.change)))
            .collect();
        let mut statements: Vec<SqlStatement<'_>> = Vec::new();
        let mut begins = Vec::with_capacity(group.len());
        for (queued, (parameters, published)) in group.iter().zip(&parts) {
            let of_change = queued.table.change_statements(&queued.change, parameters, published);
            begins.push(of_change.is_some().then_some(statements.len()));
            statements.extend(of_change.into_iter().flatten());
        }
        let executed = match statements.is_empty() {
            true => Vec::new(),
            false => self.execute(writer, 0, &statements, false)?,
        };
        let answer = |(queued, begin): (&QueuedChange, Option<usize>)| match begin {
            Some(begin) => queued.table.change_answer(&queued.change, executed.get(begin)),
            None => Ok(Value::Unit),
        };
        Ok(group.iter().zip(begins).map(answer).collect())
    }

    fn execute_queued(&self, writer: &mut PostgresWriter, queued: &QueuedChange) -> Result<Value, Failure> {
        let QueuedChange { table, change, .. } = queued;
        let (parameters, published) = (table.change_parameters(change), table.publications(change));
        let Some(statements) = table.change_statements(change, &parameters, &published) else { return Ok(Value::Unit) };
        let executed = self.again(|| self.execute(writer, 0, &statements, false));
        let executed: Vec<Executed> = executed.map_err(|error| table.refused(change, &error))?;
        table.change_answer(change, executed.first())
    }
}
