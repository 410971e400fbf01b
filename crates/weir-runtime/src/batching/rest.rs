//! Flows that have joined a batch and still run: the batch waits for them, because they may have more calls for it.
//!
//! A thread runs one flow at a time. It notes the batches that this flow joins, and reports to them when the flow comes to
//! rest: when it waits, yields or ends, and before it blocks its thread.

use std::cell::RefCell;
use std::sync::Arc;

use super::batch::GatheredBatch;

thread_local! {
    /// The batches that wait for the flow of this thread.
    static JOINED: RefCell<Vec<Arc<GatheredBatch>>> = const { RefCell::new(Vec::new()) };
}

/// Notes that the flow of this thread has joined a batch.
pub(super) fn joined(batch: &Arc<GatheredBatch>) {
    JOINED.with_borrow_mut(|joined| {
        if !joined.iter().any(|known| Arc::ptr_eq(known, batch)) && batch.begin_run() {
            joined.push(Arc::clone(batch));
        }
    });
}

/// Reports that the flow of this thread has come to rest.
pub(crate) fn at_rest() {
    let joined = JOINED.take();
    joined.iter().for_each(|batch| batch.end_run());
}
