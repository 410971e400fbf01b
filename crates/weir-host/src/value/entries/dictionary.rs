//! A compact dictionary that keeps the order of insertion.
//!
//! Entries lie in a vector, in the order in which their keys were inserted. There are three ways from a key to its position
//! ([`KeyIndex`]):
//!
//! 1. In a small dictionary, keys are compared one after the other, which costs less than to hash a key, and to allocate a
//!    table.
//! 2. If the keys are consecutive integers in ascending order, such as identifiers that were given out one by one, the
//!    position is the difference to the first one. (PHP's packed arrays, and the array part of Lua's tables, are the same.)
//! 3. Otherwise, a hash table maps a key to its position. The table has the hashes too, so that neither a search that meets
//!    other keys nor its growth reads the entries.
//!
//! Removing an entry leaves a gap, so that it takes constant time; when more than half of the positions are gaps, the
//! entries are compacted. (The layout is that of CPython's `dict` since 3.6; Hettinger, "More compact dictionaries",
//! 2012.)

use std::slice;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry as HashTableEntry;

use super::hash_of;
use crate::Value;

/// A hash table over a vector with gaps.
#[derive(Clone, Default)]
pub(super) struct Dictionary {
    index: KeyIndex,
    /// Entries in the order of insertion, and gaps.
    slots: Vec<Slot>,
    /// The number of entries, without gaps.
    length: usize,
    /// No entry lies before this position.
    first: usize,
    /// The position that was found last, so that reading an entry and replacing it looks it up once. May name a gap, or
    /// another entry.
    recent: u32,
}

/// The way from a key to its position. A dictionary that becomes small again keeps the one that it has.
#[derive(Clone, Default)]
enum KeyIndex {
    /// Keys are compared one after the other: there are at most [`SMALL_MAX`] positions.
    #[default]
    Scan,
    /// Every position is a gap, or has the integer that is the sum of the position and this one.
    Consecutive(i64),
    /// The positions of all entries, by the hashes of their keys.
    Table(HashTable<HashedPosition>),
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

