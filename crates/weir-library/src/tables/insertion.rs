//! The statements that insert rows, also into tables that number them.
//!
//! SQLite numbers rows itself (`AUTOINCREMENT`). In PostgreSQL the table `weir_numbers` has the last number of each table, which
//! a statement that inserts a row changes with it: so a number of a statement that fails is given to the next row, as in
//! every other store. (A sequence of PostgreSQL would leave gaps.)

use super::dialect::Dialect;
use super::schema::Schema;
use super::sql::{list, name, quoted};

/// Returns the columns that an insertion gives: those which the table does not number.
pub(super) fn given_columns(schema: &Schema) -> Vec<usize> {
    (0..schema.columns.len()).filter(|at| !schema.auto || schema.key != [*at]).collect()
}

/// Returns the statement that inserts a row, with [`given_columns`] as its parameters.
pub(super) fn insertion(schema: &Schema, dialect: Dialect) -> String {
    let given = given_columns(schema);
    match (dialect, schema.auto) {
        (Dialect::Postgres, true) if schema.existing.is_some() => {
            let key = name(schema, schema.key[0]);
            format!("{} RETURNING {key}::bigint", plain_insertion(schema, &given, dialect))
        }
        (Dialect::Postgres, true) => numbered_insertion(schema, &given),
        _ => plain_insertion(schema, &given, dialect),
    }
}

/// Returns the statement that inserts a row with all columns, or replaces the one with its key.
pub(super) fn upsertion(schema: &Schema, dialect: Dialect) -> String {
    let all: Vec<usize> = (0..schema.columns.len()).collect();
    let others = columns_beside_key(schema);
    let set = list(others.iter().map(|at| format!("{0} = excluded.{0}", name(schema, *at))), ", ");
    let keys = list(schema.key.iter().map(|at| key_part(schema, *at, dialect)), ", ");
    let action = if set.is_empty() { "NOTHING".to_owned() } else { format!("UPDATE SET {set}") };
    let insertion = plain_insertion(schema, &all, dialect);
    let numbered = match (dialect, schema.auto) {
        (Dialect::Postgres, true) if schema.existing.is_none() => number_taken(schema),
        _ => String::new(),
    };
    let same_key = match (dialect, &schema.existing) {
        (Dialect::Postgres, Some(_)) if !set.is_empty() => format!(" WHERE {}", has_excluded_key(schema)),
        _ => String::new(),
    };
    format!("{numbered}{insertion} ON CONFLICT ({keys}) DO {action}{same_key}")
}

/// Returns a column of the key, by whose unique index the database finds the row that is replaced. With its collation no other index is
/// meant, such as one of another program for which different texts are equal: it refuses the row.
fn key_part(schema: &Schema, at: usize, dialect: Dialect) -> String {
    let (column, named) = (&schema.columns[at], name(schema, at));
    match (&*column.kind, dialect) {
        ("Text" | "Enum", Dialect::Sqlite) => format!("{named} COLLATE BINARY"),
        // Others give a column of theirs the collation that they choose: `has_excluded_key` tells other keys apart.
        (_, Dialect::Postgres) if schema.existing.is_none() => format!("{named}{}", dialect.collation(column)),
        _ => named,
    }
}

/// Returns the condition that the row which is found has the key of the one that is not inserted.
fn has_excluded_key(schema: &Schema) -> String {
    let table = if is_named_excluded(schema) { quoted("rows") } else { quoted(&schema.name) };
    list(schema.key.iter().map(|at| format!("{table}.{0} = excluded.{0}", name(schema, *at))), " AND ")
}

/// Returns whether the table has the name of the rows that are not inserted.
fn is_named_excluded(schema: &Schema) -> bool {
    schema.name.eq_ignore_ascii_case("excluded")
}

/// Returns the columns that are not part of the key.
pub(super) fn columns_beside_key(schema: &Schema) -> Vec<usize> {
    (0..schema.columns.len()).filter(|at| !schema.key.contains(at)).collect()
}

/// Returns `INSERT INTO "users" ("name", "email") VALUES (?1, ?2)`.
fn plain_insertion(schema: &Schema, columns: &[usize], dialect: Dialect) -> String {
    if columns.is_empty() {
        return format!("INSERT INTO {} DEFAULT VALUES", quoted(&schema.name));
    }
    let names = list(columns.iter().map(|at| name(schema, *at)), ", ");
    let values = columns.iter().zip(1..).map(|(at, number)| dialect.parameter_of(&schema.columns[*at], number));
    let alias = if is_named_excluded(schema) { " AS \"rows\"" } else { "" };
    format!("INSERT INTO {}{alias} ({names}) VALUES ({})", quoted(&schema.name), list(values, ", "))
}

/// Returns the statement that inserts a row with the next number, and returns it; it inserts none if all numbers are used.
fn numbered_insertion(schema: &Schema, given: &[usize]) -> String {
    let (table, key) = (quoted(&schema.name), name(schema, schema.key[0]));
    let of = Dialect::Postgres.text(&schema.name);
    let last = last_number(schema);
    let names = list(given.iter().map(|at| format!(", {}", name(schema, *at))), "");
    let cast = |(at, number): (&usize, usize)| {
        format!(", CAST(${number} AS {})", Dialect::Postgres.column_type(&schema.columns[*at]))
    };
    let values = given.iter().zip(1..).map(cast);
    let values = list(values, "");
    format!(
        "WITH n AS (UPDATE \"weir_numbers\" SET \"last\" = {last} + 1 WHERE \"table\" = {of} AND {last} < {} RETURNING \"last\")
         INSERT INTO {table} ({key}{names}) SELECT n.\"last\"{values} FROM n RETURNING {key}::bigint",
        i64::MAX
    )
}

