//! The statements of a table in SQL, and their parameters.
//!
//! Rows have the order of the table in memory, because texts are compared by their bytes, numbers are never NaN, an enum by the
//! position of its variant, and each query ends its order with the key.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use weir::Value;

use super::dialect::Dialect;
use super::insertion::{NumberedInsertion, columns_beside_key, insertion, insertion_of_many, upsertion};
use super::join::KeyPart;
use super::schema::{ColumnSchema, Schema, TableSearch};
use super::sql::{list, name, quoted};
use super::sql_value::{Bound, SqlValue};

/// The prefix of the columns of a query in a statement that joins others.
const ROWS: &str = "\"rows\".";

/// The statements of a table.
#[derive(Debug)]
pub(super) struct TableStatements {
    /// Is the number of no other table of the process.
    pub(super) number: u64,
    pub(super) dialect: Dialect,
    /// The columns, separated by commas.
    columns: String,
    /// The condition that a row has a key: `"users"."name" = ?1`.
    pub(super) has_key: String,
    /// Reads the row with a key.
    pub(super) get: String,
    /// Reads the rows with some keys, in any order; `None` if each needs a statement. The parameter is the list of the keys.
    pub(super) get_many: Option<String>,
    /// Inserts a row. The parameters are its columns without one that the table numbers.
    pub(super) insert: String,
    /// Inserts several rows; `None` if each needs a statement. The parameters are lists of what those of `insert` are.
    pub(super) insert_many: Option<String>,
    /// Inserts rows whose numbers the program knows; `None` if the table does not number them, or the database is not PostgreSQL.
    pub(super) insert_numbered: Option<NumberedInsertion>,
    /// Inserts a row, or replaces the one with its key.
    pub(super) upsert: String,
    /// Replaces the row with a key; `None` if all columns are part of the key. The parameters are the key, then the others.
    pub(super) replace: Option<String>,
    /// Does the same in PostgreSQL, and returns the row as it is stored.
    pub(super) replace_returning: Option<String>,
    /// Replaces several rows; `None` if each needs a statement. The parameters are lists of what those of `replace` are.
    pub(super) replace_many: Option<String>,
    /// Deletes the row with a key.
    pub(super) delete: String,
}

impl TableStatements {
    pub(super) fn new(schema: &Schema, dialect: Dialect) -> TableStatements {
        let table = quoted(&schema.name);
        let prefix = dialect.prefix(schema);
        let columns = columns_in(schema, &prefix);
        let key = schema.key.iter().zip(1..);
        let key = key.map(|(at, number)| {
            let column = &schema.columns[*at];
            dialect.equality(format!("{prefix}{}", name(schema, *at)), column, &dialect.parameter_of(column, number))
        });
        let has_key = list(key, " AND ");
        let replace = replacement(schema, &has_key, dialect);
        let returning = |update: &String| format!("{update} RETURNING {columns}");
        static TABLES: AtomicU64 = AtomicU64::new(0);
        TableStatements {
            number: TABLES.fetch_add(1, Ordering::Relaxed),
            get: format!("SELECT {columns} FROM {table} WHERE {has_key}"),
            get_many: match schema.key[..] {
                [key] if dialect == Dialect::Postgres => selection_of_many(schema, &columns, &[key]),
                _ => None,
            },
            insert: insertion(schema, dialect),
            insert_many: if dialect == Dialect::Postgres { insertion_of_many(schema) } else { None },
            insert_numbered: if dialect == Dialect::Postgres { NumberedInsertion::of(schema) } else { None },
            upsert: upsertion(schema, dialect),
            replace_returning: replace.as_ref().filter(|_| dialect == Dialect::Postgres).map(returning),
            replace,
            replace_many: if dialect == Dialect::Postgres { replacement_of_many(schema) } else { None },
            delete: format!("DELETE FROM {table} WHERE {has_key}"),
            dialect,
            columns,
            has_key,
        }
    }

    /// Returns the statement that reads the rows with some values in columns in PostgreSQL; `None` if each needs a statement. The
    /// parameters are the lists of the parts of the values, one for each column.
    pub(super) fn selection_of_many(&self, schema: &Schema, columns: &[usize]) -> Option<String> {
        selection_of_many(schema, &self.columns, columns)
    }

