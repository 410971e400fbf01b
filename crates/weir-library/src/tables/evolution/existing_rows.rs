//! Checks of the rows of a database before a start changes their table: rows without a value, with a variant that is gone,
//! or with equal values in a new `unique`. Each failure counts the rows and says what to do.

use weir::{Failure, FailureKind, Value};

use crate::tables::catalog::{Catalog, Read, StartCheck};
use crate::tables::constraint;
use crate::tables::dialect::Dialect;
use crate::tables::evolution::known_columns;
use crate::tables::schema::{ColumnSchema, IndexSchema, Schema};
use crate::tables::sql::{list, name, quoted};
use crate::tables::statements::NUMBER;

/// Returns the failure of a column that has values of another type in the database.
pub(super) fn values_differ(column: &ColumnSchema, stored: &str, is_key: bool) -> Failure {
    let advice = if is_key {
        "a key keeps its type: give the table a new name"
    } else {
        "give it a new name, or `migrate` the rows"
    };
    Failure::function(format!(
        "the column `{}` is `{stored}` in the database and `{}` in the program; {advice}",
        column.name,
        column.shown_type()
    ))
}

/// Fails if rows have no value for a required column: those that fulfil this condition.
pub(super) fn lacks_no_value(
    schema: &Schema,
    column: &ColumnSchema,
    condition: &str,
    catalog: &dyn Catalog,
) -> StartCheck<()> {
    let sql = format!("SELECT count(*) FROM {} WHERE {condition}", quoted(&schema.name));
    let rows = catalog.number(&sql)?;
    if rows == 0 {
        return Ok(Ok(()));
    }
    let (rows, name) = (counted(rows, "row", ("has", "have")), &column.name);
    let renamed = former_names(schema, column, catalog)?.map_or_else(String::new, |names| {
        format!("; if it is {names} under another name, convert the rows by a `migrate`, which keeps the values")
    });
    let advice = advice_on_value(column);
    Ok(Err(Failure::function(format!("{rows} no value for the column `{name}`; {advice}{renamed}"))))
}

/// Returns how rows that are there get a value in a column.
fn advice_on_value(column: &ColumnSchema) -> String {
    match &*column.kind {
        // They have no literals.
        "Time" | "Bytes" => "make it an `Option`, or give the rows a value by a `migrate`".to_owned(),
        _ => format!("give it a default (`default({}: …)` at the table), or make it an `Option`", column.name),
    }
}

/// Returns the columns of the database that may be a new column under its former name: those of its type that the program does not
/// declare. A program with a migration names the former column itself.
fn former_names(schema: &Schema, column: &ColumnSchema, catalog: &dyn Catalog) -> Read<Option<String>> {
    let known = known_columns(schema, catalog)?;
    if schema.migration.is_some() || known.iter().any(|known| known.name == column.name) {
        return Ok(None);
    }
    let kinds = [column.shown_type(), format!("Option({})", column.shown_type())];
    let is_declared = |name: &String| schema.columns.iter().any(|column| column.name == *name);
    let former = known.iter().filter(|known| kinds.contains(&known.kind) && !is_declared(&known.name));
    let names: Vec<String> = former.map(|known| format!("`{}`", known.name)).collect();
    Ok((!names.is_empty()).then(|| names.join(" or ")))
}

/// Fails if rows have a variant that the enum of a column no longer has.
pub(super) fn variants_are_known(schema: &Schema, column: &ColumnSchema, catalog: &dyn Catalog) -> StartCheck<()> {
    let (table, named) = (quoted(&schema.name), quoted(&column.name));
    let known = list(column.variants.iter().map(|variant| format!("'{variant}'")), ", ");
    let sql = format!(
        "SELECT {named}, count(*) FROM {table} WHERE {named} NOT IN ({known}) GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 1"
    );
    let Some((variant, rows)) = catalog.text_and_number(&sql)? else { return Ok(Ok(())) };
    Ok(Err(Failure::function(format!(
        "{} the {} `{variant}`, which the program does not declare; declare the variant until the rows are \
         changed, by the program or by `{}`: UPDATE {table} SET {named} = '…' WHERE {named} = '{variant}'",
        counted(rows, "row", ("has", "have")),
        column.name,
        catalog.dialect().shell(),
    ))))
}

