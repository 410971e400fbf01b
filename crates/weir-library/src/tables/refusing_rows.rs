//! A store of rows that refuses transactions at random, as a database does in which other programs write: for tests.

use parking_lot::Mutex;
use std::sync::Arc;

use weir::{Failure, FailureKind, Value};

use super::group_commit::GroupCommit;
use super::grouping::TableGrouping;
use super::join::KeyPart;
use super::rows::{ReadSize, TableRows, TogetherStatements};
use super::schema::{Schema, TableSearch};
use super::table_read::{TableRead, TableSnapshot};
use super::transaction_number::is_repeated;

/// One statement of so many is refused, and one commit.
const REFUSED_ONE_OF: u64 = 5;

/// The refusals of the tables of a program.
#[derive(Debug)]
pub(super) struct Refusals {
    seed: u64,
    /// The state of the generator of random numbers.
    state: Mutex<u64>,
}

/// A table, of which statements are refused.
#[derive(Debug)]
pub(super) struct RefusingRows {
    pub(super) rows: Box<dyn TableRows>,
    pub(super) refusals: Arc<Refusals>,
}

impl Refusals {
    pub(super) fn new(seed: u64) -> Refusals {
        Refusals { seed, state: Mutex::new(seed | 1) }
    }

    /// Draws whether the next statement is refused (xorshift; Marsaglia 2003).
    fn draw(&self) -> bool {
        let mut state = self.state.lock();
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        state.is_multiple_of(REFUSED_ONE_OF)
    }

    /// Returns whether the commit of a transaction is refused, which depends on its number alone: all of its tables agree.
    fn refuses_commit(&self, transaction: i64) -> bool {
        is_repeated(transaction) && mixed(self.seed ^ transaction.cast_unsigned()).is_multiple_of(REFUSED_ONE_OF)
    }
}

impl RefusingRows {
    /// Fails if a statement of a transaction is refused, and takes the transaction back.
    fn check(&self, transaction: i64) -> Result<(), Failure> {
        if is_repeated(transaction) && self.refusals.draw() { self.refuse(transaction) } else { Ok(()) }
    }

    /// Takes the transaction back, and fails.
    fn refuse(&self, transaction: i64) -> Result<(), Failure> {
        self.rows.roll_back(transaction);
        Err(Failure::new(FailureKind::Conflict, "refused at random").refusal())
    }
}

/// Returns a number that all bits of the given one decide (splitmix; Steele, Lea, Flood 2014).
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

impl TableRows for RefusingRows {
    fn get(&self, transaction: i64, key: &Value) -> Result<Option<Value>, Failure> {
        self.check(transaction)?;
        self.rows.get(transaction, key)
    }

    fn get_all(&self, transaction: i64, keys: &[Value]) -> Result<Vec<Option<Value>>, Failure> {
        self.check(transaction)?;
        self.rows.get_all(transaction, keys)
    }

    fn select(&self, transaction: i64, search: &TableSearch) -> Result<Vec<Value>, Failure> {
        self.check(transaction)?;
        self.rows.select(transaction, search)
    }

    fn rows_with(
        &self,
        transaction: i64,
        columns: &[usize],
        parts: &[Vec<Value>],
    ) -> Option<Result<Vec<Value>, Failure>> {
        self.rows.rows_with(transaction, columns, parts)
    }

    fn column(&self, transaction: i64, search: &TableSearch, column: usize) -> Result<Vec<Value>, Failure> {
        self.check(transaction)?;
        self.rows.column(transaction, search, column)
    }

    fn select_joined(
        &self,
        transaction: i64,
        search: &TableSearch,
        joined: &[(&Schema, &[KeyPart<'_>])],
    ) -> Result<Vec<Vec<Value>>, Failure> {
        self.check(transaction)?;
        self.rows.select_joined(transaction, search, joined)
    }

    fn count(&self, transaction: i64, search: &TableSearch) -> Result<i64, Failure> {
        self.check(transaction)?;
        self.rows.count(transaction, search)
    }

    fn sum(&self, transaction: i64, search: &TableSearch, column: usize) -> Result<i128, Failure> {
        self.check(transaction)?;
        self.rows.sum(transaction, search, column)
    }

    fn group(&self, transaction: i64, search: &TableSearch, grouping: &TableGrouping) -> Result<Vec<Value>, Failure> {
        self.check(transaction)?;
        self.rows.group(transaction, search, grouping)
    }

    fn insert(&self, transaction: i64, row: Value) -> Result<Value, Failure> {
        self.check(transaction)?;
        self.rows.insert(transaction, row)
    }

    fn upsert(&self, transaction: i64, row: Value) -> Result<Value, Failure> {
        self.check(transaction)?;
        self.rows.upsert(transaction, row)
    }

    fn replace(&self, transaction: i64, key: &Value, row: Value) -> Result<Value, Failure> {
        self.check(transaction)?;
        self.rows.replace(transaction, key, row)
    }

    fn replace_rows(&self, transaction: i64, old: &[Value], new: Vec<Value>) -> Result<i64, Failure> {
        self.check(transaction)?;
        self.rows.replace_rows(transaction, old, new)
    }

    fn delete(&self, transaction: i64, key: &Value) -> Result<bool, Failure> {
        self.check(transaction)?;
        self.rows.delete(transaction, key)
    }

    fn delete_all(&self, transaction: i64, search: &TableSearch) -> Result<i64, Failure> {
        self.check(transaction)?;
        self.rows.delete_all(transaction, search)
    }

    fn delete_rows(&self, transaction: i64, rows: &[Value]) -> Result<i64, Failure> {
        self.check(transaction)?;
        self.rows.delete_rows(transaction, rows)
    }

    fn together(&self, transaction: i64, statements: TogetherStatements<'_>) -> Result<(), Failure> {
        self.rows.together(transaction, statements)
    }

    fn commit(&self, transaction: i64, last: bool) -> Result<(), Failure> {
        // The last stored table refuses the commit of them all. In memory each one before it would have committed by then, so it
        // leaves its part open, which the next statement or commit takes back.
        match (self.refusals.refuses_commit(transaction), last) {
            (true, true) => self.refuse(transaction),
            (true, false) => Ok(()),
            (false, _) => self.rows.commit(transaction, last),
        }
    }

    fn roll_back(&self, transaction: i64) {
        self.rows.roll_back(transaction);
    }

    fn is_stored(&self) -> bool {
        self.rows.is_stored()
    }

    fn takes_long(&self, read: ReadSize<'_>) -> bool {
        self.rows.takes_long(read)
    }

    fn waits_to_write(&self) -> bool {
        self.rows.waits_to_write()
    }

    fn waits_to_begin(&self, transaction: i64) -> bool {
        self.rows.waits_to_begin(transaction)
    }

    fn snapshot(&self, read: &TableRead) -> Option<Box<dyn TableSnapshot>> {
        self.rows.snapshot(read)
    }

    fn commits(&self) -> Option<&Arc<GroupCommit>> {
        self.rows.commits()
    }

    fn show(&self, commit: u64) {
        self.rows.show(commit);
    }

    fn saw_all(&self) {
        self.rows.saw_all();
    }
}
