//! Tables and columns of a database that a program does not declare, such as because another version of it has declared them, or under
//! another name. They stay, with all rows and values, and the program does not read them.

use std::fmt::Write as _;

use super::catalog::{Catalog, Read};
use super::evolution;
use super::schema::Schema;
use super::sql::quoted;

/// Maximum number of rows that are counted: a count reads them.
const COUNTED: i64 = if cfg!(test) { 3 } else { 1_000_000 };

/// Returns a line that names the columns of a table that the program does not declare; `None` if there are none.
pub(super) fn columns(schema: &Schema, catalog: &dyn Catalog) -> Read<Option<String>> {
    let is_declared = |name: &String| schema.columns.iter().any(|column| column.name == *name);
    let known = evolution::known_columns(schema, catalog)?;
    let names: Vec<String> = known.iter().map(|known| &known.name).filter(|name| !is_declared(name)).cloned().collect();
    if names.is_empty() {
        return Ok(None);
    }
    let noun = if names.len() == 1 { "column" } else { "columns" };
    let names = names.join("`, `");
    Ok(Some(format!("  the database also has the {noun} `{names}`, which this program does not declare\n")))
}

/// Returns a line for each table of Weir programs in the database that is no stored table of this one, with its number of rows.
pub(super) fn tables(schemas: &[Schema], catalog: &dyn Catalog) -> Read<String> {
    if !catalog.has_table("weir_columns")? {
        return Ok(String::new());
    }
    let noted = catalog.query("SELECT DISTINCT \"table\" FROM \"weir_columns\" ORDER BY 1")?;
    let mut left = Vec::new();
    for name in noted.into_iter().flatten().flatten() {
        let declared = schemas.iter().find(|schema| schema.name == name);
        if declared.is_none_or(|schema| schema.soft.is_some()) && catalog.has_table(&name)? {
            left.push((name, if declared.is_some() { "store" } else { "declare" }));
        }
    }
    let mut lines = String::new();
    for (name, verb) in left {
        let limit = COUNTED + 1;
        let count = format!("SELECT count(*) FROM (SELECT 1 FROM {} LIMIT {limit}) s", quoted(&name));
        // The role of the program may lack the right to read it. In PostgreSQL, no later statement of the transaction succeeds then.
        let rows = catalog.number(&count).map_or_else(|_| "its rows are not counted".to_owned(), shown_rows);
        _ = writeln!(lines, "the database also has the table `{name}` ({rows}), which this program does not {verb}");
    }
    Ok(lines)
}

fn shown_rows(rows: i64) -> String {
    match rows {
        1 => "1 row".to_owned(),
        _ if rows > COUNTED => format!("more than {COUNTED} rows"),
        _ => format!("{rows} rows"),
    }
}