/// A `unique` that the database does not have yet, or that has a column in which rows without a value get the default.
pub(super) struct UniqueIndex<'s> {
    pub(super) schema: &'s Schema,
    pub(super) index: &'s IndexSchema,
    /// The names of the columns that the database has.
    pub(super) known: &'s [&'s str],
    /// The column in which rows without a value get the default.
    pub(super) filled: Option<usize>,
    /// True if the database does not have it yet.
    pub(super) is_new: bool,
}

impl UniqueIndex<'_> {
    /// Fails if rows agree in all columns of the index when the start has changed them.
    pub(super) fn check(&self, catalog: &dyn Catalog) -> StartCheck<()> {
        let Some((example, values)) = self.example(catalog)? else { return Ok(Ok(())) };
        let columns = &self.index.columns;
        let names = list(columns.iter().map(|at| self.schema.columns[*at].name.clone()), ", ");
        let named = |at: usize| &self.schema.columns[at].name;
        let reason = match (columns.iter().find(|at| self.is_new_with_default(**at)), self.filled) {
            (Some(at), _) => {
                format!(
                    "the default of the new column `{}` gives it one value in all rows; make it an `Option`",
                    named(*at)
                )
            }
            // Without a new value, no rows agree in an index that is there.
            (None, Some(at)) if !self.is_new => format!(
                "the default of the column `{}` gives several rows without a value the same one; leave it an `Option`, or give \
                 these rows values first",
                named(at)
            ),
            (None, _) => format!(
                "{} in more than one row, such as {example}; change or delete these rows first",
                counted(values, "value", ("occurs", "occur"))
            ),
        };
        let message = format!("`unique ({names})` does not hold: {reason}");
        Ok(Err(Failure::new(FailureKind::Constraint, message)))
    }

    /// Returns values that more than one row has, and the number of these values.
    fn example(&self, catalog: &dyn Catalog) -> Read<Option<(String, i64)>> {
        let mut columns: Vec<ColumnSchema> =
            self.index.columns.iter().map(|at| self.schema.columns[*at].clone()).collect();
        columns.push(ColumnSchema { kind: "Int".to_owned(), ..NUMBER.clone() });
        let rows = catalog.rows(&self.doubled(catalog.dialect()), &columns)?;
        let Some((Some(Value::Int(number)), values)) = rows.first().and_then(|row| row.split_last()) else {
            return Ok(None);
        };
        let shown = columns.iter().zip(values).map(|(column, value)| {
            value
                .as_ref()
                .map_or_else(|| "a value of another type".to_owned(), |value| constraint::shown(column, value))
        });
        Ok(Some((list(shown, ", "), *number)))
    }

    /// Returns the query for values that more than one row has, and for the number of these values.
    fn doubled(&self, dialect: Dialect) -> String {
        let columns = || self.index.columns.iter().enumerate();
        let value = |(place, at): (usize, &usize)| {
            format!("{} AS v{place}", value_after_start(self.schema, self.known, *at, dialect))
        };
        let values = list(columns().map(value), ", ");
        let present = list(columns().map(|(place, _)| format!("v{place} IS NOT NULL")), " AND ");
        let groups = list(columns().map(|(place, _)| format!("v{place}")), ", ");
        format!(
            "SELECT {groups}, count(*) OVER () FROM (SELECT {values} FROM {}) s WHERE {present}
             GROUP BY {groups} HAVING count(*) > 1 ORDER BY count(*) DESC LIMIT 1",
            quoted(&self.schema.name)
        )
    }

    /// Returns whether the rows get the default of the column when it is created.
    fn is_new_with_default(&self, at: usize) -> bool {
        let column = &self.schema.columns[at];
        !self.known.contains(&column.name.as_str()) && !column.optional && column.default.is_some()
    }
}

/// Returns the value of a column after the start, in SQL. `known` are the columns that the database has.
pub(super) fn value_after_start(schema: &Schema, known: &[&str], at: usize, dialect: Dialect) -> String {
    let column = &schema.columns[at];
    let default = dialect.default(column).filter(|_| !column.optional);
    match (known.contains(&column.name.as_str()), default) {
        (true, None) => name(schema, at),
        (true, Some(default)) => format!("coalesce({}, {default})", name(schema, at)),
        // PostgreSQL takes a mere `NULL` for a text.
        (false, default) => default.unwrap_or_else(|| format!("CAST(NULL AS {})", dialect.column_type(column))),
    }
}

pub(super) fn counted(number: i64, noun: &str, (one, several): (&str, &str)) -> String {
    if number == 1 { format!("{number} {noun} {one}") } else { format!("{number} {noun}s {several}") }
}
