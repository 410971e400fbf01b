//! The keys of the rows of a table in memory, in the order in which the rows were written.
//!
//! Rows have ascending *write numbers*, so a row that is written is the last one, and one that goes leaves a gap. Gaps are closed
//! when they are more than half of the places, unless a transaction is open: to take it back puts keys into its gaps again.

use std::collections::VecDeque;

use weir::Value;

/// Number of places below which gaps are not closed.
const PLACES_MIN: usize = 64;

/// Keys in the order of write numbers.
#[derive(Debug, Default)]
pub(super) struct WriteOrder {
    /// Write numbers in ascending order, each with its key; [`Value::Absent`] is a gap.
    places: VecDeque<(u64, Value)>,
    /// Number of places at the front that are gaps.
    gaps_before: usize,
    /// Number of gaps.
    gaps: usize,
}

impl WriteOrder {
    /// Returns the key of the row that was written least recently.
    pub(super) fn oldest(&self) -> Option<&Value> {
        self.places.get(self.gaps_before).map(|(_, key)| key)
    }

    /// Adds the key of a row: behind all others, or into its gap.
    pub(super) fn insert(&mut self, write: u64, key: Value) {
        if self.places.back().is_none_or(|(last, _)| *last < write) {
            return self.places.push_back((write, key));
        }
        match self.place(write) {
            Ok(at) => {
                self.gaps -= usize::from(self.places[at].1.is_absent());
                self.places[at].1 = key;
                self.gaps_before = self.gaps_before.min(at);
            }
            Err(at) => {
                self.places.insert(at, (write, key));
                self.gaps_before = self.gaps_before.min(at);
            }
        }
    }

    /// Removes the key of a row, which leaves a gap.
    pub(super) fn remove(&mut self, write: u64) {
        let Ok(at) = self.place(write) else { return };
        self.gaps += usize::from(!self.places[at].1.is_absent());
        self.places[at].1 = Value::Absent;
        self.pass_gaps();
    }

    /// Closes gaps, if they are many. Rows that have gone do not come back.
    pub(super) fn close_gaps(&mut self) {
        if self.places.len() >= PLACES_MIN && self.gaps > self.places.len() / 2 {
            self.places.retain(|(_, key)| !key.is_absent());
            (self.gaps, self.gaps_before) = (0, 0);
        }
    }

    fn pass_gaps(&mut self) {
        let before = self.gaps_before;
        let gaps = self.places.range(before..).take_while(|(_, key)| key.is_absent()).count();
        self.gaps_before = before + gaps;
    }

    fn place(&self, write: u64) -> Result<usize, usize> {
        self.places.binary_search_by_key(&write, |(number, _)| *number)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use test_support::random::Random;

    use super::*;

    #[test]
    fn keys_are_in_the_order_of_a_tree_also_when_they_come_back() {
        let mut random = Random::new(3);
        let (mut order, mut expected, mut writes) = (WriteOrder::default(), BTreeMap::new(), 0);
        for _ in 0..400 {
            let mut gone = Vec::new();
            for _ in 0..random.below(60) {
                let key = Value::Int(random.below(1_000) as i64);
                let oldest = expected.keys().next().copied().unwrap_or(0);
                match random.below(3) {
                    0 => {
                        writes += 1;
                        order.insert(writes, key.clone());
                        expected.insert(writes, key);
                    }
                    place => {
                        let write = if place == 1 { oldest } else { oldest + random.below(80) };
                        order.remove(write);
                        gone.extend(expected.remove(&write).map(|key| (write, key)));
                    }
                }
                assert_eq!(order.oldest(), expected.values().next());
            }
            // A transaction is taken back, or ends.
            if random.below(2) == 0 {
                for (write, key) in gone.into_iter().rev() {
                    order.insert(write, key.clone());
                    expected.insert(write, key);
                }
            } else {
                order.close_gaps();
            }
            assert_eq!(order.oldest(), expected.values().next());
            let present = order.places.iter().filter(|(_, key)| !key.is_absent());
            assert!(present.map(|(write, key)| (write, key)).eq(&expected));
            assert_eq!(order.gaps, order.places.len() - expected.len());
        }
    }
}
