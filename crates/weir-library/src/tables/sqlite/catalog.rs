//! The tables of an SQLite database.

use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, params_from_iter};
use weir::{Value, memory};

use super::database_error::explain;
use super::value::sqlite_value;
use crate::tables::catalog::{
    Catalog, CatalogColumn, CatalogIndex, IndexPart, KeyCollation, NameHolder, Read, grouped_columns, indexes_of,
};
use crate::tables::dialect::Dialect;
use crate::tables::schema::ColumnSchema;
use crate::tables::sql_value::Bound;

/// The tables of an SQLite database, read and changed by a connection.
pub(in crate::tables) struct SqliteCatalog<'c> {
    pub(in crate::tables) connection: &'c Connection,
    /// The file of the database.
    pub(in crate::tables) path: &'c Path,
}

impl SqliteCatalog<'_> {
    fn read<T>(&self, read: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Read<T> {
        read(self.connection).map_err(|error| explain(self.path, &error))
    }
}

impl Catalog for SqliteCatalog<'_> {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn columns(&self, table: &str) -> Read<Vec<CatalogColumn>> {
        Ok(self.columns_of_existing(table)?.into_iter().filter(|column| !column.generated).collect())
    }

    fn columns_of_existing(&self, table: &str) -> Read<Vec<CatalogColumn>> {
        let column = |row: &rusqlite::Row<'_>| {
            let (name, sql_type, key) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let (nullable, default, generated) = (row.get(3)?, row.get(4)?, row.get(5)?);
            Ok(CatalogColumn { name, sql_type, collation: None, key, nullable, default, generated })
        };
        // 1 is a parameter of a virtual table, which `SELECT *` does not show; 2 and 3 are generated columns.
        let sql = "SELECT name, type, pk > 0, \"notnull\" = 0, dflt_value, hidden > 1
                   FROM pragma_table_xinfo(?1) WHERE hidden <> 1 ORDER BY cid";
        self.read(|connection| connection.prepare_cached(sql)?.query_map([table], column)?.collect())
    }

    fn is_view(&self, table: &str) -> Read<bool> {
        let sql = "SELECT count(*) FROM sqlite_schema WHERE type = 'view' AND name = ?1 COLLATE NOCASE";
        self.read(|connection| connection.query_row(sql, [table], |row| row.get::<_, i64>(0))).map(|count| count > 0)
    }

    fn indexed_columns(&self, table: &str) -> Read<Vec<(Vec<String>, bool)>> {
        let key = "SELECT name FROM pragma_table_info(?1) WHERE pk > 0 ORDER BY pk";
        let key: Vec<String> =
            self.read(|connection| connection.prepare(key)?.query_map([table], |row| row.get(0))?.collect())?;
        let sql = "SELECT list.seq, list.\"unique\", info.name
                   FROM pragma_index_list(?1) AS list, pragma_index_info(list.name) AS info
                   WHERE NOT list.partial ORDER BY list.seq, info.seqno";
        let part = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        let parts: Vec<(i64, bool, Option<String>)> =
            self.read(|connection| connection.prepare(sql)?.query_map([table], part)?.collect())?;
        Ok(grouped_columns(parts).chain((!key.is_empty()).then_some((key, true))).collect())
    }

    fn nocase_columns(&self, table: &str) -> Read<Vec<String>> {
        let sql = "SELECT DISTINCT info.name FROM pragma_index_list(?1) AS list, pragma_index_xinfo(list.name) AS info
                   WHERE info.\"key\" AND info.name IS NOT NULL AND info.coll = 'NOCASE' COLLATE NOCASE";
        self.read(|connection| connection.prepare(sql)?.query_map([table], |row| row.get(0))?.collect())
    }

    fn key_collation(&self, table: &str, column: &str) -> Read<Option<KeyCollation>> {
        // A unique index has its own collation. That of a constraint has a name that SQLite makes.
        let sql = "SELECT info.coll, CASE list.origin WHEN 'c' THEN list.name END
                   FROM pragma_index_list(?1) AS list, pragma_index_xinfo(list.name) AS info
                   WHERE list.\"unique\" AND info.\"key\" AND info.name = ?2 COLLATE NOCASE AND info.coll <> 'BINARY' COLLATE NOCASE
                   ORDER BY list.origin = 'c'";
        let collation = |row: &rusqlite::Row<'_>| Ok(KeyCollation { name: row.get(0)?, index: row.get(1)? });
        self.read(|connection| connection.query_row(sql, [table, column], collation).optional())
    }

    fn numbers_column(&self, table: &str, column: &str) -> Read<bool> {
        // Such a column is the number of the row, unless the table has none.
        let sql = "SELECT count(*) = 1 AND min(name) = ?2 AND min(upper(type)) = 'INTEGER' FROM pragma_table_info(?1) WHERE pk > 0";
        let is_number: Option<bool> =
            self.read(|connection| connection.query_row(sql, [table, column], |row| row.get(0)))?;
        let sql = "SELECT wr FROM pragma_table_list(?1)";
        let has_none: Option<bool> =
            self.read(|connection| connection.query_row(sql, [table], |row| row.get(0)).optional())?;
        Ok(is_number == Some(true) && has_none == Some(false))
    }

    fn indexes(&self, table: &str) -> Read<Vec<CatalogIndex>> {
        let sql = "SELECT list.name, list.\"unique\", NOT list.partial AND NOT info.\"desc\" AND info.coll = 'BINARY' COLLATE NOCASE, info.name
                   FROM pragma_index_list(?1) AS list, pragma_index_xinfo(list.name) AS info
                   WHERE info.\"key\" ORDER BY list.seq, info.seqno";
        let part = |row: &rusqlite::Row<'_>| {
            let (index, unique, plain) = (row.get(0)?, row.get(1)?, row.get::<_, Option<bool>>(2)?);
            // That of a constraint has a name that SQLite makes.
            Ok(IndexPart { index, unique, of_constraint: false, plain: plain == Some(true), column: row.get(3)? })
        };
        let parts: Vec<IndexPart> =
            self.read(|connection| connection.prepare(sql)?.query_map([table], part)?.collect())?;
        Ok(indexes_of(parts))
    }

    fn holder_of_name(&self, name: &str) -> Read<Option<NameHolder>> {
        let sql = "SELECT type, CASE type WHEN 'index' THEN tbl_name END FROM sqlite_schema
                   WHERE type <> 'trigger' AND name = ?1 COLLATE NOCASE";
        let holder = |row: &rusqlite::Row<'_>| Ok(NameHolder { kind: row.get(0)?, table: row.get(1)? });
        self.read(|connection| connection.query_row(sql, [name], holder).optional())
    }

    fn numbers_rows(&self, table: &str) -> Read<bool> {
        let sql = "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?1";
        let sql: Option<String> =
            self.read(|connection| connection.query_row(sql, [table], |row| row.get(0)).optional())?;
        Ok(sql.unwrap_or_default().to_ascii_uppercase().contains("AUTOINCREMENT"))
    }

    fn same_but_for_case(&self, table: &str) -> Read<Option<String>> {
        let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name = ?1 COLLATE NOCASE AND name <> ?1";
        self.read(|connection| connection.query_row(sql, [table], |row| row.get(0)).optional())
    }

    fn query(&self, sql: &str) -> Read<Vec<Vec<Option<String>>>> {
        let value = |value: ValueRef<'_>| match value {
            ValueRef::Integer(number) => Some(number.to_string()),
            ValueRef::Real(number) => Some(number.to_string()),
            ValueRef::Text(text) => Some(String::from_utf8_lossy(text).into_owned()),
            ValueRef::Null | ValueRef::Blob(_) => None,
        };
        self.read(|connection| {
            let mut statement = connection.prepare(sql)?;
            let columns = statement.column_count();
            let row = |row: &rusqlite::Row<'_>| (0..columns).map(|at| Ok(value(row.get_ref(at)?))).collect();
            statement.query_map([], row)?.collect()
        })
    }

    fn rows(&self, sql: &str, columns: &[ColumnSchema]) -> Read<Vec<Vec<Option<Value>>>> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(sql)?;
            let (mut rows, mut found) = (statement.query([])?, Vec::new());
            while let Some(row) = rows.next()? {
                let value = |(at, column)| Ok(sqlite_value(row.get_ref(at)?, column));
                found.push(columns.iter().enumerate().map(value).collect::<rusqlite::Result<Vec<_>>>()?);
                if let Err(failure) = memory::check() {
                    return Ok(Err(*failure));
                }
            }
            Ok(Ok(found))
        })?
    }

    fn run(&self, sql: &str, parameters: &[Bound<'_>]) -> Read<()> {
        self.read(|connection| connection.prepare_cached(sql)?.execute(params_from_iter(parameters)).map(|_| ()))
    }

    fn plan(&self, sql: &str, _parameters: usize) -> Read<Vec<String>> {
        let steps: Vec<(i64, i64, String)> = self.read(|connection| {
            let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
            // The parameters stay without values.
            let mut rows = statement.raw_query();
            let mut steps = Vec::new();
            while let Some(row) = rows.next()? {
                steps.push((row.get(0)?, row.get(1)?, row.get(3)?));
            }
            Ok(steps)
        })?;
        let parent = |of: i64| steps.iter().find(|(id, ..)| *id == of).map(|(_, parent, _)| *parent);
        let depth = |of: i64| std::iter::successors(parent(of), |up| parent(*up)).count();
        Ok(steps.iter().map(|(_, parent, detail)| "  ".repeat(depth(*parent)) + detail).collect())
    }

    fn execute(&self, sql: &str) -> Read<()> {
        self.read(|connection| connection.execute_batch(sql))
    }
}
