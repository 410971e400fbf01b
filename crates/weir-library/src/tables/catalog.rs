//! The catalogue of a database: its tables, and statements that examine and change them when a program starts.

use weir::{Failure, Value};

use super::dialect::{Dialect, OWN_INDEXES};
use super::schema::{ColumnSchema, IndexSchema, Schema};
use super::sql::quoted;
use super::sql_value::Bound;

/// A value that is read from a database, or why it cannot be read.
pub(super) type Read<T> = Result<T, Failure>;
/// A result of a start, or why it fails, after the database was read.
pub(super) type StartCheck<T> = Read<Result<T, Failure>>;

/// The tables of a database.
pub(super) trait Catalog {
    fn dialect(&self) -> Dialect;

    /// Returns the columns of a table in their order; none if there is no such table.
    fn columns(&self, table: &str) -> Read<Vec<CatalogColumn>>;

    /// Returns the columns of a table that another program has declared, also those that the database computes.
    fn columns_of_existing(&self, table: &str) -> Read<Vec<CatalogColumn>> {
        self.columns(table)
    }

    /// Returns whether a table is a view.
    fn is_view(&self, table: &str) -> Read<bool>;

    /// Returns the columns of each index of all rows of a table, its primary key included, and whether no two rows agree in them.
    fn indexed_columns(&self, table: &str) -> Read<Vec<(Vec<String>, bool)>>;

    /// Returns the columns of a table that have an index which ignores the case of letters.
    fn nocase_columns(&self, _table: &str) -> Read<Vec<String>> {
        Ok(Vec::new())
    }

    /// Returns the collation of a column of a key that takes different texts for the same one, if the column or a unique index has one.
    fn key_collation(&self, table: &str, column: &str) -> Read<Option<KeyCollation>>;

    /// Returns whether the database checks only at the end of a statement or transaction that no two rows agree in these columns.
    fn defers_key(&self, _table: &str, _columns: &[&str]) -> Read<bool> {
        Ok(false)
    }

    /// Returns whether the database numbers the rows of a table that another program has declared, in this column.
    fn numbers_column(&self, table: &str, column: &str) -> Read<bool>;

    /// Returns the indexes of a table.
    fn indexes(&self, table: &str) -> Read<Vec<CatalogIndex>>;

    /// Returns what has a name that an index cannot have then; `None` if the name is free.
    fn holder_of_name(&self, name: &str) -> Read<Option<NameHolder>>;

    /// Returns whether the database numbers the rows of a table.
    fn numbers_rows(&self, table: &str) -> Read<bool>;

    /// Returns the other schema in which the database would find a table of a Weir program by this name, if there is one.
    fn schema_beside(&self, _table: &str) -> Read<Option<String>> {
        Ok(None)
    }

    /// Returns the table whose name is equal to this one but for the case of letters, if the database ignores that.
    fn same_but_for_case(&self, table: &str) -> Read<Option<String>>;

    /// Returns the rows of a query, with their values as texts.
    fn query(&self, sql: &str) -> Read<Vec<Vec<Option<String>>>>;

    /// Returns the rows of a query for these columns; an unreadable value is `None`.
    fn rows(&self, sql: &str, columns: &[ColumnSchema]) -> Read<Vec<Vec<Option<Value>>>>;

