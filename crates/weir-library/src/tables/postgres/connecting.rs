//! The connections of a database: they are made anew when they are lost, and what is safe to repeat is tried again.

use std::time::Instant;

use parking_lot::MutexGuard;
use weir::assert_may_block;

use super::connection::PostgresConnection;
use super::connector::{CROWDED_PAUSE, RECONNECT_PAUSE, RECONNECT_TIMEOUT};
use super::errors::StatementError;
use super::writer::{ATTEMPTS_MAX, PostgresWriter, pause};
use super::{PostgresDatabase, durability, wait};

/// Maximum number of times that what is sent is tried again because the connection was lost. A statement may be what ends the
/// database.
const LOST_MAX: u32 = 3;

impl PostgresDatabase {
    /// Locks the writer, while no statement of it waits for its answer without a thread.
    pub(super) fn lock_writer(&self) -> MutexGuard<'_, PostgresWriter> {
        let mut writer = self.writer.lock();
        let deadline = Instant::now() + self.limit();
        while writer.is_in_flight() {
            assert_may_block();
            if self.landed.wait_until(&mut writer, deadline).timed_out() {
                // Its flow is not run any more.
                writer.give_up_flight();
            }
        }
        writer
    }

    /// Tries what is a transaction of its own, or begins one, again as long as others hinder it, and a few times if the connection
    /// is lost before anything of it could take effect: a database that ends or begins may also cut the next connections.
    pub(super) fn again<T>(&self, attempt: impl FnMut() -> Result<T, StatementError>) -> Result<T, StatementError> {
        self.again_unless(|error| matches!(error, StatementError::TakenBack(_)), attempt)
    }

    /// The same, unless an error ends it.
    pub(super) fn again_unless<T>(
        &self,
        ends: impl Fn(&StatementError) -> bool,
        mut attempt: impl FnMut() -> Result<T, StatementError>,
    ) -> Result<T, StatementError> {
        let mut lost = 0;
        for number in 1..ATTEMPTS_MAX {
            match attempt() {
                Err(error) if ends(&error) => return Err(error),
                Err(error) if error.is_conflict() => pause(number),
                Err(error) if error.is_lost() && lost < LOST_MAX => {
                    if lost > 0 {
                        std::thread::sleep(RECONNECT_PAUSE);
                    }
                    lost += 1;
                }
                tried => return tried,
            }
        }
        attempt()
    }

    /// Returns the connection that writes, and makes it if there is none. No statement of the writer may be in flight: a commit that
    /// is answered and not noted would not be executed once more.
    pub(super) fn connected<'w>(
        &self,
        writer: &'w mut PostgresWriter,
    ) -> Result<&'w PostgresConnection, StatementError> {
        if writer.connection.as_ref().is_some_and(|connection| connection.is_closed()) {
            writer.cut();
        }
        let open = writer.connection.take();
        Ok(match open {
            Some(open) => &**writer.connection.insert(open),
            None => {
                // One that is not noted in time fails.
                _ = wait(self.limit(), self.placed_commits_answered());
                // Whoever has waited for this one has waited for the refusal of the next one, too.
                let refused_since = self.connector.spare.indispensable_refused();
                let connected = while_lost_since(refused_since.unwrap_or_else(Instant::now), || self.joined());
                let connected = connected.map_err(|error| match error {
                    StatementError::Database(error, _) => StatementError::Unreachable(error),
                    other => other,
                })?;
                // The outcomes of those without an answer are known now. Whoever goes on sees what becomes of their changes.
                _ = self.await_placed_commits();
                self.watch(&connected);
                writer.marks = self.group_commit.get().map(|_| self.unsynced.marks());
                writer.connect(connected)
            }
        })
    }

    /// Connects the writer, and executes once more what a crash of the database has taken back. Fails for good if the tables have
    /// changed meanwhile so that this program must not go on.
    pub(super) fn joined(&self) -> Result<PostgresConnection, StatementError> {
        self.check()?;
        let connection = self.connect()?;
        // Other databases know nothing of the programs of this one.
        if let Some(group_commit) = self.group_commit.get() {
            let joined = match self.declare_again(&connection)? {
                Ok(()) => durability::join(&connection, &self.connector, &self.unsynced)?,
                changed => changed,
            };
            if let Err(failure) = joined {
                self.unsynced.forget_unanswered();
                group_commit.give_up(failure.clone());
                self.end.fail(&failure);
                return Err(StatementError::TakenBack(failure));
            }
        }
        Ok(connection)
    }

    pub(super) fn connect(&self) -> Result<PostgresConnection, StatementError> {
        self.connector.connect()
    }

    /// Connects the writer anew, after a crash of the database.
    pub(super) fn reconnect(&self) -> Result<(), StatementError> {
        self.writer.lock().cut();
        // A commit that was answered before is noted first.
        let mut writer = self.lock_writer();
        self.connected(&mut writer).map(|_| ())
    }
}

/// Tries what needs a connection until it succeeds, fails for another reason than a lost connection, or the time to connect again
/// is over.
pub(super) fn while_lost<T>(attempt: impl Fn() -> Result<T, StatementError>) -> Result<T, StatementError> {
    while_lost_since(Instant::now(), attempt)
}

/// The same, if that has been tried since this time.
fn while_lost_since<T>(since: Instant, attempt: impl Fn() -> Result<T, StatementError>) -> Result<T, StatementError> {
    let deadline = since + RECONNECT_TIMEOUT;
    loop {
        match attempt() {
            Err(error) if error.is_lost() && Instant::now() < deadline => {
                let was_asked = error.has_no_connection_left() && !matches!(error, StatementError::NoConnection);
                std::thread::sleep(if was_asked { CROWDED_PAUSE } else { RECONNECT_PAUSE });
            }
            tried => return tried,
        }
    }
}
