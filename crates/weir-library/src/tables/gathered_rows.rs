//! Reads of rows by keys whose calls are gathered, such as those of the rounds of a `for`: one statement answers a batch of them.
//!
//! The statement begins when the batch is sent: under the lock of the table, unless that has snapshots. In the process it is
//! executed there; otherwise it goes on without its thread and the lock, as other reads do (`later.rs`).

use std::sync::Arc;

use tokio::runtime::Handle;
use weir::macros::{FunctionBuilder, PendingBatch, batch, common_argument};
use weir::{Batch, BatchAnswers, Effects, Failure, Function, Outcome, Value, World};

use super::database_threads::elsewhere;
use super::open_table::OpenTable;
use super::rows::{ReadSize, TableRead};
use super::{Row, RowKey, Table};
use crate::Limited;

/// Maximum number of rows that one statement reads. Chosen by judgement: the answer of a database is some hundred kilobytes.
const ROWS_MAX: usize = 1_000;

/// The index of the key among the parameters.
const KEY: usize = 2;

/// Returns the function `row(table, transaction, key)`, which is `get` but for the gathering. It is called outside of transactions.
pub(super) fn __weir_function_row() -> Function {
    let effects = Effects {
        world: World::Reads,
        idempotent: true,
        waits: true,
        may_end: true,
        sees_snapshot: true,
        ..Effects::default()
    };
    let doc = "Returns the row with the key. Calls are gathered.";
    FunctionBuilder::new("row", doc, effects)
        .internal()
        .borrows::<Table>("table", None)
        .takes::<i64>("transaction", None)
        .takes::<RowKey>("key", None)
        .returns::<Limited<Option<Row>>>()
        .build_batched(Batch::new(ROWS_MAX, None, KEY), batch(|keys, common, _| begin(keys, common)))
}

/// A table that a batch reads.
#[derive(weir::Type, Clone)]
#[weir(opaque, name = "tables.Handle")]
pub(super) struct TableHandle(Arc<OpenTable>);

impl TableHandle {
    /// Returns the handle of a table.
    pub(super) fn of(table: &Table) -> Value {
        Value::Host(Arc::new(TableHandle(Arc::clone(&table.0))))
    }
}

fn begin(keys: Vec<Value>, common: &[Value]) -> Result<PendingBatch, Box<Failure>> {
    let TableHandle(table) = common_argument(common, 0, "table")?;
    Ok(Box::pin(async move {
        let count = keys.len();
        match rows_of(&table, keys).await {
            Ok(rows) => BatchAnswers { answers: rows, failed_as_a_whole: false },
            Err(failure) => {
                let answers = vec![Outcome::Fault(Box::new(failure)); count];
                BatchAnswers { answers, failed_as_a_whole: true }
            }
        }
    }))
}

/// Returns the row of each key, all as they are at one moment. The first poll begins the statement, and executes it if it is one in the
/// process that is short or needs the lock of the table.
async fn rows_of(table: &Arc<OpenTable>, keys: Vec<Value>) -> Result<Vec<Outcome>, Failure> {
    let rows = &table.rows;
    let is_long = rows.is_shared() || rows.takes_long(ReadSize::Rows(keys.len()));
    let waits = !is_long && rows.waits_to_see(&|| Some(TableRead::Rows(keys.clone())));
    let (Ok(handle), true) = (Handle::try_current(), is_long || waits) else { return found(rows.get_all(0, &keys)?) };
    let read = TableRead::Rows(keys);
    if let Some(sent) = rows.read_later(&read, None) {
        return listed(sent.answer.await?);
    }
    if let Some(snapshot) = rows.snapshot(&read) {
        return listed(elsewhere(&handle, move || snapshot.read(&read)).await?);
    }
    let TableRead::Rows(keys) = read else { return Ok(Vec::new()) };
    if rows.snapshots().is_none() {
        return found(rows.get_all(0, &keys)?);
    }
    let (thread, table) = (rows.thread(), Arc::clone(table));
    let read = move || table.rows.get_all(0, &keys);
    match thread {
        Some(thread) => found(thread.read(read).await?),
        None => found(elsewhere(&handle, read).await?),
    }
}

fn found(rows: Vec<Option<Value>>) -> Result<Vec<Outcome>, Failure> {
    Ok(rows.into_iter().map(|row| row.map_or(Outcome::None, Outcome::Some)).collect())
}

/// Returns the rows of a list of `Option`s.
fn listed(rows: Value) -> Result<Vec<Outcome>, Failure> {
    let Value::List(rows) = rows else { return Ok(Vec::new()) };
    Ok(rows.into_iter().map(Outcome::Value).collect())
}
