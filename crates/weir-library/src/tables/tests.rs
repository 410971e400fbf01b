//! Tables in memory and in the database against each other, and durability.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

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
        key: vec![3, 0, 1],
        auto: false,
        indexes: vec![
            IndexSchema { columns: vec![3, 5], unique: false },
            IndexSchema { columns: vec![4], unique: true },
            IndexSchema { columns: vec![1], unique: false },
        ],
        soft: None,
    }
}

/// Returns the key of a row of [`schema`].
fn key_of(row: &Value) -> Value {
    schema().key_of(super::row::fields(row))
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
    let key = key_of(&random.row());
    let result = match kind {
        0..=3 => table.insert(transaction, row).map(|key| format!("{key}")),
        4 | 5 => table.upsert(transaction, row).map(|key| format!("{key}")),
        6 => {
            let own = key_of(&row);
            match table.get(transaction, &own) {
                Ok(Some(_)) => table.replace(transaction, &own, row).map(|()| "replaced".to_owned()),
                other => other.map(|_| "none".to_owned()),
            }
        }
        7 => table.delete(transaction, &key).map(|gone| gone.to_string()),
        8 => table.delete_all(transaction, &random.search()).map(|count| count.to_string()),
        9 => table.count(transaction, &random.search()).map(|count| count.to_string()),
        10 => table.sum(transaction, &random.search(), 1).map(|sum| sum.to_string()),
        11 => {
            let keys = [key.clone(), key_of(&row), key];
            table.get_all(transaction, &keys).map(|rows| format!("{rows:?}"))
        }
        12 => table.get(transaction, &key).map(|row| format!("{row:?}")),
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
            let kind = random.below(16);
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
        assert_eq!(table.upsert(0, row(i64::MAX - 1)).unwrap(), Value::Int(i64::MAX - 1));
        assert_eq!(table.insert(0, row(0)).unwrap(), Value::Int(i64::MAX));
        let refused = table.insert(0, row(0)).unwrap_err();
        assert_eq!(refused.kind, FailureKind::Constraint);
        assert!(refused.message.contains("has used all numbers for its rows"), "{refused}");
    }
}

#[test]
fn soft_tables_evict() {
    let soft = |ttl, at_most| Schema { soft: Some(SoftTable { ttl, at_most }), indexes: Vec::new(), ..schema() };
    let row = |number| {
        let Value::Record(fields) = Random(5).row() else { unreachable!() };
        let mut fields: Vec<Value> = fields.iter().cloned().collect();
        (fields[0], fields[1], fields[2]) = (Value::text("a"), Value::Int(number), Value::Float(1.0));
        Value::Record(fields.into())
    };
    let bounded = TableStorage::default().open(soft(None, Some(2))).unwrap();
    for number in [1, 2, 1, 3] {
        bounded.upsert(0, row(number)).unwrap();
    }
    let kept: Vec<bool> = [1, 2, 3].map(|number| bounded.get(0, &key_of(&row(number))).unwrap().is_some()).into();
    assert_eq!(kept, [true, false, true]);
}

/// The time of the clock of [`rows_expire`], in milliseconds since 1970.
static TIME: AtomicU64 = AtomicU64::new(1_000);

fn time() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(TIME.load(Ordering::Relaxed))
}

