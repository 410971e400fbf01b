//! A persistent dictionary: a trie of entries in the order of insertion, and a trie of hashes.
//!
//! Every entry has a number, which grows with each insertion; both tries share their nodes with the dictionary's clones.
//! Nodes list only what is present, so that nothing is ever compacted: each operation takes logarithmic time, however
//! many entries were removed before.
//!
//! A persistent dictionary begins over a *base*, the compact dictionary that a snapshot holds too, whose positions are the
//! first numbers. Creating it therefore takes constant time. Each change adopts a few entries of the base,
//! [`ADOPTED`], from the first on, until none is left:
//! * Below [`DictionaryBase::adopted`] the tries have every entry.
//! * From there on the trie of entries has those that were replaced, and an empty one for each that was removed. All others
//!   are in the base, which also finds their keys.

use triomphe::Arc;

use super::dictionary::Dictionary;
use super::hash_of;
use super::index::Index;
use crate::Value;
use crate::value::trie::{self, Trie};

/// A dictionary whose clones share what they have in common.
#[derive(Clone)]
pub(super) struct PersistentDictionary {
    /// Entries by their numbers.
    entries: Trie<Entry>,
    /// Numbers by the hashes of their keys.
    index: Index,
    base: Option<DictionaryBase>,
    /// The number of the next entry.
    next: u64,
    length: usize,
}

/// A compact dictionary, some of whose entries are in the tries already.
#[derive(Clone)]
struct DictionaryBase {
    dictionary: Arc<Dictionary>,
    /// No entry below this position is looked for in the dictionary.
    adopted: usize,
}

/// An entry, or the place of one that was removed from the base: its key is [`Value::Absent`].
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) hash: u64,
    pub(super) key: Value,
    pub(super) value: Value,
}

/// The number of positions of the base that each change adopts.
const ADOPTED: usize = 4;

impl Entry {
    fn removed() -> Entry {
        Entry { hash: 0, key: Value::Absent, value: Value::Absent }
    }

    fn is_removed(&self) -> bool {
        self.key.is_absent()
    }
}

impl DictionaryBase {
    /// Returns the entry of a number, if the tries need not have it.
    fn entry(&self, number: u64) -> Option<(&Value, &Value)> {
        let position = usize::try_from(number).ok().filter(|position| *position >= self.adopted)?;
        self.dictionary.at(position)?.entry()
    }
}

impl PersistentDictionary {
    /// Creates a dictionary with the entries of a compact one.
    pub(super) fn over(dictionary: Arc<Dictionary>) -> PersistentDictionary {
        let (next, length) = (dictionary.positions() as u64, dictionary.len());
        let base = Some(DictionaryBase { dictionary, adopted: 0 });
        PersistentDictionary { entries: Trie::default(), index: Index::default(), base, next, length }
    }

    pub(super) fn len(&self) -> usize {
        self.length
    }

    pub(super) fn get(&self, key: &Value) -> Option<&Value> {
        let number = self.find(hash_of(key), key)?;
        self.entry(number).map(|(_, value)| value)
    }

    pub(super) fn insert(&mut self, key: Value, value: Value) -> Option<Value> {
        self.adopt();
        let hash = hash_of(&key);
        let Some(number) = self.find(hash, &key) else {
            self.index.insert(hash, self.next);
            self.entries.insert(self.next, Entry { hash, key, value });
            self.next += 1;
            self.length += 1;
            return None;
        };
        if let Some(entry) = self.entries.get_mut(number) {
            return Some(std::mem::replace(&mut entry.value, value));
        }
        let (key, before) = self.base.as_ref().and_then(|base| base.entry(number)).expect("the number was found");
        let (key, before) = (key.clone(), before.clone());
        self.entries.insert(number, Entry { hash, key, value });
        Some(before)
    }

    pub(super) fn remove_key(&mut self, key: &Value) -> Option<Value> {
        self.adopt();
        let number = self.find(hash_of(key), key)?;
        self.remove_entry(number).map(|(_, value)| value)
    }

    pub(super) fn remove_first(&mut self) -> Option<(Value, Value)> {
        self.adopt();
        let number = self.first()?;
        self.remove_entry(number)
    }

    /// Returns the number of positions that were adopted from the base.
    #[cfg(test)]
    pub(super) fn adopted(&self) -> usize {
        self.base.as_ref().map_or(usize::MAX, |base| base.adopted)
    }

