//! The entries of a map: a compact dictionary that keeps the order of insertion.
//!
//! Entries lie in a vector, in the order in which their keys were inserted; a hash table maps a key to its position.
//! Removing an entry leaves a gap, so that it takes constant time; when more than half of the positions are gaps, the
//! entries are compacted. (The layout is that of CPython's `dict` since 3.6; Hettinger, "More compact dictionaries",
//! 2012.)
//!
//! Hashes are seeded anew in each process, so that a client cannot construct keys that collide. The seed has no effect
//! on a program: all orders are those of insertion.

use std::fmt;
use std::hash::BuildHasher;
use std::sync::{Arc, LazyLock};

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::Value;

/// The entries of a map. Cloning increments a reference count; a change copies the entries only if they are shared
/// (copy-on-write).
#[derive(Clone, Default)]
pub struct Entries {
    shared: Arc<Dictionary>,
}

/// A hash table over a vector with gaps.
#[derive(Clone, Default)]
struct Dictionary {
    /// Positions of the entries, by the hashes of their keys.
    positions: HashTable<u32>,
    /// Entries in the order of insertion, and gaps.
    slots: Vec<Slot>,
    /// The number of entries, without gaps. Equal to the number of positions in the table.
    length: usize,
    /// No entry lies before this position.
    first: usize,
}

/// A position of the vector.
#[derive(Clone)]
struct Slot {
    hash: u64,
    /// The key and its value; `None` in a gap.
    entry: Option<(Value, Value)>,
}

/// The maximum number of positions of one map; a `u32` holds each.
const POSITIONS_MAX: usize = u32::MAX as usize;
/// The number of gaps that are tolerated, however few entries there are.
const GAPS_MIN: usize = 8;

/// Seed of all hashes of this process.
pub(super) static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::default);

impl Entries {
    /// Returns an empty map with this capacity.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        let (positions, slots) = (HashTable::with_capacity(capacity), Vec::with_capacity(capacity));
        Entries { shared: Arc::new(Dictionary { positions, slots, length: 0, first: 0 }) }
    }

    /// Returns the number of entries.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.length
    }

    /// Returns `true` if there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the value under a key.
    #[must_use]
    pub fn get(&self, key: &Value) -> Option<&Value> {
        let position = self.shared.find(SEED.hash_one(key), key)?;
        self.shared.slots[position].entry.as_ref().map(|(_, value)| value)
    }

    /// Returns `true` if there is a value under a key.
    #[must_use]
    pub fn contains_key(&self, key: &Value) -> bool {
        self.get(key).is_some()
    }

    /// Inserts a value under a key and returns the previous one. An existing key keeps its position; a new one comes
    /// last.
    ///
    /// # Panics
    /// Panics if there are more than 2^32 entries and gaps.
    pub fn insert(&mut self, key: Value, value: Value) -> Option<Value> {
        Arc::make_mut(&mut self.shared).insert(key, value)
    }

    /// Removes the value under a key and returns it. The other entries keep their order. Nothing is copied if the key
    /// is missing.
    pub fn remove(&mut self, key: &Value) -> Option<Value> {
        let hash = SEED.hash_one(key);
        let position = self.shared.find(hash, key)?;
        Arc::make_mut(&mut self.shared).remove(position).map(|(_, value)| value)
    }

    /// Removes the first entry in the order of insertion and returns it.
    pub fn remove_first(&mut self) -> Option<(Value, Value)> {
        if self.is_empty() {
            return None;
        }
        let dictionary = Arc::make_mut(&mut self.shared);
        let position = (dictionary.first..).find(|position| dictionary.slots[*position].entry.is_some())?;
        dictionary.remove(position)
    }

    /// Iterates over the entries in the order of insertion.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        Iter { slots: self.shared.slots[self.shared.first..].iter(), left: self.len() }
    }

    /// Iterates over the keys in the order of insertion.
    pub fn keys(&self) -> impl Iterator<Item = &Value> {
        self.iter().map(|(key, _)| key)
    }

    /// Iterates over the values in the order of insertion of their keys.
    pub fn values(&self) -> impl Iterator<Item = &Value> {
        self.iter().map(|(_, value)| value)
    }

    /// Returns the first entry in the order of insertion.
    #[must_use]
    pub fn first(&self) -> Option<(&Value, &Value)> {
        self.iter().next()
    }

    /// Returns the keys with their values for a change in place; `None` if the entries are shared.
    pub fn unshared(&mut self) -> Option<impl Iterator<Item = (&Value, &mut Value)>> {
        let slots = &mut Arc::get_mut(&mut self.shared)?.slots;
        Some(slots.iter_mut().filter_map(|slot| slot.entry.as_mut().map(|(key, value)| (&*key, value))))
    }

    /// Returns the value under a key for a change in place; `None` if there is none, or if the entries are shared.
    #[must_use]
    pub fn unshared_value(&mut self, key: &Value) -> Option<&mut Value> {
        let dictionary = Arc::get_mut(&mut self.shared)?;
        let position = dictionary.find(SEED.hash_one(key), key)?;
        dictionary.slots[position].entry.as_mut().map(|(_, value)| value)
    }

    /// Returns the first entry at or after a position, and its position. Gaps are skipped.
    pub(super) fn entry_from(&self, position: usize) -> Option<(usize, (&Value, &Value))> {
        let slots = self.shared.slots.iter().enumerate().skip(position.max(self.shared.first));
        slots.into_iter().find_map(|(position, slot)| slot.entry().map(|entry| (position, entry)))
    }

    /// Returns the address of the entries in memory.
    pub(super) fn address(&self) -> usize {
        Arc::as_ptr(&self.shared).addr()
    }

    /// Returns `true` if the entries are shared.
    pub(super) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.shared) > 1
    }

    /// Returns `true` if two maps are the same in memory.
    pub(super) fn is_same(&self, other: &Entries) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl Slot {
    fn entry(&self) -> Option<(&Value, &Value)> {
        self.entry.as_ref().map(|(key, value)| (key, value))
    }
}

