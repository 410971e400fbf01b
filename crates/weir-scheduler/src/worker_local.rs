//! What a thread has in its hands while it works: a batch, what came out of it, the ports that it has.

use crate::port_queue::Released;
use crate::work::Work;

/// How many items are worked on before a port is given back. Larger batches cost more cache than they save locking.
pub(crate) const BATCH: usize = 64;

/// What a thread works with.
pub(crate) struct WorkerLocal<W: Work> {
    pub(crate) pool: usize,
    pub(crate) batch: Vec<W::Item>,
    /// What has come out for the port `to`.
    pub(crate) output: Vec<W::Item>,
    pub(crate) output_port: Option<usize>,
    pub(crate) released: Released,
    /// The ports that it was handed or has claimed in this turn.
    pub(crate) held: Vec<usize>,
    /// By port: the last turn in which it was claimed.
    pub(crate) claims: Vec<u64>,
    pub(crate) batch_number: u64,
    /// The port that was handed to nobody, because this thread goes on with it.
    pub(crate) next_port: Option<usize>,
    /// The port that was carried to last.
    pub(crate) last_next_port: Option<usize>,
    /// The port that is full.
    pub(crate) blocked: Option<usize>,
    /// Where the turn began.
    pub(crate) start_port: usize,
    /// How many items make up a batch where it works alone: as many as hold up others for no longer than a moment.
    pub(crate) batch_limit: usize,
    /// Ports that are to be handed to their crews before this thread sleeps.
    pub(crate) deferred: Vec<usize>,
    /// How often an item was worked on since that was last told.
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
            batch_limit: 1,
            deferred: Vec::new(),
            runs: 0,
        }
    }
}
