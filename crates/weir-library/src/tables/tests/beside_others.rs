//! Starts in PostgreSQL beside programs that are running.

use std::cell::Cell;
use std::thread;

use test_support::postgres::PostgresServer;
use weir::Value;

use super::test_database::wait_for;
use super::{TestDatabase, column, declared, reference};
use crate::log::LogSettings;
use crate::output::Outputs;
use crate::tables::postgres::PostgresAddress;
use crate::tables::report::report;
use crate::tables::row::fields;
use crate::tables::schema::{ColumnSchema, IndexSchema, Schema, TableMigration};
use crate::tables::storage::TableStorage;
use crate::tables::table_databases::{ExistingDatabases, TableLocation};
use crate::tables::table_log::TableLog;

/// Reads the rows of the table until the table `done` has a row, as a backup does.
const READER: &str = "DO $$ BEGIN
    PERFORM count(*) FROM things;
    WHILE NOT EXISTS (SELECT 1 FROM done) LOOP PERFORM pg_sleep(0.01); END LOOP;
END $$";
/// The number of such readers.
const READERS: &str = "SELECT count(*) FROM pg_locks WHERE relation = 'done'::regclass AND mode = 'AccessShareLock'
    AND pid <> pg_backend_pid()";

fn database(name: &str) -> Option<(&'static PostgresServer, TestDatabase)> {
    let server = PostgresServer::shared()?;
    server.schema(name);
    Some((server, TestDatabase::Postgres(name.to_owned())))
}

fn things(columns: impl IntoIterator<Item = ColumnSchema>) -> Schema {
    declared("things", std::iter::once(column("id", "Int", false)).chain(columns).collect())
}

fn with_default(name: &str) -> ColumnSchema {
    ColumnSchema { default: Some("9".to_owned()), ..column(name, "Int", false) }
}

/// Its wait for the lock of the table would hold up all who read the table behind it.
#[test]
fn a_start_that_waits_for_a_lock_holds_up_no_read() {
    let name = "start_waits";
    let Some((server, database)) = database(name) else { return };
    let (old, new) = (database.storage(), database.storage());
    let table = old.open(things([])).unwrap();
    server.execute(name, "CREATE TABLE done (id bigint)");
    thread::scope(|scope| {
        scope.spawn(|| server.execute(name, READER));
        wait_for(server, name, READERS, "1");
        let starting = scope.spawn(|| new.open(things([column("note", "Text", true)])).map(|_| ()));
        // It waits for the lock of the table, or has given that up.
        let tries =
            "SELECT count(*) > 0 FROM pg_stat_activity a JOIN pg_locks l ON l.pid = a.pid AND l.locktype = 'advisory'
                     AND l.classid = 1466263922 AND l.objid = 'weir_database'::regclass::oid
                     WHERE a.query LIKE '%ALTER TABLE%things%' OR a.query = 'ROLLBACK'";
        wait_for(server, name, tries, "t");
        assert_eq!(table.rows.get(0, &Value::Int(1)).unwrap(), None);
        server.execute(name, "INSERT INTO done VALUES (1)");
        starting.join().unwrap().unwrap();
    });
}

/// One of them would write rows that the other cannot read.
#[test]
fn versions_that_differ_in_a_required_column_do_not_run_beside_each_other() {
    let versions: [(&str, &[ColumnSchema], &[ColumnSchema]); 4] = [
        ("becomes_optional", &[column("z", "Int", false)], &[column("z", "Int", true)]),
        ("becomes_required", &[column("z", "Int", true)], &[with_default("z")]),
        ("without_required", &[column("z", "Int", false)], &[]),
        ("with_default", &[], &[with_default("z")]),
    ];
    for (name, before, behind) in versions {
        let Some((_, database)) = database(name) else { return };
        let old = database.storage();
        old.open(things(before.to_vec())).unwrap();
        let beside = database.storage().open(things(behind.to_vec())).map(|_| ());
        match beside {
            // The database gives rows of the old version the default.
            Ok(()) => assert_eq!(name, "with_default"),
            Err(failure) => assert!(failure.message.contains("the column `z`"), "{failure}"),
        }
        drop(old);
        database.storage().open(things(behind.to_vec())).unwrap();
    }
}

/// Converts the rows as a start does, and returns the number of rows that it has converted.
fn convert(storage: &TableStorage, schema: &Schema, begun: impl Fn()) -> usize {
    let mut converted = 0;
    loop {
        let old = storage.old_rows(schema).unwrap();
        begun();
        converted += old.len();
        let new = old.iter().map(|row| Value::Record(fields(row).iter().cloned().collect())).collect();
        if !storage.store_converted(schema, &old, new).unwrap() {
            storage.open(schema.clone()).unwrap();
            return converted;
        }
    }
}

