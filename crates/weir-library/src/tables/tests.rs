//! Tables in memory and in the database against each other, and durability.

mod evolution;
mod faults;
mod power_cuts;
mod references;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use test_support::postgres::PostgresServer;
use test_support::random::Random;
use weir::{Failure, FailureKind, Value};

use self::evolution::{Evolution, state, user};
use super::grouping::{TableAggregate, TableGrouping};
use super::postgres::PostgresAddress;
use super::rows::TableRows;
use super::schema::{ColumnSchema, IndexSchema, RowOrder, Schema, SoftTable, TableCondition, TableQuery, TableSearch};
use super::storage::{TableLocation, TableStorage};

/// Number of random statements of one run.
const STATEMENTS: usize = 4_000;

/// A database that is empty at first and removed at the end.
enum TestDatabase {
    /// The folder of an SQLite database.
    Sqlite(PathBuf),
    /// The name of a schema of PostgreSQL.
    Postgres(String),
}

impl TestDatabase {
    /// Returns an empty database of each kind.
    fn each(name: &str) -> Vec<TestDatabase> {
        let postgres = PostgresServer::shared().map(|server| {
            server.schema(name);
            TestDatabase::Postgres(name.to_owned())
        });
        std::iter::once(TestDatabase::sqlite(name)).chain(postgres).collect()
    }

    /// Returns an empty SQLite database.
    fn sqlite(name: &str) -> TestDatabase {
        let path = std::env::temp_dir().join(format!("weir-tables-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        TestDatabase::Sqlite(path)
    }

    fn place(&self) -> TableLocation {
        match self {
            TestDatabase::Sqlite(folder) => TableLocation::File(folder.join("test.db")),
            TestDatabase::Postgres(schema) => {
                let address = PostgresServer::shared().unwrap().address(schema);
                TableLocation::Postgres(PostgresAddress::parse(&address, None).unwrap())
            }
        }
    }

    fn storage(&self) -> TableStorage {
        TableStorage::at(self.place())
    }

    /// Returns the file of an SQLite database.
    fn file(&self) -> PathBuf {
        match self {
            TestDatabase::Sqlite(folder) => folder.join("test.db"),
            TestDatabase::Postgres(schema) => panic!("{schema} is no file"),
        }
    }

    /// Executes SQL as another program.
    fn execute(&self, sql: &str) {
        match self {
            TestDatabase::Sqlite(_) => rusqlite::Connection::open(self.file()).unwrap().execute_batch(sql).unwrap(),
            TestDatabase::Postgres(schema) => _ = PostgresServer::shared().unwrap().execute(schema, sql),
        }
    }

    /// Returns the program in which people correct rows.
    fn shell(&self) -> &'static str {
        match self {
            TestDatabase::Sqlite(_) => "sqlite3",
            TestDatabase::Postgres(_) => "psql",
        }
    }
}

impl std::fmt::Debug for TestDatabase {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(if matches!(self, TestDatabase::Sqlite(_)) { "SQLite" } else { "PostgreSQL" })
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        if let TestDatabase::Sqlite(folder) = self {
            _ = std::fs::remove_dir_all(folder);
        }
    }
}

fn column(name: &str, kind: &str, optional: bool) -> ColumnSchema {
    let variants = if kind == "Enum" { vec!["Open".to_owned(), "Closed".to_owned()] } else { Vec::new() };
    ColumnSchema { name: name.to_owned(), kind: kind.to_owned(), variants, optional, default: None, existing: false }
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
        references: Vec::new(),
        referenced_by: Vec::new(),
        migration: None,
        existing: None,
    }
}

/// Returns the key of a row of [`schema`].
fn key_of(row: &Value) -> Value {
    schema().key_of(super::row::fields(row))
}

/// Random rows and queries of [`schema`].
struct RandomRows(Random);

