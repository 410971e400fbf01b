//! Scratch schemas: empty schemas for tests, in a database whose other schemas stay as they are.
//!
//! 1. A run of tests has a random number, and a connection that holds the advisory lock of this number.
//! 2. A test that uses stored tables creates the schema `weir_test_RUN_TEST`, which is dropped when the test ends.
//! 3. [`ScratchSchemas::end`] drops the schemas of tests that have not ended.
//! 4. If the connection is lost, it is made anew. Another run may have dropped the schemas meanwhile, so that their tests fail.
//! 5. A run that was killed drops nothing. The next run drops the schemas of runs whose lock nobody holds.
//!
//! Only schemas with the comment that a run gives them are dropped, whatever their name is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use parking_lot::Mutex;
use weir::Failure;

use super::connecting::while_lost;
use super::connection::PostgresConnection;
use super::{PostgresAddress, PostgresDatabase};

/// The comment of a scratch schema.
const COMMENT: &str = "scratch schema of weir test";
/// Maximum number of random numbers that a run tries.
const NUMBERS_TRIED_MAX: u32 = 8;

/// The scratch schemas of a run of tests.
pub struct ScratchSchemas {
    database: PostgresDatabase,
    /// The connection that holds the lock of the run.
    connection: Mutex<PostgresConnection>,
    run: u32,
    last_test: AtomicU32,
}

/// A schema for the tables of one test, which is created at the first use and dropped with this value.
pub struct ScratchSchema {
    schemas: Arc<ScratchSchemas>,
    name: String,
    is_created: AtomicBool,
}

impl std::fmt::Debug for ScratchSchema {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "ScratchSchema({} in {})", self.name, self.schemas.database.connector.address)
    }
}

impl ScratchSchemas {
    /// Begins a run, and drops the schemas of runs that were killed.
    ///
    /// # Errors
    /// Fails if the database cannot be reached, or refuses a statement.
    pub fn begin(address: PostgresAddress) -> Result<Arc<ScratchSchemas>, Failure> {
        let database = PostgresDatabase::unprepared(address, (None, 1))?;
        let connection = database.connect().map_err(|error| database.failure(&error))?;
        let mut schemas =
            ScratchSchemas { database, connection: Mutex::new(connection), run: 0, last_test: AtomicU32::new(0) };
        schemas.run = schemas.locked_number()?;
        schemas.drop_abandoned()?;
        Ok(Arc::new(schemas))
    }

    /// Returns a schema for the tables of the next test.
    #[must_use]
    pub fn schema(self: &Arc<Self>) -> ScratchSchema {
        let test = self.last_test.fetch_add(1, Ordering::Relaxed) + 1;
        ScratchSchema {
            schemas: Arc::clone(self),
            name: format!("{}{test}", prefix(self.run)),
            is_created: AtomicBool::new(false),
        }
    }

    /// Drops the schemas of tests that have not ended.
    ///
    /// # Errors
    /// Fails if the database refuses a statement; the message has the number of schemas that are left.
    pub fn end(&self) -> Result<(), Failure> {
        let left: Vec<String> = self.names()?.into_iter().filter(|name| run_of(name) == Some(self.run)).collect();
        let dropped = left.iter().try_for_each(|name| self.drop_schema(name));
        dropped.map_err(|failure| {
            let prefix = prefix(self.run);
            Failure::function(format!(
                "{failure}; drop the schemas `{prefix}…`, or let the next run of tests drop them"
            ))
        })
    }

    /// Takes the lock of a random number, and returns the number.
    fn locked_number(&self) -> Result<u32, Failure> {
        for _ in 0..NUMBERS_TRIED_MAX {
            let random = self.texts("SELECT floor(random() * 4294967296)::bigint")?;
            let number = random.first().and_then(|text| text.parse().ok());
            let number = number.ok_or_else(|| Failure::function("the database has given no random number"))?;
            if self.locks(number)? {
                return Ok(number);
            }
        }
        Err(Failure::function("other runs of tests hold the locks of all numbers that were tried"))
    }

    fn locks(&self, run: u32) -> Result<bool, Failure> {
        Ok(self.texts(&format!("SELECT pg_try_advisory_lock({})", lock_of(run)))? == ["t"])
    }

