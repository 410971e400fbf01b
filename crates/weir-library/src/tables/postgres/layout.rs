//! The tables of Weir in a schema: `weir_database` has the version of their layout, and its lock gives programs their turns;
//! `weir_numbers` has the last number of each table that numbers its rows.

use weir::Failure;

use super::address::PostgresAddress;
use super::connection::PostgresConnection;
use super::errors::explain;

/// The version of the layout.
const LAYOUT: i32 = 1;

/// The first schema, whether it has tables of Weir, and the encoding.
const FOUND: &str =
    "SELECT current_schema(), to_regclass(quote_ident(current_schema()) || '.weir_database') IS NOT NULL,
        current_setting('server_encoding')";

/// The first schema of the search path that exists, although it is no current one: the user has no right to use it. The names are quoted.
const HIDDEN: &str = "SELECT quote_ident(n.nspname), quote_ident(current_user)
    FROM unnest(string_to_array(current_setting('search_path'), ',')) WITH ORDINALITY AS path (name, place)
    JOIN pg_namespace n ON n.nspname = CASE WHEN trim(name) = '\"$user\"' THEN current_user ELSE trim(both '\" ' from name) END
    ORDER BY place LIMIT 1";

/// Creates the tables of Weir if the schema has none.
pub(super) async fn prepare(connection: &PostgresConnection, address: &PostgresAddress) -> Result<(), Failure> {
    if check(connection, address).await? {
        return Ok(());
    }
    // Several programs may start at the same moment.
    let created = format!(
        "BEGIN; SELECT pg_advisory_xact_lock(hashtext('weir_database'), hashtext(current_schema()));
         CREATE TABLE IF NOT EXISTS \"weir_database\" (\"layout\" integer NOT NULL PRIMARY KEY);
         INSERT INTO \"weir_database\" VALUES ({LAYOUT}) ON CONFLICT DO NOTHING;
         CREATE TABLE IF NOT EXISTS \"weir_numbers\" (\"table\" text COLLATE \"C\" NOT NULL PRIMARY KEY, \"last\" bigint NOT NULL);
         COMMIT"
    );
    connection.command(&created).await.map_err(|error| explain(address, &error))
}

/// Returns whether the schema has the tables of Weir. Fails if there is no schema, or if its tables are those of another
/// version.
pub(super) async fn check(connection: &PostgresConnection, address: &PostgresAddress) -> Result<bool, Failure> {
    let texts = async |sql: &str| connection.texts(sql).await.map_err(|error| explain(address, &error));
    let refused = |why: String| Err(Failure::function(format!("the database {address}: {why}")));
    let found = texts(FOUND).await?;
    let [schema, exists, encoding] = found.first().map_or(&[][..], Vec::as_slice) else { return Ok(false) };
    let Some(schema) = schema.as_deref() else {
        let hidden = texts(HIDDEN).await?;
        return refused(match hidden.first().map(Vec::as_slice) {
            Some([Some(schema), Some(user)]) => {
                format!(
                    "the user may not use the schema `{schema}` of the search path: give it the right: `GRANT USAGE ON SCHEMA {schema} TO {user}`"
                )
            }
            _ => "the search path names no schema that exists; create it: `CREATE SCHEMA …`, or name another one: \
                  `?options=-csearch_path%3Dshop`"
                .to_owned(),
        });
    };
    address.found_schema(schema);
    let encoding = encoding.as_deref().unwrap_or_default();
    if encoding != "UTF8" {
        return refused(format!(
            "its encoding is {encoding}, which lacks characters of texts, and orders them otherwise; create another one: \
             `CREATE DATABASE … ENCODING 'UTF8' LOCALE 'C' TEMPLATE template0`"
        ));
    }
    if exists.as_deref() != Some("t") {
        return Ok(false);
    }
    let layouts = texts("SELECT max(\"layout\") FROM \"weir_database\"").await?;
    let layout = layouts.first().and_then(|row| row.first()?.as_ref()?.parse::<i32>().ok());
    match layout {
        Some(LAYOUT) => Ok(true),
        Some(other) if other > LAYOUT => refused(format!(
            "a newer version of Weir has written the tables of the schema `{}`; use that version, or a newer one",
            schema
        )),
        _ => refused("its table `weir_database` is not one of Weir; name another schema".to_owned()),
    }
}