#[test]
fn rows_expire() {
    let soft = SoftTable { ttl: Some(Duration::from_millis(20)), at_most: None };
    let table = TableStorage::with_clock(time).open(Schema { soft: Some(soft), ..schema() }).unwrap();
    let row = Random(5).row();
    table.insert(0, row.clone()).unwrap();
    let is_there = |at: u64| {
        TIME.store(at, Ordering::Relaxed);
        table.get(0, &key_of(&row)).unwrap().is_some()
    };
    assert!(is_there(1_019));
    assert!(!is_there(1_020));
    assert!(is_there(990), "a clock that was set back makes no row expire");
    TIME.store(1_020, Ordering::Relaxed);
    table.insert(0, row.clone()).unwrap();
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
    assert_eq!(
        required.unwrap_err(),
        "1 row has no value for the column `new`; give it a default, or make it an `Option`"
    );
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

/// The evolution of a small table, from one start to the next.
struct Evolution {
    folder: Folder,
}

impl Evolution {
    fn new(name: &str) -> Evolution {
        Evolution { folder: Folder::new(name) }
    }

    /// Starts a program that declares these columns behind the key, after `weir tables` has promised the same.
    fn start(
        &self,
        columns: &[ColumnSchema],
        indexes: &[IndexSchema],
        run: impl FnOnce(&dyn TableRows),
    ) -> Result<(), String> {
        let key = column("name", "Text", false);
        let schema = Schema {
            name: "users".to_owned(),
            columns: std::iter::once(key).chain(columns.iter().cloned()).collect(),
            key: vec![0],
            auto: false,
            indexes: indexes.to_vec(),
            soft: None,
        };
        let promised = super::report(&schema, &self.folder.0.join("test.db")).unwrap();
        let storage = self.folder.storage();
        let opened = storage.open(schema).map_err(|failure| failure.message.to_string());
        let fails = promised.lines().find_map(|line| line.strip_prefix("  a start fails: "));
        assert_eq!(fails, opened.as_ref().err().map(String::as_str), "{promised}");
        run(&*opened?);
        weir::Closing::close(&storage).map_err(|failure| failure.message.to_string())
    }
}

fn state(variants: &[&str]) -> ColumnSchema {
    let variants = variants.iter().map(|&variant| variant.to_owned()).collect();
    ColumnSchema { variants, ..column("state", "Enum", false) }
}

fn user<const N: usize>(name: &str, others: [Value; N]) -> Value {
    Value::Record(std::iter::once(Value::text(name)).chain(others).collect())
}

#[test]
fn rows_of_an_older_program_have_no_invented_values() {
    let evolution = Evolution::new("older");
    let (born, mail) = (column("born", "Time", false), column("mail", "Text", false));
    let newer = [born.clone(), mail.clone(), state(&["Open", "Closed"])];
    let row = user("ada", [Value::Time(5), Value::text("a"), Value::Variant(1, None)]);
    evolution.start(&newer, &[], |table| _ = table.insert(0, row.clone()).unwrap()).unwrap();
    evolution.start(&[], &[], |table| _ = table.insert(0, user("bob", [])).unwrap()).unwrap();
    assert_eq!(
        evolution.start(&newer, &[], |_| ()).unwrap_err(),
        "1 row has no value for the column `born`; give it a default, or make it an `Option`"
    );
    let mail_default = ColumnSchema { default: Some("no".to_owned()), ..mail };
    let state_default = ColumnSchema { default: Some("Open".to_owned()), ..state(&["Open", "Closed"]) };
    let forward = [column("born", "Time", true), mail_default, state_default];
    evolution
        .start(&forward, &[], |table| {
            let found = |name: &str| table.get(0, &Value::text(name)).unwrap().unwrap();
            let ada = [Value::some(Value::Time(5)), Value::text("a"), Value::Variant(1, None)];
            assert_eq!(found("ada"), user("ada", ada));
            assert_eq!(found("bob"), user("bob", [Value::none(), Value::text("no"), Value::Variant(0, None)]));
        })
        .unwrap();
    let required = [born, forward[1].clone(), forward[2].clone()];
    assert!(evolution.start(&required, &[], |_| ()).unwrap_err().contains("1 row has no value for the column `born`"));
}

#[test]
fn a_variant_that_rows_have_cannot_go() {
    let evolution = Evolution::new("variants");
    let insert = |name: &'static str, tag| {
        move |table: &dyn TableRows| _ = table.insert(0, user(name, [Value::Variant(tag, None)])).unwrap()
    };
    evolution.start(&[state(&["Open", "Closed", "Lost"])], &[], insert("ada", 1)).unwrap();
    evolution.start(&[state(&["Closed", "New", "Open"])], &[], insert("bob", 2)).unwrap();
    assert_eq!(
        evolution.start(&[state(&["Open"])], &[], |_| ()).unwrap_err(),
        "1 row has the state `Closed`, which the program does not declare; declare the variant until the \
         rows are changed, by the program or by `sqlite3`: UPDATE \"users\" SET \"state\" = 'Open' WHERE \"state\" = 'Closed'"
    );
}

