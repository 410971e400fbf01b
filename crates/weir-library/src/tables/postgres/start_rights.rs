//! The rights that a start looks for, so that it fails in place of the statements that need them.

use weir::Failure;

use super::PostgresDatabase;
use super::address::PostgresAddress;
use super::rights::on_all_tables;
use crate::tables::catalog::Read;
use crate::tables::dialect::Dialect;
use crate::tables::evolution::new_table::SchemaChange;
use crate::tables::schema::Schema;
use crate::tables::sql::{list, quoted};

/// Finds a right that the user does not have on a table that exists: its name, the table, and the column, if it is not one of the table.
const LACKING: &str = "WITH needed (name, privilege, field) AS (VALUES NEEDED) \
    SELECT n.privilege, n.name, n.field FROM needed n \
    JOIN pg_class c ON c.relname = n.name AND c.relnamespace = to_regnamespace(quote_ident(current_schema())) \
    LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = n.field AND NOT a.attisdropped \
    WHERE CASE WHEN n.field IS NULL THEN NOT has_table_privilege(c.oid, n.privilege) \
    ELSE a.attnum IS NOT NULL AND NOT has_column_privilege(c.oid, a.attnum, n.privilege) END LIMIT 1";
/// The tables of Weir, which are read and written.
const OF_WEIR: [&str; 5] = ["weir_database", "weir_numbers", "weir_columns", "weir_references", "weir_migrations"];
/// The rights on these tables.
const ALL: [&str; 4] = ["SELECT", "INSERT", "UPDATE", "DELETE"];
/// The names of the schema and of the user, quoted, whether transactions are only read, and whether the user may create tables.
const OF_USER: &str = "SELECT current_schema(), quote_ident(current_user), current_setting('transaction_read_only') = 'on', \
    has_schema_privilege(current_schema(), 'CREATE')";

impl PostgresDatabase {
    /// Returns why a start would fail for the rights of the user: on the table, and on those of Weir, or, if the start makes these changes of the
    /// table, also to change it.
    pub(in crate::tables) fn lacking_right(
        address: &PostgresAddress,
        schema: &Schema,
        changes: &[SchemaChange],
    ) -> Read<Option<Failure>> {
        let database = PostgresDatabase::unprepared(address.clone(), (None, 1))?;
        let connection = database.connect_to_look()?;
        let found = database.texts(&connection, OF_USER)?;
        // A schema that is missing has a message of its own.
        let Some([Some(own), Some(user), reads, creates]) = found.first().map(Vec::as_slice) else { return Ok(None) };
        address.found_schema(own);
        let is = |found: &Option<String>| found.as_deref() == Some("t");
        let failure = |why: String| Some(Failure::function(format!("the database {address}: {why}")));
        if is(reads) {
            return Ok(failure(format!(
                "it is read-only, such as a standby, or for the user: use the address of the primary, or `ALTER ROLE {user} SET \
                 default_transaction_read_only = off`"
            )));
        }
        if changes.iter().any(|change| change.sql.starts_with("CREATE")) && !is(creates) {
            let own = quoted(own);
            return Ok(failure(format!(
                "the user may create nothing in the schema {own}: give it the right: `GRANT CREATE ON SCHEMA {own} TO {user}`"
            )));
        }
        let owned = format!(
            "SELECT 1 FROM pg_class WHERE relname = {} AND relnamespace = to_regnamespace(quote_ident(current_schema())) \
             AND NOT pg_has_role(relowner, 'USAGE')",
            Dialect::Postgres.text(&schema.name)
        );
        if !changes.is_empty() && !database.texts(&connection, &owned)?.is_empty() {
            let table = quoted(&schema.name);
            return Ok(failure(format!(
                "only the owner of {table} changes it: `ALTER TABLE {table} OWNER TO {user}`, or start once as its owner"
            )));
        }
        database.lacking_on_tables(|sql| database.texts(&connection, sql), std::slice::from_ref(schema))
    }

    /// Returns why statements on tables that exist would fail for the rights of the user.
    pub(super) fn lacking_on_tables(
        &self,
        query: impl Fn(&str) -> Read<Vec<Vec<Option<String>>>>,
        schemas: &[Schema],
    ) -> Read<Option<Failure>> {
        let address = &self.connector.address;
        let found = query(&LACKING.replace("NEEDED", &needed(schemas)))?;
        let Some([Some(right), Some(table), column]) = found.first().map(Vec::as_slice) else { return Ok(None) };
        let of = match column {
            Some(column) => format!("the column `{column}` of `{table}`"),
            None => format!("`{table}`"),
        };
        let user = quoted(address.config.get_user().unwrap_or("…"));
        let granting = on_all_tables(address.schema().unwrap_or("…"), &user);
        Ok(Some(Failure::function(format!(
            "the database {address}: the user has no right to {right} {of}, as a program of Weir does: give it the right: `{granting}"
        ))))
    }
}

/// Returns the rights that every program with these tables needs, as rows of a query: one that only reads, or only inserts, needs no others.
fn needed(schemas: &[Schema]) -> String {
    let row = |table: &str, right: &str, column: Option<&str>| {
        let text = |text: &str| Dialect::Postgres.text(text);
        format!("({}, '{right}', {})", text(table), column.map_or_else(|| "NULL::text".to_owned(), text))
    };
    let of_weir = OF_WEIR.iter().flat_map(|table| ALL.map(|right| row(table, right, None)));
    let of_schema = |schema: &Schema| {
        schema.columns.iter().map(|column| row(&schema.name, "SELECT", Some(&column.name))).collect::<Vec<_>>()
    };
    list(of_weir.chain(schemas.iter().flat_map(of_schema)), ", ")
}
