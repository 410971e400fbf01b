//! Columns and tables of a database that a program does not declare: their names in messages and in `weir tables`, and tables that
//! somebody has renamed.

use test_support::postgres::PostgresServer;
use weir::{Closing, Value};

use super::evolution::{Evolution, user};
use super::{TestDatabase, column, declared, everything, users};
use crate::tables::postgres::PostgresAddress;
use crate::tables::report::undeclared_tables;
use crate::tables::schema::{ColumnSchema, IndexSchema, Schema, SoftTable, TableMigration};
use crate::tables::storage::TableStorage;
use crate::tables::table_databases::TableLocation;

#[test]
fn a_required_column_without_values_may_be_one_of_the_same_type_under_another_name() {
    for evolution in Evolution::each("renamed_column") {
        let before = [column("title", "Text", false), column("sent", "Time", false), column("note", "Text", true)];
        let row = user("ada", [Value::text("first"), Value::Time(1), Value::none()]);
        evolution.start(&before, &[], |rows| _ = rows.insert(0, row.clone()).unwrap()).unwrap();
        let start = |columns: &[ColumnSchema]| evolution.start(columns, &[], |_| ());
        let [title, sent, note] = before.clone();
        assert_eq!(
            start(&[column("heading", "Text", false), sent.clone()]).unwrap_err(),
            "1 row has no value for the column `heading`; give it a default (`default(heading: …)` at the table), or make it an \
             `Option`; if it is `title` or `note` under another name, convert the rows by a `migrate`, which keeps the values"
        );
        assert_eq!(
            start(&[title.clone(), note.clone(), column("created", "Time", false)]).unwrap_err(),
            "1 row has no value for the column `created`; make it an `Option`, or give the rows a value by a `migrate`; if it is \
             `sent` under another name, convert the rows by a `migrate`, which keeps the values"
        );
        let bytes = [title.clone(), sent.clone(), note.clone(), column("picture", "Bytes", false)];
        assert_eq!(
            start(&bytes).unwrap_err(),
            "1 row has no value for the column `picture`; make it an `Option`, or give the rows a value by a `migrate`"
        );
        // A column that was not declared for a time has its own name.
        start(&[title.clone(), sent.clone()]).unwrap();
        let of_note = start(&[sent, column("note", "Text", false)]).unwrap_err();
        assert!(of_note.ends_with("or make it an `Option`"), "{of_note}");
    }
}

#[test]
fn the_report_names_columns_that_the_program_does_not_declare() {
    for evolution in Evolution::each("undeclared_columns") {
        let before = [column("title", "Text", false), column("note", "Text", true)];
        evolution.start(&before, &[], |_| ()).unwrap();
        let report = |columns: &[ColumnSchema]| {
            let key = column("name", "Text", false);
            let columns = std::iter::once(key).chain(columns.iter().cloned()).collect();
            evolution.database.report(&declared("users", columns)).unwrap()
        };
        let also = "the database also has the column";
        assert!(!report(&before).contains(also), "{}", report(&before));
        let shown = report(&before[..1]);
        assert!(shown.contains(&format!("  {also} `note`, which this program does not declare\n")), "{shown}");
        let shown = report(&[]);
        assert!(
            shown.contains(&format!("  {also}s `title`, `note`, which this program does not declare\n")),
            "{shown}"
        );
    }
}

#[test]
fn tables_that_the_program_does_not_store_are_named_with_their_rows() {
    for database in TestDatabase::each("undeclared_tables") {
        assert_eq!(undeclared_tables(&[users()], &database.place()), "");
        let storage = database.storage();
        for (name, rows) in [("items", 1), ("many", 4), ("few", 3), ("gone", 1), ("users", 1)] {
            let table = storage.open(declared(name, users().columns)).unwrap();
            for row in 0..rows {
                table.rows.insert(0, user(&format!("{row}"), [Value::Int(row)])).unwrap();
            }
        }
        storage.close().unwrap();
        database.execute("DROP TABLE gone");
        let soft = Some(SoftTable { ttl: None, at_most: None, capacity: None });
        let soft = Schema { soft, ..declared("few", users().columns) };
        assert_eq!(
            undeclared_tables(&[users(), soft], &database.place()),
            "the database also has the table `few` (3 rows), which this program does not store\n\
             the database also has the table `items` (1 row), which this program does not declare\n\
             the database also has the table `many` (more than 3 rows), which this program does not declare\n"
        );
    }
}