#[test]
fn a_new_unique_needs_rows_that_differ() {
    let evolution = Evolution::new("unique");
    let mail = column("mail", "Text", true);
    let rows = |table: &dyn TableRows| {
        for (name, mail) in [("ada", Some("a")), ("bob", Some("a")), ("eve", None), ("joe", None)] {
            let mail = mail.map_or(Value::none(), |mail| Value::some(Value::text(mail)));
            table.insert(0, user(name, [mail])).unwrap();
        }
    };
    evolution.start(std::slice::from_ref(&mail), &[], rows).unwrap();
    let unique = [IndexSchema { columns: vec![1], unique: true }];
    assert_eq!(
        evolution.start(std::slice::from_ref(&mail), &unique, |_| ()).unwrap_err(),
        "`unique (mail)` does not hold: 1 value occurs in more than one row, such as 'a'; change or delete these rows first"
    );
    let added = [mail.clone(), ColumnSchema { default: Some("0".to_owned()), ..column("place", "Int", false) }];
    let of_place = [IndexSchema { columns: vec![2], unique: true }];
    assert_eq!(
        evolution.start(&added, &of_place, |_| ()).unwrap_err(),
        "`unique (place)` does not hold: the default of the new column `place` gives it one value in all rows; make it an \
         `Option`"
    );
    let both = [IndexSchema { columns: vec![2, 0], unique: true }, IndexSchema { columns: vec![0, 2], unique: false }];
    evolution.start(&added, &both, |_| ()).unwrap();
}

#[test]
fn a_table_that_the_database_does_not_number_is_refused() {
    let folder = Folder::new("number-later");
    let numbered = |auto| Schema {
        name: "lines".to_owned(),
        columns: vec![column("id", "Int", false), column("text", "Text", false)],
        key: vec![0],
        auto,
        indexes: Vec::new(),
        soft: None,
    };
    drop(folder.storage().open(numbered(false)).unwrap());
    let refused = folder.storage().open(numbered(true)).map(|_| ()).unwrap_err();
    assert!(refused.message.contains("numbers the rows (`auto`)"), "{refused}");
}

#[test]
fn the_log_stays_short_and_is_empty_at_the_end() {
    let folder = Folder::new("log");
    let storage = folder.storage();
    let table = storage.open(schema()).unwrap();
    let log = folder.0.join("test.db-wal");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut longest = 0;
    for number in 0..300 {
        let mut fields = super::row::fields(&Random(5).row()).to_vec();
        (fields[1], fields[2]) = (Value::Int(number), Value::Float(0.0));
        (fields[4], fields[7]) = (Value::none(), Value::bytes(vec![7; 64 << 10]));
        table.insert(0, Value::Record(fields.into())).unwrap();
        runtime.block_on(storage.settled()).unwrap();
        longest = longest.max(std::fs::metadata(&log).unwrap().len());
    }
    assert!(longest < 3 * super::checkpoint::LOG_MAX / 2, "the log has grown to {longest} bytes");
    weir::Closing::close(&storage).unwrap();
    assert_eq!(std::fs::metadata(&log).unwrap().len(), 0);
    let copy = Folder::new("log-copy");
    std::fs::copy(folder.0.join("test.db"), copy.0.join("test.db")).unwrap();
    let everything = TableSearch::new(
        TableQuery { conditions: Vec::new(), order: Vec::new() },
        Value::Record([Value::Int(i64::MAX), Value::Unit].into()),
    );
    assert_eq!(copy.storage().open(schema()).unwrap().count(0, &everything).unwrap(), 300);
}

#[test]
fn a_new_column_may_have_a_default_with_nul() {
    let evolution = Evolution::new("nul");
    let mark = ColumnSchema { default: Some("a\0'b".to_owned()), ..column("mark", "Text", false) };
    evolution.start(&[], &[], |table| _ = table.insert(0, user("ada", [])).unwrap()).unwrap();
    evolution
        .start(&[mark], &[], |table| {
            let found = table.get(0, &Value::text("ada")).unwrap();
            assert_eq!(found, Some(user("ada", [Value::text("a\0'b")])));
        })
        .unwrap();
}

#[test]
fn names_that_differ_in_case_are_refused() {
    let evolution = Evolution::new("case");
    evolution.start(&[column("nA", "Int", true)], &[], |_| ()).unwrap();
    assert_eq!(
        evolution.start(&[column("na", "Int", true)], &[], |_| ()).unwrap_err(),
        "the database has the column `nA`, and its names are equal without regard to case: rename `na` to `nA`, or choose a \
         name that differs in more than case"
    );
    let file = evolution.folder.0.join("test.db");
    let promised = super::report(&Schema { name: "Users".to_owned(), ..schema() }, &file).unwrap();
    assert!(promised.contains("a start fails: the database has the table `users`"), "{promised}");
}

