//! A compact dictionary that keeps the order of insertion.
//!
//! Entries lie in a vector, in the order in which their keys were inserted; a hash table maps a key to its position.
//! Removing an entry leaves a gap, so that it takes constant time; when more than half of the positions are gaps, the
//! entries are compacted. (The layout is that of CPython's `dict` since 3.6; Hettinger, "More compact dictionaries",
//! 2012.)

use std::hash::BuildHasher;
use std::slice;

use hashbrown::HashTable;

use super::SEED;
use super::persistent::{Entry, PersistentDictionary};
use crate::Value;

/// A hash table over a vector with gaps.
#[derive(Clone, Default)]
pub(super) struct Dictionary {
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
pub(super) struct Slot {
    hash: u64,
    /// The key and its value; `None` in a gap.
    entry: Option<(Value, Value)>,
}

/// The maximum number of positions of one map; a `u32` holds each.
const POSITIONS_MAX: usize = u32::MAX as usize;
/// The number of gaps that are tolerated, however few entries there are.
const GAPS_MIN: usize = 8;

impl Slot {
    pub(super) fn entry(&self) -> Option<(&Value, &Value)> {
        self.entry.as_ref().map(|(key, value)| (key, value))
    }
}

impl Dictionary {
    pub(super) fn with_capacity(capacity: usize) -> Self {
        let (positions, slots) = (HashTable::with_capacity(capacity), Vec::with_capacity(capacity));
        Dictionary { positions, slots, length: 0, first: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Iterates over the positions from that of the first entry on.
    pub(super) fn slots(&self) -> slice::Iter<'_, Slot> {
        self.slots[self.first..].iter()
    }

    /// Iterates over the keys with their values for a change.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (&Value, &mut Value)> {
        self.slots.iter_mut().filter_map(|slot| slot.entry.as_mut().map(|(key, value)| (&*key, value)))
    }

    pub(super) fn into_entries(self) -> impl Iterator<Item = (Value, Value)> {
        self.slots.into_iter().filter_map(|slot| slot.entry)
    }

    /// Returns a persistent dictionary with clones of the entries.
    pub(super) fn to_persistent(&self) -> PersistentDictionary {
        let entry = |slot: &Slot| slot.entry.clone().map(|(key, value)| Entry { hash: slot.hash, key, value });
        self.slots().filter_map(entry).collect()
    }

    pub(super) fn get(&self, key: &Value) -> Option<&Value> {
        let position = self.find(key)?;
        self.slots[position].entry.as_ref().map(|(_, value)| value)
    }

    /// Returns the value under a key, to change it.
    pub(super) fn get_mut(&mut self, key: &Value) -> Option<&mut Value> {
        let position = self.find(key)?;
        self.slots[position].entry.as_mut().map(|(_, value)| value)
    }

    /// Returns the position of a key.
    pub(super) fn find(&self, key: &Value) -> Option<usize> {
        self.find_hashed(SEED.hash_one(key), key)
    }

    pub(super) fn insert(&mut self, key: Value, value: Value) -> Option<Value> {
        let hash = SEED.hash_one(&key);
        if let Some(position) = self.find_hashed(hash, &key) {
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

    pub(super) fn remove_key(&mut self, key: &Value) -> Option<Value> {
        let position = self.find(key)?;
        self.remove(position).map(|(_, value)| value)
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

    pub(super) fn remove_first(&mut self) -> Option<(Value, Value)> {
        // The next call does not look at these gaps again.
        self.first += self.slots().take_while(|slot| slot.entry.is_none()).count();
        if self.length == 0 { None } else { self.remove(self.first) }
    }

    fn find_hashed(&self, hash: u64, key: &Value) -> Option<usize> {
        let is_key = |position: &u32| {
            let slot = &self.slots[*position as usize];
            slot.hash == hash && slot.entry.as_ref().is_some_and(|(found, _)| found == key)
        };
        self.positions.find(hash, is_key).map(|position| *position as usize)
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

    /// Returns the number of positions.
    #[cfg(test)]
    pub(super) fn positions(&self) -> usize {
        self.slots.len()
    }
}
