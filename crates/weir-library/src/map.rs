//! Maps: their keys, their values, and maps with one entry more or less. Entries keep the order in which they came.
//!
//! A map is never changed; each function gives another one. `map[key]` is what is under a key.

use indexmap::IndexMap;
use weir::Generic;

type Key = Generic<'K'>;
type Held = Generic<'V'>;

weir::library! {
    /// Maps: their keys, their values, and maps with one entry more or less.
    pub(crate) map: keys, values, entries, of, sort, contains, with, without, merged
}

/// The keys, in order.
#[weir::function(pure)]
pub fn keys(map: IndexMap<Key, Held>) -> Vec<Key> {
    map.into_keys().collect()
}

/// The values, in the order of their keys.
#[weir::function(pure)]
pub fn values(map: IndexMap<Key, Held>) -> Vec<Held> {
    map.into_values().collect()
}

/// Each key with its value.
#[weir::function(pure)]
pub fn entries(map: IndexMap<Key, Held>) -> Vec<(Key, Held)> {
    map.into_iter().collect()
}

/// The map of keys and values; the last value of a key counts.
#[weir::function(pure)]
pub fn of(entries: Vec<(Key, Held)>) -> IndexMap<Key, Held> {
    entries.into_iter().collect()
}

/// The map with its keys from the least to the greatest.
#[weir::function(pure)]
pub fn sort(mut map: IndexMap<Key, Held>) -> IndexMap<Key, Held> {
    map.sort_unstable_keys();
    map
}

/// Whether there is something under the key.
#[weir::function(pure)]
pub fn contains(map: IndexMap<Key, Held>, key: &Key) -> bool {
    map.contains_key(key)
}

/// The map with this value under the key.
#[weir::function(pure)]
pub fn with(mut map: IndexMap<Key, Held>, key: Key, value: Held) -> IndexMap<Key, Held> {
    map.insert(key, value);
    map
}

/// The map with nothing under the key.
#[weir::function(pure)]
pub fn without(mut map: IndexMap<Key, Held>, key: &Key) -> IndexMap<Key, Held> {
    map.shift_remove(key);
    map
}

/// The entries of both; where both have a key, the value of the second.
#[weir::function(pure)]
pub fn merged(map: IndexMap<Key, Held>, other: IndexMap<Key, Held>) -> IndexMap<Key, Held> {
    let mut merged = map;
    merged.extend(other);
    merged
}
