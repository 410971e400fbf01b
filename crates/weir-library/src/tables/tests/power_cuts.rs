//! Power cuts: what was acknowledged or read is there afterwards, once, and no transaction is torn.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use parking_lot::Mutex;
use test_support::random::Random;
use weir::{SeenCommits, Value};

use super::{TestDatabase, column, declared, everything};
use crate::tables::open_table::OpenTable;
use crate::tables::schema::Schema;
use crate::tables::sqlite::durable_files::DurableFiles;
use crate::tables::storage::TableStorage;

/// Number of clients that write. Every second one writes each number in a transaction, the others in a statement.
const CLIENTS: i64 = 8;

/// The sum of both halves, stored in one row.
const WHOLE: i64 = 3;

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
            vec![column("id", "Int", false), column("number", "Int", false), column("half", "Int", false)],
        )
    }
}

fn int(value: &Value) -> i64 {
    let Value::Int(number) = value else { panic!("no `Int`: {value}") };
    *number
}

/// The clients of a table: those that write, and those that read what may not be durable yet.
struct Clients<'a> {
    storage: &'a TableStorage,
    table: &'a OpenTable,
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
        let row = [0, number, half].map(Value::Int);
        let id = self.table.rows.insert(transaction, Value::Record(row.into_iter().collect())).unwrap();
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
    let database = TestDatabase::sqlite("power-cuts");
    let files = DurableFiles::note(&database.file());
    let storage = database.storage();
    let table = storage.open(halves()).unwrap();
    let clients = Clients {
        storage: &storage,
        table: &table,
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
        let (copies, mut random) = (TestDatabase::sqlite("power-cut-copies"), Random::new(7));
        for cut in 0..cuts() {
            while clients.acknowledged.lock().len() < (cut as usize + 1) * 2 {
                std::thread::yield_now();
            }
            let before = clients.acknowledged.lock().clone();
            let left = files.lock();
            // All sectors of some cuts, none of others, and a half of most.
            let percent = [0, 50, 90, 100][random.below(4) as usize];
            left.cut(&database.file(), &copies.file(), || random.below(100) < percent).unwrap();
            drop(left);
            check(&copies, &before);
        }
    });
}

/// Opens what a power cut has left.
fn check(copies: &TestDatabase, acknowledged: &[i64]) {
    let connection = rusqlite::Connection::open(copies.file()).unwrap();
    let mut statement = connection.prepare("SELECT number, sum(half), count(*) FROM halves GROUP BY number").unwrap();
    let row = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, (row.get::<_, i64>(1)?, row.get::<_, i64>(2)?)));
    let stored: BTreeMap<i64, (i64, i64)> = statement.query_map([], row).unwrap().map(Result::unwrap).collect();
    let torn: Vec<_> = stored.iter().filter(|(_, found)| ![(3, 2), (WHOLE, 1)].contains(found)).collect();
    assert!(torn.is_empty(), "torn or doubled: {torn:?}");
    let lost: Vec<_> = acknowledged.iter().filter(|number| !stored.contains_key(number)).collect();
    assert!(lost.is_empty(), "acknowledged, and lost: {lost:?}");
}
