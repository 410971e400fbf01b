//! Databases of tests: empty at first, and removed at the end.

use std::path::PathBuf;

use test_support::postgres::PostgresServer;
use weir::Failure;

use crate::tables::postgres::PostgresAddress;
use crate::tables::report;
use crate::tables::schema::Schema;
use crate::tables::storage::TableStorage;
use crate::tables::table_databases::{ExistingDatabases, TableLocation};

/// A change of another program of the table [`users`](super::users), which commits when somebody waits for it, and has its
/// snapshot.
pub(super) const HINDERING_UPDATE: &str = "DO $$ BEGIN
    UPDATE users SET place = 2;
    PERFORM pg_advisory_xact_lock(7, 'users'::regclass::oid::int);
    WHILE NOT EXISTS (SELECT 1 FROM pg_locks WHERE NOT granted AND transactionid = pg_current_xact_id()::xid) LOOP
        PERFORM pg_sleep(0.01);
    END LOOP;
END $$";
/// The number of [`HINDERING_UPDATE`]s that have changed the table [`users`](super::users).
pub(super) const HINDERING_USERS: &str =
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = 7 AND objid = 'users'::regclass";
/// The number of transactions that write the table [`users`](super::users).
pub(super) const WRITING_USERS: &str =
    "SELECT count(*) FROM pg_locks WHERE relation = 'users'::regclass AND mode = 'RowExclusiveLock'";

/// Waits until a query of the database has this answer.
pub(super) fn wait_for(server: &PostgresServer, schema: &str, query: &str, answer: &str) {
    while server.execute(schema, query).trim() != answer {
        std::thread::yield_now();
    }
}

/// A database that is empty at first and removed at the end.
pub(super) enum TestDatabase {
    /// The folder of an SQLite database.
    Sqlite(PathBuf),
    /// The name of a schema of PostgreSQL.
    Postgres(String),
}

impl TestDatabase {
    /// Returns an empty database of each kind.
    pub(super) fn each(name: &str) -> Vec<TestDatabase> {
        let postgres = PostgresServer::shared().map(|server| {
            server.schema(name);
            TestDatabase::Postgres(name.to_owned())
        });
        std::iter::once(TestDatabase::sqlite(name)).chain(postgres).collect()
    }

    /// Returns an empty SQLite database.
    pub(super) fn sqlite(name: &str) -> TestDatabase {
        let path = std::env::temp_dir().join(format!("weir-tables-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        TestDatabase::Sqlite(path)
    }

    pub(super) fn place(&self) -> TableLocation {
        match self {
            TestDatabase::Sqlite(folder) => TableLocation::File(folder.join("test.db")),
            TestDatabase::Postgres(schema) => {
                let address = PostgresServer::shared().unwrap().address(schema);
                TableLocation::Postgres(PostgresAddress::parse(&address, None).unwrap())
            }
        }
    }

    /// Returns what `weir tables` says about a table.
    pub(super) fn report(&self, schema: &Schema) -> Result<String, Failure> {
        let tables = (schema, std::slice::from_ref(schema));
        let report = report(tables, &[], (&self.place(), &ExistingDatabases::default()))?;
        assert_eq!(report.fails, report.text.contains("a start fails"), "{}", report.text);
        Ok(report.text)
    }

    /// Returns what `weir tables` says about all tables of a program.
    pub(super) fn report_all(&self, schemas: &[Schema]) -> String {
        let place = (&self.place(), &ExistingDatabases::default());
        schemas.iter().map(|schema| report((schema, schemas), &[], place).unwrap().text).collect()
    }

    pub(super) fn storage(&self) -> TableStorage {
        TableStorage::at(self.place())
    }

    /// Returns the file of an SQLite database.
    pub(super) fn file(&self) -> PathBuf {
        match self {
            TestDatabase::Sqlite(folder) => folder.join("test.db"),
            TestDatabase::Postgres(schema) => panic!("{schema} is no file"),
        }
    }

    /// Executes SQL as another program.
    pub(super) fn execute(&self, sql: &str) {
        match self {
            TestDatabase::Sqlite(_) => rusqlite::Connection::open(self.file()).unwrap().execute_batch(sql).unwrap(),
            TestDatabase::Postgres(schema) => _ = PostgresServer::shared().unwrap().execute(schema, sql),
        }
    }

    /// Returns the program in which people correct rows.
    pub(super) fn shell(&self) -> &'static str {
        match self {
            TestDatabase::Sqlite(_) => "sqlite3",
            TestDatabase::Postgres(_) => "psql",
        }
    }
}

impl std::fmt::Debug for TestDatabase {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(if matches!(self, TestDatabase::Sqlite(_)) { "SQLite" } else { "PostgreSQL" })
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        if let TestDatabase::Sqlite(folder) = self {
            _ = std::fs::remove_dir_all(folder);
        }
    }
}