impl RandomRows {
    fn new(seed: u64) -> Self {
        RandomRows(Random::new(seed))
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0.below(limit)
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
            Value::Time([0, 1, i64::MIN, i64::MAX][self.below(4) as usize]),
            Value::Duration([0, -1, i64::MIN, i64::MAX][self.below(4) as usize]),
            Value::bytes(vec![self.below(2) as u8; 3]),
            Value::Size([0, 1, i64::MAX as u64][self.below(3) as usize]),
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

    fn grouping(&mut self) -> TableGrouping {
        let count = self.below(4);
        let mut columns: Vec<usize> = (0..count).map(|_| self.below(10) as usize).collect();
        if self.below(3) == 0 {
            columns = [vec![3], vec![0, 3], vec![3, 0, 1]][self.below(3) as usize].clone();
        }
        columns.dedup();
        let aggregate = |random: &mut Self| {
            // A database has the least value of no group of `Bytes`, and of an absent value none.
            let (kind, columns): (&str, &[usize]) = match random.below(5) {
                0 => ("count", &[0]),
                1 => ("distinct", &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
                2 if count > 0 => ("max", &[0, 1, 2, 5, 6, 8]),
                3 if count > 0 => ("min", &[0, 1, 2, 5, 6, 8]),
                _ => ("sum", &[1]),
            };
            let column = columns[random.below(columns.len() as u64) as usize];
            TableAggregate { kind: kind.to_owned(), column }
        };
        let aggregates = (0..=self.below(4)).map(|_| aggregate(self)).collect();
        TableGrouping { columns, aggregates }
    }
}

/// Runs a statement on a table, and returns the result as a text.
fn run(table: &dyn TableRows, kind: u64, transaction: i64, seed: u64) -> String {
    let mut random = RandomRows::new(seed);
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
        12 if seed.is_multiple_of(2) => {
            // The notes, which are unique, move from each row to the next one; sometimes one of them is doubled.
            let old = table.select(transaction, &random.search()).unwrap();
            let notes: Vec<Value> = old.iter().map(|row| super::row::fields(row)[4].clone()).collect();
            let next =
                |at: usize| notes[(at + 1 + usize::from(at == 0 && seed.is_multiple_of(8))) % notes.len()].clone();
            let new = old.iter().enumerate().map(|(at, row)| {
                let mut row = super::row::fields(row).to_vec();
                (row[4], row[9]) = (next(at), Value::Bool(true));
                Value::Record(row.into())
            });
            table.replace_rows(transaction, &old, new.collect()).map(|count| count.to_string())
        }
        14 => pages(table, transaction, seed),
        13 => {
            let search = random.search();
            table.group(transaction, &search, &random.grouping()).map(|groups| format!("{groups:?}"))
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

/// Returns the pages of a random query: their rows, and the last cursor. The pages have the rows of the whole query.
fn pages(table: &dyn TableRows, transaction: i64, seed: u64) -> Result<String, Failure> {
    let mut random = RandomRows::new(seed);
    let (schema, mut whole) = (schema(), random.search());
    let limit = 1 + random.below(4) as usize;
    let mut values: Vec<Value> = whole.conditions().map(|(_, value)| value.clone()).collect();
    values.splice(0..0, [Value::Int(limit as i64), Value::none()]);
    (whole.limit, whole.limit_value) = (usize::MAX, Value::Int(i64::MAX));
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = TableSearch::for_rows(&schema, whole.query.clone(), Value::Record(values.clone().into()))?;
        let mut rows = table.select(transaction, &page)?;
        let more = rows.len() > limit;
        rows.truncate(limit);
        all.append(&mut rows);
        if !more {
            break;
        }
        cursor = super::cursor::cursor(&schema, &whole.query, super::row::fields(&all[all.len() - 1]));
        values[1] = Value::some(Value::text(&cursor));
    }
    assert_eq!(all, table.select(transaction, &whole)?, "{:?} by {limit}", whole.query);
    Ok(format!("{all:?} {cursor}"))
}

#[test]
fn databases_agree_with_memory() {
    for seed in 1..4 {
        for database in TestDatabase::each(&format!("agree_{seed}")) {
            agrees_with_memory(&database, seed);
        }
    }
}

/// Executes the same random statements in memory and in a database.
fn agrees_with_memory(database: &TestDatabase, seed: u64) {
    let memory = TableStorage::default().open(schema()).unwrap();
    let stored = database.storage().open(schema()).unwrap();
    let mut random = RandomRows::new(seed);
    let (mut transaction, mut number) = (0, 0);
    for at in 0..STATEMENTS {
        match random.below(20) {
            0 if transaction == 0 => {
                number += 1;
                transaction = number;
            }
            0 | 1 if transaction != 0 => {
                memory.rows.commit(transaction, true).unwrap();
                stored.rows.commit(transaction, true).unwrap();
                transaction = 0;
            }
            // Left unfinished: the next statement takes it back.
            2 => transaction = 0,
            _ => {}
        }
        let kind = random.below(16);
        let of = random.below(u64::MAX);
        let (one, other) = (run(&*memory.rows, kind, transaction, of), run(&*stored.rows, kind, transaction, of));
        assert_eq!(one, other, "statement {at} of seed {seed}, of kind {kind}, in {database:?}");
    }
}

/// Returns the query for all rows.
fn everything() -> TableSearch {
    let query = TableQuery { conditions: Vec::new(), order: Vec::new() };
    TableSearch::new(query, Value::Record([Value::Int(i64::MAX), Value::Unit].into()))
}

#[test]
fn rows_are_there_after_a_restart() {
    for database in TestDatabase::each("restart") {
        let mut rows = Vec::new();
        for round in 0..3 {
            let storage = database.storage();
            let table = storage.open(schema()).unwrap();
            assert_eq!(table.rows.select(0, &everything()).unwrap(), rows, "round {round} in {database:?}");
            let mut random = RandomRows::new(99 + round);
            for _ in 0..20 {
                _ = table.rows.insert(0, random.row());
            }
            rows = table.rows.select(0, &everything()).unwrap();
            tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(storage.settled()).unwrap();
        }
    }
}

#[test]
fn numbers_are_not_used_twice() {
    let databases = TestDatabase::each("numbers");
    let numbered = || Schema {
        name: "numbered".to_owned(),
        columns: vec![column("id", "Int", false), column("text", "Text", false)],
        key: vec![0],
        auto: true,
        indexes: Vec::new(),
        soft: None,
        references: Vec::new(),
        referenced_by: Vec::new(),
        migration: None,
        existing: None,
    };
    let storages = databases.iter().map(TestDatabase::storage).chain([TableStorage::default()]);
    for table in storages.map(|storage| storage.open(numbered()).unwrap()) {
        let row = |id| Value::Record([Value::Int(id), Value::text("x")].into());
        assert_eq!(table.rows.insert(0, row(0)).unwrap(), Value::Int(1));
        assert_eq!(table.rows.insert(0, row(0)).unwrap(), Value::Int(2));
        assert!(table.rows.delete(0, &Value::Int(2)).unwrap());
        assert_eq!(table.rows.insert(0, row(0)).unwrap(), Value::Int(3));
        assert_eq!(table.rows.upsert(0, row(10)).unwrap(), Value::Int(10));
        assert_eq!(table.rows.insert(0, row(0)).unwrap(), Value::Int(11));
        assert_eq!(table.rows.upsert(0, row(i64::MAX - 1)).unwrap(), Value::Int(i64::MAX - 1));
        assert_eq!(table.rows.insert(0, row(0)).unwrap(), Value::Int(i64::MAX));
        let refused = table.rows.insert(0, row(0)).unwrap_err();
        assert_eq!(refused.kind, FailureKind::Constraint);
        assert!(refused.message.contains("has used all numbers for its rows"), "{refused}");
    }
}

#[test]
fn soft_tables_evict() {
    let soft = |ttl, at_most| Schema { soft: Some(SoftTable { ttl, at_most }), indexes: Vec::new(), ..schema() };
    let row = |number| {
        let Value::Record(fields) = RandomRows::new(5).row() else { unreachable!() };
        let mut fields: Vec<Value> = fields.iter().cloned().collect();
        (fields[0], fields[1], fields[2]) = (Value::text("a"), Value::Int(number), Value::Float(1.0));
        Value::Record(fields.into())
    };
    let bounded = TableStorage::default().open(soft(None, Some(2))).unwrap();
    for number in [1, 2, 1, 3] {
        bounded.rows.upsert(0, row(number)).unwrap();
    }
    let kept: Vec<bool> = [1, 2, 3].map(|number| bounded.rows.get(0, &key_of(&row(number))).unwrap().is_some()).into();
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
    let row = RandomRows::new(5).row();
    table.rows.insert(0, row.clone()).unwrap();
    let is_there = |at: u64| {
        TIME.store(at, Ordering::Relaxed);
        table.rows.get(0, &key_of(&row)).unwrap().is_some()
    };
    assert!(is_there(1_019));
    assert!(!is_there(1_020));
    assert!(is_there(990), "a clock that was set back makes no row expire");
    TIME.store(1_020, Ordering::Relaxed);
    table.rows.insert(0, row.clone()).unwrap();
}

#[test]
fn what_is_no_database_of_weir_is_refused() {
    let refused = |storage: &TableStorage| match storage.open(schema()) {
        Ok(_) => String::new(),
        Err(failure) => failure.message.to_string(),
    };
    let folder = TestDatabase::sqlite("foreign");
    let file = folder.file();
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

#[test]
fn the_log_stays_short_and_is_empty_at_the_end() {
    let folder = TestDatabase::sqlite("log");
    let storage = folder.storage();
    let table = storage.open(schema()).unwrap();
    let log = folder.file().with_extension("db-wal");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut longest = 0;
    for number in 0..300 {
        let mut fields = super::row::fields(&RandomRows::new(5).row()).to_vec();
        (fields[1], fields[2]) = (Value::Int(number), Value::Float(0.0));
        (fields[4], fields[7]) = (Value::none(), Value::bytes(vec![7; 64 << 10]));
        table.rows.insert(0, Value::Record(fields.into())).unwrap();
        runtime.block_on(storage.settled()).unwrap();
        longest = longest.max(std::fs::metadata(&log).unwrap().len());
    }
    assert!(longest < 3 * super::checkpoint::LOG_MAX / 2, "the log has grown to {longest} bytes");
    weir::Closing::close(&storage).unwrap();
    assert_eq!(std::fs::metadata(&log).unwrap().len(), 0);
    let copy = TestDatabase::sqlite("log-copy");
    std::fs::copy(folder.file(), copy.file()).unwrap();
    assert_eq!(copy.storage().open(schema()).unwrap().rows.count(0, &everything()).unwrap(), 300);
}

#[test]
fn a_failure_shows_values_as_programs_write_them() {
    let columns = [column("note", "Text", true), state(&["Open", "Closed"]), column("data", "Bytes", false)];
    let columns: Vec<ColumnSchema> = std::iter::once(column("name", "Text", false)).chain(columns).collect();
    let row = |name: &str| {
        user(name, [Value::some(Value::text("x")), Value::Variant(1, None), Value::bytes((0..20).collect::<Vec<u8>>())])
    };
    let databases = TestDatabase::each("shown");
    for storage in databases.iter().map(TestDatabase::storage).chain([TableStorage::default()]) {
        for (at, expected) in [
            (1, "the note \"x\""),
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
                references: Vec::new(),
                referenced_by: Vec::new(),
                migration: None,
                existing: None,
            };
            let table = storage.open(schema).unwrap();
            table.rows.insert(0, row("ada")).unwrap();
            let refused = table.rows.insert(0, row("bob")).unwrap_err();
            assert_eq!(refused.message.as_str(), format!("a row of `by_{at}` with {expected} exists already"));
        }
    }
}

#[test]
fn a_value_of_another_program_is_named_with_its_row() {
    for evolution in Evolution::each("unreadable") {
        let columns = [state(&["Open", "Closed"])];
        let insert = |table: &dyn TableRows| _ = table.insert(0, user("ada", [Value::Variant(1, None)])).unwrap();
        evolution.start(&columns, &[], insert).unwrap();
        evolution.database.execute("UPDATE users SET state = 'Lost'");
        let shell = evolution.database.shell();
        evolution
            .start(&columns, &[], |table| {
                assert_eq!(
                    table.get(0, &Value::text("ada")).unwrap_err().message.as_str(),
                    format!(
                        "the row with the name \"ada\" in the table `users` of the database has a value of the column `state` \
                         that is no `Open | Closed`; correct it with `{shell}`"
                    )
                );
            })
            .unwrap();
    }
}

#[test]
fn a_full_disk_under_a_backup_is_that_of_the_copy() {
    let code = rusqlite::ffi::Error { code: rusqlite::ErrorCode::DiskFull, extended_code: rusqlite::ffi::SQLITE_FULL };
    let full = rusqlite::Error::SqliteFailure(code, None);
    let failure = super::backup::not_copied("mail.db".as_ref(), "/b/monday.db".as_ref(), &full);
    assert!(failure.message.starts_with("cannot write the copy /b/monday.db: its disk is full"), "{failure}");
}
