//! Power cuts: a program starts with what is left, in which what was acknowledged or read is there, once, and no transaction is torn.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use parking_lot::Mutex;
use rusqlite::Connection;
use test_support::random::Random;
use weir::{SeenCommits, Value};

use super::{TestDatabase, column, declared, everything};
use crate::tables::open_table::OpenTable;
use crate::tables::schema::Schema;
use crate::tables::sqlite::database_files::LOG_KEPT_MAX;
use crate::tables::sqlite::durable_files::DurableFiles;
use crate::tables::storage::TableStorage;

/// Number of clients that write. Every second one writes each number in a transaction, the others in a statement.
const CLIENTS: i64 = 8;

/// The sum of both halves, stored in one row.
const WHOLE: i64 = 3;

/// Number of power cuts of one database whose rows are large, so that it does not become too large itself.
const CUTS_OF_LARGE: u64 = 10;

/// Number of power cuts; `WEIR_POWER_CUTS` sets another one.
fn cuts() -> u64 {
    std::env::var("WEIR_POWER_CUTS").ok().and_then(|cuts| cuts.parse().ok()).unwrap_or(100)
}

/// Ends the clients when it is dropped, also by a failed check.
struct EndOfClients<'d>(&'d AtomicBool);

impl Drop for EndOfClients<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn halves() -> Schema {
    Schema {
        auto: true,
        ..declared(
            "halves",
            vec![
                column("id", "Int", false),
                column("number", "Int", false),
                column("half", "Int", false),
                column("data", "Bytes", false),
            ],
        )
    }
}

fn int(value: &Value) -> i64 {
    let Value::Int(number) = value else { panic!("no `Int`: {value}") };
    *number
}

/// The length of the data of the rows with a number.
type RowLength = fn(i64) -> usize;

/// Returns the data of the rows with a number, which have this length.
fn data(number: i64, length: usize) -> Vec<u8> {
    vec![number as u8; length]
}

/// The clients of a table: those that write, and those that read what may not be durable yet.
struct Clients<'a> {
    storage: &'a TableStorage,
    table: &'a OpenTable,
    length: RowLength,
    /// The lock of the step that holds the table.
    turn: Mutex<()>,
    /// The number of the last row.
    last: AtomicI64,
    /// The numbers whose rows were acknowledged, or read by a flow that was answered.
    acknowledged: Mutex<Vec<i64>>,
    done: AtomicBool,
}

impl Clients<'_> {
    /// Writes every number of a client: both halves in a transaction, or a whole in a statement.
    fn write(&self, client: i64) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for number in (client..).step_by(CLIENTS as usize).take_while(|_| !self.done.load(Ordering::Relaxed)) {
            let mut made = SeenCommits::default();
            let _entered = made.enter();
            let turn = self.turn.lock();
            if client % 2 == 0 {
                let transaction = self.storage.next_transaction();
                for half in [1, 2] {
                    self.insert(transaction, number, half);
                }
                self.table.rows.commit(transaction, true).unwrap();
            } else {
                self.insert(0, number, WHOLE);
            }
            drop(turn);
            runtime.block_on(self.storage.settled(true)).unwrap();
            self.acknowledged.lock().push(number);
        }
    }

    fn insert(&self, transaction: i64, number: i64, half: i64) {
        let data = Value::bytes(data(number, (self.length)(number)));
        let row = [0, number, half].map(Value::Int).into_iter().chain([data]).collect();
        let id = self.table.rows.insert(transaction, Value::Record(row)).unwrap();
        self.last.store(int(&id), Ordering::Release);
    }

    /// Reads the last row, by its key or by a search.
    fn read(&self, by_key: bool) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        while !self.done.load(Ordering::Relaxed) {
            let mut seen = SeenCommits::default();
            let _entered = seen.enter();
            let turn = self.turn.lock();
            let newest = Value::Int(self.last.load(Ordering::Acquire));
            let row = match by_key {
                true => self.table.rows.get(0, &newest).unwrap(),
                false => self.table.rows.select(0, &everything()).unwrap().pop(),
            };
            drop(turn);
            // The answer of a flow that only reads waits for what it has seen.
            runtime.block_on(self.storage.settled(false)).unwrap();
            if let Some(Value::Record(row)) = row {
                self.acknowledged.lock().push(int(&row[1]));
            }
        }
    }
}

