//! The execution of groups of changes (`write_groups`).

use std::sync::Arc;

use tokio::sync::oneshot;
use weir::{Failure, Value};

use super::PostgresDatabase;
use super::connection::{Executed, SqlStatement};
use super::errors::StatementError;
use super::table::PostgresTable;
use super::write_groups::{ChangeParts, QueuedChange, RunningGroups};
use super::writer::PostgresWriter;
use crate::tables::rows::{ChangeAnswered, LaterChange, RowChange};

/// A change of a row of a table, and the flow that waits for it.
struct TableChange {
    table: PostgresTable,
    change: RowChange,
    answered: ChangeAnswered,
    flow: oneshot::Sender<(Result<Value, Failure>, Option<u64>)>,
}

impl PostgresTable {
    /// Queues a change that is no part of a transaction.
    pub(super) fn queue_change(&self, change: &RowChange, answered: ChangeAnswered) -> Option<LaterChange> {
        // The thread of a statement gives the failure of a row that cannot be stored.
        let change = self.stored_change(change.clone()).ok()?;
        let (flow, answer) = oneshot::channel();
        let queued =
            || -> Box<dyn QueuedChange> { Box::new(TableChange { table: self.clone(), change, answered, flow }) };
        if self.database.groups.push(queued)? {
            let database = Arc::clone(&self.database);
            self.database.connector.io.handle.spawn_blocking(move || database.execute_groups());
        }
        let database = Arc::clone(&self.database);
        Some(Box::pin(async move {
            let lost = |_| (Err(database.failure(&StatementError::Unknown)), None);
            answer.await.unwrap_or_else(lost)
        }))
    }
}

impl QueuedChange for TableChange {
    fn parts(&self) -> ChangeParts<'_> {
        (self.table.change_parameters(&self.change), self.table.publications(&self.change))
    }

    fn statements<'c>(&'c self, (parameters, published): &'c ChangeParts<'c>) -> Option<Vec<SqlStatement<'c>>> {
        self.table.change_statements(&self.change, parameters, published)
    }

    fn answer(&self, executed: Option<&Executed>) -> Result<Value, Failure> {
        self.table.change_answer(&self.change, executed)
    }

    fn refused(&self, error: &StatementError) -> Failure {
        self.table.refused(&self.change, error)
    }

    fn end(self: Box<Self>, answer: Result<Value, Failure>, commit: Option<u64>) {
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

    fn execute_group(&self, group: Vec<Box<dyn QueuedChange>>, may_join: bool) {
        if let Err(lost) = self.check() {
            return group.into_iter().for_each(|queued| queued.end(Err(self.failure(&lost)), None));
        }
        let mut writer = self.lock_writer();
        if may_join && group.len() > 1 {
            match self.execute_together(&mut writer, &group) {
                Ok(answers) => {
                    let commit = self.last_commit();
                    group.into_iter().zip(answers).for_each(|(queued, answer)| queued.end(answer, commit));
                    return;
                }
                // Nothing of the transaction has happened.
                Err(StatementError::Database(..) | StatementError::TakenBack(_)) => {
                    self.groups.was_refused();
                }
                Err(failed) => {
                    return group.into_iter().for_each(|queued| queued.end(Err(self.failure(&failed)), None));
                }
            }
        }
        for queued in group {
            let answer = self.execute_queued(&mut writer, &*queued);
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
        group: &[Box<dyn QueuedChange>],
    ) -> Result<Vec<Result<Value, Failure>>, StatementError> {
        let parts: Vec<ChangeParts<'_>> = group.iter().map(|queued| queued.parts()).collect();
        let mut statements: Vec<SqlStatement<'_>> = Vec::new();
        let mut begins = Vec::with_capacity(group.len());
        for (queued, parts) in group.iter().zip(&parts) {
            let of_change = queued.statements(parts);
            begins.push(of_change.is_some().then_some(statements.len()));
            statements.extend(of_change.into_iter().flatten());
        }
        let executed = match statements.is_empty() {
            true => Vec::new(),
            false => self.execute(writer, 0, &statements, false)?,
        };
        let answers = group.iter().zip(begins).map(|(queued, begin)| match begin {
            Some(begin) => queued.answer(executed.get(begin)),
            None => Ok(Value::Unit),
        });
        Ok(answers.collect())
    }

    fn execute_queued(&self, writer: &mut PostgresWriter, queued: &dyn QueuedChange) -> Result<Value, Failure> {
        let parts = queued.parts();
        let Some(statements) = queued.statements(&parts) else { return Ok(Value::Unit) };
        let executed = self.again(|| self.execute(writer, 0, &statements, false));
        queued.answer(executed.map_err(|error| queued.refused(&error))?.first())
    }
}
