//! The statements that create a table, its columns and its indexes.

use crate::tables::catalog::CatalogIndex;
use crate::tables::dialect::Dialect;
use crate::tables::schema::{ColumnSchema, IndexSchema, Schema};
use crate::tables::sql::{list, name, quoted};

/// A step from the tables of a database to those of a program.
#[derive(Debug, PartialEq)]
pub(in crate::tables) struct SchemaChange {
    /// The statement.
    pub(in crate::tables) sql: String,
}

/// Returns the statements that create a table with its indexes.
pub(in crate::tables) fn created(schema: &Schema, dialect: Dialect) -> Vec<SchemaChange> {
    let numbers = (dialect == Dialect::Postgres && schema.auto).then(|| numbers_begun(schema, dialect));
    let indexes = schema.indexes.iter().map(|index| index_created(schema, index, dialect));
    std::iter::once(table_created(schema, dialect)).chain(numbers).chain(indexes).collect()
}

fn table_created(schema: &Schema, dialect: Dialect) -> SchemaChange {
    let numbered = matches!(&schema.key[..], [only] if schema.columns[*only].kind == "Int");
    // Such a column is the identity of the row in SQLite.
    let identity = numbered && dialect == Dialect::Sqlite;
    let definitions = schema.columns.iter().enumerate().map(|(at, column)| match identity && schema.key == [at] {
        true => {
            format!("{} INTEGER PRIMARY KEY{}", quoted(&column.name), if schema.auto { " AUTOINCREMENT" } else { "" })
        }
        false => definition(column, dialect),
    });
    let key = format!("PRIMARY KEY ({})", list(schema.key.iter().map(|at| name(schema, *at)), ", "));
    let parts = list(definitions.chain((!identity).then_some(key)), ", ");
    let options = dialect.table_options(identity);
    SchemaChange { sql: format!("CREATE TABLE {} ({parts}){options}", quoted(&schema.name)) }
}

/// Returns the statement that begins to number the rows of a table.
fn numbers_begun(schema: &Schema, dialect: Dialect) -> SchemaChange {
    let table = dialect.text(&schema.name);
    SchemaChange { sql: format!("INSERT INTO \"weir_numbers\" VALUES ({table}, 0) ON CONFLICT DO NOTHING") }
}

/// Returns the statement that creates an index.
pub(super) fn index_created(schema: &Schema, index: &IndexSchema, dialect: Dialect) -> SchemaChange {
    let unique = if index.unique { "UNIQUE " } else { "" };
    let columns = list(index.columns.iter().map(|at| name(schema, *at)), ", ");
    let called = quoted(&dialect.index_name(schema, index));
    SchemaChange { sql: format!("CREATE {unique}INDEX {called} ON {} ({columns})", quoted(&schema.name)) }
}

/// Returns an index as programs declare it: `unique (owner, title)`.
pub(super) fn shown_index(schema: &Schema, index: &IndexSchema) -> String {
    let columns = index.columns.iter().map(|at| schema.columns[*at].name.clone());
    format!("`{} ({})`", if index.unique { "unique" } else { "index" }, list(columns, ", "))
}

/// Returns the statement that drops an index of a table.
pub(super) fn index_dropped(schema: &Schema, index: &CatalogIndex) -> SchemaChange {
    let name = quoted(&index.name);
    SchemaChange {
        sql: match index.of_constraint {
            true => format!("ALTER TABLE {} DROP CONSTRAINT {name}", quoted(&schema.name)),
            false => format!("DROP INDEX {name}"),
        },
    }
}

/// Returns the definition of a column. Only one with a default refuses `NULL`: rows that are inserted when the program no
/// longer declares it have the default, or no value, but none that nobody has declared.
pub(super) fn definition(column: &ColumnSchema, dialect: Dialect) -> String {
    let default = dialect.default(column).filter(|_| !column.optional);
    let rule = default.map_or(String::new(), |default| format!(" NOT NULL DEFAULT {default}"));
    format!("{} {}{}{rule}", quoted(&column.name), dialect.column_type(column), dialect.collation(column))
}
