//! Power cuts: what was acknowledged or read is there afterwards, once, and no transaction is torn.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use parking_lot::Mutex;
use test_support::random::Random;
use weir::{SeenCommits, Value};

use super::{TestDatabase, column, declared, everything};
use crate::tables::durable_files::DurableFiles;
use crate::tables::schema::Schema;

/// Number of clients that write.
const CLIENTS: i64 = 4;

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

#[test]
fn what_was_acknowledged_survives_a_power_cut() {
    let database = TestDatabase::sqlite("power-cuts");
    let files = DurableFiles::note(&database.file());
    let storage = database.storage();
    let table = storage.open(halves()).unwrap();
    let (acknowledged, done, turn) = (Mutex::new(Vec::new()), AtomicBool::new(false), Mutex::new(()));
    let last = AtomicI64::new(0);
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (storage, table) = (&storage, &table);
            let (acknowledged, done, turn, last) = (&acknowledged, &done, &turn, &last);
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                for number in (client..).step_by(CLIENTS as usize).take_while(|_| !done.load(Ordering::Relaxed)) {
                    let transaction = storage.next_transaction();
                    // As the lock of the step that holds the table.
                    let turn = turn.lock();
                    let mut id = 0;
                    for half in [1, 2] {
                        let row = [0, number, half].map(Value::Int);
                        let inserted =
                            table.rows.insert(transaction, Value::Record(row.into_iter().collect())).unwrap();
                        id = int(&inserted);
                    }
                    table.rows.commit(transaction, true).unwrap();
                    last.store(id, Ordering::Release);
                    drop(turn);
                    runtime.block_on(storage.settled(true)).unwrap();
                    acknowledged.lock().push(number);
                }
            });
        }
        for by_key in [true, false] {
            let (storage, table) = (&storage, &table);
            let (acknowledged, done, turn, last) = (&acknowledged, &done, &turn, &last);
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                while !done.load(Ordering::Relaxed) {
                    let mut seen = SeenCommits::default();
                    let _entered = seen.enter();
                    let newest = Value::Int(last.load(Ordering::Acquire));
                    let locked = turn.lock();
                    let row = match by_key {
                        true => table.rows.get(0, &newest).unwrap(),
                        false => table.rows.select(0, &everything()).unwrap().pop(),
                    };
                    drop(locked);
                    // The answer of a flow that only reads waits for what it has seen.
                    runtime.block_on(storage.settled(false)).unwrap();
                    if let Some(Value::Record(row)) = row {
                        acknowledged.lock().push(int(&row[1]));
                    }
                }
            });
        }
        let _done = EndOfClients(&done);
        let (copies, mut random) = (TestDatabase::sqlite("power-cut-copies"), Random::new(7));
        for cut in 0..cuts() {
            while acknowledged.lock().len() < (cut as usize + 1) * 2 {
                std::thread::yield_now();
            }
            let before = acknowledged.lock().clone();
            let left = files.lock().clone();
            // All sectors of some cuts, none of others, and a half of most.
            let percent = [0, 50, 90, 100][random.below(4) as usize];
            left.cut(&database.file(), &copies.file(), || random.below(100) < percent).unwrap();
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
    let torn: Vec<_> = stored.iter().filter(|(_, found)| **found != (3, 2)).collect();
    assert!(torn.is_empty(), "torn or doubled: {torn:?}");
    let lost: Vec<_> = acknowledged.iter().filter(|number| !stored.contains_key(number)).collect();
    assert!(lost.is_empty(), "acknowledged, and lost: {lost:?}");
}
