//! Reads of rows of which nobody notes who has written them: those that triggers write, and those of a view of the program's own database.

use std::sync::Arc;

use rusqlite::Connection;
use test_support::postgres::PostgresServer;
use weir::{Closing, Value};

use super::beside_writes::seen;
use super::evolution::user;
use super::test_database::wait_for;
use super::without_threads::{WAITING, answers, hold, queue, release};
use super::{TestDatabase, column, declared, everything, users};
use crate::tables::open_table::OpenTable;
use crate::tables::rows::{RowChange, TableRead};
use crate::tables::schema::{ColumnSchema, ExistingTable, Schema};
use crate::tables::storage::TableStorage;
use crate::tables::table_databases::ExistingDatabases;

fn key() -> Value {
    Value::text("Ada")
}

fn ada() -> Value {
    user("Ada", [Value::Int(1)])
}

/// The table into which a trigger copies the rows of `users`.
fn copies() -> Schema {
    Schema { name: "copies".to_owned(), ..users() }
}

fn opened(storage: &TableStorage) -> [Arc<OpenTable>; 2] {
    [users(), copies()].map(|schema| storage.open(schema).unwrap())
}

/// Ends a program. Another one beside it would wait for the disk with each commit.
fn end(storage: TableStorage, tables: [Arc<OpenTable>; 2]) {
    storage.close().unwrap();
    drop((storage, tables));
}

fn add_trigger(database: &TestDatabase) {
    let copy = "INSERT INTO copies (name, place) VALUES (new.name, new.place)";
    let sql = match database {
        TestDatabase::Sqlite(_) => format!("CREATE TRIGGER t AFTER INSERT ON users BEGIN {copy}; END"),
        TestDatabase::Postgres(_) => format!(
            "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {copy}; RETURN NULL; END $$;
             CREATE TRIGGER t AFTER INSERT ON users FOR EACH ROW EXECUTE FUNCTION f()"
        ),
    };
    database.execute(&sql);
}

/// Returns the number of the last commit.
fn last_commit(database: &TestDatabase, table: &OpenTable) -> u64 {
    let commits = table.rows.commits().unwrap();
    match database {
        TestDatabase::Sqlite(_) => commits.executed_count(),
        // A commit waits for the disk, and is not counted, before the server has noticed the end of the program before.
        TestDatabase::Postgres(_) => commits.count_seen(),
    }
}

/// Returns the last commit that a flow has seen behind each kind of read.
fn seen_by_reads(table: &OpenTable) -> Vec<u64> {
    let by_key = seen(|| _ = table.rows.get(0, &key()).unwrap());
    let by_search = seen(|| _ = table.rows.select(0, &everything()).unwrap());
    let joined = seen(|| table.rows.saw_all_meanwhile());
    let read = TableRead::Row(key());
    let later = seen(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            while table.rows.is_shared() {
                match table.rows.read_later(&read, None) {
                    Some(answer) => return drop(answer.answer.await.unwrap()),
                    None => tokio::task::yield_now().await,
                }
            }
            match table.rows.snapshot(&read) {
                Some(snapshot) => _ = snapshot.read(&read).unwrap(),
                None => _ = table.rows.get(0, &key()).unwrap(),
            }
        });
    });
    vec![by_key, by_search, joined, later]
}

#[test]
fn what_a_trigger_has_written_counts_as_a_write_of_any_row() {
    for database in TestDatabase::each("copied_rows") {
        let mut storage = database.storage();
        let mut tables = opened(&storage);
        tables[0].rows.insert(0, user("Bob", [Value::Int(2)])).unwrap();
        assert_eq!(seen_by_reads(&tables[1]), [0; 4], "nobody writes another table in {database:?}");
        if let TestDatabase::Postgres(_) = database {
            // There, the program looks for triggers when it starts.
            end(storage, tables);
            add_trigger(&database);
            storage = database.storage();
            tables = opened(&storage);
        } else {
            add_trigger(&database);
        }
        let [users, copies] = tables;
        users.rows.insert(0, ada()).unwrap();
        let commit = last_commit(&database, &users);
        assert_eq!(seen_by_reads(&copies), [commit; 4], "{database:?}");
        assert_eq!(copies.rows.get(0, &key()).unwrap(), Some(ada()));
        // Other rows of the same table may be written, too.
        let other = || _ = users.rows.get(0, &Value::text("Eve")).unwrap();
        assert_eq!(seen(other), commit, "{database:?}");
        storage.close().unwrap();
    }
}

