//! Existing databases that a start refuses, and says what to do.

use weir::Failure;

use super::test_database::TestDatabase;
use super::{column, declared};
use crate::tables::schema::{ColumnSchema, ExistingTable, IndexSchema, Schema};
use crate::tables::table_databases::ExistingDatabases;

/// Opens a table with the columns `id` and `name`, which other programs have made, by a program that declares an index of the name.
fn opened(folder: &TestDatabase, sql: &str, has_index: bool) -> Result<(), Failure> {
    let file = folder.file().with_file_name("existing.db");
    _ = std::fs::remove_file(&file);
    rusqlite::Connection::open(&file).unwrap().execute_batch(sql).unwrap();
    let columns = [column("id", "Int", false), column("name", "Text", false)];
    let columns = columns.map(|column| ColumnSchema { existing: true, ..column }).to_vec();
    let of =
        ExistingTable { database: "existing.db".to_owned(), writable: true, constraint: "tables.names".to_owned() };
    let indexes = has_index.then(|| IndexSchema { columns: vec![1], unique: false }).into_iter().collect();
    let databases = ExistingDatabases { folder: file.parent().unwrap().to_owned(), ..ExistingDatabases::default() };
    let schema = Schema { existing: Some(of), indexes, ..declared("names", columns) };
    folder.storage().with_existing(databases).open(schema).map(|_| ())
}

const NAMES: &str = "CREATE TABLE names (id INTEGER PRIMARY KEY NOT NULL, name TEXT NOT NULL)";

/// SQLite compares the bytes of its texts, and those of UTF-16 have another order: comparisons would find and delete other rows.
#[test]
fn texts_in_utf_16_are_refused() {
    let folder = TestDatabase::sqlite("existing-utf-16");
    for encoding in ["UTF-16le", "UTF-16be"] {
        let failure = opened(&folder, &format!("PRAGMA encoding='{encoding}'; {NAMES}"), false).unwrap_err();
        let expected = format!(
            "its encoding is {encoding}, in which SQLite orders texts otherwise than programs do; make a copy in UTF-8, such as by \
             `sqlite3 OLD .dump | sqlite3 NEW`, and name that one"
        );
        assert!(failure.message.ends_with(&expected), "{failure}");
    }
    opened(&folder, NAMES, false).unwrap();
}

/// It would find no row that it leaves out.
#[test]
fn an_index_of_some_rows_is_none_of_the_table() {
    let folder = TestDatabase::sqlite("existing-partial");
    let partial = format!("{NAMES}; CREATE INDEX some ON names (name) WHERE id = 1");
    let failure = opened(&folder, &partial, true).unwrap_err();
    assert!(failure.message.contains("it has no index for `index (name)`"), "{failure}");
    opened(&folder, &partial, false).unwrap();
    opened(&folder, &format!("{partial}; CREATE INDEX all_rows ON names (name)"), true).unwrap();
}
