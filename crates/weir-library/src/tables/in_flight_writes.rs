//! The writes of a table that another process may have committed, and whose answers are not there yet.
//!
//! A read takes no lock of its table, and a statement needs those locks only until it is ordered. So a read may see
//! a write whose commit has no number yet. It waits for the answer of such a write, which notes the commit, and then looks on which
//! commit it depends (`recent_writes`). If that takes long, its flow waits for all that was committed by then. Mostly it need not wait: an insertion whose row a search does not accept changes nothing of
//! its answer. The answer of a write may wait for the disk.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use weir::Value;

use super::row::fields;
use super::schema::TableSearch;
use super::table_read::TableRead;

/// Time for which a read waits for the answers of writes that it may have seen. Mostly they come sooner, with the numbers of their commits. A
/// write that takes longer, such as one that waits for a lock of another program, holds up no read: the flow then waits for a sync that
/// begins behind the read. For such a write no later read waits. Chosen by judgement: such a write takes less than 1 ms, and a sync several.
pub(super) const ANSWER_PATIENCE: Duration = Duration::from_millis(5);

/// The writes of a table that are in flight.
#[derive(Debug, Default)]
pub(super) struct InFlightWrites {
    /// The number of writes, so that a read beside none does not lock them.
    count: AtomicUsize,
    writes: Mutex<WritesInOrder>,
    /// Changes when a write ends, and when a read has waited in vain.
    ended: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct WritesInOrder {
    /// The number of the next write.
    next: u64,
    /// The number of the first write for which no read has waited in vain.
    overdue_to: u64,
    /// The rows, by the numbers of the writes.
    keys: BTreeMap<u64, WrittenRow>,
    /// The last key that the table has given to a row of a write that was in flight. Later ones are greater.
    last_given: i64,
}

/// The row of a write.
#[derive(Debug)]
pub(super) enum WrittenRow {
    /// The row with this key.
    Key(Value),
    /// A row that is inserted with this key.
    Inserted(Value, Value),
    /// A row that is inserted, and to whose column the table gives its key.
    Numbered(Value, usize),
    /// Any rows.
    Any,
}

/// A write that is in flight until this value is dropped.
#[derive(Debug)]
pub(super) struct InFlightWrite {
    number: u64,
    writes: Arc<InFlightWrites>,
}

/// The writes of a table that were in flight when a read had ended.
pub(super) struct AwaitedWrites {
    writes: Arc<InFlightWrites>,
    /// The number of the write behind the last one.
    until: u64,
}

impl InFlightWrites {
    /// Notes a write.
    pub(super) fn begin(self: &Arc<Self>, row: WrittenRow) -> InFlightWrite {
        let mut writes = self.writes.lock();
        let number = writes.next;
        writes.next += 1;
        writes.keys.insert(number, row);
        self.count.fetch_add(1, Ordering::SeqCst);
        InFlightWrite { number, writes: Arc::clone(self) }
    }

    /// Returns whether writes are in flight.
    pub(super) fn are_any(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0
    }

    /// Returns whether writes are in flight that a read may have seen.
    pub(super) fn may_be_seen(&self, read: &TableRead) -> bool {
        if !self.are_any() {
            return false;
        }
        let writes = self.writes.lock();
        writes.may_be_seen(Some(read), writes.next)
    }

    /// Returns the writes that are in flight now, for a read that has ended; `None` if there are none.
    pub(super) fn awaited(self: &Arc<Self>) -> Option<AwaitedWrites> {
        self.are_any().then(|| AwaitedWrites { until: self.writes.lock().next, writes: Arc::clone(self) })
    }
}

impl AwaitedWrites {
    /// Waits for those that a read may have seen; `None` stands for a read of any rows. Returns whether they are answered: false at once if
    /// another read has waited in vain for one of them.
    pub(super) async fn answered(&self, read: Option<&TableRead>) -> bool {
        let mut ended = self.writes.ended.subscribe();
        loop {
            {
                let writes = self.writes.writes.lock();
                if !writes.may_be_seen(read, self.until) {
                    return true;
                }
                if writes.may_be_seen(read, self.until.min(writes.overdue_to)) {
                    return false;
                }
            }
            if ended.changed().await.is_err() {
                return true;
            }
        }
    }

    /// Notes that a read has waited for them in vain.
    pub(super) fn waited_in_vain(&self) {
        let mut writes = self.writes.writes.lock();
        writes.overdue_to = writes.overdue_to.max(self.until);
        drop(writes);
        self.writes.ended.send_replace(());
    }
}

impl WritesInOrder {
    /// Returns whether a read may have seen a write before this one.
    fn may_be_seen(&self, read: Option<&TableRead>, until: u64) -> bool {
        let mut keys = self.keys.range(..until).map(|(_, key)| key);
        match read {
            Some(TableRead::Row(row)) => keys.any(|key| self.is_of_row(key, row)),
            Some(TableRead::Rows(rows)) => keys.any(|key| rows.iter().any(|row| self.is_of_row(key, row))),
            Some(TableRead::Search(search) | TableRead::Count(search)) => keys.any(|key| key.may_be_found(search)),
            None => keys.next().is_some(),
        }
    }