/// A trigger may write also in a transaction of which no row is noted.
#[test]
fn a_read_beside_a_write_without_an_answer_waits_for_a_later_sync_whatever_that_writes() {
    let Some(server) = PostgresServer::shared() else { return };
    server.schema("copied_later");
    let database = TestDatabase::Postgres("copied_later".to_owned());
    let storage = database.storage();
    let tables = opened(&storage);
    end(storage, tables);
    add_trigger(&database);
    let storage = database.storage();
    let [users, copies] = opened(&storage);
    let executed = copies.rows.commits().unwrap().executed_count();
    let held = hold(server, "copied_later");
    let change = queue(&users, &RowChange::Insert(ada()));
    wait_for(server, "copied_later", WAITING, "1");
    let seen = seen_by_reads(&copies);
    assert_eq!(seen, (executed + 1..).take(4).collect::<Vec<_>>());
    release(server, "copied_later");
    held.join().unwrap();
    answers(vec![change]).remove(0).unwrap();
    assert_eq!(copies.rows.get(0, &key()).unwrap(), Some(ada()));
    storage.close().unwrap();
}

/// Opens a view that another program has declared in this database.
fn opened_view(storage: &TableStorage, address: String) -> Arc<OpenTable> {
    let columns = [column("name", "Text", false), column("place", "Int", false)];
    let columns = columns.map(|column| ColumnSchema { existing: true, ..column }).to_vec();
    let existing = ExistingTable { database: address, writable: false, constraint: "tables.names".to_owned() };
    storage.open(Schema { existing: Some(existing), ..declared("names", columns) }).unwrap()
}

#[test]
fn a_read_of_a_view_of_the_own_database_depends_on_all_commits() {
    for database in TestDatabase::each("own_view") {
        let storage = database.storage();
        drop(storage.open(users()).unwrap());
        storage.close().unwrap();
        drop(storage);
        database.execute("CREATE VIEW names AS SELECT name, place FROM users");
        let (folder, address) = match &database {
            TestDatabase::Sqlite(folder) => (folder.clone(), "test.db".to_owned()),
            TestDatabase::Postgres(schema) => (Default::default(), PostgresServer::shared().unwrap().address(schema)),
        };
        let storage = database.storage().with_existing(ExistingDatabases { folder, ..ExistingDatabases::default() });
        let (users, names) = (storage.open(users()).unwrap(), opened_view(&storage, address));
        users.rows.insert(0, ada()).unwrap();
        let commit = last_commit(&database, &users);
        assert_eq!(seen_by_reads(&names), [commit; 4], "{database:?}");
        storage.close().unwrap();
    }
}

#[test]
fn a_read_of_another_database_depends_on_no_commit_of_the_own_one() {
    let database = TestDatabase::sqlite("other_names");
    let file = database.file().with_file_name("other.db");
    Connection::open(&file)
        .unwrap()
        .execute_batch("CREATE TABLE names (name TEXT NOT NULL PRIMARY KEY, place INTEGER NOT NULL)")
        .unwrap();
    let folder = file.parent().unwrap().to_owned();
    let storage = database.storage().with_existing(ExistingDatabases { folder, ..ExistingDatabases::default() });
    let (users, names) = (storage.open(users()).unwrap(), opened_view(&storage, "other.db".to_owned()));
    users.rows.insert(0, ada()).unwrap();
    assert_eq!(seen_by_reads(&names), [0; 4]);
    storage.close().unwrap();
}
