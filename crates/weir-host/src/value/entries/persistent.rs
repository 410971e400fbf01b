//! A persistent dictionary: a trie of entries in the order of insertion, and a trie of hashes.
//!
//! Every entry has a number, which grows with each insertion; both tries share their nodes with the dictionary's clones.
//! Nodes list only what is present, so that nothing is ever compacted: each operation takes logarithmic time, however
//! many entries were removed before.

use super::hash_of;
use super::index::Index;
use crate::Value;
use crate::value::trie::{self, Trie};

/// A dictionary whose clones share what they have in common.
#[derive(Clone, Default)]
pub(super) struct PersistentDictionary {
    /// Entries by their numbers.
    entries: Trie<Entry>,
    /// Numbers by the hashes of their keys.
    index: Index,
    /// The number of the next entry.
    next: u64,
    length: usize,
}

#[derive(Clone)]
pub(super) struct Entry {
    pub(super) hash: u64,
    pub(super) key: Value,
    pub(super) value: Value,
}

impl PersistentDictionary {
    pub(super) fn len(&self) -> usize {
        self.length
    }

    pub(super) fn get(&self, key: &Value) -> Option<&Value> {
        let number = self.find(hash_of(key), key)?;
        self.entries.get(number).map(|entry| &entry.value)
    }

    pub(super) fn insert(&mut self, key: Value, value: Value) -> Option<Value> {
        let hash = hash_of(&key);
        if let Some(number) = self.find(hash, &key) {
            let entry = self.entries.get_mut(number).expect("the index names no gaps");
            return Some(std::mem::replace(&mut entry.value, value));
        }
        self.index.insert(hash, self.next);
        self.entries.insert(self.next, Entry { hash, key, value });
        self.next += 1;
        self.length += 1;
        None
    }

    pub(super) fn remove_key(&mut self, key: &Value) -> Option<Value> {
        let number = self.find(hash_of(key), key)?;
        self.remove_entry(number).map(|entry| entry.value)
    }

    pub(super) fn remove_first(&mut self) -> Option<(Value, Value)> {
        let (number, _) = self.entries.first()?;
        self.remove_entry(number).map(|entry| (entry.key, entry.value))
    }

    pub(super) fn iter(&self) -> trie::TrieIter<'_, Entry> {
        self.entries.iter()
    }

    /// Returns the entries: moved if they are not shared, cloned otherwise.
    pub(super) fn into_entries(self) -> Vec<Entry> {
        let mut all = Vec::with_capacity(self.length);
        self.entries.append_to(&mut all);
        all
    }

    fn find(&self, hash: u64, key: &Value) -> Option<u64> {
        self.index.find(hash, |number| self.entries.get(number).is_some_and(|entry| entry.key == *key))
    }

    fn remove_entry(&mut self, number: u64) -> Option<Entry> {
        let entry = self.entries.remove(number)?;
        self.index.remove(entry.hash, number);
        self.length -= 1;
        Some(entry)
    }
}

impl FromIterator<Entry> for PersistentDictionary {
    /// Collects entries with different keys.
    fn from_iter<I: IntoIterator<Item = Entry>>(entries: I) -> Self {
        let mut hashes = Vec::new();
        let number = |entry: &Entry| hashes.push((entry.hash, hashes.len() as u64));
        let entries = entries.into_iter().inspect(number).collect();
        let length = hashes.len();
        PersistentDictionary { entries, index: Index::collect(hashes), next: length as u64, length }
    }
}
