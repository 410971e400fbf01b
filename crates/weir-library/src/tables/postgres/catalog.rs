//! The tables of a schema of PostgreSQL.

use std::cell::Cell;
use std::time::Duration;

use weir::{Failure, Value};

use super::PostgresDatabase;
use super::connection::{Executed, PostgresConnection, SqlStatement};
use super::errors::StatementError;
use super::io::wait;
use super::received_row::ReceivedRow;
use super::running_programs;
use super::value::column_value;
use crate::tables::catalog::{
    Catalog, CatalogColumn, CatalogIndex, IndexPart, KeyCollation, NameHolder, Read, grouped_columns, indexes_of,
};
use crate::tables::dialect::Dialect;
use crate::tables::schema::{ColumnSchema, Schema};
use crate::tables::sql::list;
use crate::tables::sql_value::Bound;

/// The tables of a schema, read and changed by a connection.
pub(in crate::tables) struct PostgresCatalog<'c> {
    pub(super) connection: &'c PostgresConnection,
    pub(super) database: &'c PostgresDatabase,
    /// True if a statement was given up because another program has a lock that it needs, or changes the same.
    pub(super) is_held_up: Cell<bool>,
    /// Time after which an answer is not waited for any more.
    limit: Duration,
}

/// Time limit of the statements of a start, unless that of all statements is longer: no request waits for them, and they create indexes
/// and check the rows of large tables.
const START_TIME_LIMIT: Duration = Duration::from_secs(3_600);

/// The limit of the wait for the lock of a statement that changes a table: others that come later wait behind it.
const LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = 100";

impl<'c> PostgresCatalog<'c> {
    pub(super) fn new(connection: &'c PostgresConnection, database: &'c PostgresDatabase) -> PostgresCatalog<'c> {
        PostgresCatalog { connection, database, is_held_up: Cell::new(false), limit: database.limit() }
    }

    /// Returns the tables for a start, in whose transaction this has begun: its statements may take as long as the rows of large tables
    /// take.
    pub(super) fn of_start(
        connection: &'c PostgresConnection,
        database: &'c PostgresDatabase,
    ) -> Result<PostgresCatalog<'c>, Failure> {
        let address = &database.connector.address;
        let longer = START_TIME_LIMIT.saturating_sub(address.time_limit);
        let milliseconds = (address.time_limit + longer).as_millis();
        database.command(connection, &format!("SET LOCAL statement_timeout = {milliseconds}"))?;
        let catalog = PostgresCatalog::new(connection, database);
        Ok(PostgresCatalog { limit: catalog.limit + longer, ..catalog })
    }
}

impl PostgresCatalog<'_> {
    /// Returns the expression of a table of the schema; it is null if there is none.
    fn table(table: &str) -> String {
        format!("to_regclass(quote_ident(current_schema()) || '.' || quote_ident({}))", Dialect::Postgres.text(table))
    }

    /// Returns whether a query has rows.
    fn is_any(&self, sql: &str) -> Read<bool> {
        Ok(!self.query(sql)?.is_empty())
    }

    fn executed(&self, sql: &str, parameters: &[Bound<'_>]) -> Read<Executed> {
        let statements = [SqlStatement::new(sql, parameters)];
        let executed = self.answered(async {
            let prepared = self.connection.prepare(&statements).await?;
            let executed = self.connection.execute(&statements, &prepared).await;
            executed.map_err(|(at, error)| StatementError::Database(error, at))
        });
        Ok(executed?.into_iter().next().unwrap_or_default())
    }

    /// Blocks the thread until the answer is there.
    fn answered<T>(&self, answer: impl Future<Output = Result<T, StatementError>>) -> Read<T> {
        wait(self.limit, answer).unwrap_or(Err(StatementError::NoAnswer)).map_err(|error| {
            let is_held_up = error.is_lock_missing() || error.is_change_beside_another();
            self.is_held_up.set(self.is_held_up.get() || is_held_up);
            self.database.failure(&error)
        })
    }
}

