//! A compact dictionary that keeps the order of insertion.
//!
//! Entries lie in a vector, in the order in which their keys were inserted; a hash table maps a key to its position. The
//! table has the hashes too, so that neither a search that meets other keys nor its growth reads the entries.
//! Removing an entry leaves a gap, so that it takes constant time; when more than half of the positions are gaps, the
//! entries are compacted. (The layout is that of CPython's `dict` since 3.6; Hettinger, "More compact dictionaries",
//! 2012.)
//!
//! A dictionary of up to [`SMALL_MAX`] positions has no hash table: its keys are compared one after the other, which costs
//! less than to hash a key, and to allocate a table.

use std::slice;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry as HashTableEntry;

use super::hash_of;
use crate::Value;

/// A hash table over a vector with gaps.
#[derive(Clone, Default)]
pub(super) struct Dictionary {
    /// Positions of the entries, by the hashes of their keys. Empty unless `is_indexed`.
    positions: HashTable<HashedPosition>,
    /// True if the dictionary has a hash table. It keeps it when it becomes small again.
    is_indexed: bool,
    /// Entries in the order of insertion, and gaps.
    slots: Vec<Slot>,
    /// The number of entries, without gaps. Equal to the number of positions in the table, if there is one.
    length: usize,
    /// No entry lies before this position.
    first: usize,
    /// The position that was found last, so that reading an entry and replacing it looks it up once. May name a gap, or
    /// another entry.
    recent: u32,
}

/// A position of the vector, with the hash of its key.
#[derive(Clone, Copy, Debug)]
struct HashedPosition {
    /// The lower half of the bits, as many as a position has.
    hash: u32,
    position: u32,
}

/// A position of the vector.
#[derive(Clone)]
pub(super) struct Slot {
    /// The key and its value; `None` in a gap.
    entry: Option<(Value, Value)>,
}

/// The maximum number of positions of one map; a `u32` holds each.
const POSITIONS_MAX: usize = u32::MAX as usize;
/// The maximum number of positions without a hash table.
const SMALL_MAX: usize = 8;
/// The number of gaps that are tolerated, however few entries there are.
const GAPS_MIN: usize = 8;

impl Slot {
    pub(super) fn entry(&self) -> Option<(&Value, &Value)> {
        self.entry.as_ref().map(|(key, value)| (key, value))
    }

    #[inline]
    fn has(&self, key: &Value) -> bool {
        self.entry.as_ref().is_some_and(|(found, _)| found == key)
    }
}

impl HashedPosition {
    fn new(hash: u64, position: usize) -> Self {
        HashedPosition { hash: hash as u32, position: position as u32 }
    }

    /// Returns the hash for the table, which takes a bucket from its lowest bits and a tag from its highest ones.
    #[inline]
    fn table_hash(&self) -> u64 {
        u64::from(self.hash) | (u64::from(self.hash) << 32)
    }

    fn index(&self) -> usize {
        self.position as usize
    }
}