    /// Returns the query for rows, and its parameters.
    pub(super) fn select<'s>(&self, schema: &'s Schema, search: &'s TableSearch) -> (String, Vec<Bound<'s>>) {
        let (condition, mut parameters) = self.condition(schema, search);
        parameters.push(Bound::new(&search.limit_value, &NUMBER));
        let (order, limit) = (order((schema, self.dialect), search, ""), self.dialect.parameter(parameters.len()));
        let table = quoted(&schema.name);
        (format!("SELECT {} FROM {table}{condition}{order} LIMIT {limit}", self.columns), parameters)
    }

    /// Returns the query for rows together with the rows that they name by keys, and its parameters. The columns of the joined
    /// rows follow. A limit is that of the inner query, so that only its rows are joined.
    pub(super) fn select_joined<'s>(
        &self,
        schema: &'s Schema,
        search: &'s TableSearch,
        joined: &[(&'s Schema, &[KeyPart<'s>])],
    ) -> (String, Vec<Bound<'s>>) {
        let (rows, mut parameters) = match search.is_limited() {
            true => self.select(schema, search),
            false => {
                let (condition, parameters) = self.condition(schema, search);
                (format!("SELECT {} FROM {}{condition}", self.columns, quoted(&schema.name)), parameters)
            }
        };
        let mut columns = columns_in(schema, ROWS);
        let mut tables = format!("({rows}) AS \"rows\"");
        for (at, (other, key)) in joined.iter().enumerate() {
            let alias = format!("\"joined {}\".", at + 1);
            _ = write!(columns, ", {}", columns_in(other, &alias));
            let equal = other.key.iter().zip(*key).map(|(column, part)| {
                let value = match part {
                    KeyPart::Column(of) => format!("{ROWS}{}", name(schema, *of)),
                    KeyPart::Value(value) => {
                        parameters.push(Bound::equal(value, &other.columns[*column]));
                        self.dialect.parameter_of(&other.columns[*column], parameters.len())
                    }
                };
                let key = format!("{alias}{}", name(other, *column));
                self.dialect.equality(key, &other.columns[*column], &value)
            });
            let equal = list(equal, " AND ");
            _ = write!(tables, " LEFT JOIN {} AS {} ON {equal}", quoted(&other.name), alias.trim_end_matches('.'));
        }
        (format!("SELECT {columns} FROM {tables}{}", order((schema, self.dialect), search, ROWS)), parameters)
    }

    /// Returns the query for the number of rows.
    pub(super) fn count<'s>(&self, schema: &'s Schema, search: &'s TableSearch) -> (String, Vec<Bound<'s>>) {
        let (condition, parameters) = self.condition(schema, search);
        (format!("SELECT count(*) FROM {}{condition}", quoted(&schema.name)), parameters)
    }

    /// Returns the query for the sum of a column, as two numbers, the first of which counts 2^32.
    pub(super) fn sum<'s>(
        &self,
        schema: &'s Schema,
        search: &'s TableSearch,
        column: usize,
    ) -> (String, Vec<Bound<'s>>) {
        let (condition, parameters) = self.condition(schema, search);
        let (of, named) = (&schema.columns[column], format!("{}{}", self.dialect.prefix(schema), name(schema, column)));
        let halves = self.dialect.sum_in_halves(&self.dialect.long(named), of);
        (format!("SELECT {halves} FROM {}{condition}", quoted(&schema.name)), parameters)
    }

    /// Returns the statement that deletes rows.
    pub(super) fn delete_all<'s>(&self, schema: &'s Schema, search: &'s TableSearch) -> (String, Vec<Bound<'s>>) {
        let (condition, parameters) = self.condition(schema, search);
        (format!("DELETE FROM {}{condition}", quoted(&schema.name)), parameters)
    }

    /// Returns the `WHERE` of a query, and its parameters.
    pub(super) fn condition<'s>(&self, schema: &'s Schema, search: &'s TableSearch) -> (String, Vec<Bound<'s>>) {
        let (mut sql, mut parameters) = (String::new(), Vec::new());
        for (at, (condition, value)) in search.conditions().enumerate() {
            let bound = Bound::limit(value, &schema.columns[condition.column]);
            let mut named = format!("{}{}", self.dialect.prefix(schema), name(schema, condition.column));
            if self.dialect == Dialect::Sqlite && is_behind_cursor(search, condition.column, &condition.comparison) {
                // SQLite searches by one bound of a column, which has to be that of the page: `+` keeps it from this one.
                named.insert(0, '+');
            }
            let word = if at == 0 { "WHERE" } else { "AND" };
            let test = self.test(named, &condition.comparison, bound, &mut parameters);
            _ = write!(sql, " {word} {test}");
        }
        if let Some(after) = &search.after {
            let word = if sql.is_empty() { "WHERE" } else { "AND" };
            _ = write!(sql, " {word} {}", self.dialect.behind(schema, after, &mut parameters));
        }
        (sql, parameters)
    }

    /// Returns the comparison of a part of a row or group, which has the values of the column of a parameter. Adds the
    /// parameter.
    pub(super) fn test<'s>(
        &self,
        part: String,
        comparison: &str,
        bound: Bound<'s>,
        parameters: &mut Vec<Bound<'s>>,
    ) -> String {
        let column = bound.column;
        // Only `=` and `IS NULL` are searched by an index in every database.
        if column.optional && bound.stored() == SqlValue::Null {
            return format!("{part} {}", if comparison == "==" { "IS NULL" } else { "IS NOT NULL" });
        }
        let is_unstorable = self.dialect == Dialect::Postgres && bound.is_unstorable_in_postgres();
        let comparison = match comparison {
            "==" if is_unstorable => return "FALSE".to_owned(),
            "!=" if is_unstorable => return "TRUE".to_owned(),
            "<" if is_unstorable => "<=",
            ">=" if is_unstorable => ">",
            as_written => as_written,
        };
        parameters.push(bound);
        let parameter = self.dialect.parameter_of(column, parameters.len());
        match comparison {
            "==" => self.dialect.equality(part, column, &parameter),
            "!=" if column.optional => {
                format!("({} <> {parameter} OR {part} IS NULL)", self.dialect.equal_by(part.clone(), column))
            }
            "!=" => format!("{} <> {parameter}", self.dialect.equal_by(part, column)),
            other => format!("{} {other} {parameter}", self.dialect.ordered_by(part, column)),
        }
    }
}

