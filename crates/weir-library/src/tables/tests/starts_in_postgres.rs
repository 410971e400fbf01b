//! Starts in PostgreSQL: their time limit, and what a database has that hinders them.

use test_support::postgres::PostgresServer;
use weir::{Failure, Value};

use super::evolution::{Evolution, user};
use super::{TestDatabase, column, declared};
use crate::tables::schema::ColumnSchema;

/// Returns the failure of a start, or none, whose update of a row executes this statement first: the row gets the default of a column.
fn start_with_trigger(evolution: &Evolution, statement: &str) -> Result<(), Failure> {
    let row = user("ada", [Value::none()]);
    evolution.start(&[column("mail", "Text", true)], &[], |table| _ = table.insert(0, row).unwrap()).unwrap();
    evolution.database.execute(&format!(
        "CREATE FUNCTION filled() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {statement}; RETURN NEW; END $$;
         CREATE TRIGGER filled BEFORE UPDATE ON users FOR EACH ROW EXECUTE FUNCTION filled()"
    ));
    let required = ColumnSchema { default: Some("none".to_owned()), ..column("mail", "Text", false) };
    let schema = declared("users", vec![column("name", "Text", false), required]);
    evolution.database.storage().open(schema).map(|_| ())
}

/// Statements of a start create indexes and check the rows of large tables.
#[test]
fn a_start_has_a_time_limit_of_its_own() {
    for evolution in Evolution::each("start_limit") {
        let TestDatabase::Postgres(name) = &evolution.database else { continue };
        evolution.database.execute("CREATE TABLE seen (allowed text)");
        start_with_trigger(&evolution, "INSERT INTO seen VALUES (current_setting('statement_timeout'))").unwrap();
        let server = PostgresServer::shared().unwrap();
        assert_eq!(server.execute(name, "SELECT allowed FROM seen").trim(), "1h");
    }
}
