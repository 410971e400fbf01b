//! Faults of databases that a program notices: other writers, a transaction that does nothing, rules of others, encryption.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use test_support::is_run_alone;
use test_support::postgres::PostgresServer;
use test_support::postgres_proxy::{Cut, PostgresProxy};
use test_support::random::Random;
use weir::{FailureKind, SeenCommits, Value};

use super::checkpoints::insert_large;
use super::evolution::user;
use super::test_database::{HINDERING_UPDATE, HINDERING_USERS, wait_for};
use super::{TestDatabase, column, declared, schema, users};
use crate::tables::open_table::OpenTable;
use crate::tables::postgres::PostgresAddress;
use crate::tables::program_end::ProgramEnd;
use crate::tables::schema::{ColumnSchema, ExistingTable, Schema};
use crate::tables::sqlite::connection::{BUSY_TIMEOUT, HELD_TIMEOUT, read_write};
use crate::tables::sqlite::database::Database;
use crate::tables::sqlite::database_error::explain_read;
use crate::tables::sqlite::stored::StoredTable;
use crate::tables::sqlite::writer::Writer;
use crate::tables::storage::TableStorage;
use crate::tables::table_databases::TableLocation;
use crate::tables::transaction_number::number;

fn at(place: i64) -> Value {
    user("ada", [Value::Int(place)])
}

fn place(table: &OpenTable) -> Option<Value> {
    table.rows.get(0, &Value::text("ada")).unwrap().map(|row| super::super::row::fields(&row)[1].clone())
}

#[test]
fn a_transaction_that_another_program_hinders_is_a_conflict() {
    let Some(server) = PostgresServer::shared() else { return };
    server.schema("conflict");
    let storage = TestDatabase::Postgres("conflict".to_owned()).storage();
    let table = storage.open(users()).unwrap();
    table.rows.insert(0, at(1)).unwrap();
    // The transaction has seen the row when the other program changes it.
    assert_eq!(table.rows.get(7, &Value::text("ada")).unwrap(), Some(at(1)));
    server.execute("conflict", "UPDATE users SET place = 2");
    let refused = table.rows.upsert(7, at(3)).unwrap_err();
    assert_eq!(refused.kind, FailureKind::Conflict, "{refused}");
    assert!(refused.message.contains("another program has written the same rows"), "{refused}");
    // It cannot go on.
    assert_eq!(table.rows.upsert(7, at(4)).unwrap_err().kind, FailureKind::Conflict);
    assert_eq!(table.rows.commit(7, true).unwrap_err().kind, FailureKind::Conflict);
    assert_eq!(place(&table), Some(Value::Int(2)));
    table.rows.upsert(8, at(5)).unwrap();
    table.rows.commit(8, true).unwrap();
    assert_eq!(place(&table), Some(Value::Int(5)));
}

#[test]
fn a_statement_that_another_program_hinders_is_tried_again() {
    let Some(server) = PostgresServer::shared() else { return };
    server.schema("again");
    let storage = TestDatabase::Postgres("again".to_owned()).storage();
    let table = storage.open(users()).unwrap();
    table.rows.insert(0, at(1)).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| server.execute("again", HINDERING_UPDATE));
        wait_for(server, "again", HINDERING_USERS, "1");
        table.rows.upsert(0, at(3)).unwrap();
    });
    assert_eq!(place(&table), Some(Value::Int(3)));
}

#[cfg(unix)]
#[test]
fn a_limit_of_file_sizes_is_named() {
    if is_run_alone((module_path!(), "a_limit_of_file_sizes_is_named"), "trap '' XFSZ; ulimit -f 4000") {
        return;
    }
    let folder = TestDatabase::sqlite("file-sizes");
    let database = Arc::new(Database::open(&folder.file(), None, ProgramEnd::default()).unwrap());
    let table = StoredTable::open(schema(), Arc::clone(&database)).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let _held = database.without_checkpoints();
    let failure = (0..100).find_map(|number| {
        insert_large(&table, number);
        runtime.block_on(database.commits().unwrap().settled_to(SeenCommits::current())).err()
    });
    let message = failure.map(|failure| failure.message.to_string()).unwrap_or_default();
    assert!(
        message
            .ends_with("; a file has the length that the program may give to files: allow longer ones (`ulimit -f`)"),
        "{message}"
    );
}

#[test]
fn a_read_that_finds_no_room_names_the_folder_for_temporary_files() {
    let full = |code| rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None);
    let message = |code| explain_read(Path::new("shop.db"), &full(code)).message.to_string();
    let said = message(rusqlite::ffi::SQLITE_FULL);
    assert!(said.contains("for temporary files is full") && said.contains("`TMPDIR`"), "{said}");
    assert!(!said.contains("shop.db"), "{said}");
    assert!(message(rusqlite::ffi::SQLITE_CORRUPT).contains("the database shop.db: "));
}

