//! The requests of one batch, and their answers.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use smallvec::SmallVec;
use weir_host::{Outcome, Value};

/// The indices of requests in their batch.
pub(super) type RequestIndices = SmallVec<[u32; 4]>;

/// The requests of a batch. Each is made by one call, or by several if equal ones are sent once.
pub(super) struct Requests {
    /// The requests that have not been sent.
    unsent: Vec<Value>,
    /// Finds equal requests, if these are sent once.
    known: Option<KnownRequests>,
    /// For each request, the number of calls that have made it and not left.
    users: SmallVec<[u32; 4]>,
    /// For each request, its answer, or [`NO_ANSWER`]; empty before there are answers.
    answers: Vec<Outcome>,
}

/// Stands for an answer that is not there.
const NO_ANSWER: Outcome = Outcome::Value(Value::Absent);

/// Finds requests.
struct KnownRequests {
    hasher: FixedState,
    /// The indices of the requests by their hashes. Empty while they ascend, and while there are so few that they are compared.
    indices: HashTable<u32>,
    /// True if all requests are integers, each greater than the one before, so that a greater one is new: often they are the
    /// keys of rows, in their order.
    ascends: bool,
}

/// The number of requests with each of which a further one is compared. Chosen by judgement: this takes about as long as to hash
/// one, and a table would have to be allocated.
const COMPARED_MAX: usize = 8;

/// The same for integers, of which a comparison takes next to nothing.
const COMPARED_INTEGERS_MAX: usize = 32;

/// The requests of a batch that is sent.
pub(super) struct SentRequests {
    /// The requests.
    pub values: Vec<Value>,
    /// The number of them.
    pub count: usize,
    /// The index of each of them among all requests of the batch; `None` if all were sent.
    places: Option<Vec<u32>>,
}

impl SentRequests {
    /// Returns the index of a request among all of the batch.
    pub(super) fn index(&self, position: usize) -> u32 {
        self.places.as_ref().map_or(position as u32, |places| places[position])
    }
}

impl Requests {
    /// Returns no requests, with room for this many. Equal ones are sent once if there is a hash function, `merges`.
    pub(super) fn new(merges: Option<FixedState>, expected: usize) -> Requests {
        let known = merges.map(|hasher| KnownRequests { hasher, indices: HashTable::new(), ascends: true });
        let (unsent, users) = (Vec::with_capacity(expected), SmallVec::with_capacity(expected));
        Requests { unsent, known, users, answers: Vec::new() }
    }

    /// Returns the number of requests.
    pub(super) fn len(&self) -> usize {
        self.users.len()
    }

    /// Adds the requests of calls, until there are `at_most`; returns the index of each.
    pub(super) fn add_all(
        &mut self,
        values: &mut impl ExactSizeIterator<Item = Value>,
        at_most: usize,
    ) -> RequestIndices {
        // Most calls that are not in a `for` are alone.
        if values.len() == 1 {
            let mut indices = RequestIndices::new();
            values.next().into_iter().for_each(|value| indices.push(self.add(value)));
            return indices;
        }
        let expected = values.len().min(at_most.saturating_sub(self.len()));
        self.reserve(expected);
        let mut indices = RequestIndices::with_capacity(expected);
        let first = self.len() as u32;
        let mut next = self.add_new(values, at_most);
        indices.extend(first..self.len() as u32);
        while let Some(value) = next {
            indices.push(self.add(value));
            next = if self.len() < at_most { values.next() } else { None };
        }
        indices
    }

    /// Adds requests as long as each is known to be new without a search; returns the first that is not.
    fn add_new(&mut self, values: &mut impl Iterator<Item = Value>, at_most: usize) -> Option<Value> {
        let (merges, mut last) = match (&self.known, self.unsent.last()) {
            (None, _) => (false, None),
            (Some(KnownRequests { ascends: true, .. }), None) => (true, None),
            (Some(KnownRequests { ascends: true, .. }), Some(Value::Int(last))) => (true, Some(*last)),
            _ => return values.next(),
        };
        let mut other = None;
        while self.unsent.len() < at_most
            && let Some(value) = values.next()
        {
            match value {
                Value::Int(number) if merges && last.is_none_or(|last| last < number) => last = Some(number),
                _ if !merges => {}
                _ => {
                    other = Some(value);
                    break;
                }
            }
            self.unsent.push(value);
        }
        let new = self.unsent.len() - self.users.len();
        self.users.extend(std::iter::repeat_n(1, new));
        other
    }

    /// Makes room for this many requests.
    fn reserve(&mut self, more: usize) {
        self.users.reserve(more);
        self.unsent.reserve(more);
        self.known.iter_mut().for_each(|known| known.reserve(more, &self.unsent));
    }

    /// Adds the request of a call; returns its index.
    #[inline(always)]
    fn add(&mut self, value: Value) -> u32 {
        let index = self.unsent.len() as u32;
        let equal = self.known.as_mut().and_then(|known| known.find_or_insert(&value, index, &self.unsent));
        if let Some(equal) = equal {
            self.users[equal as usize] += 1;
            return equal;
        }
        self.unsent.push(value);
        self.users.push(1);
        index
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
        self.known = None;
        let mut values = std::mem::take(&mut self.unsent);
        if self.users.iter().all(|users| is_sent(*users)) {
            return SentRequests { count: values.len(), values, places: None };
        }
        let sent = (0..).zip(&self.users).filter(|(_, users)| is_sent(**users));
        let places: Vec<u32> = sent.map(|(place, _)| place).collect();
        values = places.iter().map(|place| values[*place as usize].take()).collect();
        SentRequests { count: values.len(), values, places: Some(places) }
    }