#[test]
fn tables_whose_rows_the_role_may_not_read_are_named_all_the_same() {
    let name = "uncounted_tables";
    let Some(server) = PostgresServer::shared() else { return };
    let address = server.schema(name);
    let place = |address: &str| TableLocation::Postgres(PostgresAddress::parse(address, None).unwrap());
    let storage = TableStorage::at(place(&address));
    for table in ["items", "more"] {
        storage.open(declared(table, users().columns)).unwrap();
    }
    storage.close().unwrap();
    server.execute(
        name,
        "CREATE ROLE viewer LOGIN; GRANT USAGE ON SCHEMA uncounted_tables TO viewer;
         GRANT SELECT ON ALL TABLES IN SCHEMA uncounted_tables TO viewer; REVOKE SELECT ON items FROM viewer",
    );
    assert_eq!(
        undeclared_tables(&[users()], &place(&address.replacen("weir@", "viewer@", 1))),
        "the database also has the table `items` (its rows are not counted), which this program does not declare\n\
         the database also has the table `more` (its rows are not counted), which this program does not declare\n"
    );
}

/// The statements of the reference, "Changes of a declaration".
const RENAME: &str = r#"
    ALTER TABLE "items" RENAME TO "products";
    UPDATE "weir_columns" SET "table" = 'products' WHERE "table" = 'items';
    UPDATE "weir_migrations" SET "table" = 'products' WHERE "table" = 'items';
"#;
const RENAME_NUMBERS: &str = r#"UPDATE "weir_numbers" SET "table" = 'products' WHERE "table" = 'items';"#;

#[test]
fn a_table_that_somebody_has_renamed_with_its_notes_keeps_its_rows_numbers_and_migrations() {
    for database in TestDatabase::each("renamed_table") {
        let columns = |name: &str| vec![column("id", "Int", false), column(name, "Int", false)];
        let old = Schema { auto: true, ..declared("items", columns("cost")) };
        let migration = Some(TableMigration { columns: columns("cost"), batched: false });
        let indexes = vec![IndexSchema { columns: vec![1], unique: true }];
        let new = Schema { auto: true, migration, indexes, ..declared("items", columns("price")) };
        let insert = |storage: &TableStorage, schema: &Schema, number| {
            let table = storage.open(schema.clone()).unwrap();
            table.rows.insert(0, Value::Record([Value::Int(0), Value::Int(number)].into()))
        };
        let run = |program: &dyn Fn(&TableStorage)| {
            let storage = database.storage();
            program(&storage);
            storage.close().unwrap();
        };
        run(&|storage| assert_eq!(insert(storage, &old, 5), Ok(Value::Int(1))));
        run(&|storage| {
            let rows = storage.old_rows(&new).unwrap();
            assert!(!storage.store_converted(&new, &rows, rows.clone()).unwrap());
            assert_eq!(insert(storage, &new, 6), Ok(Value::Int(2)));
        });
        database.execute(RENAME);
        if matches!(database, TestDatabase::Postgres(_)) {
            database.execute(RENAME_NUMBERS);
        }
        let renamed = Schema { name: "products".to_owned(), ..new };
        let report = database.report(&renamed).unwrap();
        assert!(!report.contains("a start fails"), "{report}");
        run(&|storage| {
            assert_eq!(storage.old_rows(&renamed).unwrap(), []);
            let table = storage.open(renamed.clone()).unwrap();
            let insert = |number| table.rows.insert(0, Value::Record([Value::Int(0), Value::Int(number)].into()));
            assert!(insert(5).unwrap_err().message.contains("exists already"));
            let next = insert(7).unwrap();
            assert!(matches!(next, Value::Int(number) if number > 2), "{next:?}");
            assert_eq!(table.rows.select(0, &everything()).unwrap().len(), 3);
        });
    }
}
