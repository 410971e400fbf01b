//! Tables in memory and in the database against each other, and durability.

mod agreement;
mod beside_others;
mod beside_sqlite3;
mod beside_writes;
mod changed_by_others;
mod checkpoints;
mod crashes;
mod damaged_pages;
mod ended_programs;
mod evolution;
mod failed_syncs;
mod faults;
mod folding_indexes;
mod group_members;
mod held_reads;
mod long_reads;
mod lost_logs;
mod migrations;
mod migrations_together;
mod numbered_rows;
mod old_versions;
mod own_indexes;
mod power_cuts;
mod random_evolution;
mod references;
mod refused_existing;
mod refused_members;
mod refusing_triggers;
mod rejoining;
mod replaced_databases;
mod replaced_files;
mod row_triggers;
mod scratch_schemas;
mod sorted_rows;
mod start_access;
mod starts_in_postgres;
mod statement_groups;
mod test_database;
mod undeclared;
mod unnoted_writes;
mod without_threads;
mod write_sets;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use weir::{FailureKind, Value};

use self::agreement::{RandomRows, key_of};
use self::evolution::{Evolution, state, user};
use self::test_database::TestDatabase;
use super::row::fields;
use super::rows::TableRows;
use super::schema::{ColumnSchema, IndexSchema, Schema, SoftTable, TableQuery, TableReference, TableSearch};
use super::storage::TableStorage;

/// Returns a reference by these columns, each with its place, its name, and whether it is optional.
pub(super) fn reference(
    source: &str,
    columns: &[(usize, &str, bool)],
    (target, key): (&str, &str),
    cascade: bool,
) -> TableReference {
    TableReference {
        source: source.to_owned(),
        columns: columns.iter().map(|(at, _, _)| *at).collect(),
        names: columns.iter().map(|(_, name, _)| (*name).to_owned()).collect(),
        optional: columns.iter().map(|(_, _, optional)| *optional).collect(),
        target: target.to_owned(),
        key: vec![key.to_owned()],
        cascade,
        stored: true,
    }
}

pub(super) fn column(name: &str, kind: &str, optional: bool) -> ColumnSchema {
    let variants = if kind == "Enum" { vec!["Open".to_owned(), "Closed".to_owned()] } else { Vec::new() };
    ColumnSchema {
        name: name.to_owned(),
        kind: kind.to_owned(),
        variants,
        optional,
        default: None,
        existing: false,
        in_nocase_index: false,
    }
}

/// A stored table whose key is its first column.
pub(super) fn declared(name: &str, columns: Vec<ColumnSchema>) -> Schema {
    Schema {
        name: name.to_owned(),
        columns,
        key: vec![0],
        auto: false,
        indexes: Vec::new(),
        soft: None,
        references: Vec::new(),
        referenced_by: Vec::new(),
        migration: None,
        existing: None,
    }
}

/// A table of users with a place, whose key is the name.
fn users() -> Schema {
    declared("users", vec![column("name", "Text", false), column("place", "Int", false)])
}

/// A table of all kinds of columns.
fn schema() -> Schema {
    Schema {
        key: vec![3, 0, 1],
        indexes: vec![
            IndexSchema { columns: vec![3, 5], unique: false },
            IndexSchema { columns: vec![4], unique: true },
            IndexSchema { columns: vec![1], unique: false },
        ],
        ..declared(
            "things",
            vec![
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
        )
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
            tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(storage.settled(true)).unwrap();
        }
    }
}

