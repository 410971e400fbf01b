//! The entries of a map, in the order of insertion.
//!
//! They have one of two forms. A map begins as a compact [`Dictionary`], which is the fastest to read and to change while
//! it has one owner, and has to be copied as a whole if it is changed beside another owner. One of more than
//! [`COPIED_MAX`] entries becomes a [`PersistentDictionary`] instead, of which a change copies only the path to the changed
//! entry. It stays one.
//!
//! Hashes are seeded anew in each process, so that a client cannot construct keys that collide. The seed has no effect
//! on a program: all orders are those of insertion, in both forms.

mod dictionary;
mod index;
mod persistent;

use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::sync::LazyLock;

use foldhash::fast::RandomState;
use triomphe::Arc;

use self::dictionary::{Dictionary, Slot};
use self::persistent::{PersistentDictionary, PersistentIter};
use crate::Value;

/// The entries of a map. Cloning increments a reference count; a change copies entries only if they are shared
/// (copy-on-write), and a bounded number of them.
#[derive(Clone)]
pub struct Entries {
    form: MapForm,
}

#[derive(Clone)]
enum MapForm {
    Compact(Arc<Dictionary>),
    Persistent(Arc<PersistentDictionary>),
}

/// The maximum number of entries that a change copies if they are shared. A change of a persistent dictionary is cheaper
/// from some 50 entries on (`bench-language --snapshots`), but a compact one is faster to read.
const COPIED_MAX: usize = 128;

/// Seed of all hashes of this process.
pub(super) static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::default);

/// Returns the hash of a key. Neighbouring integers get neighbouring hashes, [`NEIGHBOURS`] in a row, so that the positions
/// of integers that come one after the other lie in neighbouring lines of the processor's cache.
#[inline]
fn hash_of(key: &Value) -> u64 {
    match key {
        Value::Int(number) => {
            let (group, member) = (number.cast_unsigned() / NEIGHBOURS, number.cast_unsigned() % NEIGHBOURS);
            // A hash table, which keeps 32 bits, tells the members of a group apart by the highest ones.
            SEED.hash_one(group).wrapping_add(member) ^ (member << (u32::BITS - 6))
        }
        Value::Text(text) => {
            let mut hasher = SEED.build_hasher();
            match text.words() {
                Some([first, second]) => hasher.write_u128(u128::from(first) | (u128::from(second) << u64::BITS)),
                // The keys of a map have one type, so that the length need not be part of the hash.
                None => hasher.write(text.as_bytes()),
            }
            hasher.finish()
        }
        other => hash_of_other(other),
    }
}

#[inline(never)]
fn hash_of_other(key: &Value) -> u64 {
    SEED.hash_one(key)
}

/// The number of neighbouring integers with neighbouring hashes. The table tells them apart by six bits.
const NEIGHBOURS: u64 = 64;