#[test]
fn what_was_acknowledged_survives_a_power_cut() {
    cut_power("power-cuts", |_| 0, (cuts(), |_, _| None));
}

/// The log grows beyond its least length during checkpoints, and beyond the length that it keeps while another program reads.
#[test]
fn large_rows_survive_a_power_cut_while_the_log_is_long() {
    for _ in 0..cuts().div_ceil(10 * CUTS_OF_LARGE) {
        let before: BeforeCut = |cut, database| (cut % 2 == 1).then(|| long_log(database));
        cut_power(
            "power-cuts-of-large-rows",
            |number| 3_000 + (number * 7_919 % 100_000) as usize,
            (CUTS_OF_LARGE, before),
        );
    }
}

/// Prepares a cut of the power. The connection stays open until the cut.
type BeforeCut = fn(u64, &Path) -> Option<Connection>;

/// Reads the database until its log is longer than it stays otherwise.
fn long_log(database: &Path) -> Connection {
    let reader = Connection::open(database).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema").unwrap();
    let log = database.with_extension("db-wal");
    while std::fs::metadata(&log).unwrap().len() <= u64::from(LOG_KEPT_MAX) {
        std::thread::yield_now();
    }
    reader
}

/// Cuts the power so often, while clients write rows with data of this length.
fn cut_power(name: &str, length: RowLength, (cuts, before): (u64, BeforeCut)) {
    let database = TestDatabase::sqlite(name);
    let files = DurableFiles::note(&database.file());
    let storage = database.storage();
    let table = storage.open(halves()).unwrap();
    let clients = Clients {
        storage: &storage,
        table: &table,
        length,
        turn: Mutex::new(()),
        last: AtomicI64::new(0),
        acknowledged: Mutex::default(),
        done: AtomicBool::new(false),
    };
    let clients = &clients;
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            scope.spawn(move || clients.write(client));
        }
        for by_key in [true, false] {
            scope.spawn(move || clients.read(by_key));
        }
        let _done = EndOfClients(&clients.done);
        let mut random = Random::new(7);
        for cut in 0..cuts {
            while clients.acknowledged.lock().len() < (cut as usize + 1) * 2 {
                std::thread::yield_now();
            }
            let _open = before(cut, &database.file());
            let before = clients.acknowledged.lock().clone();
            let left = files.lock();
            // All sectors of some cuts, none of others, and a half of most.
            let percent = [0, 50, 90, 100][random.below(4) as usize];
            // The program that was started before may still close its files.
            let copy = TestDatabase::sqlite(&format!("{name}-{cut}"));
            left.cut(&database.file(), &copy.file(), || random.below(100) < percent).unwrap();
            drop(left);
            check(&copy, (&before, length));
        }
    });
}

/// Starts a program with what a power cut has left.
fn check(copy: &TestDatabase, (acknowledged, length): (&[i64], RowLength)) {
    let storage = copy.storage();
    let table = storage.open(halves()).unwrap_or_else(|failure| panic!("a start fails: {failure}"));
    let mut stored = BTreeMap::<i64, (i64, i64)>::new();
    for row in table.rows.select(0, &everything()).unwrap() {
        let Value::Record(row) = row else { panic!("no row: {row}") };
        let (number, half) = (int(&row[1]), int(&row[2]));
        assert!(row[3] == Value::bytes(data(number, length(number))), "the data of {number}");
        let (sum, count) = stored.entry(number).or_default();
        (*sum, *count) = (*sum + half, *count + 1);
    }
    drop(table);
    weir::Closing::close(&storage).unwrap();
    let torn: Vec<_> = stored.iter().filter(|(_, found)| ![(3, 2), (WHOLE, 1)].contains(found)).collect();
    assert!(torn.is_empty(), "torn or doubled: {torn:?}");
    let lost: Vec<_> = acknowledged.iter().filter(|number| !stored.contains_key(number)).collect();
    assert!(lost.is_empty(), "acknowledged, and lost: {lost:?}");
}
