//! Groups of changes: what several flows write while the connection that writes is busy is one transaction.
//!
//! 1. A flow that holds the lock of the table queues its change. The order of the queue is that of the changes, so that the flow
//!    needs the lock no longer.
//! 2. A thread executes what waits as one transaction, in one round trip (`group_execution`).
//! 3. If the database refuses it, nothing of it has happened: each change becomes a transaction of its own, so that the one
//!    that was to blame is refused, and the others are not.
//! 4. Each change notes its commit before its flow gets the answer.
//!
//! A transaction of the program begins when no change waits ([`WriteGroups::wait_idle`]). None can be queued until it ends,
//! because its flow holds the constraint `tables`, without which nobody queues one.

use parking_lot::{Condvar, Mutex};
use weir::{Failure, Value};

use super::connection::{Executed, SqlStatement};
use super::errors::StatementError;
use super::publications::Publications;
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
    waiting: Vec<Box<dyn QueuedChange>>,
    /// True while a thread executes changes.
    is_running: bool,
    /// The number of changes that are executed alone.
    alone: usize,
}

/// A change that waits.
pub(super) trait QueuedChange: Send {
    /// Returns the parameters of the statement, and the publications.
    fn parts(&self) -> ChangeParts<'_>;
    /// Returns the statements; `None` if nothing changes.
    fn statements<'c>(&'c self, parts: &'c ChangeParts<'c>) -> Option<Vec<SqlStatement<'c>>>;
    /// Returns the answer from that of its own statement.
    fn answer(&self, executed: Option<&Executed>) -> Result<Value, Failure>;
    /// Returns the failure of a change that the database refuses.
    fn refused(&self, error: &StatementError) -> Failure;
    /// Gives the flow its answer, and the number of the commit.
    fn end(self: Box<Self>, answer: Result<Value, Failure>, commit: Option<u64>);
}

/// The parameters of a change, and its publications.
pub(super) type ChangeParts<'c> = (Vec<Bound<'c>>, Publications);

impl WriteGroups {
    /// Blocks the thread until every change is executed that waits.
    pub(super) fn wait_idle(&self) {
        let mut queue = self.queue.lock();
        while queue.is_running {
            self.idle.wait(&mut queue);
        }
    }

    /// Returns whether no change waits.
    pub(super) fn are_idle(&self) -> bool {
        !self.queue.lock().is_running
    }

    /// Queues a change, and returns whether a thread has to begin to execute changes; `None` if too many wait.
    pub(super) fn push(&self, change: impl FnOnce() -> Box<dyn QueuedChange>) -> Option<bool> {
        let mut queue = self.queue.lock();
        if queue.waiting.len() >= WAITING_MAX {
            return None;
        }
        queue.waiting.push(change());
        Some(!std::mem::replace(&mut queue.is_running, true))
    }

    /// Has the next changes be transactions of their own.
    pub(super) fn was_refused(&self) {
        self.queue.lock().alone = ALONE_AFTER_REFUSAL;
    }

    /// Takes the next changes, and returns whether they may be one transaction; `None` if there are none.
    pub(super) fn next(&self) -> Option<(Vec<Box<dyn QueuedChange>>, bool)> {
        let mut queue = self.queue.lock();
        if queue.waiting.is_empty() {
            queue.is_running = false;
            self.idle.notify_all();
            return None;
        }
        let count = queue.waiting.len().min(GROUP_MAX);
        let group: Vec<Box<dyn QueuedChange>> = queue.waiting.drain(..count).collect();
        let may_join = queue.alone == 0;
        queue.alone = queue.alone.saturating_sub(count);
        Some((group, may_join))
    }
}

/// Ends the work of the thread, also if it panics: those who wait see that their changes have no answer.
pub(super) struct RunningGroups<'d>(pub(super) &'d WriteGroups);

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
