//! Programs whose connection was lost: each joins the others again at once, also if no flow needs the database.
//!
//! Until then no lock tells others that it runs ([`running_programs`]), so a program of another version may have started. Therefore a
//! connection that is new declares the tables once more in its turn, as a start does, and compares what a start that it would have
//! hindered may have changed. If something has, this program must not write, nor read what it does not know: it ends.

use std::sync::Weak;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep;
use weir::Failure;

use super::catalog::PostgresCatalog;
use super::connection::PostgresConnection;
use super::connector::RECONNECT_PAUSE;
use super::errors::StatementError;
use super::{PostgresDatabase, running_programs, wait};
use crate::tables::evolution::missed_starts;
use crate::tables::schema::Schema;

/// Maximum of the pause between attempts to join again.
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Time after which a connection that keeps too much memory is closed. Chosen by judgement: a program that writes large rows all the time
/// joins so often, and the database keeps what it needs to know of a lost commit for some joins only (`join_answer`).
const GIVE_BACK_PAUSE: Duration = Duration::from_secs(30);
/// Begins the turn in which a program declares its tables once more.
const BEGIN: &str = "BEGIN; LOCK TABLE \"weir_database\" IN EXCLUSIVE MODE";

impl PostgresDatabase {
    /// Joins again when this connection ends, which is the one that writes, or when it keeps too much memory.
    pub(super) fn watch(&self, connection: &PostgresConnection) {
        let (Some(database), Some(end)) = (self.watched.get().cloned(), connection.end()) else { return };
        let grown = connection.room_grown();
        self.connector.io.handle.spawn(async move {
            tokio::select! {
                _ = end => {}
                () = give_back_when_grown(&database, &grown) => {}
            }
            let mut pause = RECONNECT_PAUSE;
            while let Some(database) = database.upgrade() {
                let joining = tokio::task::spawn_blocking(move || database.join_again());
                if joining.await.unwrap_or(true) {
                    return;
                }
                sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
            }
        });
    }

    /// Joins once more, on another thread: the join tells whether the database has gone back to an older state.
    pub(super) fn join_later(&self) {
        let Some(database) = self.watched.get().and_then(Weak::upgrade) else { return };
        // If it fails, the next statement that writes tells the same.
        drop(self.connector.io.handle.spawn_blocking(move || _ = database.reconnect()));
    }

    /// Closes the connection that writes if it keeps too much memory. Returns false if another attempt has to follow, because a
    /// transaction uses it.
    pub(super) fn give_back_writer(&self) -> bool {
        let mut writer = self.lock_writer();
        if !writer.connection.as_ref().is_some_and(|connection| connection.keeps_too_much()) {
            return true;
        }
        let is_unused = writer.transaction == 0 && wait(self.limit(), self.placed_commits_answered()).is_some();
        if is_unused {
            writer.cut();
            // If it fails, the task that watches the connection tries again, and so does the next statement.
            _ = self.connected(&mut writer);
        }
        is_unused
    }

    /// Connects the writer, unless a flow has done that. Returns false if another attempt has to follow.
    fn join_again(&self) -> bool {
        if self.check().is_err() {
            return true;
        }
        let mut writer = self.lock_writer();
        self.connected(&mut writer).is_ok() || self.check().is_err()
    }

    /// Declares the tables of the program by a connection that is new. Fails if a start has changed them which would have failed beside
    /// this program.
    pub(super) fn declare_again(&self, connection: &PostgresConnection) -> Result<Result<(), Failure>, StatementError> {
        let declared = self.declared.lock().clone();
        if declared.is_empty() {
            return Ok(Ok(()));
        }
        let command = |sql: &str| self.answered(async { Ok(connection.command(sql).await?) });
        command(BEGIN)?;
        for schema in &declared {
            command(&running_programs::noted(schema))?;
        }
        let catalog = PostgresCatalog::new(connection, self);
        let look =
            |schema: &Schema| missed_starts::changes(schema, &catalog).map(|why| Some((schema.name.clone(), why?)));
        let found = declared.iter().map(look).find(|found| !matches!(found, Ok(None)));
        let looked = self.look_for_triggers(&catalog);
        // The locks of the declarations are those of the connection. If it was lost, this fails, and the join is tried again.
        command("COMMIT")?;
        looked.map_err(StatementError::TakenBack)?;
        match found.transpose().map_err(StatementError::TakenBack)?.flatten() {
            None => Ok(Ok(())),
            Some((table, why)) => Ok(Err(Failure::function(format!(
                "another version of the program was started while this one had no connection to the database {}, and has changed \
                 `{table}`: {}",
                self.connector.address, why.message
            )))),
        }
    }
}

/// Closes the connection of a database that writes each time when it keeps too much memory, to its end.
async fn give_back_when_grown(database: &Weak<PostgresDatabase>, grown: &Notify) {
    loop {
        grown.notified().await;
        let mut is_given_back = false;
        while !is_given_back {
            // The statement, or its transaction, is in progress. It is not waited for, because others follow.
            sleep(GIVE_BACK_PAUSE).await;
            let Some(database) = database.upgrade() else { return };
            let giving_back = tokio::task::spawn_blocking(move || database.give_back_writer());
            is_given_back = giving_back.await.unwrap_or(true);
        }
    }
}