impl Catalog for PostgresCatalog<'_> {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn columns(&self, table: &str) -> Read<Vec<CatalogColumn>> {
        let table = PostgresCatalog::table(table);
        let rows = self.query(&format!(
            "SELECT a.attname, format_type(a.atttypid, a.atttypmod), coalesce(a.attnum = ANY (i.indkey), false),
                    NOT a.attnotnull, pg_get_expr(d.adbin, d.adrelid), a.attgenerated <> '',
                    (SELECT collname FROM pg_collation c WHERE c.oid = a.attcollation)
             FROM pg_attribute a
             LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
             LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary
             WHERE a.attrelid = {table} AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
        ))?;
        Ok(rows.into_iter().filter_map(column_of).collect())
    }

    fn is_view(&self, table: &str) -> Read<bool> {
        let table = PostgresCatalog::table(table);
        Ok((self as &dyn Catalog)
            .number(&format!("SELECT count(*) FROM pg_class WHERE oid = {table} AND relkind IN ('v', 'm')"))?
            > 0)
    }

    fn indexed_columns(&self, table: &str) -> Read<Vec<(Vec<String>, bool)>> {
        let table = PostgresCatalog::table(table);
        let rows = self.query(&format!(
            "SELECT i.indexrelid, i.indisunique AND i.indisvalid, a.attname
             FROM pg_index i CROSS JOIN unnest(i.indkey::int2[]) WITH ORDINALITY AS k (column_number, place)
             LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.column_number
             WHERE i.indrelid = {table} AND i.indpred IS NULL AND k.place <= i.indnkeyatts ORDER BY 1, k.place"
        ))?;
        let part = |row: Vec<Option<String>>| {
            let [number, unique, column] = <[Option<String>; 3]>::try_from(row).ok()?;
            Some((number?.parse().ok()?, unique.as_deref() == Some("t"), column))
        };
        Ok(grouped_columns(rows.into_iter().filter_map(part)).collect())
    }

    fn key_collation(&self, table: &str, column: &str) -> Read<Option<KeyCollation>> {
        let (table, column) = (PostgresCatalog::table(table), Dialect::Postgres.text(column));
        let rows = self.query(&format!(
            "WITH a AS (SELECT attnum, attcollation FROM pg_attribute WHERE attrelid = {table} AND attname = {column})
             SELECT c.collname, k.index
             FROM (SELECT NULL AS index, attcollation AS collated FROM a
                   UNION ALL
                   SELECT n.relname, k.collated FROM pg_index i JOIN pg_class n ON n.oid = i.indexrelid
                   CROSS JOIN unnest(i.indkey::int2[], i.indcollation::oid[]) AS k (column_number, collated)
                   JOIN a ON a.attnum = k.column_number
                   WHERE i.indrelid = {table} AND i.indisunique) AS k
             JOIN pg_collation c ON c.oid = k.collated WHERE NOT c.collisdeterministic ORDER BY k.index NULLS FIRST"
        ))?;
        let first = rows.into_iter().next().and_then(|row| <[Option<String>; 2]>::try_from(row).ok());
        Ok(first.and_then(|[name, index]| Some(KeyCollation { name: name?, index })))
    }

    fn defers_key(&self, table: &str, columns: &[&str]) -> Read<bool> {
        let (table, number) = (PostgresCatalog::table(table), columns.len());
        let columns = list(columns.iter().map(|column| Dialect::Postgres.text(column)), ", ");
        let rows = self.query(&format!(
            "SELECT bool_or(NOT i.indimmediate) FROM pg_index i
             WHERE i.indrelid = {table} AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indnkeyatts = {number}
             AND ARRAY(SELECT a.attname::text FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k (column_number, place)
                       JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.column_number
                       WHERE k.place <= i.indnkeyatts) @> ARRAY[{columns}]::text[]"
        ))?;
        Ok(rows.concat() == [Some("t".to_owned())])
    }

    fn numbers_column(&self, table: &str, column: &str) -> Read<bool> {
        let (table, column) = (PostgresCatalog::table(table), Dialect::Postgres.text(column));
        let sql = format!(
            "SELECT count(*) FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
             WHERE a.attrelid = {table} AND a.attname = {column}
             AND (a.attidentity <> '' OR pg_get_expr(d.adbin, d.adrelid) LIKE 'nextval(%')"
        );
        Ok((self as &dyn Catalog).number(&sql)? > 0)
    }

    fn indexes(&self, table: &str) -> Read<Vec<CatalogIndex>> {
        let table = PostgresCatalog::table(table);
        // An index that could not be created to its end is not valid. Older servers have no `indnullsnotdistinct`.
        let rows = self.query(&format!(
            "SELECT c.relname, i.indisunique, a.attname, i.indisvalid AND i.indisready AND i.indislive AND i.indimmediate
                    AND i.indpred IS NULL AND m.amname = 'btree' AND k.collated = a.attcollation AND o.opcdefault AND k.ordered = 0
                    AND (to_jsonb(i) ->> 'indnullsnotdistinct') IS DISTINCT FROM 'true',
                    EXISTS (SELECT 1 FROM pg_constraint s WHERE s.conindid = i.indexrelid AND s.contype IN ('p', 'u', 'x'))
             FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam
             CROSS JOIN unnest(i.indkey::int2[], i.indcollation::oid[], i.indclass::oid[], i.indoption::int2[])
                        WITH ORDINALITY AS k (column_number, collated, class, ordered, place)
             LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.column_number
             LEFT JOIN pg_opclass o ON o.oid = k.class
             WHERE i.indrelid = {table} AND k.place <= i.indnkeyatts ORDER BY c.relname, k.place"
        ))?;
        let part = |row: Vec<Option<String>>| {
            let [index, unique, column, plain, of_constraint] = <[Option<String>; 5]>::try_from(row).ok()?;
            let is = |text: Option<String>| text.as_deref() == Some("t");
            let (unique, plain, of_constraint) = (is(unique), is(plain), is(of_constraint));
            Some(IndexPart { index: index?, unique, of_constraint, plain, column })
        };
        Ok(indexes_of(rows.into_iter().filter_map(part)))
    }

    fn holder_of_name(&self, name: &str) -> Read<Option<NameHolder>> {
        let name = PostgresCatalog::table(name);
        let rows = self.query(&format!(
            "SELECT CASE c.relkind WHEN 'i' THEN 'index' WHEN 'I' THEN 'index' WHEN 'v' THEN 'view' WHEN 'S' THEN 'sequence'
                    WHEN 'm' THEN 'materialized view' WHEN 'f' THEN 'foreign table' WHEN 'c' THEN 'type' ELSE 'table' END, t.relname
             FROM pg_class c LEFT JOIN pg_index i ON i.indexrelid = c.oid LEFT JOIN pg_class t ON t.oid = i.indrelid
             WHERE c.oid = {name}"
        ))?;
        let holder = |row: Vec<Option<String>>| {
            let [kind, table] = <[Option<String>; 2]>::try_from(row).ok()?;
            Some(NameHolder { kind: kind?, table })
        };
        Ok(rows.into_iter().find_map(holder))
    }

    fn numbers_rows(&self, table: &str) -> Read<bool> {
        let table = Dialect::Postgres.text(table);
        Ok(!self.query(&format!("SELECT 1 FROM \"weir_numbers\" WHERE \"table\" = {table}"))?.is_empty())
    }

    fn schema_beside(&self, table: &str) -> Read<Option<String>> {
        let table = Dialect::Postgres.text(table);
        let rows = self.query(&format!(
            "SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
             WHERE c.oid = to_regclass(quote_ident({table})) AND n.nspname <> current_schema()
             AND EXISTS (SELECT FROM pg_class o WHERE o.relnamespace = n.oid AND o.relname = 'weir_columns')"
        ))?;
        Ok(rows.into_iter().flatten().next().flatten())
    }

    fn same_but_for_case(&self, _table: &str) -> Read<Option<String>> {
        Ok(None)
    }

    fn query(&self, sql: &str) -> Read<Vec<Vec<Option<String>>>> {
        self.answered(async { Ok(self.connection.texts(sql).await?) })
    }

    fn rows(&self, sql: &str, columns: &[ColumnSchema]) -> Read<Vec<Vec<Option<Value>>>> {
        let value =
            |row: &ReceivedRow| columns.iter().enumerate().map(|(at, column)| column_value(row, at, column)).collect();
        Ok(self.executed(sql, &[])?.rows()?.iter().map(value).collect())
    }

    fn run(&self, sql: &str, parameters: &[Bound<'_>]) -> Read<()> {
        self.executed(sql, parameters).map(|_| ())
    }

    fn plan(&self, sql: &str, parameters: usize) -> Read<Vec<String>> {
        // Prepared statements outlive the transaction of the connection, and so does this one.
        self.execute(&format!("SET LOCAL plan_cache_mode = force_generic_plan; PREPARE weir_plan AS {sql}"))?;
        let values = list((0..parameters).map(|_| "NULL".to_owned()), ", ");
        let values = if values.is_empty() { values } else { format!("({values})") };
        let lines = self.query(&format!("EXPLAIN (COSTS OFF) EXECUTE weir_plan{values}"))?;
        self.execute("DEALLOCATE weir_plan")?;
        Ok(lines.into_iter().flatten().flatten().collect())
    }

    fn execute(&self, sql: &str) -> Read<()> {
        let sql = format!("{LOCK_TIMEOUT}; {sql}; SET LOCAL lock_timeout TO DEFAULT");
        self.answered(async { Ok(self.connection.command(&sql).await?) })
    }

    fn note_declared(&self, schema: &Schema) -> Read<()> {
        self.execute(&running_programs::noted(schema))?;
        let mut declared = self.database.declared.lock();
        declared.retain(|before| before.name != schema.name);
        declared.push(schema.clone());
        Ok(())
    }

    fn others_have_other_columns(&self, schema: &Schema) -> Read<bool> {
        self.is_any(&running_programs::with_other_columns(schema))
    }

    fn others_have_other_references(&self, schema: &Schema) -> Read<bool> {
        self.is_any(&running_programs::with_other_references(schema))
    }

    fn others_have_index(&self, name: &str) -> Read<bool> {
        self.is_any(&running_programs::with_index(name))
    }
}

/// Returns a column from the row of a query for it.
fn column_of(row: Vec<Option<String>>) -> Option<CatalogColumn> {
    let [name, sql_type, key, nullable, default, generated, collation] = <[Option<String>; 7]>::try_from(row).ok()?;
    let is = |text: Option<String>| text.as_deref() == Some("t");
    let default = default.map(|default| without_type(&default).to_owned());
    let (key, nullable, generated) = (is(key), is(nullable), is(generated));
    Some(CatalogColumn { name: name?, sql_type: sql_type?, collation, key, nullable, default, generated })
}

/// Returns a default as the program has declared it: PostgreSQL adds its type, as in `'1'::bigint`.
fn without_type(default: &str) -> &str {
    let Some((value, sql_type)) = default.rsplit_once("::") else { return default };
    match sql_type {
        "bigint" | "double precision" => value.trim_matches('\''),
        "text" => value,
        _ => default,
    }
}
