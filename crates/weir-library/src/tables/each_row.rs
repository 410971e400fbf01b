//! Reads of rows by keys whose failure is a value of each key, so that a request fails only if it comes to the key in its text.

use tokio::runtime::Handle;
use weir::macros::unique_in_place;
use weir::{AwaitedCall, Failure, HostType, Outcome, Value};

use std::sync::Arc;

use super::database_threads::elsewhere;
use super::later::awaited;
use super::rows::{TableRead, TableRows};
use super::{RowKey, Table};

/// The row of a key, if there is one, or the failure of reading it.
pub(super) type RowOfKey = Result<Option<Value>, Failure>;

/// Returns the row of each key, all as they are at one moment. If they cannot be read, returns those before the first key whose row
/// cannot be read alone, and its failure for this key and all behind it.
pub(super) fn rows_of_each(rows: &dyn TableRows, transaction: i64, keys: &[Value]) -> Vec<RowOfKey> {
    match rows.get_all(transaction, keys) {
        Ok(found) => found.into_iter().map(Ok).collect(),
        Err(_) => up_to_failure(keys, |keys| rows.get_all(transaction, keys)),
    }
}

/// Finds the first key whose row cannot be read, as in a sorted list. Begins with one row: if the database is gone, all fail.
fn up_to_failure(keys: &[Value], read: impl Fn(&[Value]) -> Result<Vec<Option<Value>>, Failure>) -> Vec<RowOfKey> {
    let mut found: Vec<RowOfKey> = Vec::with_capacity(keys.len());
    let mut next = 1;
    while found.len() < keys.len() {
        let begin = found.len();
        match read(&keys[begin..begin + next]) {
            Ok(rows) => {
                found.extend(rows.into_iter().map(Ok));
                next = (keys.len() - found.len()).div_ceil(2);
            }
            Err(failure) if next == 1 => found.resize(keys.len(), Err(failure)),
            Err(_) => next /= 2,
        }
    }
    found
}

/// Begins `get_each` without a thread, or on one of the database.
pub(super) fn get_each_later(table: &Value, transaction: &Value, keys: &Value) -> Option<AwaitedCall> {
    let (Value::Int(0), table) = (transaction, Arc::clone(&unique_in_place::<Table>(table)?.0)) else { return None };
    let (true, handle) = (table.rows.is_shared(), Handle::try_current().ok()?) else { return None };
    let keys = Vec::<RowKey>::from_value(keys.clone()).ok()?;
    let keys: Vec<Value> = keys.into_iter().map(|key| key.0).collect();
    let begun = table.rows.read_later(&TableRead::Rows(keys.clone()), None);
    let thread = if begun.is_none() { Some(table.rows.thread()?) } else { None };
    Some(awaited(async move {
        if let Some(begun) = begun
            && let Ok(Value::List(rows)) = begun.answer.await
        {
            return Outcome::Value(Value::list(rows.into_iter().map(Value::ok).collect()));
        }
        let thread = thread.or_else(|| table.rows.thread());
        let read = move || Ok(rows_of_each(&*table.rows, 0, &keys));
        let read = match thread {
            Some(thread) => thread.read(read).await,
            None => elsewhere(&handle, read).await,
        };
        match read {
            Ok(rows) => Outcome::Value(Value::list(rows.into_iter().map(of_key).collect())),
            Err(failure) => Outcome::Fault(Box::new(failure)),
        }
    }))
}

fn of_key(row: RowOfKey) -> Value {
    match row {
        Ok(row) => Value::ok(row.map_or_else(Value::none, Value::some)),
        Err(failure) => Value::err(Value::Failure(Box::new(failure))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the numbers that are read of those up to this one, of which these cannot be read, and the number of statements.
    fn read(count: i64, unreadable: &[i64]) -> (Vec<Option<i64>>, usize) {
        let keys: Vec<Value> = (0..count).map(Value::Int).collect();
        let statements = std::cell::Cell::new(0);
        let found = up_to_failure(&keys, |keys| {
            statements.set(statements.get() + 1);
            match keys.iter().any(|key| unreadable.iter().any(|one| *key == Value::Int(*one))) {
                true => Err(Failure::function("unreadable")),
                false => Ok(keys.iter().cloned().map(Some).collect()),
            }
        });
        let number = |row: &RowOfKey| match row {
            Ok(Some(Value::Int(number))) => Some(*number),
            _ => None,
        };
        (found.iter().map(number).collect(), statements.get())
    }

    #[test]
    fn rows_are_read_up_to_the_first_one_that_cannot_be() {
        for count in 1..20 {
            for first in 0..count {
                let expected: Vec<_> = (0..count).map(|number| (number < first).then_some(number)).collect();
                assert_eq!(read(count, &[first]).0, expected);
                assert_eq!(read(count, &[first, count - 1]).0, expected);
            }
            assert!(read(count, &[]).0.iter().all(Option::is_some), "what fails once may be readable then");
        }
    }

    #[test]
    fn a_database_that_is_gone_is_asked_once_more() {
        let all: Vec<i64> = (0..1_000).collect();
        assert_eq!(read(1_000, &all).1, 1);
        assert!(read(1_000, &[999]).1 < 25);
    }
}
