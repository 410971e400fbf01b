//! Tables of the program in PostgreSQL whose columns, place or search path somebody has changed.

use std::thread;

use test_support::postgres::PostgresServer;
use weir::Value;

use super::test_database::wait_for;
use super::without_threads::{WAITING, answers, hold, queue, release};
use super::{TestDatabase, column, declared, everything};
use crate::tables::postgres::PostgresAddress;
use crate::tables::rows::RowChange;
use crate::tables::schema::Schema;
use crate::tables::storage::TableStorage;
use crate::tables::table_databases::TableLocation;

fn database(name: &str) -> Option<(&'static PostgresServer, TestDatabase)> {
    let server = PostgresServer::shared()?;
    server.schema(name);
    Some((server, TestDatabase::Postgres(name.to_owned())))
}

/// Sales, which are numbered, with a price and a shop.
fn sales() -> Schema {
    let columns = vec![column("id", "Int", false), column("price", "Int", false), column("shop", "Text", false)];
    Schema { auto: true, ..declared("sales", columns) }
}

fn sale(price: i64) -> Value {
    Value::Record([Value::Int(0), Value::Int(price), Value::text("a")].into())
}

#[test]
fn a_column_of_another_type_is_summed_rightly_and_refused_by_the_next_start_with_the_statement_that_helps() {
    let name = "other_types";
    let Some((server, database)) = database(name) else { return };
    let storage = database.storage();
    let table = storage.open(sales()).unwrap();
    for price in [5, 7, -3] {
        table.rows.insert(0, sale(price)).unwrap();
    }
    let refused = |changed: &str, changes: &str| {
        server.execute(name, &format!("ALTER TABLE sales ALTER COLUMN {changed}"));
        let refused = database.storage().open(sales()).map(|_| ()).unwrap_err().message.to_string();
        assert!(refused.contains(changes), "{refused}");
        assert!(database.report(&sales()).unwrap().contains(changes));
        let statement = refused.rsplit_once("again: ").expect("it names a statement").1.to_owned();
        move || _ = server.execute(name, &statement)
    };
    for narrow in ["integer", "smallint"] {
        let back = refused(&format!("price TYPE {narrow}"), &format!("the column `price`: it is {narrow}"));
        assert_eq!(table.rows.sum(0, &everything(), 1), Ok(9), "{narrow}");
        back();
        assert!(database.storage().open(sales()).is_ok());
    }
    let back = refused("shop TYPE varchar(40)", "it is character varying(40) with the collation `default`");
    back();
    let back = refused("shop TYPE text COLLATE \"default\"", "it is text with the collation `default`");
    back();
    assert!(database.storage().open(sales()).is_ok());
}

/// An answer that cannot be read is no refusal: the row is there.
#[test]
fn an_insertion_whose_key_has_another_type_is_made_once_and_answers_with_it() {
    let name = "other_keys";
    let Some((server, database)) = database(name) else { return };
    let storage = database.storage();
    let table = storage.open(sales()).unwrap();
    for (at, other) in (1..).zip(["integer", "numeric", "bigint"]) {
        server.execute(name, &format!("ALTER TABLE sales ALTER COLUMN id TYPE {other}"));
        let together = answers(vec![queue(&table, &RowChange::Insert(sale(1)))]);
        assert_eq!(
            (together, table.rows.insert(0, sale(1))),
            (vec![Ok(Value::Int(2 * at - 1))], Ok(Value::Int(2 * at)))
        );
        assert_eq!(server.execute(name, "SELECT count(*) FROM sales").trim(), (2 * at).to_string());
    }
}

/// Nobody tells the number of such a row.
#[test]
fn rows_that_a_trigger_or_view_puts_elsewhere_are_written_once() {
    let name = "moved_rows";
    let Some((server, database)) = database(name) else { return };
    let function = "CREATE TABLE moved (price bigint); CREATE FUNCTION move() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO moved VALUES (new.price); RETURN NULL; END $$;";
    server.execute(name, function);
    let trigger = "CREATE TRIGGER t BEFORE INSERT ON sales FOR EACH ROW EXECUTE FUNCTION move()";
    let view = "DROP TRIGGER t ON sales; ALTER TABLE sales RENAME TO old; CREATE VIEW sales AS SELECT * FROM old;
        CREATE TRIGGER t INSTEAD OF INSERT ON sales FOR EACH ROW EXECUTE FUNCTION move()";
    for count in [1, 5] {
        server.execute(name, "DROP VIEW IF EXISTS sales; DROP TABLE IF EXISTS old");
        for way in [trigger, view] {
            let storage = database.storage();
            let table = storage.open(sales()).unwrap();
            server.execute(name, &format!("TRUNCATE moved; {way}"));
            let held = hold(server, name);
            let mut changes = vec![queue(&table, &RowChange::Insert(sale(1)))];
            wait_for(server, name, WAITING, "1");
            changes.extend((1..count).map(|place| queue(&table, &RowChange::Insert(sale(place)))));
            release(server, name);
            held.join().unwrap();
            for answer in answers(changes) {
                assert!(answer.unwrap_err().message.contains("a trigger or rule of the database has kept"));
            }
            assert_eq!(server.execute(name, "SELECT count(*) FROM moved").trim(), count.to_string(), "{way}");
        }
    }
}

/// Live tables and those of a test may have the same names.
#[test]
fn all_connections_of_a_program_are_in_the_schemas_of_the_first_one() {
    let Some((server, database)) = database("path_first") else { return };
    server.schema("path_second");
    server.execute(
        "path_first",
        "CREATE ROLE wanderer LOGIN; GRANT ALL ON SCHEMA path_first, path_second TO wanderer;
         ALTER ROLE wanderer SET search_path = path_first, path_second",
    );
    drop(database);
    let address = server.address("path_first").replacen("weir@", "wanderer@", 1);
    let address = address.split_once('?').expect("it has parameters").0.to_owned();
    let storage = || TableStorage::at(TableLocation::Postgres(PostgresAddress::parse(&address, None).unwrap()));
    let first = storage();
    let table = first.open(sales()).unwrap();
    table.rows.insert(0, sale(1)).unwrap();
    server.execute("path_first", "ALTER ROLE wanderer SET search_path = path_second, path_first");
    let refused = storage().open(sales()).map(|_| ()).unwrap_err().message;
    assert!(refused.contains("no table `sales`, and the schema `path_first` behind it has one"), "{refused}");
    let other = Schema { name: "others".to_owned(), ..sales() };
    drop(storage().open(other).unwrap());
    server.execute("path_first", "ALTER ROLE wanderer SET search_path = path_second");
    let second = storage().open(sales()).unwrap();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(table.rows.count(0, &everything()), Ok(1)));
        }
    });
    server.execute(
        "path_first",
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE usename = 'wanderer' AND pid <> pg_backend_pid()",
    );
    table.rows.insert(0, sale(2)).unwrap();
    assert_eq!((table.rows.count(0, &everything()), second.rows.count(0, &everything())), (Ok(2), Ok(0)));
}
