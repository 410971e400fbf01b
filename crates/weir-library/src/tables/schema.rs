//! Descriptions of tables and queries, which the compiler passes as constants.

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

use weir::{Value, Values};

use super::database_constraints;
pub use super::query::{RowOrder, TableCondition, TableQuery};
use super::query_site::QuerySite;

/// A table.
#[derive(weir::Type, Clone, Debug, PartialEq)]
#[weir(name = "tables.Schema")]
pub struct Schema {
    /// The name of the table.
    pub name: String,
    /// The fields of its rows, in order.
    pub columns: Vec<ColumnSchema>,
    /// The columns of the key.
    pub key: Vec<usize>,
    /// True if the table numbers its rows.
    pub auto: bool,
    /// The indexes beside the key.
    pub indexes: Vec<IndexSchema>,
    /// The limits of a table that is kept in memory only; `None` for a stored one.
    pub soft: Option<SoftTable>,
    /// The references of its rows to rows of other tables.
    pub references: Vec<TableReference>,
    /// The references of rows of other tables to its rows.
    pub referenced_by: Vec<TableReference>,
    /// The rows before, which the program converts.
    pub migration: Option<TableMigration>,
    /// The database that has the table, if other programs have declared it.
    pub existing: Option<ExistingTable>,
}

/// A table that other programs have declared, in a database of theirs.
#[derive(weir::Type, Clone, Debug, PartialEq)]
#[weir(name = "tables.Existing")]
pub struct ExistingTable {
    /// The address of a PostgreSQL database, or the path of an SQLite database.
    pub database: String,
    /// True if the program may write the table.
    pub writable: bool,
    /// The constraint of the program for the database.
    pub constraint: String,
}

/// The rows of a table before their type was changed. Its columns are not those of the table, which would not tell converted
/// rows from others.
#[derive(weir::Type, Clone, Debug, PartialEq)]
#[weir(name = "tables.Migration")]
pub struct TableMigration {
    /// The columns that the conversion of a row reads.
    pub columns: Vec<ColumnSchema>,
    /// True if the rows are converted in several transactions, and false if in one.
    pub batched: bool,
}

/// Columns whose values are the key of a row of a table, unless one of them is absent.
#[derive(weir::Type, Clone, Debug, PartialEq)]
#[weir(name = "tables.Reference")]
pub struct TableReference {
    /// The table of the columns.
    pub source: String,
    /// The columns, in the order of the key.
    pub columns: Vec<usize>,
    /// Their names.
    pub names: Vec<String>,
    /// True for each column that is optional.
    pub optional: Vec<bool>,
    /// The table whose key the columns hold.
    pub target: String,
    /// The names of the columns of that key.
    pub key: Vec<String>,
    /// True if a row is deleted with the row that it references; otherwise that row cannot be deleted.
    pub cascade: bool,
    /// True if both tables are stored.
    pub stored: bool,
}

/// A column.
#[derive(weir::Type, Clone, Debug, PartialEq)]
#[weir(name = "tables.Column")]
pub struct ColumnSchema {
    /// The name of the field.
    pub name: String,
    /// The type of its values without `Option`: `Bool`, `Int` and the like, or `Enum`.
    pub kind: String,
    /// The variants of an enum.
    pub variants: Vec<String>,
    /// True if values may be absent.
    pub optional: bool,
    /// The value, as the database writes it, of a row that was written before there was the column.
    pub default: Option<String>,
    /// True if another program has declared the column.
    pub existing: bool,
    /// True if an index that ignores the case of letters has the column. Set when the table is opened.
    pub in_nocase_index: bool,
}

/// An index.
#[derive(weir::Type, Clone, Debug, PartialEq)]
#[weir(name = "tables.Index")]
pub struct IndexSchema {
    /// The columns, the first of which counts most.
    pub columns: Vec<usize>,
    /// True if no two rows agree in all of them.
    pub unique: bool,
}

/// The limits of a table that is kept in memory only.
#[derive(weir::Type, Clone, Debug, PartialEq)]
#[weir(name = "tables.SoftTable")]
pub struct SoftTable {
    /// Time after which a row that is not written again expires.
    pub ttl: Option<Duration>,
    /// Maximum number of rows; beyond it the row that was written least recently is evicted.
    pub at_most: Option<usize>,
    /// Maximum number of bytes of all rows; beyond it the row that was written least recently is evicted.
    pub capacity: Option<usize>,
}

impl SoftTable {
    /// Returns whether rows may go that nobody deletes.
    pub(super) fn forgets(&self) -> bool {
        self.ttl.is_some() || self.at_most.is_some() || self.capacity.is_some()
    }
}

impl Schema {
    /// Returns whether the rows are in the database of the program.
    pub(super) fn is_stored(&self) -> bool {
        self.soft.is_none() && self.existing.is_none()
    }

    /// Returns whether a start converts rows of another type in several transactions.
    pub(super) fn converts_in_batches(&self) -> bool {
        self.migration.as_ref().is_some_and(|migration| migration.batched)
    }

    /// Returns the constraint that steps hold which write the database of the table.
    pub(super) fn constraint(&self) -> &str {
        self.existing.as_ref().map_or(database_constraints::OWN, |existing| &existing.constraint)
    }