/// Returns the columns of rows that a prefix names, separated by commas.
fn columns_in(schema: &Schema, prefix: &str) -> String {
    list(schema.columns.iter().map(|column| format!("{prefix}{}", quoted(&column.name))), ", ")
}

/// Returns whether a condition bounds the column by which a page begins on the side of its begin.
fn is_behind_cursor(search: &TableSearch, column: usize, comparison: &str) -> bool {
    let first = search.after.as_ref().and_then(|after| after.first());
    first
        .is_some_and(|start| start.column == column && comparison.starts_with(if start.descending { '<' } else { '>' }))
}

fn replacement(schema: &Schema, has_key: &str, dialect: Dialect) -> Option<String> {
    let others = columns_beside_key(schema);
    let first = schema.key.len() + 1;
    let set = others.iter().zip(first..);
    let value = |at: usize, number| dialect.parameter_of(&schema.columns[at], number);
    let set = set.map(|(at, number)| format!("{} = {}", name(schema, *at), value(*at, number)));
    let sql = || format!("UPDATE {} SET {} WHERE {has_key}", quoted(&schema.name), list(set, ", "));
    (!others.is_empty()).then(sql)
}

/// Returns the statement that replaces several rows of a table of the program in PostgreSQL, in any order; `None` if the order could
/// count, because of a unique index, or if no column is beside the key.
fn replacement_of_many(schema: &Schema) -> Option<String> {
    let (key, others) = (&schema.key, columns_beside_key(schema));
    // Numbers with a fraction are equal in other ways than as keys.
    let is_fraction = |at: &usize| &*schema.columns[*at].kind == "Float";
    let is_ordered = schema.indexes.iter().any(|index| index.unique) || key.iter().any(is_fraction);
    if schema.existing.is_some() || is_ordered || others.is_empty() {
        return None;
    }
    let columns = || key.iter().chain(&others).zip(1..);
    let lists = columns().map(|(at, number)| Dialect::list_parameter(&schema.columns[*at], number));
    let (lists, renamed) = (list(lists, ", "), list(columns().map(|(_, number)| format!("c{number}")), ", "));
    let set = columns().skip(key.len()).map(|(at, number)| format!("{} = r.c{number}", name(schema, *at)));
    let has_key = columns().take(key.len()).map(|(at, number)| format!("t.{} = r.c{number}", name(schema, *at)));
    let (table, set, has_key) = (quoted(&schema.name), list(set, ", "), list(has_key, " AND "));
    Some(format!("UPDATE {table} AS t SET {set} FROM unnest({lists}) AS r({renamed}) WHERE {has_key}"))
}

