//! Starts in PostgreSQL: their time limit, and what a database has that hinders them.

use test_support::postgres::PostgresServer;
use weir::{Failure, Value};

use super::evolution::{Evolution, user};
use super::test_database::wait_for;
use super::{TestDatabase, column, declared};
use crate::log::LogSettings;
use crate::output::Outputs;
use crate::tables::postgres::PostgresAddress;
use crate::tables::schema::{ColumnSchema, ExistingTable, Schema};
use crate::tables::storage::TableStorage;
use crate::tables::table_databases::TableLocation;
use crate::tables::table_log::TableLog;

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

/// As `CREATE INDEX CONCURRENTLY` does at moments that no test can choose.
#[test]
fn a_start_that_meets_another_change_of_the_same_table_tries_again() {
    for evolution in Evolution::each("start_beside_change") {
        let TestDatabase::Postgres(_) = &evolution.database else { continue };
        evolution.database.execute("CREATE SEQUENCE attempts");
        let hinder =
            "IF nextval('attempts') = 1 THEN RAISE 'tuple concurrently updated' USING ERRCODE = 'XX000'; END IF";
        start_with_trigger(&evolution, hinder).unwrap();
    }
}

/// Holds a table as `CREATE INDEX CONCURRENTLY` does that waits for others, until the table `released` has a row.
const HOLDING: &str = "DO $$ BEGIN
    LOCK TABLE users IN SHARE UPDATE EXCLUSIVE MODE;
    WHILE NOT EXISTS (SELECT 1 FROM released) LOOP
        PERFORM pg_sleep(0.01);
    END LOOP;
END $$";

#[test]
fn a_start_that_another_program_holds_up_says_by_whom_and_waits_once() {
    for evolution in Evolution::each("start_held_up") {
        let TestDatabase::Postgres(name) = &evolution.database else { continue };
        let server = PostgresServer::shared().unwrap();
        evolution.start(&[column("mail", "Text", true)], &[], |_| ()).unwrap();
        evolution.database.execute("CREATE TABLE released (at int)");
        let new = declared(
            "users",
            vec![column("name", "Text", false), column("mail", "Text", true), column("at", "Int", true)],
        );
        let log = TableLog { outputs: Outputs::capturing(), settings: LogSettings::default() };
        std::thread::scope(|scope| {
            scope.spawn(|| server.execute(name, HOLDING));
            let held = "SELECT count(*) FROM pg_locks WHERE relation = 'users'::regclass AND mode = 'ShareUpdateExclusiveLock' AND granted";
            wait_for(server, name, held, "1");
            let limited = format!("{}&statement_timeout=1s", server.address(name));
            let storage = TableStorage::at(TableLocation::Postgres(PostgresAddress::parse(&limited, None).unwrap()));
            let refused = storage.open(new.clone()).map(|_| ()).unwrap_err();
            assert!(refused.message.contains("the statement was ALTER TABLE \"users\""), "{refused}");
            // It has waited for as long as it may.
            assert!(!storage.postgres().may_start_now(&refused, &new), "{refused}");
            assert!(storage.postgres().may_start_now(&Failure::function("an older version runs"), &new));

            let storage = evolution.database.storage().with_log(log.clone());
            let starting = scope.spawn(move || storage.open(new).map(|_| ()));
            while !log.outputs.captured().unwrap().contains("the start waits for up to 30 s") {
                std::thread::yield_now();
            }
            server.execute(name, "INSERT INTO released VALUES (1)");
            starting.join().unwrap().unwrap();
        });
        let said = log.outputs.captured().unwrap();
        assert!(said.contains("the process ") && said.contains("DO $$ BEGIN LOCK TABLE users IN SHARE"), "{said}");
    }
}

/// The program ends, and connects no more.
#[test]
fn a_start_that_has_lost_its_connection_says_to_start_again() {
    for evolution in Evolution::each("start_lost") {
        let TestDatabase::Postgres(_) = &evolution.database else { continue };
        let lost = start_with_trigger(&evolution, "PERFORM pg_terminate_backend(pg_backend_pid())").unwrap_err();
        assert!(lost.message.contains("start the program again; a `batched` migration goes on"), "{lost}");
        assert!(!lost.message.contains("next statement"), "{lost}");
    }
}

#[test]
fn a_table_whose_row_of_numbers_is_missing_says_so() {
    for evolution in Evolution::each("no_numbers") {
        let TestDatabase::Postgres(_) = &evolution.database else { continue };
        let lines =
            Schema { auto: true, ..declared("lines", vec![column("id", "Int", false), column("text", "Text", false)]) };
        let row = || Value::Record([Value::Int(0), Value::text("x")].into());
        let table = evolution.database.storage().open(lines.clone()).unwrap();
        table.rows.insert(0, row()).unwrap();
        evolution.database.execute("DELETE FROM weir_numbers WHERE \"table\" = 'lines'");
        let refused = table.rows.insert(0, row()).unwrap_err();
        let advice = "INSERT INTO \"weir_numbers\" VALUES ('lines', 0)";
        assert!(refused.message.contains(advice), "{refused}");
        let promised = evolution.database.report(&lines).unwrap();
        assert!(promised.contains("`weir_numbers` has no row of the table"), "{promised}");
        evolution.database.execute(advice);
        assert_eq!(table.rows.insert(0, row()).unwrap(), Value::Int(2));
    }
}

/// As somebody does who wants to begin anew, or who restores a copy of the table.
#[test]
fn a_start_goes_on_behind_numbers_that_were_set_back() {
    let lines =
        Schema { auto: true, ..declared("lines", vec![column("id", "Int", false), column("text", "Text", false)]) };
    let row = || Value::Record([Value::Int(0), Value::text("x")].into());
    for database in TestDatabase::each("numbers_set_back") {
        let set_back = match database {
            TestDatabase::Sqlite(_) => "UPDATE sqlite_sequence SET seq = 0",
            TestDatabase::Postgres(_) => "UPDATE weir_numbers SET last = 0",
        };
        for start in 0..3 {
            let storage = database.storage();
            let table = storage.open(lines.clone()).unwrap();
            for number in [1, 2] {
                assert_eq!(table.rows.insert(0, row()).unwrap(), Value::Int(2 * start + number), "{database:?}");
            }
            weir::Closing::close(&storage).unwrap();
            drop((table, storage));
            database.execute(set_back);
        }
    }
}

/// No `upsert` would succeed.
#[test]
fn a_deferrable_key_of_an_existing_table_that_is_written_is_refused() {
    let Some(server) = PostgresServer::shared() else { return };
    let address = server.schema("deferrable_key");
    server.execute("deferrable_key", "CREATE TABLE parts (id bigint PRIMARY KEY DEFERRABLE)");
    let opened = |writable| {
        let columns = vec![ColumnSchema { existing: true, ..column("id", "Int", false) }];
        let constraint = "tables.parts".to_owned();
        let existing = Some(ExistingTable { database: address.clone(), writable, constraint });
        let place = TestDatabase::Postgres("deferrable_key".to_owned());
        place.storage().open(Schema { existing, ..declared("parts", columns) }).map(|_| ())
    };
    let refused = opened(true).unwrap_err();
    assert!(refused.message.contains("its key (id) is `DEFERRABLE`"), "{refused}");
    opened(false).unwrap();
}
