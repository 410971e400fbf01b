//! Tables that are filled before a case begins: those of a server by hand, which has created none, and those of a program.

use std::path::Path;

use bench_harness::BenchResult;
use rusqlite::Connection;

use crate::servers::{Place, Setting};

/// Tables with their rows.
pub(crate) struct FilledTables {
    /// The file of the server by hand.
    pub(crate) file: &'static str,
    /// The tables of the server by hand in SQLite, without what follows their columns.
    pub(crate) schema: &'static str,
    /// The end of a table in SQLite behind its columns.
    pub(crate) end: &'static str,
    /// Each table, the number of its rows, and their values from the numbers `n` up to it, as those of a `SELECT`.
    pub(crate) rows: &'static [(&'static str, u64, &'static str)],
}

impl FilledTables {
    /// Creates the tables of the server by hand, and fills them.
    pub(crate) fn create(&self, setting: &Setting, place: &Place) -> BenchResult<()> {
        let file = place.folder.join(self.file);
        match (&place.address, setting.postgres()) {
            (Some(address), Some(server)) => {
                _ = server.execute(schema_of(address), &self.schema.replace(" INTEGER", " bigint"));
            }
            _ => Connection::open(&file)?.execute_batch(&self.schema.replace(");", self.end))?,
        }
        self.fill(setting, place, &file)
    }

    /// Fills tables that are there.
    pub(crate) fn fill(&self, setting: &Setting, place: &Place, database: &Path) -> BenchResult<()> {
        for (table, count, values) in self.rows {
            match (&place.address, setting.postgres()) {
                (Some(address), Some(server)) => {
                    let sql = format!(
                        "INSERT INTO {table} SELECT {values} FROM generate_series(1, {count}) AS n; ANALYZE {table}"
                    );
                    server.execute(schema_of(address), &sql);
                }
                _ => {
                    let numbers = "WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < ?1)";
                    let sql = format!("{numbers} INSERT INTO {table} SELECT {values} FROM s");
                    Connection::open(database)?.execute(&sql, [*count as i64])?;
                }
            }
        }
        Ok(())
    }
}

/// Returns the name of the schema of an address.
pub(crate) fn schema_of(address: &str) -> &str {
    address.rsplit_once("%3D").map_or("public", |(_, schema)| schema)
}