    /// Stores the answers of requests that were sent. `fault` answers those for which there is none.
    pub(super) fn answer(&mut self, sent: &SentRequests, answers: Vec<Outcome>, fault: impl Fn() -> Outcome) {
        let Some(places) = &sent.places else {
            self.answers = answers;
            return self.answers.resize_with(self.users.len(), fault);
        };
        let mut answers = answers.into_iter();
        self.answers.resize_with(self.users.len(), || NO_ANSWER);
        for place in places {
            self.answers[*place as usize] = answers.next().unwrap_or_else(&fault);
        }
    }

    /// Answers all requests with a fault.
    pub(super) fn refuse(&mut self, fault: impl Fn() -> Outcome) {
        self.answers = self.users.iter().map(|_| fault()).collect();
    }

    /// Returns the answers of these requests, of which there are several, for the calls of a member.
    pub(super) fn take_answers(&mut self, requests: &[u32]) -> Vec<Outcome> {
        // Most often these calls have made all requests in this order. Those of another flow, which has its answers or has left, may
        // have had another order.
        let are_all = requests.len() == self.users.len() && self.users.iter().all(|users| *users == 1);
        if are_all && (0..).zip(requests).all(|(index, request)| index == *request) {
            self.users.fill(0);
            return std::mem::take(&mut self.answers);
        }
        let (users, answers) = (&mut self.users[..], &mut self.answers[..]);
        requests.iter().map(|request| take_answer(*request, users, answers)).collect()
    }

    /// Returns the answer of a request for one of the calls that have made it.
    pub(super) fn take_answer(&mut self, request: u32) -> Outcome {
        take_answer(request, &mut self.users, &mut self.answers)
    }
}

/// Returns the answer of a request for one of the calls that have made it.
#[inline]
fn take_answer(request: u32, users: &mut [u32], answers: &mut [Outcome]) -> Outcome {
    let (users, answer) = (&mut users[request as usize], &mut answers[request as usize]);
    *users -= 1;
    match answer {
        answer if *users == 0 => std::mem::replace(answer, NO_ANSWER),
        Outcome::Value(Value::Int(number)) => Outcome::Value(Value::Int(*number)),
        answer => answer.clone(),
    }
}

impl KnownRequests {
    /// Returns the index of the request that equals this one, or `None` and knows this one by its own index from now on.
    #[inline]
    fn find_or_insert(&mut self, value: &Value, index: u32, requests: &Vec<Value>) -> Option<u32> {
        if self.ascends {
            self.ascends = match (requests.last(), value) {
                (None, Value::Int(_)) => true,
                (Some(Value::Int(last)), Value::Int(value)) => last < value,
                _ => false,
            };
            if self.ascends {
                return None;
            }
        }
        self.find_or_insert_among_any(value, index, requests)
    }

    fn find_or_insert_among_any(&mut self, value: &Value, index: u32, requests: &Vec<Value>) -> Option<u32> {
        let KnownRequests { hasher, indices, .. } = self;
        if indices.is_empty() {
            let compared = match value {
                Value::Int(number) if requests.len() < COMPARED_INTEGERS_MAX => {
                    Some(requests.iter().position(|other| matches!(other, Value::Int(other) if other == number)))
                }
                value if requests.len() < COMPARED_MAX => Some(requests.iter().position(|other| other == value)),
                _ => None,
            };
            if let Some(found) = compared {
                return found.map(|found| found as u32);
            }
            know(requests, requests.capacity() - requests.len(), indices, hasher);
        }
        let hash = |index: &u32| hasher.hash_one(&requests[*index as usize]);
        let is_equal = |known: &u32| requests[*known as usize] == *value;
        match indices.entry(hasher.hash_one(value), is_equal, hash) {
            Entry::Occupied(equal) => Some(*equal.get()),
            Entry::Vacant(place) => {
                place.insert(index);
                None
            }
        }
    }

    /// Makes room for this many further requests.
    fn reserve(&mut self, more: usize, requests: &[Value]) {
        let KnownRequests { hasher, indices, .. } = self;
        if !indices.is_empty() {
            indices.reserve(more, |index| hasher.hash_one(&requests[*index as usize]));
        }
    }
}

/// Adds these requests to an empty table, with room for this many further ones.
#[cold]
fn know(requests: &[Value], more: usize, indices: &mut HashTable<u32>, hasher: &FixedState) {
    let hash = |index: &u32| hasher.hash_one(&requests[*index as usize]);
    indices.reserve(requests.len() + more, hash);
    for (index, request) in (0..).zip(requests) {
        indices.insert_unique(hasher.hash_one(request), index, hash);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(value: i64) -> Value {
        Value::Int(value)
    }

    #[test]
    fn calls_in_another_order_than_those_that_were_answered_before_have_their_own_answers() {
        let mut requests = Requests::new(Some(FixedState::default()), 0);
        let first = [12, 4].map(|value| requests.add(number(value)));
        let second = [4, 12].map(|value| requests.add(number(value)));
        let sent = requests.send(|users| users > 0);
        assert_eq!(sent.values, [12, 4].map(number));
        let answers = sent.values.iter().cloned().map(Outcome::Value).collect();
        requests.answer(&sent, answers, || Outcome::Value(number(-1)));
        let values = |outcomes: Vec<Outcome>| -> Vec<Value> {
            outcomes.into_iter().map(|outcome| outcome.returned().expect("a value").expect("a value")).collect()
        };
        assert_eq!(values(requests.take_answers(&first)), [12, 4].map(number));
        assert_eq!(values(requests.take_answers(&second)), [4, 12].map(number));
    }
}
