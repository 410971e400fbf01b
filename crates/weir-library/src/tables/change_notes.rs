//! The notes of changes whose answers come later: what they have written, for those who keep something that depends on the table, and for reads
//! until it is durable.

use std::sync::Arc;

use weir::Value;

use super::group_commit::GroupCommit;
use super::recent_writes::{OpenWrites, PlacedWrites, RecentWrites, RowWrite};
use super::rows::RowChange;
use super::schema::Schema;
use super::write_sets::{TableWrite, WriteSets};

/// Notes the changes of a table.
pub(super) struct ChangeNotes {
    pub(super) schema: Arc<Schema>,
    pub(super) commits: Option<Arc<GroupCommit>>,
    pub(super) write_sets: Arc<WriteSets>,
    pub(super) recent: Arc<RecentWrites>,
    pub(super) open_writes: Arc<OpenWrites>,
}

impl ChangeNotes {
    /// Notes a change in a transaction, or that was committed, if the number is 0; with its answer.
    pub(super) fn changed(&self, transaction: i64, change: &RowChange, answer: &Value) {
        let key = match change {
            RowChange::Insert(_) | RowChange::Upsert(_) => answer,
            RowChange::Replace(key, _) => key,
            RowChange::Delete(_) if *answer != Value::Bool(true) => return,
            RowChange::Delete(key) => key,
        };
        if let Some(commits) = &self.commits {
            let write = match change {
                RowChange::Insert(row) => RowWrite::of_value(key, &inserted(&self.schema, row, key)),
                _ => RowWrite::of_key(key),
            };
            self.recent.wrote(commits, &self.open_writes, transaction, write);
        }
        self.write_sets.wrote(transaction, || match change {
            RowChange::Replace(..) => vec![TableWrite::of_replaced(&self.schema, key)],
            _ => vec![TableWrite::of_row(&self.schema, key)],
        });
    }

    /// Notes the end of a transaction, of which these writes were in flight if its database is another process.
    pub(super) fn ended(&self, transaction: i64, writes: Option<PlacedWrites>, is_committed: bool) {
        if !is_committed {
            self.write_sets.rolled_back(transaction);
            self.open_writes.rolled_back(transaction);
            return;
        }
        if let Some(commits) = &self.commits {
            match writes {
                Some(writes) => writes.committed(commits),
                None => self.open_writes.committed(commits, transaction),
            }
        }
        self.write_sets.committed(transaction);
    }
}

/// Returns a row as it was inserted with the key.
pub(super) fn inserted(schema: &Schema, row: &Value, key: &Value) -> Value {
    match key {
        Value::Int(number) if schema.auto => schema.numbered(row, *number),
        _ => row.clone(),
    }
}