impl Dictionary {
    pub(super) fn with_capacity(capacity: usize) -> Self {
        let is_indexed = capacity > SMALL_MAX;
        let positions = HashTable::with_capacity(if is_indexed { capacity } else { 0 });
        Dictionary { positions, is_indexed, slots: Vec::with_capacity(capacity), length: 0, first: 0, recent: 0 }
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

    /// Returns the number of positions, those of gaps included.
    pub(super) fn positions(&self) -> usize {
        self.slots.len()
    }

    /// Returns a position of the vector.
    pub(super) fn at(&self, position: usize) -> Option<&Slot> {
        self.slots.get(position)
    }

    pub(super) fn get(&self, key: &Value) -> Option<&Value> {
        let position = self.find(key)?;
        self.slots[position].entry.as_ref().map(|(_, value)| value)
    }

    /// Returns the value under a key, to change it, and remembers its position.
    #[inline]
    pub(super) fn get_mut(&mut self, key: &Value) -> Option<&mut Value> {
        let position = self.find(key)?;
        self.recent = position as u32;
        self.slots[position].entry.as_mut().map(|(_, value)| value)
    }

    /// Returns the value that was found last, to change it, if it is the one under this key.
    #[inline]
    pub(super) fn recent_mut(&mut self, key: &Value) -> Option<&mut Value> {
        let slot = self.slots.get_mut(self.recent as usize)?;
        slot.entry.as_mut().filter(|(found, _)| found == key).map(|(_, value)| value)
    }

    /// Returns the position of a key.
    pub(super) fn find(&self, key: &Value) -> Option<usize> {
        self.find_hashed(self.hash(key), key)
    }

    pub(super) fn insert(&mut self, key: Value, value: Value) -> Option<Value> {
        if let Some(before) = self.recent_mut(&key) {
            return Some(std::mem::replace(before, value));
        }
        self.close_gaps();
        if !self.is_indexed {
            if let Some(position) = self.find_hashed(0, &key) {
                return self.replace(position, value);
            }
            if self.slots.len() < SMALL_MAX {
                self.push(key, value);
                return None;
            }
            self.make_indexed();
        }
        let (new, slots) = (HashedPosition::new(hash_of(&key), self.slots.len()), &self.slots);
        let is_key = |found: &HashedPosition| found.hash == new.hash && slots[found.index()].has(&key);
        match self.positions.entry(new.table_hash(), is_key, HashedPosition::table_hash) {
            HashTableEntry::Occupied(found) => {
                let position = found.get().index();
                self.replace(position, value)
            }
            HashTableEntry::Vacant(vacant) => {
                assert!(slots.len() < POSITIONS_MAX, "a map of more than {POSITIONS_MAX} entries");
                vacant.insert(new);
                self.push(key, value);
                None
            }
        }
    }

    fn push(&mut self, key: Value, value: Value) {
        self.slots.push(Slot { entry: Some((key, value)) });
        self.length += 1;
    }

    /// Replaces the value at a position that is no gap, and returns the previous one.
    fn replace(&mut self, position: usize, value: Value) -> Option<Value> {
        let (_, before) = self.slots[position].entry.as_mut()?;
        Some(std::mem::replace(before, value))
    }

    pub(super) fn remove_key(&mut self, key: &Value) -> Option<Value> {
        let hash = self.hash(key);
        let position = self.find_hashed(hash, key)?;
        self.remove(hash, position).map(|(_, value)| value)
    }

    /// Removes the entry at a position, whose key has this hash.
    fn remove(&mut self, hash: u64, position: usize) -> Option<(Value, Value)> {
        let entry = self.slots[position].entry.take()?;
        if self.is_indexed {
            let hash = HashedPosition::new(hash, position).table_hash();
            let found = self.positions.find_entry(hash, |found| found.index() == position);
            found.expect("every entry is in the table").remove();
        }
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
        let (key, _) = self.slots.get(self.first)?.entry()?;
        let hash = self.hash(key);
        self.remove(hash, self.first)
    }

    /// Returns the hash of a key if there is a hash table, otherwise 0.
    #[inline]
    fn hash(&self, key: &Value) -> u64 {
        if self.is_indexed { hash_of(key) } else { 0 }
    }

    /// Returns the position of a key with this hash.
    #[inline]
    pub(super) fn find_hashed(&self, hash: u64, key: &Value) -> Option<usize> {
        if !self.is_indexed {
            return self.slots.iter().position(|slot| slot.has(key));
        }
        let wanted = HashedPosition::new(hash, 0);
        let is_key = |found: &HashedPosition| found.hash == wanted.hash && self.slots[found.index()].has(key);
        self.positions.find(wanted.table_hash(), is_key).map(HashedPosition::index)
    }

    /// Compacts the entries if more than half of the positions are gaps: amortised, a few moves for each removal.
    fn close_gaps(&mut self) {
        let gaps = self.slots.len() - self.length;
        if gaps <= self.length.max(GAPS_MIN) {
            return;
        }
        let mut next = 0;
        let mut moved: Vec<u32> = Vec::with_capacity(self.slots.len());
        for slot in &self.slots {
            moved.push(next);
            next += u32::from(slot.entry.is_some());
        }
        self.positions.iter_mut().for_each(|found| found.position = moved[found.index()]);
        self.slots.retain(|slot| slot.entry.is_some());
        self.slots.shrink_to(self.length * 2);
        self.first = 0;
    }

    /// Creates the hash table.
    #[cold]
    fn make_indexed(&mut self) {
        self.is_indexed = true;
        for (position, slot) in self.slots.iter().enumerate() {
            if let Some((key, _)) = &slot.entry {
                let new = HashedPosition::new(hash_of(key), position);
                self.positions.insert_unique(new.table_hash(), new, HashedPosition::table_hash);
            }
        }
    }
}
