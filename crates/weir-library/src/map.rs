//! Functions on maps: keys, values, entries, and copies with an entry added or removed. Entries keep their order of
//! insertion.
//!
//! Maps are immutable; every function returns a new one. `map[key]` is the value under a key.

use indexmap::IndexMap;
use weir::Generic;

type MapKey = Generic<'K'>;
type MapValue = Generic<'V'>;

weir::library! {
    /// Functions on maps: keys, values, entries, and copies with an entry added or removed.
    pub(crate) map: keys, values, entries, of, sort, contains, with, without, merged
}

/// Returns the keys, in order.
#[weir::function(pure)]
pub fn keys(map: IndexMap<MapKey, MapValue>) -> Vec<MapKey> {
    map.into_keys().collect()
}

/// Returns the values, in the order of their keys.
#[weir::function(pure)]
pub fn values(map: IndexMap<MapKey, MapValue>) -> Vec<MapValue> {
    map.into_values().collect()
}

/// Returns each key with its value.
#[weir::function(pure)]
pub fn entries(map: IndexMap<MapKey, MapValue>) -> Vec<(MapKey, MapValue)> {
    map.into_iter().collect()
}

/// Creates a map from entries; if a key occurs several times, its last value counts.
#[weir::function(pure)]
pub fn of(entries: Vec<(MapKey, MapValue)>) -> IndexMap<MapKey, MapValue> {
    entries.into_iter().collect()
}

/// Returns the map with its keys in ascending order.
#[weir::function(pure)]
pub fn sort(mut map: IndexMap<MapKey, MapValue>) -> IndexMap<MapKey, MapValue> {
    map.sort_unstable_keys();
    map
}

/// Returns `true` if the map has the key.
#[weir::function(pure)]
pub fn contains(map: IndexMap<MapKey, MapValue>, key: &MapKey) -> bool {
    map.contains_key(key)
}

/// Returns the map with this value under the key.
#[weir::function(pure)]
pub fn with(mut map: IndexMap<MapKey, MapValue>, key: MapKey, value: MapValue) -> IndexMap<MapKey, MapValue> {
    map.insert(key, value);
    map
}

/// Returns the map without the key.
#[weir::function(pure)]
pub fn without(mut map: IndexMap<MapKey, MapValue>, key: &MapKey) -> IndexMap<MapKey, MapValue> {
    map.shift_remove(key);
    map
}

/// Returns the entries of both maps; for a key in both, the value of the second counts.
#[weir::function(pure)]
pub fn merged(map: IndexMap<MapKey, MapValue>, other: IndexMap<MapKey, MapValue>) -> IndexMap<MapKey, MapValue> {
    let mut merged = map;
    merged.extend(other);
    merged
}