/// Each would find that the other one has written the rows meanwhile.
#[test]
fn starts_that_convert_rows_in_batches_take_turns() {
    let name = "conversions_take_turns";
    let Some((_, database)) = database(name) else { return };
    let old = things([column("place", "Text", false)]);
    let storage = database.storage();
    let table = storage.open(old.clone()).unwrap();
    for id in 0..10 {
        table.rows.insert(0, Value::Record([Value::Int(id), Value::text("Ulm")].into())).unwrap();
    }
    drop((table, storage));
    let migration = TableMigration { columns: old.columns, batched: true };
    let new = Schema { migration: Some(migration), ..things([column("city", "Text", false)]) };
    let log = TableLog { outputs: Outputs::capturing(), settings: LogSettings::default() };
    let (first, second) = (database.storage(), database.storage().with_log(log.clone()));
    let converted = thread::scope(|scope| {
        let (begin, begun) = std::sync::mpsc::channel();
        let (new, second) = (&new, &second);
        let waiting = scope.spawn(move || {
            begun.recv().unwrap();
            convert(second, new, || ())
        });
        let batches = Cell::new(0);
        let converted = convert(&first, new, || {
            batches.set(batches.get() + 1);
            // The second one waits behind the first batch, and says so before the others.
            if batches.get() == 2 {
                begin.send(()).unwrap();
                while !log.outputs.captured().unwrap().contains("waiting") {
                    thread::yield_now();
                }
            }
        });
        (converted, waiting.join().unwrap())
    });
    assert_eq!(converted, (10, 0));
    let said = log.outputs.captured().unwrap();
    assert!(
        said.contains("which converts the rows of `things`: the process ") && said.contains("with the key '2'"),
        "{said}"
    );
}

/// Its texts could not be stored there, and have another order.
#[test]
fn a_database_of_another_encoding_is_refused() {
    let Some(server) = PostgresServer::shared() else { return };
    let create = "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0";
    server.execute("public", create);
    let address = server.address("public").replace("/postgres?", "/latin?");
    let place = PostgresAddress::parse(&address, None).unwrap();
    let storage = TableStorage::at(TableLocation::Postgres(place));
    let refused = storage.open(things([])).map(|_| ()).unwrap_err();
    assert!(refused.message.contains("its encoding is LATIN1"), "{refused}");
}

/// It is true that they do not name a row, but only because nobody knows the other table.
#[test]
fn a_table_that_no_weir_program_has_created_is_said_before_references_to_it() {
    let name = "unknown_referenced";
    let Some((server, database)) = database(name) else { return };
    server.execute(
        name,
        "CREATE TABLE things (id bigint PRIMARY KEY); CREATE TABLE parts (id bigint PRIMARY KEY, thing bigint)",
    );
    server.execute(name, "INSERT INTO things VALUES (1); INSERT INTO parts VALUES (1, 1)");
    let reference = reference("parts", &[(1, "thing", false)], ("things", "id"), false);
    let schema = Schema { referenced_by: vec![reference], ..things([]) };
    let refused = database.storage().open(schema).map(|_| ()).unwrap_err();
    assert!(refused.message.contains("`things` that no Weir program has created"), "{refused}");
}

/// It has no other version.
#[test]
fn a_unique_index_that_somebody_has_added_is_named() {
    let name = "added_index";
    let Some((server, database)) = database(name) else { return };
    let storage = database.storage();
    let table = storage.open(things([column("place", "Text", false)])).unwrap();
    server.execute(name, "CREATE UNIQUE INDEX by_place ON things (place)");
    let insert = |id| table.rows.insert(0, Value::Record([Value::Int(id), Value::text("Ulm")].into()));
    insert(1).unwrap();
    assert_eq!(
        insert(2).unwrap_err().message.as_str(),
        "a row of `things` with the place \"Ulm\" exists already, and the unique index `by_place` of the database, which no program of \
         Weir has made, allows only one: drop it with `psql`, or declare `unique (place)`"
    );
}

#[test]
fn a_role_that_may_not_create_tables_starts_if_there_is_none_to_create() {
    let name = "without_create";
    let Some((server, database)) = database(name) else { return };
    drop(database.storage().open(things([])).unwrap());
    server.execute(
        name,
        "CREATE ROLE clerk LOGIN; GRANT USAGE ON SCHEMA without_create TO clerk;
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA without_create TO clerk",
    );
    let address = server.address(name).replacen("weir@", "clerk@", 1);
    let storage = || TableStorage::at(TableLocation::Postgres(PostgresAddress::parse(&address, None).unwrap()));
    let clerks = storage();
    let table = clerks.open(things([])).unwrap();
    table.rows.insert(0, Value::Record([Value::Int(1)].into())).unwrap();
    let refused = storage().open(things([column("note", "Text", true)])).map(|_| ()).unwrap_err();
    assert!(refused.message.contains("ALTER TABLE \"things\" OWNER TO \"clerk\""), "{refused}");
}