#[test]
fn a_table_with_more_columns_than_the_database_takes_is_refused() {
    for database in TestDatabase::each("wide") {
        let most = if matches!(database, TestDatabase::Sqlite(_)) { 2_000 } else { 1_600 };
        let columns = (0..=most).map(|at| column(&format!("c{at}"), "Int", false)).collect();
        let failure = database.storage().open(declared("wide", columns)).unwrap_err();
        let expected = format!("`wide` has {} columns, and a table of the database at most {most}: ", most + 1);
        assert!(failure.message.contains(&expected) && failure.message.len() < 200, "{failure}");
    }
}

#[cfg(unix)]
#[test]
fn a_program_without_files_left_makes_its_rows_durable() {
    if is_run_alone((module_path!(), "a_program_without_files_left_makes_its_rows_durable"), "ulimit -n 1024") {
        return;
    }
    let database = TestDatabase::sqlite("no-files-left");
    let storage = database.storage();
    let table = storage.open(users()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let limit = Rlimit { current: Some(256), ..getrlimit(Resource::Nofile) };
    setrlimit(Resource::Nofile, limit).unwrap();
    let taken: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    for round in 0..3 {
        table.rows.upsert(0, at(round)).unwrap();
        runtime.block_on(storage.settled(true)).unwrap();
    }
    drop(taken);
    weir::Closing::close(&storage).unwrap();
}

/// A change that would wait leaves the thread of its flow, and so do reads until a change has waited for nobody.
#[test]
fn a_change_that_waits_for_another_program_says_so_beforehand() {
    let database = TestDatabase::sqlite("waits");
    let storage = database.storage();
    let table = storage.open(users()).unwrap();
    let reads_long = || table.rows.takes_long(crate::tables::rows::ReadSize::Rows(1));
    assert!(!table.rows.waits_to_write() && !reads_long());
    table.rows.upsert(0, at(1)).unwrap();
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(storage.settled(true)).unwrap();
    let other = rusqlite::Connection::open(database.file()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(table.rows.waits_to_write() && table.rows.waits_to_write() && reads_long());
    std::thread::scope(|scope| {
        let change = scope.spawn(|| table.rows.upsert(0, at(2)));
        // Others see that it waits, and not only when it has ended.
        assert!(table.rows.waits_to_write() && reads_long());
        other.execute_batch("ROLLBACK").unwrap();
        change.join().unwrap().unwrap();
    });
    assert!(!table.rows.waits_to_write() && !reads_long());
    assert_eq!(place(&table), Some(Value::Int(2)));
}

#[test]
fn a_program_that_holds_a_file_is_waited_for_once() {
    let database = TestDatabase::sqlite("held");
    rusqlite::Connection::open(database.file()).unwrap().execute_batch("PRAGMA journal_mode = WAL").unwrap();
    let mut writer = Writer::new(read_write(&database.file()).unwrap());
    let waits = |writer: &Writer| {
        let milliseconds: u32 = writer.connection.query_row("PRAGMA busy_timeout", [], |row| row.get(0)).unwrap();
        std::time::Duration::from_millis(milliseconds.into())
    };
    assert_eq!(waits(&writer), BUSY_TIMEOUT);
    let other = rusqlite::Connection::open(database.file()).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    for transaction in 1..9 {
        let refused = writer.enter(transaction).unwrap_err();
        assert_eq!(refused.sqlite_error_code(), Some(rusqlite::ErrorCode::DatabaseBusy));
        assert_eq!(waits(&writer), HELD_TIMEOUT);
    }
    // Later, it may be another transaction of that program, and a short one.
    writer.waited_in_vain = Some(Instant::now().checked_sub(BUSY_TIMEOUT).unwrap());
    let begun = Instant::now();
    writer.enter(9).unwrap_err();
    assert!(begun.elapsed() >= BUSY_TIMEOUT);
    other.execute_batch("COMMIT").unwrap();
    writer.enter(10).unwrap();
    assert_eq!(waits(&writer), BUSY_TIMEOUT);
}

#[test]
fn a_transaction_that_does_nothing_is_taken_back() {
    let Some(server) = PostgresServer::shared() else { return };
    let address = server.schema("idle") + "%20-cidle_in_transaction_session_timeout%3D500";
    let storage = TableStorage::at(TableLocation::Postgres(PostgresAddress::parse(&address, None).unwrap()));
    let table = storage.open(users()).unwrap();
    let idle = |transaction| {
        table.rows.insert(transaction, at(1)).unwrap();
        wait_for(server, "idle", "SELECT count(*) FROM pg_locks WHERE relation = 'weir_database'::regclass", "0");
    };
    // To execute it again would take as long.
    let repeated = number(4, true);
    idle(repeated);
    for _ in 0..2 {
        let ended = table.rows.upsert(repeated, at(2)).unwrap_err();
        assert!(ended.message.contains("has executed nothing for longer than"), "{ended}");
        assert!(!ended.is_refusal());
    }
    idle(7);
    let ended = table.rows.commit(7, true).unwrap_err();
    // The commit may be sent before the program sees that the connection is closed.
    let messages = ["has executed nothing for longer than", "nobody knows"];
    assert!(messages.iter().any(|message| ended.message.contains(message)), "{ended}");
    assert_eq!(place(&table), None);
    table.rows.insert(0, at(2)).unwrap();
    assert_eq!(place(&table), Some(Value::Int(2)));
}

/// As it is when a database ends or begins: it accepts connections that it does not serve.
#[test]
fn connections_that_are_cut_while_they_are_made_are_made_again() {
    let Some(server) = PostgresServer::shared() else { return };
    server.schema("cut_again");
    let proxy = PostgresProxy::start(server);
    let address = PostgresAddress::parse(&proxy.address("cut_again"), None).unwrap();
    let storage = TableStorage::at(TableLocation::Postgres(address));
    let table = storage.open(users()).unwrap();
    for cut in [Cut::InHandshake, Cut::BehindFirstStatement] {
        proxy.cut(&[cut; 3]);
        table.rows.upsert(0, at(1)).unwrap();
        proxy.cut(&[cut; 3]);
        assert_eq!(place(&table), Some(Value::Int(1)));
        assert_eq!(proxy.left(), 0, "no connection was cut: the test shows nothing");
    }
}

/// A program that joins the others again looks what has changed meanwhile, and for triggers.
#[test]
fn a_transaction_goes_on_when_the_connection_is_lost_while_it_is_made_anew() {
    let Some(server) = PostgresServer::shared() else { return };
    server.schema("cut_at_join");
    let proxy = PostgresProxy::start(server);
    let address = PostgresAddress::parse(&proxy.address("cut_at_join"), None).unwrap();
    let storage = TableStorage::at(TableLocation::Postgres(address));
    let table = storage.open(users()).unwrap();
    table.rows.upsert(0, at(1)).unwrap();
    let of_join =
        ["LOCK TABLE \"weir_database\"", "pg_attribute", "pg_trigger", "pg_rewrite", "pg_advisory_lock_shared"];
    for (nth, text) in (1..).zip(of_join) {
        let transaction = number(nth, true);
        proxy.lose_statements(text, 3);
        proxy.cut(&[]);
        let found = table.rows.get(transaction, &Value::text("ada"));
        assert_eq!(found, Ok(Some(at(1))), "the connection is lost at {text:?}");
        table.rows.commit(transaction, true).unwrap();
        assert_eq!(proxy.statements_left(), 0, "no statement has {text:?}: the test shows nothing");
    }
}

/// As behind a copy of rows with their numbers.
#[test]
fn a_sequence_that_is_behind_its_rows_is_named() {
    let Some(server) = PostgresServer::shared() else { return };
    let address = server.schema("sequence_behind");
    let create = "CREATE TABLE \"Lines\" (id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, text text NOT NULL); INSERT INTO \"Lines\" VALUES (1, 'a'), (2, 'b')";
    server.execute("sequence_behind", create);
    let existing = Some(ExistingTable { database: address, writable: true, constraint: "tables.Lines".to_owned() });
    let columns = [("id", "Int"), ("text", "Text")]
        .map(|(name, kind)| ColumnSchema { existing: true, ..column(name, kind, false) });
    let schema = Schema { existing, auto: true, ..declared("Lines", columns.to_vec()) };
    let storage = TestDatabase::Postgres("sequence_behind".to_owned()).storage();
    let table = storage.open(schema).unwrap();
    let row = || Value::Record([Value::Int(0), Value::text("c")].into());
    let sets = "SELECT setval(pg_get_serial_sequence('\"Lines\"', 'id'), (SELECT max(\"id\") FROM \"Lines\"))";
    for transaction in [0, 7] {
        let refused = table.rows.insert(transaction, row()).unwrap_err();
        assert_eq!(refused.kind, FailureKind::Constraint);
        let number = if transaction == 0 { "the id 1, " } else { "the id 2, " };
        assert!(refused.message.contains(number) && refused.message.contains(sets), "{refused}");
    }
    table.rows.roll_back(7);
    server.execute("sequence_behind", sets);
    assert_eq!(table.rows.insert(0, row()).unwrap(), Value::Int(3));
}

#[test]
fn a_rule_of_another_program_is_named() {
    let Some(server) = PostgresServer::shared() else { return };
    server.schema("rules");
    let storage = TestDatabase::Postgres("rules".to_owned()).storage();
    let table = storage.open(users()).unwrap();
    server.execute("rules", "ALTER TABLE users ADD CONSTRAINT places_are_positive CHECK (place > 0)");
    for transaction in [0, 7] {
        let refused = table.rows.insert(transaction, at(-1)).unwrap_err();
        assert_eq!(refused.kind, FailureKind::Constraint, "{refused}");
        // Neither the row nor the address, because a program may answer this to a client.
        let why = r#"new row for relation "users" violates check constraint "places_are_positive""#;
        assert_eq!(refused.message.as_str(), format!("the database refuses the write: {why}"));
    }
    // The transaction goes on.
    table.rows.insert(7, at(1)).unwrap();
    table.rows.commit(7, true).unwrap();
}

#[test]
fn a_key_that_is_too_long_for_an_index_of_postgres_is_refused_with_its_limit() {
    let Some(server) = PostgresServer::shared() else { return };
    server.schema("long_keys");
    let storage = TestDatabase::Postgres("long_keys".to_owned()).storage();
    let table = storage.open(users()).unwrap();
    // A text of one letter would be compressed.
    let mut random = Random::new(1);
    let mut name = |length| (0..length).map(|_| char::from(b'!' + random.below(90) as u8)).collect::<String>();
    table.rows.insert(0, user(&name(2_600), [Value::Int(1)])).unwrap();
    for transaction in [0, 7] {
        let refused = table.rows.insert(transaction, user(&name(20_000), [Value::Int(1)])).unwrap_err();
        assert_eq!(refused.kind, FailureKind::Function, "{refused}");
        assert!(refused.message.ends_with("; a key or an indexed value has at most 2,700 bytes"), "{refused}");
        assert!(refused.message.len() < 400, "without the key: {refused}");
    }
    // The transaction goes on.
    table.rows.insert(7, at(1)).unwrap();
    table.rows.commit(7, true).unwrap();
    assert_eq!(place(&table), Some(Value::Int(1)));
}

#[test]
fn a_row_with_too_many_columns_for_a_page_of_postgres_is_refused_with_its_limit() {
    let Some(server) = PostgresServer::shared() else { return };
    server.schema("wide_rows");
    let storage = TestDatabase::Postgres("wide_rows".to_owned()).storage();
    let columns = (0..1_100).map(|number| column(&format!("c{number}"), "Int", number > 0)).collect();
    let table = storage.open(declared("wide", columns)).unwrap();
    let row = |key, values| {
        let of = |number| if number < values { Value::some(Value::Int(i64::MAX)) } else { Value::none() };
        Value::Record([Value::Int(key)].into_iter().chain((1..1_100).map(of)).collect())
    };
    table.rows.insert(0, row(1, 980)).unwrap();
    for transaction in [0, 7] {
        let refused = table.rows.insert(transaction, row(2, 1_100)).unwrap_err();
        assert_eq!(refused.kind, FailureKind::Function, "{refused}");
        assert!(refused.message.contains("row is too big: size 88"), "{refused}");
        assert!(
            refused.message.ends_with("such as those of 1,000 numbers: move columns to another table"),
            "{refused}"
        );
    }
    table.rows.insert(7, row(3, 980)).unwrap();
    table.rows.commit(7, true).unwrap();
}

#[test]
fn a_row_that_is_too_long_for_a_message_to_postgres_is_refused_with_its_limit() {
    let Some(server) = PostgresServer::shared() else { return };
    server.schema("long_rows");
    let storage = TestDatabase::Postgres("long_rows".to_owned()).storage();
    let columns = vec![column("id", "Int", false), column("data", "Bytes", true)];
    let table = storage.open(declared("files", columns)).unwrap();
    let row = |data| Value::Record([Value::Int(1), Value::some(data)].into_iter().collect());
    let short = row(Value::bytes(vec![1]));
    table.rows.insert(0, short.clone()).unwrap();
    let long = row(Value::bytes(vec![0; 500_000_001]));
    for transaction in [0, 7] {
        let refused = [
            table.rows.upsert(transaction, long.clone()),
            table.rows.replace(transaction, &Value::Int(1), long.clone()),
            table.rows.replace_rows(transaction, std::slice::from_ref(&short), vec![long.clone()]).map(Value::Int),
        ];
        for refused in refused.map(Result::unwrap_err) {
            assert_eq!(refused.kind, FailureKind::Constraint, "{refused}");
            assert!(refused.message.ends_with("500,000,000 bytes, or a value of it: PostgreSQL takes no longer ones"));
        }
    }
    table.rows.commit(7, true).unwrap();
    assert_eq!(table.rows.get(0, &Value::Int(1)).unwrap(), Some(short));
}

/// A trigger stands for the disk: it fails with the code that PostgreSQL has for a full one.
#[test]
fn a_full_disk_of_postgres_is_named_and_later_writes_succeed() {
    let Some(server) = PostgresServer::shared() else { return };
    server.schema("full_disk");
    let storage = TestDatabase::Postgres("full_disk".to_owned()).storage();
    let table = storage.open(users()).unwrap();
    server.execute(
        "full_disk",
        "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
           RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100';
         END $$;
         CREATE TRIGGER full_disk BEFORE INSERT ON users FOR EACH ROW EXECUTE FUNCTION full_disk()",
    );
    for transaction in [0, 7] {
        let refused = table.rows.insert(transaction, at(1)).unwrap_err();
        assert_eq!(refused.kind, FailureKind::Function, "{refused}");
        let advice = "could not extend file; its disk is full: free some space; nothing of the statement was written";
        assert!(refused.message.ends_with(advice), "{refused}");
    }
    table.rows.commit(7, true).unwrap();
    assert_eq!(place(&table), None);
    server.execute("full_disk", "DROP TRIGGER full_disk ON users");
    table.rows.insert(0, at(2)).unwrap();
    assert_eq!(place(&table), Some(Value::Int(2)));
}

/// PostgreSQL gives it the code of a right that the user lacks.
#[test]
fn a_row_that_a_policy_keeps_out_breaks_a_rule() {
    let Some(server) = PostgresServer::shared() else { return };
    let address = server.schema("policies") + "%20-crole%3Dobserver";
    TestDatabase::Postgres("policies".to_owned()).storage().open(users()).unwrap();
    server.execute(
        "policies",
        "CREATE ROLE observer; GRANT ALL ON SCHEMA policies TO observer; GRANT ALL ON ALL TABLES IN SCHEMA policies TO observer;
         ALTER TABLE users ENABLE ROW LEVEL SECURITY;
         CREATE POLICY seen ON users TO observer USING (true) WITH CHECK (place > 0)",
    );
    let storage = TableStorage::at(TableLocation::Postgres(PostgresAddress::parse(&address, None).unwrap()));
    let table = storage.open(users()).unwrap();
    for transaction in [0, 7] {
        let refused = table.rows.upsert(transaction, at(-1)).unwrap_err();
        assert_eq!(refused.kind, FailureKind::Constraint, "{refused}");
        let why = r#"new row violates row-level security policy for table "users""#;
        assert_eq!(refused.message.as_str(), format!("the database refuses the write: {why}"));
    }
    table.rows.upsert(7, at(1)).unwrap();
    table.rows.commit(7, true).unwrap();
    server.execute("policies", "REVOKE INSERT ON users FROM observer");
    let refused = table.rows.upsert(0, at(2)).unwrap_err();
    assert_eq!(refused.kind, FailureKind::Function, "{refused}");
    assert!(refused.message.contains("give the user the right"), "{refused}");
}

#[test]
fn connections_are_encrypted_as_their_address_says() {
    let Some(server) = PostgresServer::start_encrypted() else { return };
    let opened = |parameters: &str| {
        let address = server.encrypted_address("public", parameters);
        let storage = TableStorage::at(TableLocation::Postgres(PostgresAddress::parse(&address, None).unwrap()));
        let opened = storage.open(users()).map(|_| ()).map_err(|failure| failure.message.to_string());
        let encrypted = "SELECT count(*) > 0 FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
                         WHERE ssl AND application_name = 'weir'";
        opened.map(|()| server.execute("public", encrypted).trim() == "t")
    };
    assert_eq!(opened("sslmode=disable"), Ok(false));
    assert_eq!(opened("sslmode=prefer"), Ok(true));
    let refused = opened("sslmode=require").unwrap_err();
    assert!(refused.contains("certificate") && refused.contains("`?sslrootcert=FILE`"), "{refused}");
    let trusted = format!("sslmode=require&sslrootcert={}", server.certificate().display());
    assert_eq!(opened(&trusted), Ok(true));
}