    /// Drops the schemas of runs whose lock nobody holds.
    fn drop_abandoned(&self) -> Result<(), Failure> {
        for name in self.names()? {
            let Some(run) = run_of(&name).filter(|run| *run != self.run) else { continue };
            if self.locks(run)? {
                let dropped = self.drop_schema(&name);
                self.texts(&format!("SELECT pg_advisory_unlock({})", lock_of(run)))?;
                dropped?;
            }
        }
        Ok(())
    }

    /// Returns the names of all scratch schemas that this user may drop.
    fn names(&self) -> Result<Vec<String>, Failure> {
        self.texts(&format!(
            "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'weir\\_test\\_%' AND pg_has_role(nspowner, 'USAGE')
             AND obj_description(oid, 'pg_namespace') = '{COMMENT}' ORDER BY nspname"
        ))
    }

    /// Drops a schema, after ending the connections of its test: one may have an open transaction.
    fn drop_schema(&self, name: &str) -> Result<(), Failure> {
        self.texts(&format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE application_name = '{name}' AND pid <> pg_backend_pid() AND pg_has_role(usesysid, 'USAGE')"
        ))?;
        self.execute(&format!("DROP SCHEMA IF EXISTS \"{name}\" CASCADE"))
    }

    fn execute(&self, sql: &str) -> Result<(), Failure> {
        self.connected(async |connection| connection.command(sql).await)
    }

    /// Returns the first column of a query.
    fn texts(&self, sql: &str) -> Result<Vec<String>, Failure> {
        let rows = self.connected(async |connection| connection.texts(sql).await)?;
        Ok(rows.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect())
    }

    /// Executes a statement, each of which may be executed twice: if the connection is lost, it is made anew.
    fn connected<T>(
        &self,
        statement: impl AsyncFn(&PostgresConnection) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, Failure> {
        let executed = while_lost(|| {
            let mut connection = self.connection.lock();
            if connection.is_closed() {
                *connection = self.database.connect()?;
                // Only a run that looks for abandoned schemas holds the lock, and only as long as it looks.
                let lock = format!("SELECT pg_advisory_lock({})", lock_of(self.run));
                self.database.answered(async { Ok(connection.command(&lock).await?) })?;
            }
            self.database.answered(async { Ok(statement(&connection).await?) })
        });
        executed.map_err(|error| self.database.failure(&error))
    }
}

impl ScratchSchema {
    /// Creates the schema, and returns its address.
    pub(in crate::tables) fn create(&self) -> Result<PostgresAddress, Failure> {
        let name = &self.name;
        self.is_created.store(true, Ordering::Relaxed);
        self.schemas
            .execute(&format!("CREATE SCHEMA IF NOT EXISTS \"{name}\"; COMMENT ON SCHEMA \"{name}\" IS '{COMMENT}'"))?;
        Ok(self.schemas.database.connector.address.in_schema(name))
    }
}

impl Drop for ScratchSchema {
    fn drop(&mut self) {
        if self.is_created.load(Ordering::Relaxed) {
            // `end` tries again, and reports why it fails.
            _ = self.schemas.drop_schema(&self.name);
        }
    }
}

/// Returns the beginning of the names of a run's schemas.
fn prefix(run: u32) -> String {
    format!("weir_test_{run:08x}_")
}

/// Returns the run that a schema belongs to; `None` if its name is not one of a scratch schema.
fn run_of(name: &str) -> Option<u32> {
    let (run, test) = name.strip_prefix("weir_test_")?.split_once('_')?;
    let is_run = run.len() == 8 && run.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_test = !test.is_empty() && test.bytes().all(|byte| byte.is_ascii_digit());
    if is_run && is_test { u32::from_str_radix(run, 16).ok() } else { None }
}

/// Returns the arguments of the functions of PostgreSQL that take and release the lock of a run.
fn lock_of(run: u32) -> String {
    format!("hashtext('weir_test'), {}", run.cast_signed())
}

#[cfg(test)]
mod tests {
    use super::{prefix, run_of};

    #[test]
    fn only_names_of_scratch_schemas_have_a_run() {
        assert_eq!(run_of(&format!("{}12", prefix(255))), Some(255));
        for other in
            ["weir_test_", "weir_test_000000ff_", "weir_test_ff_1", "weir_test_000000ff_1x", "weir_test_+00000ff_1"]
        {
            assert_eq!(run_of(other), None, "{other}");
        }
    }
}