#[test]
fn numbers_are_not_used_twice() {
    let databases = TestDatabase::each("numbers");
    let numbered = || Schema {
        auto: true,
        ..declared("numbered", vec![column("id", "Int", false), column("text", "Text", false)])
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
fn an_insertion_without_a_number_left_takes_back_nothing() {
    let settled = |storage: &TableStorage| {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(storage.settled(true))
    };
    for database in TestDatabase::each("numbers_left") {
        let numbered = || Schema {
            auto: true,
            ..declared("numbered", vec![column("id", "Int", false), column("text", "Text", false)])
        };
        let row = |id| Value::Record([Value::Int(id), Value::text("x")].into());
        // The last number is taken by this start, and then by one before.
        for start in 0..2 {
            let storage = database.storage();
            let table = storage.open(numbered()).unwrap();
            if start == 0 {
                table.rows.upsert(0, row(i64::MAX)).unwrap();
            }
            settled(&storage).unwrap();
            table.rows.upsert(0, row(start)).unwrap();
            assert_eq!(table.rows.insert(0, row(0)).unwrap_err().kind, FailureKind::Constraint);
            table.rows.upsert(0, row(start + 10)).unwrap();
            settled(&storage).unwrap();
            let keys = [start, start + 10].map(|key| table.rows.get(0, &Value::Int(key)).unwrap().is_some());
            assert_eq!(keys, [true, true], "{database:?}");
        }
    }
}

#[test]
fn soft_tables_evict() {
    let soft = |ttl, at_most| Schema {
        soft: Some(SoftTable { ttl, at_most, capacity: None }),
        indexes: Vec::new(),
        ..schema()
    };
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

/// A row of `users` takes four values, and the bytes of its name three times: as a column, and as the key of two maps.
#[test]
fn soft_tables_are_bounded_in_bytes() {
    let row = |name: &str| user(name, [Value::Int(1)]);
    let bytes = |name: &str| 4 * size_of::<Value>() + 3 * name.len();
    let names = [1, 2, 3, 4].map(|number| number.to_string().repeat(100));
    let soft = SoftTable { ttl: None, at_most: None, capacity: Some(2 * bytes(&names[0])) };
    let table = TableStorage::default().open(Schema { soft: Some(soft), ..users() }).unwrap();
    let kept = || -> Vec<usize> {
        (0..4).filter(|at| table.rows.get(0, &Value::text(&names[*at])).unwrap().is_some()).collect()
    };
    for at in [0, 1, 0, 2] {
        table.rows.upsert(0, row(&names[at])).unwrap();
    }
    assert_eq!(kept(), [0, 2]);
    // What a transaction has evicted is there again when it is taken back.
    table.rows.upsert(1, row(&names[3])).unwrap();
    table.rows.roll_back(1);
    assert_eq!(kept(), [0, 2]);
    table.rows.delete(0, &Value::text(&names[0])).unwrap();
    table.rows.upsert(0, row(&names[1])).unwrap();
    assert_eq!(kept(), [1, 2]);
    let large = row(&"x".repeat(1_000));
    let refused = table.rows.insert(0, large).unwrap_err();
    assert_eq!(refused.kind, FailureKind::Constraint, "{refused}");
    assert!(refused.message.contains("is larger than `users`, whose capacity is"), "{refused}");
    assert_eq!(kept(), [1, 2]);
}

/// The time of the clock of [`rows_expire`], in milliseconds since its begin.
static TIME: AtomicU64 = AtomicU64::new(1_000);

fn time() -> Instant {
    static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
    *BEGIN + Duration::from_millis(TIME.load(Ordering::Relaxed))
}

#[test]
fn rows_expire() {
    let soft = SoftTable { ttl: Some(Duration::from_millis(20)), at_most: None, capacity: None };
    let table = TableStorage::with_clock(time).open(Schema { soft: Some(soft), ..schema() }).unwrap();
    let row = RandomRows::new(5).row();
    table.rows.insert(0, row.clone()).unwrap();
    let is_there = |at: u64| {
        TIME.store(at, Ordering::Relaxed);
        table.rows.get(0, &key_of(&row)).unwrap().is_some()
    };
    assert!(is_there(1_019));
    assert!(!is_there(1_020));
    TIME.store(1_020, Ordering::Relaxed);
    table.rows.insert(0, row.clone()).unwrap();
    // Within a transaction, none does, and one that it writes lives from its write on.
    let found = |transaction: i64, at: u64| {
        TIME.store(at, Ordering::Relaxed);
        let count = table.rows.count(transaction, &everything()).unwrap();
        (count, table.rows.get(transaction, &key_of(&row)).unwrap().is_some())
    };
    assert_eq!(found(1, 1_039), (1, true));
    assert_eq!(found(1, 1_045), (1, true));
    table.rows.upsert(1, row.clone()).unwrap();
    table.rows.commit(1, true).unwrap();
    assert_eq!(found(0, 1_064), (1, true));
    assert_eq!(found(2, 1_064), (1, true));
    assert_eq!(found(2, 1_065), (1, true));
    // The next transaction has its own time.
    assert_eq!(found(3, 1_065), (0, false));
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
    std::fs::create_dir(&file).unwrap();
    let is_folder = format!("the database {} is a folder: move it away", file.display());
    assert!(refused(&folder.storage()).starts_with(&is_folder), "{}", refused(&folder.storage()));
    assert!(folder.report(&schema()).unwrap().contains(&format!("a start fails: {is_folder}")));
    let copied = crate::tables::sqlite::backup::backup(&file, &file.with_extension("copy")).unwrap_err();
    assert!(copied.message.starts_with(&is_folder), "{copied}");
    let existing = crate::tables::sqlite::database::Database::open_existing(&file, None).unwrap_err();
    assert!(existing.message.starts_with("there is a folder instead of the database"), "{existing}");
    std::fs::remove_dir(&file).unwrap();
    let other = "PRAGMA encoding='UTF-16le'; CREATE TABLE a (b); DROP TABLE a";
    rusqlite::Connection::open(&file).unwrap().execute_batch(other).unwrap();
    let encoding = "its encoding is UTF-16le, in which SQLite orders texts otherwise than programs do; remove it if it has no rows";
    assert!(refused(&folder.storage()).contains(encoding), "{}", refused(&folder.storage()));
    let report = folder.report(&schema()).unwrap();
    assert!(report.contains("a start fails: ") && report.contains(encoding), "{report}");
    // Beside the note of the start, it would be one that was emptied.
    ["", "-note", "-wal", "-shm"].iter().for_each(|end| _ = std::fs::remove_file(format!("{}{end}", file.display())));
    let open = Arc::new(folder.storage());
    let _table = open.open(schema()).unwrap();
    assert!(refused(&folder.storage()).contains("uses the database"), "{}", refused(&folder.storage()));
    drop((_table, open));
    rusqlite::Connection::open(&file).unwrap().execute_batch("PRAGMA user_version = 99").unwrap();
    assert!(refused(&folder.storage()).contains("newer version"), "{}", refused(&folder.storage()));
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
                indexes: vec![IndexSchema { columns: vec![at], unique: true }],
                ..declared(&format!("by_{at}"), columns.clone())
            };
            let table = storage.open(schema).unwrap();
            table.rows.insert(0, row("ada")).unwrap();
            let refused = table.rows.insert(0, row("bob")).unwrap_err();
            assert_eq!(refused.message.as_str(), format!("a row of `by_{at}` with {expected} exists already"));
        }
    }
}