/// Returns the statement that reads the rows with some values in columns in PostgreSQL, if the program has declared the table.
fn selection_of_many(schema: &Schema, columns: &str, of: &[usize]) -> Option<String> {
    // Numbers with a fraction are equal in other ways than as keys.
    if schema.existing.is_some() || of.iter().any(|at| &*schema.columns[*at].kind == "Float") {
        return None;
    }
    let lists: Vec<String> =
        of.iter().zip(1..).map(|(at, number)| Dialect::list_parameter(&schema.columns[*at], number)).collect();
    let names = list(of.iter().map(|at| name(schema, *at)), ", ");
    let condition = match &lists[..] {
        [only] => format!("{names} = ANY ({only})"),
        several => format!("({names}) IN (SELECT * FROM unnest({}))", several.join(", ")),
    };
    Some(format!("SELECT {columns} FROM {} WHERE {condition}", quoted(&schema.name)))
}

/// Returns these columns of a row as parameters.
pub(super) fn parameters<'s>(
    schema: &'s Schema,
    columns: impl Iterator<Item = usize>,
    row: &'s [Value],
) -> Vec<Bound<'s>> {
    columns.map(|at| Bound::new(&row[at], &schema.columns[at])).collect()
}

/// Returns the `ORDER BY` of a query: its own order, then the key, without columns that a condition fixes. A column counts where it
/// comes first; SQLite would sort by it once more. SQLite prefers a visit of all rows in their order to a sort of those that an index
/// finds between bounds; `+` keeps it from that.
fn order((schema, dialect): (&Schema, Dialect), search: &TableSearch, prefix: &str) -> String {
    let own = search.query.order.iter().map(|order| (order.column, order.descending));
    let keys = schema.key.iter().map(|at| (*at, false));
    let mut terms: Vec<(usize, bool)> = Vec::new();
    for term in own.chain(keys).filter(|(at, _)| search.equal(*at).is_none()) {
        if terms.iter().all(|(at, _)| *at != term.0) {
            terms.push(term);
        }
    }
    let terms = terms.into_iter().map(|(at, descending)| {
        let direction = if descending { " DESC" } else { "" };
        format!("{}{direction}", ordered_in(prefix, (schema, dialect), at))
    });
    let terms = list(terms, ", ");
    match terms.is_empty() {
        true => terms,
        false if dialect == Dialect::Sqlite && is_bounded_by_index(schema, search) => format!(" ORDER BY +{terms}"),
        false => format!(" ORDER BY {terms}"),
    }
}

/// Returns whether all rows between bounds of a column are sought that an index finds, and that neither the key nor an equality
/// finds.
fn is_bounded_by_index(schema: &Schema, search: &TableSearch) -> bool {
    let is_bounded = |column: &usize| matches!(search.bounds(*column), (Some(_), _) | (_, Some(_)));
    let of_key = schema.key.first();
    let mut of_indexes = schema.indexes.iter().filter_map(|index| index.columns.first());
    let is_equal = of_key.into_iter().chain(of_indexes.clone()).any(|column| search.equal(*column).is_some());
    let is_open = search.query.order.is_empty() && !search.is_limited();
    is_open && !is_equal && !of_key.is_some_and(is_bounded) && of_indexes.any(is_bounded)
}

/// Returns the value by which rows are ordered by a column. The database has the names of variants, and programs order
/// them as they are declared.
pub(super) fn ordered(schema: &Schema, dialect: Dialect, at: usize) -> String {
    ordered_in("", (schema, dialect), at)
}

/// Like [`ordered`], for a row that a prefix names.
pub(super) fn ordered_in(prefix: &str, (schema, dialect): (&Schema, Dialect), at: usize) -> String {
    let column = format!("{prefix}{}", name(schema, at));
    let variants = &schema.columns[at].variants;
    if variants.is_empty() {
        return dialect.ordered_by(column, &schema.columns[at]);
    }
    let cases = variants.iter().enumerate().map(|(place, variant)| format!("WHEN '{variant}' THEN {place}"));
    format!("CASE {column} {} END", list(cases, " "))
}

/// The column of a number that no table has: a limit, or the number of rows.
pub(super) static NUMBER: ColumnSchema = ColumnSchema {
    name: String::new(),
    kind: String::new(),
    variants: Vec::new(),
    optional: false,
    default: None,
    existing: false,
    in_nocase_index: false,
};
