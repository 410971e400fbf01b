//! The connection that writes, for the threads that share it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::writer::Writer;

/// Time that an open transaction has to end when somebody waits for it.
const PATIENCE: Duration = Duration::from_millis(5);

/// The connection that writes, which one thread uses at a time.
#[derive(Debug)]
pub(in crate::tables) struct SharedWriter {
    writer: Mutex<Writer>,
    /// Is notified when a transaction ends.
    ended: Condvar,
    /// That of the writer.
    is_waited_for: Arc<AtomicBool>,
}

impl SharedWriter {
    pub(in crate::tables) fn new(writer: Writer) -> SharedWriter {
        let is_waited_for = Arc::clone(&writer.is_waited_for);
        SharedWriter { writer: Mutex::new(writer), ended: Condvar::new(), is_waited_for }
    }

    pub(in crate::tables) fn lock(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock()
    }

    /// Locks the connection if nobody uses it.
    pub(super) fn try_lock(&self) -> Option<MutexGuard<'_, Writer>> {
        self.writer.try_lock()
    }

    /// Returns whether a thread waits, or has waited in vain, for another program that writes the database.
    pub(super) fn is_waited_for(&self) -> bool {
        self.is_waited_for.load(Ordering::Relaxed)
    }

    /// Commits a transaction. If that fails, nothing of it takes effect.
    pub(in crate::tables) fn commit(&self, transaction: i64) -> rusqlite::Result<()> {
        let committed = self.lock().commit(transaction);
        self.ended.notify_one();
        committed
    }

    /// Commits a transaction, and the group of which it is a member. If that fails, nothing of it takes effect.
    pub(in crate::tables) fn commit_at_once(&self, transaction: i64) -> rusqlite::Result<()> {
        let committed = self.lock().commit_at_once(transaction);
        self.ended.notify_one();
        committed
    }

    /// Takes back a transaction, if it is open. One that cannot be taken back is not committed either.
    pub(in crate::tables) fn roll_back(&self, transaction: i64) -> rusqlite::Result<()> {
        let mut writer = self.lock();
        let taken_back =
            if transaction != 0 && writer.transaction == transaction { writer.roll_back() } else { Ok(()) };
        drop(writer);
        self.ended.notify_one();
        taken_back
    }

    /// Takes back the open transaction, if there is one.
    pub(super) fn roll_back_open(&self) -> rusqlite::Result<()> {
        let taken_back = self.lock().roll_back();
        self.ended.notify_one();
        taken_back
    }

    /// Commits the group that is open now, after its open member, unless that takes long.
    pub(super) fn end_group(&self) -> rusqlite::Result<()> {
        self.lock_behind_group().1
    }

    /// Does the same, and returns the connection.
    pub(super) fn lock_behind_group(&self) -> (MutexGuard<'_, Writer>, rusqlite::Result<()>) {
        let mut writer = self.lock();
        let group = writer.group;
        self.wait_until(&mut writer, |writer| writer.member_rows.is_none() || writer.group != group);
        let ended = if writer.group == group { writer.end_group() } else { Ok(()) };
        (writer, ended)
    }

    /// Locks the connection when no transaction is open, or one takes long.
    pub(super) fn lock_between_transactions(&self) -> MutexGuard<'_, Writer> {
        let mut writer = self.lock();
        self.wait_until(&mut writer, |writer| writer.transaction == 0);
        writer
    }

    /// Waits a moment until the open transaction has ended as far as necessary.
    fn wait_until(&self, writer: &mut MutexGuard<'_, Writer>, is_reached: impl Fn(&Writer) -> bool) {
        let latest = Instant::now() + PATIENCE;
        while !is_reached(writer) {
            writer.is_group_due = writer.group.is_some();
            if self.ended.wait_until(writer, latest).timed_out() {
                return;
            }
        }
    }
}