impl Dictionary {
    fn find(&self, hash: u64, key: &Value) -> Option<usize> {
        let is_key = |position: &u32| {
            let slot = &self.slots[*position as usize];
            slot.hash == hash && slot.entry.as_ref().is_some_and(|(found, _)| found == key)
        };
        self.positions.find(hash, is_key).map(|position| *position as usize)
    }

    fn insert(&mut self, key: Value, value: Value) -> Option<Value> {
        let hash = SEED.hash_one(&key);
        if let Some(position) = self.find(hash, &key) {
            let (_, before) = self.slots[position].entry.as_mut().expect("the table names no gaps");
            return Some(std::mem::replace(before, value));
        }
        self.close_gaps();
        assert!(self.slots.len() < POSITIONS_MAX, "a map of more than {POSITIONS_MAX} entries");
        let position = self.slots.len() as u32;
        self.slots.push(Slot { hash, entry: Some((key, value)) });
        let slots = &self.slots;
        self.positions.insert_unique(hash, position, |position| slots[*position as usize].hash);
        self.length += 1;
        None
    }

    fn remove(&mut self, position: usize) -> Option<(Value, Value)> {
        let entry = self.slots[position].entry.take()?;
        let found = self.positions.find_entry(self.slots[position].hash, |found| *found as usize == position);
        found.expect("every entry is in the table").remove();
        self.length -= 1;
        if position == self.first {
            self.first += 1;
        }
        while self.slots.last().is_some_and(|slot| slot.entry.is_none()) {
            self.slots.pop();
        }
        self.first = self.first.min(self.slots.len());
        self.close_gaps();
        Some(entry)
    }

    /// Compacts the entries if more than half of the positions are gaps: amortised, a few moves for each removal.
    fn close_gaps(&mut self) {
        let gaps = self.slots.len() - self.length;
        if gaps <= self.length.max(GAPS_MIN) {
            return;
        }
        self.slots.retain(|slot| slot.entry.is_some());
        self.slots.shrink_to(self.length * 2);
        self.first = 0;
        self.positions.clear();
        for (position, slot) in self.slots.iter().enumerate() {
            self.positions.insert_unique(slot.hash, position as u32, |position| self.slots[*position as usize].hash);
        }
    }
}

