//! The replacement of several rows of the database by new ones with the same keys.
//!
//! All old rows are deleted before the first new one is inserted, because a unique value may move from one row to another.
//! The columns that the program does not declare, such as those of an earlier program, are read before and inserted again.

use rusqlite::types::Value as Stored;
use rusqlite::{Connection, ToSql, params_from_iter};
use weir::Value;

use super::row::fields;
use super::schema::Schema;
use super::sql::{list, name, quoted};
use super::sql_value::{Bound, key_parameters};

/// The values of a row in the columns that the program does not declare.
pub(super) type UndeclaredValues = Vec<Stored>;

/// The statements that replace rows of a table.
pub(super) struct RowReplacement<'t> {
    schema: &'t Schema,
    connection: &'t Connection,
    /// Reads the columns that the program does not declare from the row with a key; `None` if there are none.
    undeclared: Option<String>,
    deletion: String,
    insertion: String,
}

impl<'t> RowReplacement<'t> {
    /// Prepares the statements for a table; `has_key` is the condition that a row has a key.
    pub(super) fn new(
        schema: &'t Schema,
        has_key: &str,
        connection: &'t Connection,
    ) -> rusqlite::Result<RowReplacement<'t>> {
        let from = quoted(&schema.name);
        let undeclared = undeclared_columns(schema, connection)?;
        let declared = (0..schema.columns.len()).map(|at| name(schema, at));
        let all: Vec<String> = declared.chain(undeclared.iter().cloned()).collect();
        let values = list((1..=all.len()).map(|number| format!("?{number}")), ", ");
        let read = || format!("SELECT {} FROM {from} WHERE {has_key}", undeclared.join(", "));
        Ok(RowReplacement {
            schema,
            connection,
            undeclared: (!undeclared.is_empty()).then(read),
            deletion: format!("DELETE FROM {from} WHERE {has_key}"),
            insertion: format!("INSERT INTO {from} ({}) VALUES ({values})", all.join(", ")),
        })
    }

    /// Deletes the rows with these keys, and returns what each held in the columns that the program does not declare.
    pub(super) fn delete(&self, rows: &[(Value, Value)]) -> rusqlite::Result<Vec<UndeclaredValues>> {
        let delete = |(key, _): &(Value, Value)| {
            let kept = self.undeclared_values(key)?;
            self.connection
                .prepare_cached(&self.deletion)?
                .execute(params_from_iter(key_parameters(self.schema, key)))?;
            Ok(kept)
        };
        rows.iter().map(delete).collect()
    }

    fn undeclared_values(&self, key: &Value) -> rusqlite::Result<UndeclaredValues> {
        let Some(sql) = &self.undeclared else { return Ok(Vec::new()) };
        let mut statement = self.connection.prepare_cached(sql)?;
        let columns = statement.column_count();
        statement.query_row(params_from_iter(key_parameters(self.schema, key)), |row| {
            (0..columns).map(|at| row.get(at)).collect()
        })
    }

    /// Inserts a row, with its values in the columns that the program does not declare.
    pub(super) fn insert(&self, row: &Value, undeclared: UndeclaredValues) -> rusqlite::Result<()> {
        let declared: Vec<Bound<'_>> =
            fields(row).iter().zip(&self.schema.columns).map(|(value, column)| Bound(value, column)).collect();
        let declared = declared.iter().map(|bound| bound as &dyn ToSql);
        let parameters = declared.chain(undeclared.iter().map(|value| value as &dyn ToSql));
        self.connection.prepare_cached(&self.insertion)?.execute(params_from_iter(parameters)).map(|_| ())
    }
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