/// Otherwise each request would fail.
#[test]
fn a_start_and_its_report_name_the_right_that_the_user_lacks_and_the_statement_that_gives_it() {
    let name = "lacking_rights";
    let Some((server, database)) = database(name) else { return };
    let noted = || things([column("note", "Int", true)]);
    drop(database.storage().open(noted()).unwrap());
    server.execute(name, "CREATE ROLE reader LOGIN; GRANT USAGE ON SCHEMA lacking_rights TO reader");
    let grant = "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA lacking_rights TO reader";
    let given = "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA \"lacking_rights\" TO \"reader\"";
    let address = server.address(name).replacen("weir@", "reader@", 1);
    let address = PostgresAddress::parse(&address, None).unwrap();
    let refused = |schema: Schema, sql: &str| {
        server.execute(name, &format!("{grant}; {sql}"));
        let place = TableLocation::Postgres(address.clone());
        let started = TableStorage::at(place.clone()).open(schema.clone()).map(|_| ());
        let reported = report((&schema, std::slice::from_ref(&schema)), &[], (&place, &ExistingDatabases::default()));
        let fails = reported.is_ok_and(|report| report.fails);
        assert_eq!(fails, started.is_err(), "{sql}: {started:?}");
        started.err().map_or_else(String::new, |failure| failure.message.to_string())
    };
    assert_eq!(refused(noted(), ""), "");
    // A program that only reads needs no other rights.
    let columns = "REVOKE ALL ON things FROM reader; GRANT SELECT (id) ON things TO reader";
    assert_eq!(refused(noted(), &format!("{columns}; GRANT SELECT (note) ON things TO reader")), "");
    server.execute(name, "REVOKE ALL ON things FROM reader");
    let denied = refused(noted(), columns);
    assert!(denied.contains("no right to SELECT the column `note` of `things`") && denied.contains(given), "{denied}");
    server.execute(name, "REVOKE ALL ON things FROM reader");
    let denied = refused(noted(), "REVOKE UPDATE, DELETE ON weir_database FROM reader");
    assert!(denied.contains(given) && !denied.contains("CREATE"), "{denied}");
    let denied = refused(declared("others", vec![column("id", "Int", false)]), "");
    assert!(denied.contains("GRANT CREATE ON SCHEMA \"lacking_rights\" TO \"reader\""), "{denied}");
    server.execute(name, "GRANT CREATE ON SCHEMA lacking_rights TO reader");
    let denied = refused(things([column("note", "Int", true), column("more", "Int", true)]), "");
    assert!(denied.contains("ALTER TABLE \"things\" OWNER TO \"reader\""), "{denied}");
    server.execute(name, "ALTER ROLE reader SET default_transaction_read_only = on");
    assert!(refused(noted(), "").contains("read-only"));
    server.execute(
        name,
        "ALTER ROLE reader RESET default_transaction_read_only; REVOKE USAGE ON SCHEMA lacking_rights FROM reader",
    );
    let hidden = TableStorage::at(TableLocation::Postgres(address.clone())).open(noted()).map(|_| ()).unwrap_err();
    assert!(hidden.message.contains("`GRANT USAGE ON SCHEMA lacking_rights TO reader`"), "{hidden}");
}

#[test]
fn a_key_or_an_index_of_too_many_columns_is_refused_in_words_of_the_program() {
    let Some((_, database)) = database("wide_index") else { return };
    let wide = Schema {
        key: (0..33).collect(),
        ..declared("wide", (0..33).map(|at| column(&format!("c{at}"), "Int", false)).collect())
    };
    let refused = "the key of `wide` has 33 columns, and in PostgreSQL a key, `unique` or `index` has at most 32: declare one of fewer \
                   columns, such as `key id auto`";
    assert_eq!(database.storage().open(wide.clone()).map(|_| ()).unwrap_err().message.as_str(), refused);
    assert!(database.report(&wide).unwrap().contains(refused));
    let index = IndexSchema { columns: (0..33).collect(), unique: true };
    let indexed = Schema { key: vec![0], indexes: vec![index], ..wide };
    let refused = database.storage().open(indexed).map(|_| ()).unwrap_err();
    assert!(
        refused.message.starts_with("`unique (c0, c1, ") && refused.message.contains("has 33 columns"),
        "{refused}"
    );
}
