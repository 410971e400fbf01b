//! Groups of changes: what several flows write while the connection that writes is busy is one transaction.
//!
//! 1. A flow that holds the lock of the table queues its change. The order of the queue is that of the changes, so that the flow
//!    needs the lock no longer.
//! 2. A task executes what waits as one transaction, in one round trip (`group_execution`), on the event loop of the first flow.
//!    A thread does so if something has to be waited for before it is sent.
//!
//!    The transaction waits for the disk, so that its flows need not wait once more, and is sent on a connection that the event loop
//!    drives. A change that is alone does not wait, but only the answer of its flow; neither do the next changes if a flow writes
//!    again before its answer.
//! 3. If the database refuses it, nothing of it has happened: each change becomes a transaction of its own, so that the one
//!    that was to blame is refused, and the others are not.
//! 4. Each change notes its commit before its flow gets the answer.
//!
//! A transaction of the program begins when no change waits ([`WriteGroups::wait_idle`]). None can be queued until it ends,
//! because its flow holds the constraint of the database, without which nobody queues one.

use parking_lot::{Condvar, Mutex};
use weir::assert_may_block;

use super::queued_change::QueuedChange;

/// Maximum number of changes in one transaction.
const GROUP_MAX: usize = 256;
/// Maximum number of changes that wait; further ones need threads, whose number is bounded, so that the program notices that
/// it is overloaded.
const WAITING_MAX: usize = 4_096;
/// Number of changes that are transactions of their own after one of a group was refused. Chosen by judgement: a program whose
/// changes are refused often would execute them twice.
const ALONE_AFTER_REFUSAL: usize = 64;

/// Number of changes that do not wait for the disk after a flow has made several without waiting for it. Chosen by judgement.
const UNSYNCED_AFTER_SEVERAL: usize = 64;

/// Changes that are executed together.
pub(super) struct WriteGroup {
    pub(super) changes: Vec<QueuedChange>,
    /// True if they may be one transaction.
    pub(super) may_join: bool,
    /// True if this transaction waits for the disk.
    pub(super) is_durable: bool,
}

/// The changes that wait.
#[derive(Default)]
pub(super) struct WriteGroups {
    queue: Mutex<WriteQueue>,
    idle: Condvar,
}

#[derive(Default)]
struct WriteQueue {
    waiting: Vec<QueuedChange>,
    /// True while changes are executed.
    is_running: bool,
    /// The number of changes that are executed alone.
    alone: usize,
    /// The number of changes that do not wait for the disk.
    unsynced: usize,
}

impl WriteGroups {
    /// Blocks the thread until every change is executed that waits.
    pub(super) fn wait_idle(&self) {
        let mut queue = self.queue.lock();
        while queue.is_running {
            assert_may_block();
            self.idle.wait(&mut queue);
        }
    }

    /// Returns whether no change waits.
    pub(super) fn are_idle(&self) -> bool {
        !self.queue.lock().is_running
    }

    /// Queues a change, and returns whether somebody has to begin to execute changes; `None` if too many wait. `is_further` tells
    /// whether the flow has made a change before, for whose commit it has not waited.
    pub(super) fn push(&self, is_further: bool, change: impl FnOnce() -> QueuedChange) -> Option<bool> {
        let mut queue = self.queue.lock();
        if queue.waiting.len() >= WAITING_MAX {
            return None;
        }
        if is_further {
            queue.unsynced = UNSYNCED_AFTER_SEVERAL;
        }
        queue.waiting.push(change());
        Some(!std::mem::replace(&mut queue.is_running, true))
    }

    /// Has the next changes be transactions of their own.
    pub(super) fn was_refused(&self) {
        self.queue.lock().alone = ALONE_AFTER_REFUSAL;
    }

    /// Returns whether the next changes may be one transaction.
    pub(super) fn may_join(&self) -> bool {
        self.queue.lock().alone == 0
    }

    /// Takes the next changes; `None` if there are none.
    pub(super) fn next(&self) -> Option<WriteGroup> {
        let mut queue = self.queue.lock();
        if queue.waiting.is_empty() {
            queue.is_running = false;
            self.idle.notify_all();
            return None;
        }
        let count = queue.waiting.len().min(GROUP_MAX);
        let changes: Vec<QueuedChange> = queue.waiting.drain(..count).collect();
        let may_join = queue.alone == 0;
        // Changes that come one by one share a sync instead: the next one would wait for that of the one before.
        let is_durable = may_join && queue.unsynced == 0 && count > 1;
        queue.alone = queue.alone.saturating_sub(count);
        queue.unsynced = queue.unsynced.saturating_sub(count);
        Some(WriteGroup { changes, may_join, is_durable })
    }

    /// Forgets the changes that wait, so that their flows see that these have no answer.
    pub(super) fn abandon(&self) {
        let mut queue = self.queue.lock();
        queue.waiting.clear();
        queue.is_running = false;
        self.idle.notify_all();
    }
}
