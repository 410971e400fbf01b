//! Tables in memory and in the database against each other, and durability.

use std::path::PathBuf;
use std::sync::Arc;

use weir::{FailureKind, Value};

use super::rows::TableRows;
use super::schema::{ColumnSchema, IndexSchema, RowOrder, Schema, SoftTable, TableCondition, TableQuery, TableSearch};
use super::storage::TableStorage;

/// Number of random statements of one run.
const STATEMENTS: usize = 4_000;

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("weir-tables-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn storage(&self) -> TableStorage {
        TableStorage::in_file(self.0.join("test.db"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

fn column(name: &str, kind: &str, optional: bool) -> ColumnSchema {
    let variants = if kind == "Enum" { vec!["Open".to_owned(), "Closed".to_owned()] } else { Vec::new() };
    ColumnSchema { name: name.to_owned(), kind: kind.to_owned(), variants, optional, default: None }
}

/// A table of all kinds of columns.
fn schema() -> Schema {
    Schema {
        name: "things".to_owned(),
        columns: vec![
            column("owner", "Text", false),
            column("number", "Int", false),
            column("weight", "Float", false),
            column("state", "Enum", false),
            column("note", "Text", true),
            column("at", "Time", false),
            column("order", "Duration", false),
            column("data", "Bytes", false),
            column("size", "Size", false),
            column("done", "Bool", false),
        ],
        key: vec![0, 1],
        auto: false,
        indexes: vec![
            IndexSchema { columns: vec![3, 5], unique: false },
            IndexSchema { columns: vec![4], unique: true },
            IndexSchema { columns: vec![1], unique: false },
        ],
        soft: None,
    }
}

/// Marsaglia's xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }

    fn text(&mut self) -> Value {
        const TEXTS: [&str; 7] = ["", "a", "B", "ä", "a\0b", "z\u{1F600}", "'; --"];
        Value::text(TEXTS[self.below(7) as usize])
    }

    fn row(&mut self) -> Value {
        const WEIGHTS: [f64; 6] = [0.0, -0.0, 1.5, -1e300, f64::INFINITY, f64::NAN];
        let note =
            if self.below(2) == 0 { Value::none() } else { Value::some(Value::text(&self.below(40).to_string())) };
        let weights = if self.below(50) == 0 { 6 } else { 5 };
        let row = [
            self.text(),
            Value::Int(self.below(5) as i64 - 2),
            Value::Float(WEIGHTS[self.below(weights) as usize]),
            Value::Variant(self.below(2) as u32, None),
            note,
            Value::Time(self.below(4) as i64),
            Value::Duration(-(self.below(3) as i64)),
            Value::bytes(vec![self.below(2) as u8; 3]),
            Value::Size(self.below(3)),
            Value::Bool(self.below(2) == 0),
        ];
        Value::Record(row.into())
    }

    fn search(&mut self) -> TableSearch {
        const COMPARISONS: [&str; 6] = ["==", "!=", "<", "<=", ">", ">="];
        let columns = [0, 1, 3, 4, 5, 6, 7, 8, 9];
        let mut values =
            vec![Value::Int(if self.below(3) == 0 { self.below(5) as i64 - 1 } else { i64::MAX }), Value::Unit];
        let mut conditions = Vec::new();
        for _ in 0..self.below(4) {
            let column = columns[self.below(9) as usize];
            let equality = matches!(column, 3 | 4 | 9);
            let comparison = COMPARISONS[self.below(if equality { 2 } else { 6 }) as usize].to_owned();
            let Value::Record(row) = self.row() else { continue };
            values.push(row[column].clone());
            conditions.push(TableCondition { column, comparison });
        }
        let order = (0..self.below(3))
            .map(|_| RowOrder { column: [0, 1, 2, 5, 6, 8][self.below(6) as usize], descending: self.below(2) == 0 });
        let order = order.collect();
        TableSearch::new(TableQuery { conditions, order }, Value::Record(values.into()))
    }
}

/// Runs a statement on a table, and returns the result as a text.
fn run(table: &dyn TableRows, kind: u64, transaction: i64, seed: u64) -> String {
    let mut random = Random(seed | 1);
    let row = random.row();
    let key = Value::Record(super::row::fields(&random.row())[..2].into());
    let result = match kind {
        0..=3 => table.insert(transaction, row).map(|key| format!("{key}")),
        4 | 5 => table.upsert(transaction, row).map(|key| format!("{key}")),
        6 => {
            let key = Value::Record(super::row::fields(&row)[..2].into());
            match table.get(transaction, &key) {
                Ok(Some(_)) => table.replace(transaction, &key, row).map(|()| "replaced".to_owned()),
                other => other.map(|_| "none".to_owned()),
            }
        }
        7 => table.delete(transaction, &key).map(|gone| gone.to_string()),
        8 => table.delete_all(transaction, &random.search()).map(|count| count.to_string()),
        9 => table.count(transaction, &random.search()).map(|count| count.to_string()),
        10 => table.get(transaction, &key).map(|row| format!("{row:?}")),
        _ => table.select(transaction, &random.search()).map(|rows| format!("{rows:?}")),
    };
    result.unwrap_or_else(|failure| {
        // Which of several broken rules a failure names is left to the table.
        assert_eq!(failure.kind, FailureKind::Constraint, "{failure}");
        "refused".to_owned()
    })
}

#[test]
fn the_database_agrees_with_memory() {
    for seed in 1..4 {
        let folder = Folder::new(&format!("agree-{seed}"));
        let memory = TableStorage::default().open(schema()).unwrap();
        let stored = folder.storage().open(schema()).unwrap();
        let mut random = Random(seed * 77_777);
        let (mut transaction, mut number) = (0, 0);
        for at in 0..STATEMENTS {
            match random.below(20) {
                0 if transaction == 0 => {
                    number += 1;
                    transaction = number;
                }
                0 | 1 if transaction != 0 => {
                    memory.commit(transaction, true).unwrap();
                    stored.commit(transaction, true).unwrap();
                    transaction = 0;
                }
                // Left unfinished: the next statement takes it back.
                2 => transaction = 0,
                _ => {}
            }
            let kind = random.below(14);
            let of = random.below(u64::MAX);
            let (one, other) = (run(&*memory, kind, transaction, of), run(&*stored, kind, transaction, of));
            assert_eq!(one, other, "statement {at} of seed {seed}, of kind {kind}");
        }
    }
}

#[test]
fn rows_are_there_after_a_restart() {
    let folder = Folder::new("restart");
    let mut rows = Vec::new();
    for round in 0..3 {
        let storage = folder.storage();
        let table = storage.open(schema()).unwrap();
        let everything = || {
            TableSearch::new(
                TableQuery { conditions: Vec::new(), order: Vec::new() },
                Value::Record([Value::Int(i64::MAX), Value::Unit].into()),
            )
        };
        assert_eq!(table.select(0, &everything()).unwrap(), rows, "round {round}");
        let mut random = Random(99 + round);
        for _ in 0..20 {
            _ = table.insert(0, random.row());
        }
        rows = table.select(0, &everything()).unwrap();
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(storage.settled()).unwrap();
    }
}

#[test]
fn numbers_are_not_used_twice() {
    let folder = Folder::new("numbers");
    let numbered = || Schema {
        name: "numbered".to_owned(),
        columns: vec![column("id", "Int", false), column("text", "Text", false)],
        key: vec![0],
        auto: true,
        indexes: Vec::new(),
        soft: None,
    };
    for table in [TableStorage::default().open(numbered()).unwrap(), folder.storage().open(numbered()).unwrap()] {
        let row = |id| Value::Record([Value::Int(id), Value::text("x")].into());
        assert_eq!(table.insert(0, row(0)).unwrap(), Value::Int(1));
        assert_eq!(table.insert(0, row(0)).unwrap(), Value::Int(2));
        assert!(table.delete(0, &Value::Int(2)).unwrap());
        assert_eq!(table.insert(0, row(0)).unwrap(), Value::Int(3));
        assert_eq!(table.upsert(0, row(10)).unwrap(), Value::Int(10));
        assert_eq!(table.insert(0, row(0)).unwrap(), Value::Int(11));
    }
}

#[test]
fn soft_tables_expire_and_evict() {
    let soft = |ttl, at_most| Schema { soft: Some(SoftTable { ttl, at_most }), indexes: Vec::new(), ..schema() };
    let row = |number| {
        let Value::Record(fields) = Random(5).row() else { unreachable!() };
        let mut fields: Vec<Value> = fields.iter().cloned().collect();
        (fields[0], fields[1], fields[2]) = (Value::text("a"), Value::Int(number), Value::Float(1.0));
        Value::Record(fields.into())
    };
    let key = |number| Value::Record([Value::text("a"), Value::Int(number)].into());
    let bounded = TableStorage::default().open(soft(None, Some(2))).unwrap();
    for number in [1, 2, 1, 3] {
        bounded.upsert(0, row(number)).unwrap();
    }
    let kept: Vec<bool> = [1, 2, 3].map(|number| bounded.get(0, &key(number)).unwrap().is_some()).into();
    assert_eq!(kept, [true, false, true]);
    let expiring = TableStorage::default().open(soft(Some(std::time::Duration::from_millis(20)), None)).unwrap();
    expiring.insert(0, row(1)).unwrap();
    assert!(expiring.get(0, &key(1)).unwrap().is_some());
    std::thread::sleep(std::time::Duration::from_millis(40));
    assert!(expiring.get(0, &key(1)).unwrap().is_none());
    expiring.insert(0, row(1)).unwrap();
}

#[test]
fn a_start_adds_what_is_new_and_refuses_what_would_change_rows() {
    let folder = Folder::new("evolution");
    let mut random = Random(7);
    {
        let table = folder.storage().open(schema()).unwrap();
        while table.insert(0, random.row()).is_err() {}
    }
    let with = |change: &dyn Fn(&mut Schema)| {
        let mut changed = schema();
        change(&mut changed);
        folder.storage().open(changed).map(|_| ()).map_err(|failure| failure.message.to_string())
    };
    let required = with(&|schema| schema.columns.push(column("new", "Int", false)));
    assert!(required.unwrap_err().contains("give it a default"));
    let changed = with(&|schema| schema.columns[1].kind = "Time".to_owned());
    assert!(changed.unwrap_err().contains("is `Int` in the database and `Time` in the program"));
    with(&|schema| {
        schema.columns.push(column("new", "Int", true));
        schema.columns.push(ColumnSchema { default: Some("it's".to_owned()), ..column("named", "Text", false) });
        schema.indexes.remove(0);
        schema.indexes.push(IndexSchema { columns: vec![6], unique: false });
    })
    .unwrap();
    // The columns that this one does not declare stay, and do not keep rows from being inserted.
    let table = folder.storage().open(schema()).unwrap();
    while table.insert(0, random.row()).is_err() {}
}

#[test]
fn what_is_no_database_of_weir_is_refused() {
    let refused = |storage: &TableStorage| match storage.open(schema()) {
        Ok(_) => String::new(),
        Err(failure) => failure.message.to_string(),
    };
    let folder = Folder::new("foreign");
    let file = folder.0.join("test.db");
    std::fs::write(&file, "not a database, but long enough to be read as one: ".repeat(40)).unwrap();
    assert!(refused(&folder.storage()).contains("no SQLite database"), "{}", refused(&folder.storage()));
    std::fs::remove_file(&file).unwrap();
    rusqlite::Connection::open(&file).unwrap().execute_batch("CREATE TABLE a (b)").unwrap();
    assert!(refused(&folder.storage()).contains("another program"), "{}", refused(&folder.storage()));
    std::fs::remove_file(&file).unwrap();
    let open = Arc::new(folder.storage());
    let _table = open.open(schema()).unwrap();
    assert!(refused(&folder.storage()).contains("uses the database"), "{}", refused(&folder.storage()));
    drop((_table, open));
    rusqlite::Connection::open(&file).unwrap().execute_batch("PRAGMA user_version = 99").unwrap();
    assert!(refused(&folder.storage()).contains("newer version"), "{}", refused(&folder.storage()));
}