#[test]
fn a_row_that_breaks_several_rules_names_the_first_one_in_every_store() {
    let columns = [("owner", "Text", false), ("number", "Int", false), ("note", "Text", true), ("place", "Int", false)];
    let unique = |columns: &[usize]| IndexSchema { columns: columns.to_vec(), unique: true };
    let schema = Schema {
        key: vec![0, 1],
        indexes: vec![unique(&[2]), unique(&[3])],
        ..declared("first_rules", columns.map(|(name, kind, optional)| column(name, kind, optional)).to_vec())
    };
    let row = |owner: &str, number, note: Option<&str>, place| {
        let note = note.map_or_else(Value::none, |note| Value::some(Value::text(note)));
        Value::Record([Value::text(owner), Value::Int(number), note, Value::Int(place)].into())
    };
    let databases = TestDatabase::each("first_rules");
    for storage in databases.iter().map(TestDatabase::storage).chain([TableStorage::default()]) {
        let table = storage.open(schema.clone()).unwrap();
        table.rows.insert(0, row("ada", 1, Some("x"), 1)).unwrap();
        table.rows.insert(0, row("bob", 2, None, 2)).unwrap();
        let said = |refused: Result<Value, weir::Failure>, rule: &str| {
            let message = refused.unwrap_err().message;
            assert_eq!(message.as_str(), format!("a row of `first_rules` with {rule} exists already"), "{storage:?}");
        };
        let (key, note, place) = ("the owner \"ada\" and the number 1", "the note \"x\"", "the place 1");
        said(table.rows.insert(0, row("ada", 1, Some("x"), 1)), key);
        said(table.rows.insert(0, row("ada", 1, None, 2)), key);
        said(table.rows.insert(0, row("ada", 2, Some("x"), 1)), note);
        said(table.rows.insert(0, row("ada", 2, None, 1)), place);
        said(table.rows.upsert(0, row("bob", 2, Some("x"), 1)), note);
        let replaced = table.rows.replace(0, &schema.key_of(fields(&row("bob", 2, None, 2))), row("bob", 2, None, 1));
        said(replaced, place);
        let all = table.rows.replace_rows(0, &[row("bob", 2, None, 2)], vec![row("bob", 2, Some("x"), 1)]);
        said(all.map(Value::Int), note);
        // Of several rows the first one decides, and of those only what it breaks.
        table.rows.insert(0, row("eve", 3, None, 3)).unwrap();
        let old = [row("bob", 2, None, 2), row("eve", 3, None, 3)];
        let all = table.rows.replace_rows(0, &old, vec![row("bob", 2, None, 1), row("eve", 3, Some("x"), 1)]);
        said(all.map(Value::Int), place);
        let all = table.rows.replace_rows(0, &old, vec![row("bob", 2, Some("y"), 5), row("eve", 3, Some("y"), 5)]);
        said(all.map(Value::Int), "the note \"y\"");
        let all = table.rows.replace_rows(0, &old, vec![row("bob", 2, None, 3), row("eve", 3, Some("x"), 2)]);
        said(all.map(Value::Int), note);
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
    let failure = crate::tables::sqlite::backup::not_copied("mail.db".as_ref(), "/b/monday.db".as_ref(), &full);
    assert!(failure.message.starts_with("cannot write the copy /b/monday.db: its disk is full"), "{failure}");
}