/// Returns the statement that inserts several rows into a table of the program in PostgreSQL, in the order of its parameters: one
/// list for each of [`given_columns`]. A table that numbers its rows returns their numbers, a `NULL` if it has numbers and the database has
/// kept all rows out, and nothing if too few numbers are left. `None` if nothing is given.
pub(super) fn insertion_of_many(schema: &Schema) -> Option<String> {
    let (given, table) = (given_columns(schema), quoted(&schema.name));
    if given.is_empty() || schema.existing.is_some() {
        return None;
    }
    if !schema.auto {
        return Some(insertion_of_lists(schema, &given));
    }
    let UnnestedColumns { names, values, rows } = UnnestedColumns::of(schema, &given);
    let (key, of) = (name(schema, schema.key[0]), Dialect::Postgres.text(&schema.name));
    // PostgreSQL takes the type of a parameter from its first place.
    let (last, count) =
        (last_number(schema), format!("cardinality({})", Dialect::list_parameter(&schema.columns[*given.first()?], 1)));
    Some(format!(
        "WITH n AS (UPDATE \"weir_numbers\" SET \"last\" = {last} + {count} WHERE \"table\" = {of} AND {last} <= {} - {count}
         RETURNING \"last\"), i AS (INSERT INTO {table} ({key}, {names})
         SELECT n.\"last\" - {count} + r.at, {values} FROM n, {rows} ORDER BY r.at RETURNING {key}::bigint AS \"key\")
         SELECT i.\"key\" FROM n LEFT JOIN i ON true",
        i64::MAX
    ))
}

/// The statements in PostgreSQL that insert rows with the next numbers, as a transaction knows them that has inserted a row before. Their
/// parameters are all columns.
#[derive(Debug)]
pub(super) struct NumberedInsertion {
    /// Inserts a row.
    pub(super) one: String,
    /// Inserts several rows. The parameters are lists.
    pub(super) many: String,
}

impl NumberedInsertion {
    /// Returns the statements of a table of the program; `None` if it does not number its rows.
    pub(super) fn of(schema: &Schema) -> Option<NumberedInsertion> {
        if !schema.auto || schema.existing.is_some() {
            return None;
        }
        let all: Vec<usize> = (0..schema.columns.len()).collect();
        let (table, key) = (Dialect::Postgres.text(&schema.name), schema.key[0]);
        let greatest = format!(
            "(SELECT max(number) FROM unnest({}) AS number)",
            Dialect::list_parameter(&schema.columns[key], key + 1)
        );
        let numbers_taken = format!(
            "WITH n AS (UPDATE \"weir_numbers\" SET \"last\" = {greatest} WHERE \"table\" = {table} AND \"last\" < {greatest}) "
        );
        Some(NumberedInsertion {
            one: format!("{}{}", number_taken(schema), plain_insertion(schema, &all, Dialect::Postgres)),
            many: format!("{numbers_taken}{}", insertion_of_lists(schema, &all)),
        })
    }
}

/// Returns the statement that inserts several rows into a table of the program in PostgreSQL, in their order. Its parameters are lists of
/// these columns.
fn insertion_of_lists(schema: &Schema, columns: &[usize]) -> String {
    let UnnestedColumns { names, values, rows } = UnnestedColumns::of(schema, columns);
    format!("INSERT INTO {} ({names}) SELECT {values} FROM {rows} ORDER BY r.at", quoted(&schema.name))
}

/// The columns of several rows, whose values are lists, in PostgreSQL.
struct UnnestedColumns {
    /// The names of the columns.
    names: String,
    /// The values of the columns in a row of `rows`.
    values: String,
    /// The rows, which have their position as `r.at`.
    rows: String,
}

impl UnnestedColumns {
    fn of(schema: &Schema, columns: &[usize]) -> UnnestedColumns {
        let lists = columns.iter().zip(1..).map(|(at, number)| Dialect::list_parameter(&schema.columns[*at], number));
        let renamed = list((1..=columns.len()).map(|number| format!("c{number}")), ", ");
        UnnestedColumns {
            names: list(columns.iter().map(|at| name(schema, *at)), ", "),
            values: list((1..=columns.len()).map(|number| format!("r.c{number}")), ", "),
            rows: format!("unnest({}) WITH ORDINALITY AS r({renamed}, at)", list(lists, ", ")),
        }
    }
}

/// Returns the expression of the last number of a table. Other programs than Weir's may have inserted rows with greater numbers.
fn last_number(schema: &Schema) -> String {
    let (table, key) = (quoted(&schema.name), name(schema, schema.key[0]));
    format!("greatest(\"last\", (SELECT coalesce(max({key}), 0) FROM {table}))")
}

/// Returns the beginning of an insertion of a row with a number that the program chooses: the next number is greater.
fn number_taken(schema: &Schema) -> String {
    let (table, number) = (Dialect::Postgres.text(&schema.name), schema.key[0] + 1);
    format!(
        "WITH n AS (UPDATE \"weir_numbers\" SET \"last\" = ${number} WHERE \"table\" = {table} AND \"last\" < ${number}) "
    )
}
