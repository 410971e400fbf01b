//! Maps: their keys, their values, and maps with one entry more or less. Entries keep the order in which they came.
//!
//! A map is never changed; each function gives another one. `map[key]` is what is under a key.

use indexmap::IndexMap;
use weir::Generic;

type MapKey = Generic<'K'>;
type MapValue = Generic<'V'>;

weir::library! {
    /// Maps: their keys, their values, and maps with one entry more or less.
    pub(crate) map: keys, values, entries, of, sort, contains, with, without, merged
}

/// The keys, in order.
#[weir::function(pure, total)]
pub fn keys(map: IndexMap<MapKey, MapValue>) -> Vec<MapKey> {
    map.into_keys().collect()
}

/// The values, in the order of their keys.
#[weir::function(pure, total)]
pub fn values(map: IndexMap<MapKey, MapValue>) -> Vec<MapValue> {
    map.into_values().collect()
}

/// Each key with its value.
#[weir::function(pure, total)]
pub fn entries(map: IndexMap<MapKey, MapValue>) -> Vec<(MapKey, MapValue)> {
    map.into_iter().collect()
}

/// The map of keys and values; the last value of a key counts.
#[weir::function(pure, total)]
pub fn of(entries: Vec<(MapKey, MapValue)>) -> IndexMap<MapKey, MapValue> {
    entries.into_iter().collect()
}

/// The map with its keys from the least to the greatest.
#[weir::function(pure, total)]
pub fn sort(mut map: IndexMap<MapKey, MapValue>) -> IndexMap<MapKey, MapValue> {
    map.sort_unstable_keys();
    map
}

/// Whether there is something under the key.
#[weir::function(pure, total)]
pub fn contains(map: IndexMap<MapKey, MapValue>, key: &MapKey) -> bool {
    map.contains_key(key)
}

/// The map with this value under the key.
#[weir::function(pure, total)]
pub fn with(mut map: IndexMap<MapKey, MapValue>, key: MapKey, value: MapValue) -> IndexMap<MapKey, MapValue> {
    map.insert(key, value);
    map
}

/// The map with nothing under the key.
#[weir::function(pure, total)]
pub fn without(mut map: IndexMap<MapKey, MapValue>, key: &MapKey) -> IndexMap<MapKey, MapValue> {
    map.shift_remove(key);
    map
}

/// The entries of both; where both have a key, the value of the second.
#[weir::function(pure, total)]
pub fn merged(map: IndexMap<MapKey, MapValue>, other: IndexMap<MapKey, MapValue>) -> IndexMap<MapKey, MapValue> {
    let mut merged = map;
    merged.extend(other);
    merged
}