    fn has_entry(&self) -> bool {
        self.entry.is_some()
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
        Dictionary { slots: Vec::with_capacity(capacity), ..Dictionary::default() }
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
    #[inline]
    fn find(&self, key: &Value) -> Option<usize> {
        self.find_with(key, || hash_of(key))
    }

    pub(super) fn insert(&mut self, key: Value, value: Value) -> Option<Value> {
        if let Some(before) = self.recent_mut(&key) {
            return Some(std::mem::replace(before, value));
        }
        self.close_gaps();
        match &mut self.index {
            KeyIndex::Scan => {
                if let Some(position) = self.slots.iter().position(|slot| slot.has(&key)) {
                    return self.replace(position, value);
                }
                if self.slots.len() < SMALL_MAX {
                    self.push(key, value);
                    return None;
                }
                self.make_index();
                self.insert(key, value)
            }
            KeyIndex::Consecutive(first) => match offset(&key, *first) {
                Some(position) if position == self.slots.len() => {
                    self.push(key, value);
                    None
                }
                Some(position) if self.at(position).is_some_and(Slot::has_entry) => self.replace(position, value),
                _ => {
                    self.make_table();
                    self.insert_hashed(key, value)
                }
            },
            KeyIndex::Table(_) => self.insert_hashed(key, value),
        }
    }

    /// Inserts an entry into a dictionary with a hash table.
    fn insert_hashed(&mut self, key: Value, value: Value) -> Option<Value> {
        let KeyIndex::Table(table) = &mut self.index else { return None };
        let (new, slots) = (HashedPosition::new(hash_of(&key), self.slots.len()), &self.slots);
        let is_key = |found: &HashedPosition| found.hash == new.hash && slots[found.index()].has(&key);
        match table.entry(new.table_hash(), is_key, HashedPosition::table_hash) {
            HashTableEntry::Occupied(found) => {
                let position = found.get().index();
                self.replace(position, value)
            }
            HashTableEntry::Vacant(vacant) => {
                vacant.insert(new);
                self.push(key, value);
                None
            }
        }
    }

    #[inline]
    fn push(&mut self, key: Value, value: Value) {
        assert!(self.slots.len() < POSITIONS_MAX, "a map of more than {POSITIONS_MAX} entries");
        self.slots.push(Slot { entry: Some((key, value)) });
        self.length += 1;
    }

    /// Replaces the value at a position that is no gap, and returns the previous one.
    fn replace(&mut self, position: usize, value: Value) -> Option<Value> {
        let (_, before) = self.slots[position].entry.as_mut()?;
        Some(std::mem::replace(before, value))
    }

    pub(super) fn remove_key(&mut self, key: &Value) -> Option<Value> {
        let position = self.find(key)?;
        self.remove(position).map(|(_, value)| value)
    }

    /// Removes the entry at a position.
    fn remove(&mut self, position: usize) -> Option<(Value, Value)> {
        let entry = self.slots[position].entry.take()?;
        if let KeyIndex::Table(table) = &mut self.index {
            let hash = HashedPosition::new(hash_of(&entry.0), position).table_hash();
            let found = table.find_entry(hash, |found| found.index() == position);
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
        if let (KeyIndex::Consecutive(_), true) = (&self.index, self.slots.is_empty()) {
            // The next key may be any.
            self.index = KeyIndex::Scan;
        }
        self.close_gaps();
        Some(entry)
    }

    pub(super) fn remove_first(&mut self) -> Option<(Value, Value)> {
        // The next call does not look at these gaps again.
        self.first += self.slots().take_while(|slot| slot.entry.is_none()).count();
        self.slots.get(self.first)?;
        self.remove(self.first)
    }

    /// Returns the position of a key, whose hash is computed if it is needed.
    #[inline]
    pub(super) fn find_with(&self, key: &Value, hash: impl FnOnce() -> u64) -> Option<usize> {
        match &self.index {
            KeyIndex::Scan => self.slots.iter().position(|slot| slot.has(key)),
            KeyIndex::Consecutive(first) => {
                offset(key, *first).filter(|position| self.at(*position).is_some_and(Slot::has_entry))
            }
            KeyIndex::Table(table) => self.find_in(table, HashedPosition::new(hash(), 0), key),
        }
    }

    /// Returns the position that a hash table has for a key. Keys of the most frequent types are compared inline.
    #[inline]
    fn find_in(&self, table: &HashTable<HashedPosition>, wanted: HashedPosition, key: &Value) -> Option<usize> {
        match key {
            Value::Text(key) => {
                self.find_key(table, wanted, |found| matches!(found, Value::Text(found) if found == key))
            }
            Value::Int(key) => self.find_key(table, wanted, |found| matches!(found, Value::Int(found) if found == key)),
            key => self.find_key(table, wanted, |found| found == key),
        }
    }

    /// Returns the position that a hash table has for the key for which `is_same` holds.
    #[inline]
    fn find_key(
        &self,
        table: &HashTable<HashedPosition>,
        wanted: HashedPosition,
        is_same: impl Fn(&Value) -> bool,
    ) -> Option<usize> {
        let is_key = |found: &HashedPosition| {
            found.hash == wanted.hash && self.slots[found.index()].entry().is_some_and(|(key, _)| is_same(key))
        };
        table.find(wanted.table_hash(), is_key).map(HashedPosition::index)
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
        if let KeyIndex::Table(table) = &mut self.index {
            table.iter_mut().for_each(|found| found.position = moved[found.index()]);
        }
        self.slots.retain(Slot::has_entry);
        self.slots.shrink_to(self.length * 2);
        self.first = 0;
        if let KeyIndex::Consecutive(_) = self.index {
            self.make_index();
        }
    }

    /// Creates the index of a dictionary that is no longer small: a hash table unless the keys are consecutive integers.
    #[cold]
    fn make_index(&mut self) {
        match self.consecutive_from() {
            Some(first) => self.index = KeyIndex::Consecutive(first),
            None => self.make_table(),
        }
    }

    /// Returns the integer of the first position if every position is a gap or has the next integer.
    fn consecutive_from(&self) -> Option<i64> {
        let entries = || self.slots.iter().enumerate().filter_map(|(position, slot)| Some((position, slot.entry()?.0)));
        let (position, key) = entries().next()?;
        let Value::Int(number) = key else { return None };
        let first = number.checked_sub_unsigned(position as u64)?;
        entries().all(|(position, key)| offset(key, first) == Some(position)).then_some(first)
    }

    /// Creates the hash table.
    #[cold]
    fn make_table(&mut self) {
        let mut table = HashTable::with_capacity(self.slots.capacity());
        for (position, slot) in self.slots.iter().enumerate() {
            if let Some((key, _)) = slot.entry() {
                let new = HashedPosition::new(hash_of(key), position);
                table.insert_unique(new.table_hash(), new, HashedPosition::table_hash);
            }
        }
        self.index = KeyIndex::Table(table);
    }
}

/// Returns the position of a key among consecutive integers.
#[inline]
fn offset(key: &Value, first: i64) -> Option<usize> {
    let Value::Int(number) = key else { return None };
    usize::try_from(number.checked_sub(first)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_keys(keys: impl IntoIterator<Item = i64>) -> Dictionary {
        let mut dictionary = Dictionary::default();
        keys.into_iter().for_each(|key| drop(dictionary.insert(Value::Int(key), Value::Int(key))));
        dictionary
    }

    fn has_table(dictionary: &Dictionary) -> bool {
        matches!(dictionary.index, KeyIndex::Table(_))
    }

    #[test]
    fn consecutive_integers_have_no_hash_table() {
        let mut dictionary = with_keys(-5..1_000);
        assert!(!has_table(&dictionary));
        (-5..900).for_each(|_| drop(dictionary.remove_first()));
        assert!(!has_table(&dictionary) && dictionary.positions() < 250, "{} positions", dictionary.positions());
        assert!((900..1_000).all(|key| dictionary.get(&Value::Int(key)) == Some(&Value::Int(key))));
        assert_eq!([899, 1_000, i64::MIN, i64::MAX].map(|key| dictionary.get(&Value::Int(key))), [None; 4]);
        (900..1_000).for_each(|_| drop(dictionary.remove_first()));
        (7..100).for_each(|key| drop(dictionary.insert(Value::Int(key), Value::Unit)));
        assert!(!has_table(&dictionary) && dictionary.len() == 93);
    }

    #[test]
    fn other_keys_get_a_hash_table() {
        let ends = [i64::MIN, i64::MAX, 0];
        for other in [-2, 21, 7, i64::MIN, i64::MAX] {
            let mut dictionary = with_keys(0..20);
            dictionary.remove_key(&Value::Int(7));
            assert_eq!(dictionary.insert(Value::Int(other), Value::Unit), None);
            assert!(has_table(&dictionary) && dictionary.get(&Value::Int(other)) == Some(&Value::Unit), "{other}");
            assert!((0..20).all(|key| key == 7 || dictionary.get(&Value::Int(key)) == Some(&Value::Int(key))));
        }
        assert!(has_table(&with_keys((0..20).chain([5, 30]))) && has_table(&with_keys(ends.into_iter().chain(1..20))));
    }
}