    /// Iterates over the entries in their order.
    pub(super) fn iter(&self) -> PersistentIter<'_> {
        match &self.base {
            None => PersistentIter::Trie(self.entries.iter()),
            Some(_) => PersistentIter::Numbers(self, 0),
        }
    }

    /// Returns the entries: moved if they are not shared, cloned otherwise.
    pub(super) fn into_entries(self) -> Vec<(Value, Value)> {
        if self.base.is_some() {
            return self.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        }
        let mut all = Vec::with_capacity(self.length);
        self.entries.append_to(&mut all);
        all.into_iter().map(|entry| (entry.key, entry.value)).collect()
    }

    /// Returns the entry of a number; `None` if there is none or if it was removed.
    fn entry(&self, number: u64) -> Option<(&Value, &Value)> {
        match self.entries.get(number) {
            Some(entry) if entry.is_removed() => None,
            Some(entry) => Some((&entry.key, &entry.value)),
            None => self.base.as_ref()?.entry(number),
        }
    }

    /// Returns the number of a key.
    fn find(&self, hash: u64, key: &Value) -> Option<u64> {
        let is_key = |number: u64| self.entry(number).is_some_and(|(found, _)| found == key);
        let found = self.index.find(hash, is_key);
        found.or_else(|| {
            let base = self.base.as_ref()?;
            let position = base.dictionary.find_with(key, || hash).filter(|position| *position >= base.adopted)?;
            is_key(position as u64).then_some(position as u64)
        })
    }

    /// Returns the number of the first entry. Forgets what was removed before it.
    fn first(&mut self) -> Option<u64> {
        while let Some(base) = &self.base {
            let adopted = base.adopted as u64;
            let first = self.entries.first().map(|(number, _)| number);
            if first.is_some_and(|first| first < adopted) {
                return first;
            }
            if base.adopted == base.dictionary.positions() {
                break;
            }
            if self.entry(adopted).is_some() {
                return Some(adopted);
            }
            self.adopt_next();
        }
        self.entries.first().map(|(number, _)| number)
    }

    fn remove_entry(&mut self, number: u64) -> Option<(Value, Value)> {
        let Some((key, value)) = self.base.as_ref().and_then(|base| base.entry(number)) else {
            let entry = self.entries.remove(number)?;
            self.index.remove(entry.hash, number);
            self.length -= 1;
            return Some((entry.key, entry.value));
        };
        self.length -= 1;
        if let Some(entry) = self.entries.get_mut(number) {
            let entry = std::mem::replace(entry, Entry::removed());
            return Some((entry.key, entry.value));
        }
        let removed = (key.clone(), value.clone());
        self.entries.insert(number, Entry::removed());
        Some(removed)
    }

    /// Adopts a few positions of the base; lets it go if none is left.
    fn adopt(&mut self) {
        if self.base.is_none() {
            return;
        }
        (0..ADOPTED).for_each(|_| self.adopt_next());
        if self.base.as_ref().is_some_and(|base| base.adopted == base.dictionary.positions()) {
            self.base = None;
        }
    }

    /// Moves the next position of the base into the tries.
    fn adopt_next(&mut self) {
        let Some(base) = &mut self.base else { return };
        let Some(slot) = base.dictionary.at(base.adopted) else { return };
        let number = base.adopted as u64;
        base.adopted += 1;
        match (self.entries.get(number), slot.entry()) {
            (Some(entry), _) if entry.is_removed() => drop(self.entries.remove(number)),
            (Some(entry), _) => self.index.insert(entry.hash, number),
            (None, Some((key, value))) => {
                let entry = Entry { hash: hash_of(key), key: key.clone(), value: value.clone() };
                self.index.insert(entry.hash, number);
                self.entries.insert(number, entry);
            }
            (None, None) => {}
        }
    }
}

/// The entries of a persistent dictionary in the order of insertion.
#[derive(Clone)]
pub(super) enum PersistentIter<'v> {
    /// All entries are in the trie.
    Trie(trie::TrieIter<'v, Entry>),
    /// The number of the next entry, of a dictionary with a base.
    Numbers(&'v PersistentDictionary, u64),
}

impl<'v> Iterator for PersistentIter<'v> {
    type Item = (&'v Value, &'v Value);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self {
            PersistentIter::Trie(entries) => entries.next().map(|entry| (&entry.key, &entry.value)),
            PersistentIter::Numbers(dictionary, next) => {
                while *next < dictionary.next {
                    *next += 1;
                    if let Some(entry) = dictionary.entry(*next - 1) {
                        return Some(entry);
                    }
                }
                None
            }
        }
    }
}