/// The dictionary for a change.
enum Change<'e> {
    Compact(&'e mut Dictionary),
    Persistent(&'e mut PersistentDictionary),
}

/// Calls the same method of either form.
macro_rules! either {
    ($kind:ident, $form:expr, $dictionary:ident => $call:expr) => {
        match $form {
            $kind::Compact($dictionary) => $call,
            $kind::Persistent($dictionary) => $call,
        }
    };
}

impl Default for Entries {
    fn default() -> Self {
        Entries { form: MapForm::Compact(Arc::default()) }
    }
}

impl Entries {
    /// Returns an empty map with this capacity.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Entries { form: MapForm::Compact(Arc::new(Dictionary::with_capacity(capacity))) }
    }

    /// Returns the number of entries.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        either!(MapForm, &self.form, dictionary => dictionary.len())
    }

    /// Returns `true` if there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the value under a key.
    #[must_use]
    pub fn get(&self, key: &Value) -> Option<&Value> {
        either!(MapForm, &self.form, dictionary => dictionary.get(key))
    }

    /// Returns the value under a key. If nobody else holds the map, the next change of the same entry finds it at once.
    #[must_use]
    pub fn get_to_change(&mut self, key: &Value) -> Option<&Value> {
        match &mut self.form {
            MapForm::Compact(dictionary) => match Arc::is_unique(dictionary) {
                true => Arc::get_mut(dictionary)?.get_mut(key).map(|value| &*value),
                false => dictionary.get(key),
            },
            MapForm::Persistent(dictionary) => dictionary.get(key),
        }
    }

    /// Returns the value under a key, to change it where it is; `Some(None)` if there is none. Returns `None` if that would
    /// copy entries, because others hold them.
    #[inline]
    #[must_use]
    pub fn entry_to_change(&mut self, key: &Value) -> Option<Option<&mut Value>> {
        let MapForm::Compact(dictionary) = &mut self.form else { return None };
        Some(Arc::get_mut(dictionary)?.get_mut(key))
    }

    /// Returns the value under a key to replace it, if nobody else holds the map and the key is the one that was found
    /// last.
    #[inline]
    #[must_use]
    pub fn found_last(&mut self, key: &Value) -> Option<&mut Value> {
        let MapForm::Compact(dictionary) = &mut self.form else { return None };
        Arc::get_mut(dictionary)?.recent_mut(key)
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
        either!(Change, self.change(), dictionary => dictionary.insert(key, value))
    }

    /// Removes the value under a key and returns it. The other entries keep their order. Nothing is copied if the key
    /// is missing.
    pub fn remove(&mut self, key: &Value) -> Option<Value> {
        if self.is_shared() && !self.contains_key(key) {
            return None;
        }
        either!(Change, self.change(), dictionary => dictionary.remove_key(key))
    }

    /// Removes the first entry in the order of insertion and returns it.
    pub fn remove_first(&mut self) -> Option<(Value, Value)> {
        if self.is_empty() {
            return None;
        }
        either!(Change, self.change(), dictionary => dictionary.remove_first())
    }

    /// Iterates over the entries in the order of insertion.
    #[must_use]
    pub fn iter(&self) -> EntryIter<'_> {
        let form = match &self.form {
            MapForm::Compact(dictionary) => MapFormIter::Compact(dictionary.slots()),
            MapForm::Persistent(dictionary) => MapFormIter::Persistent(dictionary.iter()),
        };
        EntryIter { form, left: self.len() }
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
        if self.is_shared() {
            return None;
        }
        if let MapForm::Persistent(_) = self.form {
            *self = std::mem::take(self).into_iter().collect();
        }
        let MapForm::Compact(dictionary) = &mut self.form else { return None };
        Arc::get_mut(dictionary).map(Dictionary::iter_mut)
    }

    /// Returns the value under a key: moved out if the entries are not shared, so that [`Value::Absent`] stays behind, and
    /// otherwise copied.
    #[must_use]
    pub fn take(&mut self, key: &Value) -> Option<Value> {
        match &mut self.form {
            MapForm::Compact(dictionary) => match Arc::get_mut(dictionary) {
                Some(dictionary) => dictionary.get_mut(key).map(Value::take),
                None => dictionary.get(key).cloned(),
            },
            MapForm::Persistent(dictionary) => match Arc::get_mut(dictionary) {
                Some(dictionary) if dictionary.get(key).is_some() => dictionary.insert(key.clone(), Value::Absent),
                _ => dictionary.get(key).cloned(),
            },
        }
    }

    /// Puts the value under a key into a slot, moved out as [`Entries::take`] does; returns `false` if there is none.
    #[inline]
    #[must_use]
    pub fn take_to(&mut self, key: &Value, slot: &mut Value) -> bool {
        if let MapForm::Compact(dictionary) = &mut self.form
            && let Some(dictionary) = Arc::get_mut(dictionary)
        {
            return dictionary.get_mut(key).map(|value| value.move_to(slot)).is_some();
        }
        self.take(key).map(|value| slot.put(value)).is_some()
    }

    /// Returns the address of the entries in memory.
    pub(super) fn address(&self) -> usize {
        either!(MapForm, &self.form, dictionary => Arc::as_ptr(dictionary).addr())
    }

    /// Returns `true` if the entries are shared.
    pub(super) fn is_shared(&self) -> bool {
        either!(MapForm, &self.form, dictionary => Arc::strong_count(dictionary) > 1)
    }

    /// Returns `true` if two maps are the same in memory.
    pub(super) fn is_same(&self, other: &Entries) -> bool {
        self.address() == other.address()
    }

    /// Returns the dictionary for a change: the entries' own, or a copy of it if it is shared.
    #[inline]
    fn change(&mut self) -> Change<'_> {
        if let MapForm::Compact(dictionary) = &self.form
            && dictionary.len() > COPIED_MAX
            && Arc::strong_count(dictionary) > 1
        {
            self.form = MapForm::Persistent(Arc::new(PersistentDictionary::over(Arc::clone(dictionary))));
        }
        match &mut self.form {
            MapForm::Compact(dictionary) => Change::Compact(Arc::make_mut(dictionary)),
            MapForm::Persistent(dictionary) => Change::Persistent(Arc::make_mut(dictionary)),
        }
    }
}

/// The entries of a map in the order of insertion.
#[derive(Clone)]
pub struct EntryIter<'v> {
    form: MapFormIter<'v>,
    left: usize,
}

#[derive(Clone)]
enum MapFormIter<'v> {
    Compact(std::slice::Iter<'v, Slot>),
    Persistent(PersistentIter<'v>),
}

impl<'v> Iterator for EntryIter<'v> {
    type Item = (&'v Value, &'v Value);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let entry = match &mut self.form {
            MapFormIter::Compact(slots) => slots.find_map(Slot::entry)?,
            MapFormIter::Persistent(entries) => entries.next()?,
        };
        self.left -= 1;
        Some(entry)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for EntryIter<'_> {}

impl<'v> IntoIterator for &'v Entries {
    type Item = (&'v Value, &'v Value);
    type IntoIter = EntryIter<'v>;

    fn into_iter(self) -> EntryIter<'v> {
        self.iter()
    }
}

/// Yields keys and values: moved if they are not shared, cloned otherwise.
impl IntoIterator for Entries {
    type Item = (Value, Value);
    type IntoIter = std::vec::IntoIter<(Value, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        let entries: Vec<_> = match self.form {
            MapForm::Compact(dictionary) => Arc::unwrap_or_clone(dictionary).into_entries().collect(),
            MapForm::Persistent(dictionary) => Arc::unwrap_or_clone(dictionary).into_entries(),
        };
        entries.into_iter()
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
        let mut change = self.change();
        for (key, value) in entries {
            either!(Change, &mut change, dictionary => dictionary.insert(key, value));
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
mod tests;