    /// Executes a statement with parameters.
    fn run(&self, sql: &str, parameters: &[Bound<'_>]) -> Read<()>;

    /// Returns the plan by which the database executes a statement with this number of parameters, whatever their values
    /// are: a line for each step, indented.
    fn plan(&self, sql: &str, parameters: usize) -> Read<Vec<String>>;

    /// Executes a statement.
    fn execute(&self, sql: &str) -> Read<()>;

    /// Notes what this program declares of a table, as long as it runs, if the database can tell it other programs.
    fn note_declared(&self, _schema: &Schema) -> Read<()> {
        Ok(())
    }

    /// Returns whether another program that is running is known to declare the table with other columns.
    fn others_have_other_columns(&self, _schema: &Schema) -> Read<bool> {
        Ok(false)
    }

    /// Returns whether another program that is running is known to declare the table with other references.
    fn others_have_other_references(&self, _schema: &Schema) -> Read<bool> {
        Ok(false)
    }

    /// Returns whether another program that is running is known to declare an index.
    fn others_have_index(&self, _name: &str) -> Read<bool> {
        Ok(false)
    }
}

/// A collation that takes different texts for the same one.
#[derive(Debug)]
pub(super) struct KeyCollation {
    pub(super) name: String,
    /// The unique index that has it; `None` if it is that of the column.
    pub(super) index: Option<String>,
}

/// An object of a database that has a name.
#[derive(Debug)]
pub(super) struct NameHolder {
    /// Its kind, in the words of statements: `index`, `materialized view`.
    pub(super) kind: String,
    /// The table of an index.
    pub(super) table: Option<String>,
}

/// A column of a database.
#[derive(Debug)]
pub(super) struct CatalogColumn {
    pub(super) name: String,
    pub(super) sql_type: String,
    /// The collation of texts, if the database tells it.
    pub(super) collation: Option<String>,
    /// True if it is part of the key.
    pub(super) key: bool,
    /// True if it accepts `NULL`.
    pub(super) nullable: bool,
    /// The default, in SQL.
    pub(super) default: Option<String>,
    /// True if the database computes it from other columns.
    pub(super) generated: bool,
}

/// An index of a database.
#[derive(Debug, PartialEq)]
pub(super) struct CatalogIndex {
    pub(super) name: String,
    unique: bool,
    /// True if it belongs to a constraint of this name, with which it is dropped.
    pub(super) of_constraint: bool,
    /// Its columns in their order; `None` if it is not made like those of programs of Weir: of expressions, of a part of the rows, in
    /// another order of values, or not valid, because it could not be created to its end.
    columns: Option<Vec<String>>,
}

impl CatalogIndex {
    /// Returns whether it is what a program declares.
    pub(super) fn serves(&self, schema: &Schema, index: &IndexSchema) -> bool {
        let declared = index.columns.iter().map(|at| &schema.columns[*at].name);
        self.unique == index.unique && self.columns.as_ref().is_some_and(|columns| columns.iter().eq(declared))
    }
}

impl dyn Catalog + '_ {
    /// Returns the indexes of a table that programs of Weir have made, by their names: others may have some of their own.
    pub(super) fn own_indexes(&self, table: &str) -> Read<Vec<CatalogIndex>> {
        Ok(self.indexes(table)?.into_iter().filter(|index| index.name.starts_with(OWN_INDEXES)).collect())
    }

    /// Returns whether the database has the table, with these columns.
    pub(super) fn has_columns(&self, table: &str, columns: &[String]) -> Read<bool> {
        let known = self.columns(table)?;
        Ok(columns.iter().all(|name| known.iter().any(|column| column.name == *name)))
    }

    /// Creates a table of Weir's own, unless it is there: PostgreSQL demands the right to create it also if it is.
    pub(super) fn create_own_table(&self, name: &str, columns: &str) -> Read<()> {
        if self.has_table(name)? {
            return Ok(());
        }
        let options = self.dialect().table_options(false);
        self.execute(&format!("CREATE TABLE IF NOT EXISTS {} ({columns}){options}", quoted(name)))
    }

    pub(super) fn has_table(&self, table: &str) -> Read<bool> {
        Ok(!self.columns(table)?.is_empty())
    }

    /// Returns the number in the first column of the first row.
    pub(super) fn number(&self, sql: &str) -> Read<i64> {
        let rows = self.query(sql)?;
        let first = rows.first().and_then(|row| row.first()?.as_deref());
        Ok(first.and_then(|text| text.parse().ok()).unwrap_or(0))
    }

    /// Returns the first row of a query for a text and a number.
    pub(super) fn text_and_number(&self, sql: &str) -> Read<Option<(String, i64)>> {
        let rows = self.query(sql)?;
        let of = |row: &Vec<Option<String>>| Some((row.first()?.clone()?, row.get(1)?.as_ref()?.parse().ok()?));
        Ok(rows.first().and_then(of))
    }
}

/// Returns the columns of each index, from its number, whether it is unique, and a column; an expression has no name.
pub(super) fn grouped_columns(
    parts: impl IntoIterator<Item = (i64, bool, Option<String>)>,
) -> impl Iterator<Item = (Vec<String>, bool)> {
    let mut indexes: Vec<(i64, Vec<String>, bool)> = Vec::new();
    for (number, unique, column) in parts {
        if indexes.last().is_none_or(|(last, ..)| *last != number) {
            indexes.push((number, Vec::new(), unique));
        }
        if let Some((_, columns, unique)) = indexes.last_mut() {
            // An index of an expression is none of columns.
            *unique &= column.is_some();
            columns.push(column.unwrap_or_default());
        }
    }
    indexes.into_iter().map(|(_, columns, unique)| (columns, unique))
}

/// A column of an index, or an expression, which has no name.
pub(super) struct IndexPart {
    pub(super) index: String,
    pub(super) unique: bool,
    pub(super) of_constraint: bool,
    /// True if the index is made as programs of Weir make it, as far as the catalogue tells for this column.
    pub(super) plain: bool,
    pub(super) column: Option<String>,
}

/// Returns the indexes of these parts, which come one index after the other, and in their order.
pub(super) fn indexes_of(parts: impl IntoIterator<Item = IndexPart>) -> Vec<CatalogIndex> {
    let mut indexes: Vec<CatalogIndex> = Vec::new();
    for IndexPart { index, unique, of_constraint, plain, column } in parts {
        if indexes.last().is_none_or(|last| last.name != index) {
            indexes.push(CatalogIndex { name: index, unique, of_constraint, columns: Some(Vec::new()) });
        }
        let Some(last) = indexes.last_mut() else { continue };
        last.columns = last.columns.take().zip(column.filter(|_| plain)).map(|(mut columns, column)| {
            columns.push(column);
            columns
        });
    }
    indexes
}
