//! Starts that other programs hold up, because they have locks which the changes of the start need.
//!
//! A program that waits for a lock of a table holds up all that read the table later. So a start waits for a moment only, takes back what it has changed,
//! and tries again, as long as a statement may take. It says whom it waits for.

use std::time::{Duration, Instant};

use weir::{Failure, FailureKind};

use super::catalog::PostgresCatalog;
use super::errors::{failure, of_start};
use super::{PostgresDatabase, STILL_WAITING_PERIOD};
use crate::tables::catalog::{Catalog, StartCheck};
use crate::tables::schema::Schema;

/// Time after which a start tries again to take a lock that another program has. Chosen by judgement: the readers of a table wait for a
/// fifth of the time at most.
pub(super) const HELD_UP_PAUSE: Duration = Duration::from_millis(400);

/// Longest wait for the turn of the start at a time. Those that wait for their turn behind it do not wait longer for that.
const TURN_WAIT_MAX: Duration = Duration::from_secs(2);

/// Time after which a start says for the first time that it is held up. Chosen by judgement: a person who waits for it begins to wonder.
const SAY_AFTER: Duration = Duration::from_secs(2);

/// Asks for the processes that have had locks of tables of the schema for a second or more, those of the strongest locks first: their
/// numbers, the names of their programs, and the beginnings of what they execute or have executed last. A role that is not told
/// since when a process has its locks, nor what it executes, sees it all the same.
const HOLDERS: &str = "SELECT a.pid::text, a.application_name, left(regexp_replace(a.query, '\\s+', ' ', 'g'), 80)
    FROM (SELECT l.pid, max(array_position(ARRAY['AccessShareLock', 'RowShareLock', 'RowExclusiveLock', 'ShareUpdateExclusiveLock',
        'ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock'], l.mode)) AS strength
        FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
        WHERE l.locktype = 'relation' AND l.granted AND l.pid <> pg_backend_pid() AND c.relnamespace = current_schema()::regnamespace
        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) GROUP BY l.pid) holders
    JOIN pg_stat_activity a USING (pid)
    WHERE coalesce(a.xact_start <= clock_timestamp() - interval '1 second', true) ORDER BY strength DESC, 1 LIMIT 5";

/// Returns whether changes of a start have failed because another program has a lock that they need.
fn is_held_up(why: &Failure) -> bool {
    why.kind == FailureKind::Conflict
}

impl PostgresDatabase {
    /// Makes changes of a start, all or none. While another program has a lock that they need, such as `pg_dump`, or changes the same, they
    /// are tried again.
    pub(in crate::tables) fn changing<T>(&self, change: impl Fn(&dyn Catalog) -> StartCheck<T>) -> Result<T, Failure> {
        let begun = Instant::now();
        let mut say_at = begun + SAY_AFTER;
        loop {
            let (changed, is_held_up) = self.changed_at_once(&change).map_err(of_start)?;
            let now = Instant::now();
            if !is_held_up || now >= begun + self.connector.address.time_limit {
                return changed.map_err(of_start);
            }
            if now >= say_at {
                say_at = now + STILL_WAITING_PERIOD;
                self.say_who_holds_up();
            }
            std::thread::sleep(HELD_UP_PAUSE);
        }
    }

    /// Returns whether changes of a start with this table, which have failed for this reason, may succeed now. If a lock was in the way, they
    /// were tried as long as a start may wait.
    pub(in crate::tables) fn may_start_now(&self, why: &Failure, schema: &Schema) -> bool {
        !is_held_up(why) && self.hindering_have_ended(schema)
    }

    /// Tries changes of a start, in a turn of this program. Returns their result, and whether a lock of another program was in the way.
    fn changed_at_once<T>(
        &self,
        change: impl Fn(&dyn Catalog) -> StartCheck<T>,
    ) -> Result<(Result<T, Failure>, bool), Failure> {
        let mut writer = self.writer.lock();
        let connection = self.connected(&mut writer).map_err(|error| failure(&self.connector.address, &error))?;
        let turn_wait = TURN_WAIT_MAX.min(self.connector.address.time_limit / 2).as_millis();
        let turn = self.command(
            connection,
            &format!(
                "BEGIN; SET LOCAL lock_timeout = {turn_wait}; LOCK TABLE \"weir_database\" IN EXCLUSIVE MODE; \
                 SET LOCAL lock_timeout TO DEFAULT"
            ),
        );
        if let Err(why) = turn {
            self.command(connection, "ROLLBACK")?;
            let is_held_up = is_held_up(&why);
            return Ok((Err(why), is_held_up));
        }
        let catalog = PostgresCatalog::of_start(connection, self)?;
        let changed = change(&catalog);
        let is_changed = matches!(changed, Ok(Ok(_)));
        self.command(connection, if is_changed { "COMMIT" } else { "ROLLBACK" })?;
        Ok((changed.and_then(|changed| changed), catalog.is_held_up.get()))
    }

    /// Says in the log which processes hold up this start.
    fn say_who_holds_up(&self) {
        let Some(log) = &self.connector.log else { return };
        // If it cannot be known, the start tells at its end why it has failed.
        let Ok(holders) = self.look(|catalog| catalog.query(HOLDERS)) else { return };
        let shown = holders.iter().filter_map(|holder| match holder.as_slice() {
            [Some(process), program, executes] => {
                let text = |text: &Option<String>| text.clone().unwrap_or_default();
                Some(format!("the process {process} ({}: {})", text(program), text(executes)))
            }
            _ => None,
        });
        let shown: Vec<String> = shown.collect();
        let of = if shown.is_empty() { "another program".to_owned() } else { shown.join(", ") };
        let seconds = self.connector.address.time_limit.as_secs();
        log.info(format!(
            "the start waits for up to {seconds} s for a lock of a table in the database {}, which one of these has, most likely the \
             first: {of}",
            self.connector.address
        ));
    }
}