#[test]
fn the_report_shows_a_default_that_has_changed() {
    let evolution = Evolution::new("old-default");
    let with_default =
        |default: &str| [ColumnSchema { default: Some(default.to_owned()), ..column("place", "Int", false) }];
    evolution.start(&with_default("1"), &[], |_| ()).unwrap();
    evolution.start(&with_default("2"), &[], |_| ()).unwrap();
    let report = |default: &str| {
        let columns = [column("name", "Text", false)].into_iter().chain(with_default(default)).collect();
        let (name, indexes) = ("users".to_owned(), Vec::new());
        let schema = Schema { name, columns, key: vec![0], auto: false, indexes, soft: None };
        super::report(&schema, &evolution.folder.0.join("test.db")).unwrap()
    };
    assert!(
        report("2").contains("does not declare `place` inserts 1, the default with which it was created"),
        "{}",
        report("2")
    );
    assert!(!report("1").contains("does not declare"), "{}", report("1"));
    // A program without the column inserts what the report says.
    evolution.start(&[], &[], |table| _ = table.insert(0, user("ada", [])).unwrap()).unwrap();
    evolution
        .start(&with_default("2"), &[], |table| {
            assert_eq!(table.get(0, &Value::text("ada")).unwrap(), Some(user("ada", [Value::Int(1)])));
        })
        .unwrap();
}

#[test]
fn a_failure_shows_values_as_programs_write_them() {
    let columns = [column("note", "Text", true), state(&["Open", "Closed"]), column("data", "Bytes", false)];
    let columns: Vec<ColumnSchema> = std::iter::once(column("name", "Text", false)).chain(columns).collect();
    let row = |name: &str| {
        user(name, [Value::some(Value::text("x")), Value::Variant(1, None), Value::bytes((0..20).collect::<Vec<u8>>())])
    };
    let folder = Folder::new("shown");
    for storage in [TableStorage::default(), folder.storage()] {
        for (at, expected) in [
            (1, "the note Some(\"x\")"),
            (2, "the state Closed"),
            (3, "the data 0x000102030405060708090a0b0c0d0e0f… (20 bytes)"),
        ] {
            let schema = Schema {
                name: format!("by_{at}"),
                columns: columns.clone(),
                key: vec![0],
                auto: false,
                indexes: vec![IndexSchema { columns: vec![at], unique: true }],
                soft: None,
            };
            let table = storage.open(schema).unwrap();
            table.insert(0, row("ada")).unwrap();
            let refused = table.insert(0, row("bob")).unwrap_err();
            assert_eq!(refused.message.as_str(), format!("a row of `by_{at}` with {expected} exists already"));
        }
    }
}

#[test]
fn a_value_of_another_program_is_named_with_its_row() {
    let evolution = Evolution::new("unreadable");
    let columns = [state(&["Open", "Closed"])];
    let insert = |table: &dyn TableRows| _ = table.insert(0, user("ada", [Value::Variant(1, None)])).unwrap();
    evolution.start(&columns, &[], insert).unwrap();
    let other = rusqlite::Connection::open(evolution.folder.0.join("test.db")).unwrap();
    other.execute_batch("UPDATE users SET state = 'Lost'").unwrap();
    drop(other);
    evolution
        .start(&columns, &[], |table| {
            assert_eq!(
                table.get(0, &Value::text("ada")).unwrap_err().message.as_str(),
                "the row with the name \"ada\" in the table `users` of the database has a value of the column `state` that is \
                 no `Open | Closed`; correct it with `sqlite3`"
            );
        })
        .unwrap();
}

#[test]
fn a_full_disk_under_a_backup_is_that_of_the_copy() {
    let code = rusqlite::ffi::Error { code: rusqlite::ErrorCode::DiskFull, extended_code: rusqlite::ffi::SQLITE_FULL };
    let full = rusqlite::Error::SqliteFailure(code, None);
    let failure = super::backup::not_copied("mail.db".as_ref(), "/b/monday.db".as_ref(), &full);
    assert!(failure.message.starts_with("cannot write the copy /b/monday.db: its disk is full"), "{failure}");
}