    /// Returns whether both tables are stored, and in the same database.
    pub(super) fn shares_database(&self, other: &Schema) -> bool {
        let database = |schema: &'_ Schema| schema.existing.as_ref().map(|existing| existing.database.clone());
        self.soft.is_none() && other.soft.is_none() && database(self) == database(other)
    }
}

impl ColumnSchema {
    /// Returns the type of the values: `Option(Int)`, or `Open | Closed`.
    pub(super) fn shown_type(&self) -> String {
        let kind = if self.variants.is_empty() { self.kind.clone() } else { self.variants.join(" | ") };
        if self.optional { format!("Option({kind})") } else { kind }
    }
}

/// The value of a column in the row before a page.
#[derive(Clone, Debug)]
pub(super) struct PageStart {
    pub(super) column: usize,
    pub(super) descending: bool,
    pub(super) value: Value,
}

impl PageStart {
    /// Returns whether the value is one of an enum, which is ordered by its place among the variants.
    pub(super) fn is_variant(&self) -> bool {
        matches!(self.value, Value::Variant(_, None))
    }

    /// Compares the column of a row with the one before the page, in the order of the query.
    pub(super) fn compare(&self, row: &[Value]) -> Ordering {
        let compared = row[self.column].cmp(&self.value);
        if self.descending { compared.reverse() } else { compared }
    }
}

/// A query with the values of one execution.
#[derive(Clone)]
pub(super) struct TableSearch {
    pub(super) query: Arc<QuerySite>,
    /// Maximum number of rows.
    pub(super) limit: usize,
    /// The same as a parameter of a statement.
    pub(super) limit_value: Value,
    /// The columns of the row before the page, in the order of the query and without those that a condition fixes.
    pub(super) after: Option<Vec<PageStart>>,
    pub(super) values: Values,
}

impl TableSearch {
    pub(super) fn new(query: impl Into<Arc<QuerySite>>, arguments: Value) -> TableSearch {
        let values = match arguments {
            Value::Record(values) => values,
            other => Values::from([Value::Int(i64::MAX), Value::Unit, other]),
        };
        let limit = match values.first() {
            Some(Value::Int(limit)) => usize::try_from(*limit).unwrap_or(0),
            _ => usize::MAX,
        };
        let limit_value = Value::Int(i64::try_from(limit).unwrap_or(i64::MAX));
        TableSearch { query: query.into(), limit, limit_value, after: None, values }
    }

    /// Returns whether the program bounds the number of rows.
    pub(super) fn is_limited(&self) -> bool {
        self.limit_value != Value::Int(i64::MAX)
    }

    /// Returns whether a row comes behind the one before the page.
    fn is_behind(&self, row: &[Value]) -> bool {
        let Some(after) = &self.after else { return true };
        let compared = after.iter().map(|start| start.compare(row)).find(|compared| compared.is_ne());
        compared == Some(Ordering::Greater)
    }

    /// Returns the conditions with the values that they compare with.
    pub(super) fn conditions(&self) -> impl Iterator<Item = (&TableCondition, &Value)> {
        self.query.conditions.iter().zip(self.values.iter().skip(2))
    }

    /// Returns the value that the column must equal, if a condition says so.
    pub(super) fn equal(&self, column: usize) -> Option<&Value> {
        let mut conditions = self.conditions();
        let found = conditions.find(|(condition, _)| condition.column == column && condition.comparison == "==");
        found.map(|(_, value)| value)
    }

    /// Returns the least and the greatest value that conditions allow for the column.
    pub(super) fn bounds(&self, column: usize) -> (Option<&Value>, Option<&Value>) {
        let of = |comparisons: [&str; 2]| {
            let mut conditions = self.conditions();
            let found = conditions
                .find(|(condition, _)| condition.column == column && comparisons.contains(&&*condition.comparison));
            found.map(|(_, value)| value)
        };
        (of([">", ">="]), of(["<", "<="]))
    }

    /// Returns whether a row fulfils all conditions.
    pub(super) fn accepts(&self, row: &[Value]) -> bool {
        self.is_behind(row)
            && self.conditions().all(|(condition, value)| accepts(&condition.comparison, &row[condition.column], value))
    }

    /// Returns whether a row may fulfil all conditions whose value in this column is not known yet.
    pub(super) fn may_accept(&self, row: &[Value], unknown: usize) -> bool {
        let mut known = self.conditions().filter(|(condition, _)| condition.column != unknown);
        known.all(|(condition, value)| accepts(&condition.comparison, &row[condition.column], value))
    }

    /// Compares two rows by the order of the query.
    pub(super) fn compare(&self, one: &[Value], other: &[Value]) -> Ordering {
        let by = self.query.order.iter().map(|order| {
            let compared = one[order.column].cmp(&other[order.column]);
            if order.descending { compared.reverse() } else { compared }
        });
        by.fold(Ordering::Equal, Ordering::then)
    }
}

/// Returns whether a comparison of a part of a row or group with a value holds. An absent part is neither less nor greater, as in
/// databases.
pub(super) fn accepts(comparison: &str, part: &Value, value: &Value) -> bool {
    let compared = part.cmp(value);
    match comparison {
        "==" => compared.is_eq(),
        "!=" => compared.is_ne(),
        _ if matches!(part, Value::Variant(Value::NONE, None)) => false,
        "<" => compared.is_lt(),
        "<=" => compared.is_le(),
        ">" => compared.is_gt(),
        _ => compared.is_ge(),
    }
}
