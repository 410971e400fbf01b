//! What a thread has in its hands while it works: a batch, what came out of it, the ports that it has.

use crate::inbox::Released;
use crate::work::Work;

/// How many items are worked on before a port is given back. Larger batches cost more cache than they save locking.
pub(crate) const BATCH: usize = 64;

/// What a thread works with.
pub(crate) struct Hands<W: Work> {
    pub(crate) crew: usize,
    pub(crate) batch: Vec<W::Item>,
    /// What has come out for the port `to`.
    pub(crate) out: Vec<W::Item>,
    pub(crate) to: Option<usize>,
    pub(crate) released: Released,
    /// The ports that it was handed or has claimed in this turn.
    pub(crate) held: Vec<usize>,
    /// By port: the last turn in which it was claimed.
    pub(crate) claims: Vec<u64>,
    pub(crate) turn: u64,
    /// The port that was handed to nobody, because this thread goes on with it.
    pub(crate) carried: Option<usize>,
    /// The port that was carried to last.
    pub(crate) carried_to: Option<usize>,
    /// The port that is full.
    pub(crate) blocked: Option<usize>,
    /// Where the turn began.
    pub(crate) first: usize,
    /// How many items make up a batch where it works alone: as many as hold up others for no longer than a moment.
    pub(crate) quota: usize,
    /// Ports that are to be handed to their crews before this thread sleeps.
    pub(crate) owed: Vec<usize>,
    /// How often an item was worked on since that was last told.
    pub(crate) visits: u64,
}

impl<W: Work> Hands<W> {
    pub(crate) fn new(crew: usize) -> Self {
        Hands {
            crew,
            batch: Vec::with_capacity(BATCH),
            out: Vec::with_capacity(BATCH),
            to: None,
            released: Released::default(),
            held: Vec::new(),
            claims: Vec::new(),
            turn: 0,
            carried: None,
            carried_to: None,
            blocked: None,
            first: 0,
            quota: 1,
            owed: Vec::new(),
            visits: 0,
        }
    }
}
