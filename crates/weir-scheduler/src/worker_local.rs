//! Worker-local state: the current batch, its output, and the ports that the worker holds.

use crate::port_queue::Released;
use crate::work::Work;

/// The maximum number of items that are executed before a port is released. Chosen by measurement: a batch of 64 tuples
/// of 64 bytes is 4 KiB, and larger batches lost more to cache misses than they saved in locking.
pub(crate) const BATCH: usize = 64;

/// The state of one worker, or of a caller that executes items inline.
pub(crate) struct WorkerLocal<W: Work> {
    /// The pool that it works for.
    pub(crate) pool: usize,
    /// The items taken from the start port, not yet run.
    pub(crate) batch: Vec<W::Item>,
    /// The items that have to be queued at `output_port`.
    pub(crate) output: Vec<W::Item>,
    pub(crate) output_port: Option<usize>,
    /// The ports and sources that may continue because items were taken.
    pub(crate) released: Released,
    /// The ports that this worker was given or has claimed for this batch.
    pub(crate) held: Vec<usize>,
    /// For each port, the last batch for which it was claimed.
    pub(crate) claims: Vec<u64>,
    /// The number of the current batch.
    pub(crate) batch_number: u64,
    /// A scheduled port that is not in the ready queue, because this worker runs it next.
    pub(crate) next_port: Option<usize>,
    /// The port that the last batch returned as the next one.
    pub(crate) last_next_port: Option<usize>,
    /// The port whose queue was found full.
    pub(crate) blocked: Option<usize>,
    /// The port that the current batch was taken from.
    pub(crate) start_port: usize,
    /// The number of items of the last batch that have run.
    pub(crate) ran: usize,
    /// The ports to be scheduled before this worker sleeps.
    pub(crate) deferred: Vec<usize>,
    /// Executions that are not yet in the pool's item count.
    pub(crate) runs: u64,
}

impl<W: Work> WorkerLocal<W> {
    pub(crate) fn new(pool: usize) -> Self {
        WorkerLocal {
            pool,
            batch: Vec::with_capacity(BATCH),
            output: Vec::with_capacity(BATCH),
            output_port: None,
            released: Released::default(),
            held: Vec::new(),
            claims: Vec::new(),
            batch_number: 0,
            next_port: None,
            last_next_port: None,
            blocked: None,
            start_port: 0,
            ran: 0,
            deferred: Vec::new(),
            runs: 0,
        }
    }
}
