//! The requests of one batch, and their answers.

use foldhash::fast::FixedState;
use indexmap::IndexSet;
use weir_host::{Outcome, Value};

/// The requests of a batch. Each is made by one call, or by several if equal ones are sent once.
pub(super) struct Requests {
    unsent: UnsentRequests,
    /// For each request, the number of calls that have made it and not left.
    users: Vec<u32>,
    /// For each request, its answer; empty before there are answers.
    answers: Vec<Option<Outcome>>,
}

/// The requests that have not been sent.
enum UnsentRequests {
    /// One for each call.
    Each(Vec<Value>),
    /// Equal ones once.
    Distinct(IndexSet<Value, FixedState>),
}

/// The requests of a batch that is sent.
pub(super) struct SentRequests {
    /// The requests.
    pub values: Vec<Value>,
    /// The index of each of them among all requests of the batch.
    places: Vec<u32>,
}

impl Requests {
    /// Returns no requests, with room for this many. Equal ones are sent once if there is a hash function, `merges`.
    pub(super) fn new(merges: Option<FixedState>, expected: usize) -> Requests {
        let unsent = match merges {
            Some(hasher) => UnsentRequests::Distinct(IndexSet::with_capacity_and_hasher(expected, hasher)),
            None => UnsentRequests::Each(Vec::with_capacity(expected)),
        };
        Requests { unsent, users: Vec::with_capacity(expected), answers: Vec::new() }
    }

    /// Returns the number of requests.
    pub(super) fn len(&self) -> usize {
        self.users.len()
    }

    /// Makes room for this many requests, if they are several.
    pub(super) fn reserve(&mut self, more: usize) {
        if more < 2 {
            return;
        }
        self.users.reserve(more);
        match &mut self.unsent {
            UnsentRequests::Each(values) => values.reserve(more),
            UnsentRequests::Distinct(values) => values.reserve(more),
        }
    }

    /// Adds the request of a call; returns its index.
    pub(super) fn add(&mut self, value: Value) -> u32 {
        let index = match &mut self.unsent {
            UnsentRequests::Each(values) => {
                values.push(value);
                values.len() - 1
            }
            UnsentRequests::Distinct(values) => values.insert_full(value).0,
        };
        match self.users.get_mut(index) {
            Some(users) => *users += 1,
            None => self.users.push(1),
        }
        index as u32
    }

    /// Notes that so many calls do not make a request any more.
    pub(super) fn leave(&mut self, request: u32, calls: u32) {
        self.users[request as usize] -= calls;
    }

    /// Returns the number of calls that make a request.
    pub(super) fn users(&self, request: u32) -> u32 {
        self.users[request as usize]
    }

    /// Takes out the requests to send: those for which `is_sent` holds of the number of their users.
    pub(super) fn send(&mut self, is_sent: impl Fn(u32) -> bool) -> SentRequests {
        let unsent = std::mem::replace(&mut self.unsent, UnsentRequests::Each(Vec::new()));
        let mut values: Vec<Value> = match unsent {
            UnsentRequests::Each(values) => values,
            UnsentRequests::Distinct(values) => values.into_iter().collect(),
        };
        let places: Vec<u32> =
            (0..).zip(&self.users).filter(|(_, users)| is_sent(**users)).map(|(place, _)| place).collect();
        if places.len() < values.len() {
            values = places.iter().map(|place| values[*place as usize].take()).collect();
        }
        SentRequests { values, places }
    }

    /// Stores the answers of requests that were sent. `fault` answers those for which there is none.
    pub(super) fn answer(&mut self, sent: &SentRequests, answers: Vec<Outcome>, fault: impl Fn() -> Outcome) {
        let mut answers = answers.into_iter();
        self.answers.resize_with(self.users.len(), || None);
        for place in &sent.places {
            self.answers[*place as usize] = Some(answers.next().unwrap_or_else(&fault));
        }
    }

    /// Answers all requests with a fault.
    pub(super) fn refuse(&mut self, fault: impl Fn() -> Outcome) {
        self.answers = self.users.iter().map(|_| Some(fault())).collect();
    }

    /// Returns the answer of a request for one of the calls that have made it.
    pub(super) fn take_answer(&mut self, request: u32) -> Outcome {
        self.leave(request, 1);
        let answer = &mut self.answers[request as usize];
        let taken = if self.users[request as usize] == 0 { answer.take() } else { answer.clone() };
        taken.expect("a request of a member is answered")
    }
}
