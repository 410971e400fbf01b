//! Columns that other programs have declared, in SQL: their types and collations are not those that Weir chooses.
//!
//! A parameter has the type that Weir sends, and the database converts it, so that a number which the column cannot have is found
//! in no row. Texts are compared by their bytes, whatever the collation of the column is.

use crate::tables::dialect::Dialect;
use crate::tables::schema::ColumnSchema;

impl Dialect {
    /// Returns the parameter with this number, from 1, for a value of a column. In PostgreSQL it has the type of the value, whatever type
    /// another program has given the column.
    pub(in crate::tables) fn parameter_of(self, column: &ColumnSchema, number: usize) -> String {
        match self {
            Dialect::Postgres => format!("{}::{}", self.parameter(number), self.column_type(column)),
            Dialect::Sqlite => self.parameter(number),
        }
    }

    /// Returns an expression that is equal for two rows if the values of a column are.
    pub(in crate::tables) fn equal_by(self, value: String, column: &ColumnSchema) -> String {
        match self {
            Dialect::Sqlite => self.ordered_by(value, column),
            // Its collations tell texts apart that differ in any byte, unless somebody declares another one.
            Dialect::Postgres => value,
        }
    }

    /// Returns the test that a value of a column is equal to another expression. An index that ignores case finds the rows for which
    /// the other test then compares all bytes.
    pub(in crate::tables) fn equality(self, value: String, column: &ColumnSchema, other: &str) -> String {
        let exact = format!("{} = {other}", self.equal_by(value.clone(), column));
        if column.in_nocase_index { format!("{value} = {other} COLLATE NOCASE AND {exact}") } else { exact }
    }

    /// Returns an expression that has the order of the values of a column in Weir. An enum has another one.
    pub(in crate::tables) fn ordered_by(self, value: String, column: &ColumnSchema) -> String {
        let collation = match self {
            Dialect::Sqlite => "BINARY",
            Dialect::Postgres => "\"C\"",
        };
        let is_text = matches!(&*column.kind, "Text" | "Enum");
        if column.existing && is_text { format!("{value} COLLATE {collation}") } else { value }
    }

    /// Returns a whole number with 64 bits, also if another program has given its column fewer.
    pub(in crate::tables) fn long(self, value: String) -> String {
        if self == Dialect::Postgres { format!("{value}::bigint") } else { value }
    }
}
