//! Rounds ahead: a range of the list of a loop, which all forks of the loop share.
//!
//! Whoever begins the rounds takes its elements out, so that no thread does that for the others. Packed elements are copied under
//! a lock for reading, so that many threads do it at once; others are moved, which needs the list alone.

use std::sync::Arc;

use parking_lot::RwLock;
use weir_host::Elements;

/// The elements of rounds ahead.
#[derive(Clone)]
pub(super) struct RoundsAhead {
    list: Arc<RwLock<Elements>>,
    from: usize,
    to: usize,
}

impl RoundsAhead {
    /// Returns the rounds of the elements from a position on.
    pub(super) fn new(list: Elements, from: usize) -> RoundsAhead {
        let to = list.len();
        RoundsAhead { list: Arc::new(RwLock::new(list)), from, to }
    }

    /// Returns their number.
    pub(super) fn len(&self) -> usize {
        self.to - self.from
    }

    /// Begins so many elements before.
    pub(super) fn begin_before(&mut self, count: usize) {
        self.from -= count;
    }

    /// Cuts off parts for so many forks, the last one first. All parts, and what is left, are about as long.
    pub(super) fn cut_off(&mut self, forks: usize) -> Vec<RoundsAhead> {
        let cut = (1..=forks).rev().map(|shares| {
            let from = self.from + self.len() * shares / (shares + 1);
            let to = std::mem::replace(&mut self.to, from);
            RoundsAhead { list: Arc::clone(&self.list), from, to }
        });
        cut.collect()
    }

    /// Moves the elements out, unless they are packed.
    pub(super) fn take(&self) -> Elements {
        let is_copied = self.list.read().is_packed();
        if is_copied { self.copy() } else { self.list.write().take_range(self.from, self.to) }
    }

    /// Returns copies of the elements.
    pub(super) fn copy(&self) -> Elements {
        self.list.read().range(self.from, self.to)
    }
}

#[cfg(test)]
mod tests {
    use weir_host::Value;

    use super::*;

    fn ints(rounds: &RoundsAhead) -> Vec<i64> {
        rounds.take().as_ints().map_or_else(Vec::new, <[i64]>::to_vec)
    }

    #[test]
    fn parts_are_about_equal_and_hold_each_round_once() {
        for (count, forks) in (1..40).flat_map(|count| (0..count as usize).map(move |forks| (count, forks))) {
            let mut own = RoundsAhead::new((0..count).map(Value::Int).collect(), 0);
            let mut parts = own.cut_off(forks);
            parts.push(own);
            let lengths: Vec<usize> = parts.iter().map(RoundsAhead::len).collect();
            let (least, most) = (lengths.iter().min(), lengths.iter().max());
            assert!(least.zip(most).is_some_and(|(least, most)| *least > 0 && most - least <= 1), "{lengths:?}");
            let all: Vec<i64> = parts.iter().rev().flat_map(ints).collect();
            assert_eq!(all, (0..count).collect::<Vec<_>>(), "the last part is the first one");
        }
    }

    #[test]
    fn elements_are_moved_out_once_and_copied_as_often_as_needed() {
        let mut own = RoundsAhead::new(["a", "b", "c"].map(Value::text).into_iter().collect(), 1);
        let last = own.cut_off(1).remove(0);
        let taken = [last.copy(), last.copy(), last.take(), last.take()].map(|elements| elements.get(0));
        let text = || Some(Value::text("c"));
        assert_eq!(taken, [text(), text(), text(), Some(Value::Absent)]);
        own.begin_before(1);
        assert_eq!(own.take().to_vec(), ["a", "b"].map(Value::text));
    }
}
