//! The state of the model: processes, channels with their queues, and the results so far.

use std::collections::BTreeMap;

use crate::program::{Action, Branch};

/// The results of a run: by step, and by action.
pub(crate) type Results = BTreeMap<u32, u32>;

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct State {
    pub(crate) processes: Vec<Process>,
    pub(crate) channels: Vec<Channel>,
    pub(crate) results: Results,
    /// See [`Receipt`]: by channel, the same in all states.
    pub(crate) stale_max: Vec<usize>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Process {
    /// The steps of a process of the program, or of an action that posts.
    pub(crate) source: Source,
    pub(crate) step: usize,
    /// The branches of the current step that were tried in vain, and those that are registered.
    pub(crate) tried: u32,
    pub(crate) registered: u32,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    Program(usize),
    Post(Branch),
}

#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Channel {
    pub(crate) capacity: usize,
    pub(crate) closed: bool,
    pub(crate) buffer: Vec<Queued>,
    pub(crate) senders: Vec<Sender>,
    pub(crate) receivers: Vec<Receiver>,
    /// Offers that wait for their receipt beside a buffer.
    pub(crate) receipts: Vec<Receipt>,
    /// Values received from the buffer while such an offer waited.
    pub(crate) received: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Queued {
    pub(crate) value: u32,
    pub(crate) action: Option<Action>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sender {
    Offer(Offer, u32),
    Buffered(Queued),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Receiver {
    Offer(Offer),
    Buffered(Option<Action>),
}

/// A branch of a waiting process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Offer {
    pub(crate) process: usize,
    pub(crate) branch: usize,
    pub(crate) action: Option<Action>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Receipt {
    pub(crate) offer: Offer,
    pub(crate) value: u32,
    /// The number of values after which it may be received; after `certain` values it must be: the queue of senders may
    /// have held some that no longer waited when it came.
    pub(crate) possible: usize,
    pub(crate) certain: usize,
}

/// The side that starts a communication: a branch of a process, or an asynchronous event for which no process waits.
#[derive(Clone, Copy)]
pub(crate) enum Initiator {
    Process(Offer),
    Nobody(Option<Action>),
}

impl Process {
    pub(crate) fn new(source: Source) -> Self {
        Process { source, step: 0, tried: 0, registered: 0 }
    }
}

impl Sender {
    pub(crate) fn is_of(&self, initiator: Initiator) -> bool {
        matches!((self, initiator), (Sender::Offer(own, _), Initiator::Process(other)) if own.process == other.process)
    }
}

impl Receiver {
    pub(crate) fn is_of(&self, initiator: Initiator) -> bool {
        matches!((self, initiator), (Receiver::Offer(own), Initiator::Process(other)) if own.process == other.process)
    }

    pub(crate) fn initiator(self) -> Initiator {
        match self {
            Receiver::Offer(offer) => Initiator::Process(offer),
            Receiver::Buffered(action) => Initiator::Nobody(action),
        }
    }
}

impl Receipt {
    pub(crate) fn is_of(&self, initiator: Initiator) -> bool {
        matches!(initiator, Initiator::Process(other) if self.offer.process == other.process)
    }
}
