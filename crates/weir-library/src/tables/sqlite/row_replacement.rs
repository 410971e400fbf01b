//! The replacement of several rows of the database by new ones with the same keys.
//!
//! Each row is updated in its place, unless a unique value moves from one of them to another: then all old rows are deleted before
//! the first new one is inserted. The columns that the program does not declare, such as those of an earlier program, are then read
//! before and inserted again.

use std::sync::atomic::{AtomicUsize, Ordering};

use rusqlite::types::Value as Stored;
use rusqlite::{Connection, ToSql, params_from_iter};
use weir::Value;

use super::broken_rule::first_broken;
use super::sql_table::SqlTable;
use crate::tables::row::fields;
use crate::tables::row_change::RowChange;
use crate::tables::schema::Schema;
use crate::tables::sql::{list, name, quoted};
use crate::tables::sql_value::Bound;

/// The values of a row in the columns that the program does not declare.
type UndeclaredValues = Vec<Stored>;

/// Updates rows by the rows with these keys, and notes the place of the one that it has come to.
pub(super) fn replace_in_place(
    (table, connection): (&SqlTable, &Connection),
    rows: &[(Value, Value)],
    reached: &AtomicUsize,
) -> rusqlite::Result<()> {
    let Some(sql) = &table.statements.replace else { return Ok(()) };
    let mut statement = connection.prepare_cached(sql)?;
    for (at, (key, row)) in rows.iter().enumerate() {
        reached.store(at, Ordering::Relaxed);
        let replaced = statement.execute(params_from_iter(table.bound(&table.replaced, fields(row))));
        let change = || RowChange::Replace(key.clone(), row.clone());
        has_row(replaced.map_err(|error| first_broken(table, error, &change(), connection))?)?;
    }
    Ok(())
}

/// The statements that replace rows of a table between which a unique value moves.
pub(super) struct RowReplacement<'t> {
    table: &'t SqlTable,
    connection: &'t Connection,
    /// Reads the columns that the program does not declare from the row with a key; `None` if there are none.
    undeclared: Option<String>,
    insertion: String,
}

impl<'t> RowReplacement<'t> {
    /// Prepares the statements for a table.
    pub(super) fn new(table: &'t SqlTable, connection: &'t Connection) -> rusqlite::Result<RowReplacement<'t>> {
        let (schema, has_key) = (&table.schema, &table.statements.has_key);
        let from = quoted(&schema.name);
        let undeclared = undeclared_columns(schema, connection)?;
        let declared = (0..schema.columns.len()).map(|at| name(schema, at));
        let all: Vec<String> = declared.chain(undeclared.iter().cloned()).collect();
        let values = list((1..=all.len()).map(|number| format!("?{number}")), ", ");
        let read = || format!("SELECT {} FROM {from} WHERE {has_key}", undeclared.join(", "));
        Ok(RowReplacement {
            table,
            connection,
            undeclared: (!undeclared.is_empty()).then(read),
            insertion: format!("INSERT INTO {from} ({}) VALUES ({values})", all.join(", ")),
        })
    }

    /// Replaces the rows with these keys, and notes the place of the one that it has come to.
    pub(super) fn run(&self, rows: &[(Value, Value)], reached: &AtomicUsize) -> rusqlite::Result<()> {
        let mut kept = Vec::with_capacity(rows.len());
        for (at, (key, _)) in rows.iter().enumerate() {
            reached.store(at, Ordering::Relaxed);
            kept.push(self.undeclared_values(key)?);
            let mut deletion = self.connection.prepare_cached(&self.table.statements.delete)?;
            has_row(deletion.execute(params_from_iter(self.table.key(key)))?)?;
        }
        for (at, ((_, row), kept)) in rows.iter().zip(kept).enumerate() {
            reached.store(at, Ordering::Relaxed);
            let change = || RowChange::Insert(row.clone());
            self.insert(row, kept).map_err(|error| first_broken(self.table, error, &change(), self.connection))?;
        }
        Ok(())
    }

    fn undeclared_values(&self, key: &Value) -> rusqlite::Result<UndeclaredValues> {
        let Some(sql) = &self.undeclared else { return Ok(Vec::new()) };
        let mut statement = self.connection.prepare_cached(sql)?;
        let columns = statement.column_count();
        let mut found = statement.query(params_from_iter(self.table.key(key)))?;
        match found.next()? {
            Some(row) => (0..columns).map(|at| row.get(at)).collect(),
            None => Err(rusqlite::Error::StatementChangedRows(0)),
        }
    }

    /// Inserts a row, with its values in the columns that the program does not declare.
    fn insert(&self, row: &Value, undeclared: UndeclaredValues) -> rusqlite::Result<()> {
        let columns = &self.table.schema.columns;
        let declared: Vec<Bound<'_>> =
            fields(row).iter().zip(columns).map(|(value, column)| Bound::new(value, column)).collect();
        let declared = declared.iter().map(|bound| bound as &dyn ToSql);
        let parameters = declared.chain(undeclared.iter().map(|value| value as &dyn ToSql));
        self.connection.prepare_cached(&self.insertion)?.execute(params_from_iter(parameters)).map(|_| ())
    }
}

/// Fails if a statement has found no row with its key.
fn has_row(changed: usize) -> rusqlite::Result<()> {
    if changed == 0 { Err(rusqlite::Error::StatementChangedRows(0)) } else { Ok(()) }
}

/// Returns the names, in SQL, of the columns that the table has and the program does not declare. It reads them anew, because
/// another program can add columns at any time.
fn undeclared_columns(schema: &Schema, connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare_cached("SELECT name FROM pragma_table_info(?1) ORDER BY cid")?;
    let names = statement.query_map([&schema.name], |row| row.get::<_, String>(0))?;
    let names = names.collect::<rusqlite::Result<Vec<String>>>()?;
    let is_declared = |name: &String| schema.columns.iter().any(|column| column.name == *name);
    Ok(names.iter().filter(|name| !is_declared(name)).map(|name| quoted(name)).collect())
}
