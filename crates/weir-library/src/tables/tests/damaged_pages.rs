//! A database with a damaged page: a statement that comes to it fails, and takes back nothing of other flows.

use weir::{SeenCommits, Value};

use super::statement_groups::wait;
use super::test_database::TestDatabase;
use super::{column, declared};
use crate::tables::schema::Schema;

/// Number of rows, of which a page has fewer than ten.
const ROWS: i64 = 60;
const DAMAGED: i64 = 30;

/// A table whose rows are in the leaves of its tree alone, because its key is a number.
fn notes() -> Schema {
    declared("notes", vec![column("id", "Int", false), column("text", "Text", false)])
}

fn text(id: i64) -> String {
    format!("{id}:{}", "x".repeat(500))
}

fn note(id: i64, text: &str) -> Value {
    Value::Record([Value::Int(id), Value::text(text)].into())
}

/// Returns a database in which the page of one row is damaged.
fn with_damaged_page() -> TestDatabase {
    let database = TestDatabase::sqlite("damaged-page");
    let storage = database.storage();
    let table = storage.open(notes()).unwrap();
    for id in 0..ROWS {
        table.rows.insert(0, note(id, &text(id))).unwrap();
    }
    weir::Closing::close(&storage).unwrap();
    let mut file = std::fs::read(database.file()).unwrap();
    let (size, row) = (usize::from(u16::from_be_bytes([file[16], file[17]])), text(DAMAGED).into_bytes());
    let found = file.windows(row.len()).position(|bytes| bytes == row).unwrap();
    let page = found / size * size;
    file[page..page + size].fill(0xff);
    std::fs::write(database.file(), file).unwrap();
    database
}

/// The statements before it and behind it are in the same transaction of SQLite, which refuses to commit that.
#[test]
fn a_statement_that_comes_to_a_damaged_page_takes_back_nothing_of_others() {
    let database = with_damaged_page();
    let storage = database.storage();
    let table = storage.open(notes()).unwrap();
    let key = Value::Int(DAMAGED);
    let transaction = || {
        let refused = table.rows.get(7, &key).unwrap_err();
        table.rows.roll_back(7);
        refused
    };
    let single = || table.rows.get(0, &key).unwrap_err();
    let change = || table.rows.upsert(0, note(DAMAGED, "changed")).unwrap_err();
    let statements: [&dyn Fn() -> weir::Failure; 3] = [&transaction, &single, &change];
    for (at, statement) in statements.into_iter().enumerate() {
        let written = at.to_string();
        let mut flow = SeenCommits::default();
        let entered = flow.enter();
        table.rows.upsert(0, note(1, &written)).unwrap();
        let refused = statement();
        assert!(refused.message.ends_with("rescue rows with `sqlite3 FILE .recover`"), "{refused}");
        table.rows.upsert(0, note(ROWS - 1, &written)).unwrap();
        drop(entered);
        wait(storage.settled(true)).unwrap();
        for id in [1, ROWS - 1] {
            assert_eq!(table.rows.get(0, &Value::Int(id)).unwrap(), Some(note(id, &written)));
        }
    }
}