    /// Returns whether a write may be one of the row with this key.
    fn is_of_row(&self, written: &WrittenRow, row: &Value) -> bool {
        match (written, row) {
            (WrittenRow::Key(written) | WrittenRow::Inserted(written, _), row) => written == row,
            (WrittenRow::Numbered(..), Value::Int(row)) => *row > self.last_given,
            (WrittenRow::Numbered(..) | WrittenRow::Any, _) => true,
        }
    }
}

impl WrittenRow {
    /// Returns whether the answer to a search may depend on the write.
    fn may_be_found(&self, search: &TableSearch) -> bool {
        match self {
            WrittenRow::Inserted(_, row) => search.accepts(fields(row)),
            WrittenRow::Numbered(row, key) => search.may_accept(fields(row), *key),
            WrittenRow::Key(_) | WrittenRow::Any => true,
        }
    }
}

impl InFlightWrite {
    /// Notes the key that the table has given to the row. Writes are answered in their order.
    pub(super) fn given(&self, key: &Value) {
        if let Value::Int(key) = key {
            let mut writes = self.writes.writes.lock();
            writes.last_given = writes.last_given.max(*key);
        }
    }
}

impl Drop for InFlightWrite {
    fn drop(&mut self) {
        self.writes.writes.lock().keys.remove(&self.number);
        self.writes.count.fetch_sub(1, Ordering::SeqCst);
        self.writes.ended.send_replace(());
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::tables::query::{TableCondition, TableQuery};

    fn waits(writes: &InFlightWrites, read: &TableRead) -> bool {
        let until = writes.writes.lock().next;
        writes.writes.lock().may_be_seen(Some(read), until)
    }

    #[test]
    fn a_read_waits_for_the_writes_that_it_may_have_seen() {
        let writes = Arc::new(InFlightWrites::default());
        let row = |key| TableRead::Row(Value::Int(key));
        let first = writes.begin(WrittenRow::Key(Value::Int(3)));
        assert!(waits(&writes, &row(3)) && !waits(&writes, &row(4)));
        assert!(waits(&writes, &TableRead::Rows(vec![Value::Int(4), Value::Int(3)])));
        let new = || WrittenRow::Numbered(Value::Record([Value::Int(0)].into()), 0);
        let (numbered, next) = (writes.begin(new()), writes.begin(new()));
        assert!(waits(&writes, &row(4)), "the table may give this key");
        numbered.given(&Value::Int(7));
        drop((first, numbered));
        assert!(!waits(&writes, &row(3)) && !waits(&writes, &row(7)) && waits(&writes, &row(8)));
        drop(next);
        assert!(!waits(&writes, &row(8)));
        let any = writes.begin(WrittenRow::Any);
        assert!(waits(&writes, &row(3)));
        drop(any);
        assert_eq!(writes.count.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn a_read_waits_for_no_write_for_which_another_has_waited_in_vain() {
        let writes = Arc::new(InFlightWrites::default());
        let (begin, read) = (|| writes.begin(WrittenRow::Key(Value::Int(3))), TableRead::Row(Value::Int(3)));
        let answered = |awaited: &AwaitedWrites| match pin!(awaited.answered(Some(&read)))
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(are_answered) => Some(are_answered),
            Poll::Pending => None,
        };
        let (held, first) = (begin(), writes.awaited().unwrap());
        assert_eq!(answered(&first), None);
        let (later, both) = (begin(), writes.awaited().unwrap());
        first.waited_in_vain();
        assert_eq!((answered(&first), answered(&both)), (Some(false), Some(false)));
        // The answer of another write tells nothing about the one that is held up.
        drop(later);
        assert_eq!(answered(&both), Some(false));
        drop(held);
        assert_eq!(answered(&both), Some(true));
        let _next = begin();
        assert_eq!(answered(&writes.awaited().unwrap()), None, "nobody has waited for it in vain");
    }

    #[test]
    fn a_search_waits_only_for_the_insertions_that_it_may_find() {
        let writes = Arc::new(InFlightWrites::default());
        let of = |key, board| Value::Record([Value::Int(key), Value::Int(board)].into());
        let search = |column, value| {
            let conditions = vec![TableCondition { column, comparison: "==".to_owned() }];
            let arguments = Value::Record([Value::Int(9), Value::Unit, Value::Int(value)].into());
            let search = TableSearch::new(TableQuery { conditions, order: Vec::new() }, arguments);
            TableRead::Search(Arc::new(search))
        };
        let numbered = writes.begin(WrittenRow::Numbered(of(0, 5), 0));
        assert!(waits(&writes, &search(1, 5)) && !waits(&writes, &search(1, 6)));
        assert!(waits(&writes, &search(0, 7)), "nobody knows the key");
        drop(numbered);
        let inserted = writes.begin(WrittenRow::Inserted(Value::Int(3), of(3, 5)));
        assert!(waits(&writes, &search(0, 3)) && !waits(&writes, &search(0, 7)));
        drop(inserted);
        let replaced = writes.begin(WrittenRow::Key(Value::Int(3)));
        assert!(waits(&writes, &search(1, 6)), "nobody knows its values");
        drop(replaced);
    }
}