/// The entries of a map in the order of insertion.
#[derive(Clone)]
pub struct Iter<'v> {
    slots: std::slice::Iter<'v, Slot>,
    left: usize,
}

impl<'v> Iterator for Iter<'v> {
    type Item = (&'v Value, &'v Value);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.slots.find_map(Slot::entry)?;
        self.left -= 1;
        Some(entry)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Iter<'_> {}

impl<'v> IntoIterator for &'v Entries {
    type Item = (&'v Value, &'v Value);
    type IntoIter = Iter<'v>;

    fn into_iter(self) -> Iter<'v> {
        self.iter()
    }
}

/// Yields keys and values: moved if they are not shared, cloned otherwise.
impl IntoIterator for Entries {
    type Item = (Value, Value);
    type IntoIter = std::vec::IntoIter<(Value, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        let slots = Arc::unwrap_or_clone(self.shared).slots;
        slots.into_iter().filter_map(|slot| slot.entry).collect::<Vec<_>>().into_iter()
    }
}

impl FromIterator<(Value, Value)> for Entries {
    fn from_iter<I: IntoIterator<Item = (Value, Value)>>(entries: I) -> Self {
        let entries = entries.into_iter();
        let mut map = Entries::with_capacity(entries.size_hint().0);
        map.extend(entries);
        map
    }
}

impl Extend<(Value, Value)> for Entries {
    fn extend<I: IntoIterator<Item = (Value, Value)>>(&mut self, entries: I) {
        let dictionary = Arc::make_mut(&mut self.shared);
        for (key, value) in entries {
            dictionary.insert(key, value);
        }
    }
}

impl fmt::Debug for Entries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

/// Equal if they have equal keys with equal values in the same order.
impl PartialEq for Entries {
    fn eq(&self, other: &Self) -> bool {
        Value::Map(self.clone()) == Value::Map(other.clone())
    }
}

impl Eq for Entries {}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(key: i64) -> Value {
        Value::Int(key)
    }

    fn keys(map: &Entries) -> Vec<i64> {
        map.keys().map(|key| if let Value::Int(key) = key { *key } else { panic!("no number") }).collect()
    }

    #[test]
    fn random_changes_agree_with_an_ordered_map() {
        let mut random = 1_u64;
        let (mut map, mut model) = (Entries::default(), indexmap::IndexMap::new());
        for round in 0..20_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let of = key((random >> 33) as i64 % 200);
            match (random >> 20) % 5 {
                0 | 1 => assert_eq!(map.insert(of.clone(), key(round)), model.insert(of, key(round))),
                2 | 3 => assert_eq!(map.remove(&of), model.shift_remove(&of)),
                _ => assert_eq!(map.remove_first(), model.shift_remove_index(0)),
            }
            assert_eq!(map.len(), model.len());
            assert!(map.iter().eq(&model), "after {round} changes");
        }
    }

    #[test]
    fn a_key_that_comes_again_keeps_its_place() {
        let mut map: Entries = [1, 2, 3].map(|number| (key(number), Value::Unit)).into_iter().collect();
        assert_eq!(map.insert(key(1), Value::Bool(true)), Some(Value::Unit));
        map.remove(&key(2));
        map.insert(key(2), Value::Unit);
        assert_eq!(keys(&map), [1, 3, 2]);
    }

    #[test]
    fn a_holder_of_an_earlier_state_keeps_it() {
        let mut map: Entries = (0..10).map(|number| (key(number), key(number))).collect();
        let earlier = map.clone();
        map.remove(&key(3));
        map.insert(key(4), key(40));
        assert_eq!((earlier.len(), earlier.get(&key(4))), (10, Some(&key(4))));
        assert_eq!((map.len(), map.get(&key(4)), map.get(&key(3))), (9, Some(&key(40)), None));
    }

    #[test]
    fn a_queue_of_bounded_length_stays_small() {
        let mut map = Entries::default();
        for number in 0..10_000 {
            map.insert(key(number), Value::Unit);
            if map.len() > 10 {
                map.remove_first();
            }
        }
        assert_eq!(keys(&map), (9_990..10_000).collect::<Vec<_>>());
        assert!(map.shared.slots.len() <= 30, "{} positions for 10 entries", map.shared.slots.len());
    }
}
