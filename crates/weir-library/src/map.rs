//! Functions on maps: keys, values, entries, and copies with an entry added or removed. Entries keep their order of
//! insertion.
//!
//! Maps are immutable; every function returns a new one. `map[key]` is the value under a key.

use weir::{Entries, Generic, Value};

use crate::{room, units};

type MapKey = Generic<'k'>;
type MapValue = Generic<'v'>;

weir::library! {
    /// Functions on maps: keys, values, entries, and copies with an entry added or removed.
    pub(crate) map: keys, values, entries, of, sort, contains, with, without, merged
}

/// Returns the keys, in order.
#[weir::function(pure, total, room = room::of_values(map.len()), units = units::length(map))]
pub fn keys(map: &Entries) -> Vec<MapKey> {
    map.keys().cloned().map(Generic).collect()
}

/// Returns the values, in the order of their keys.
#[weir::function(pure, total, room = room::of_values(map.len()), units = units::length(map))]
pub fn values(map: Entries) -> Vec<MapValue> {
    map.into_iter().map(|(_, value)| Generic(value)).collect()
}

/// Returns each key with its value.
#[weir::function(pure, total, room = room::of_pairs(map.len()), units = 4 * units::length(map))]
pub fn entries(map: Entries) -> Vec<(MapKey, MapValue)> {
    map.into_iter().map(|(key, value)| (Generic(key), Generic(value))).collect()
}

/// Creates a map from entries; if a key occurs several times, its last value counts.
#[weir::function(pure, total, room = room::of_pairs(entries.len()), units = 8 * units::length(entries))]
pub fn of(entries: Vec<(MapKey, MapValue)>) -> Entries {
    entries.into_iter().map(|(key, value)| (key.0, value.0)).collect()
}

/// Returns the map with its keys in ascending order.
#[weir::function(pure, total, room = room::of_pairs(map.len()), units = units::to_sort(map))]
pub fn sort(map: Entries) -> Entries {
    let mut entries: Vec<(Value, Value)> = map.into_iter().collect();
    entries.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    entries.into_iter().collect()
}

/// Returns `true` if the map has the key.
#[weir::function(pure, total)]
pub fn contains(map: &Entries, key: &MapKey) -> bool {
    map.contains_key(&key.0)
}

/// Returns the map with this value under the key, in constant time if the map is not used afterwards.
#[weir::function(pure, total, replaces_element)]
pub fn with(mut map: Entries, key: MapKey, value: MapValue) -> Entries {
    map.insert(key.0, value.0);
    map
}

/// Returns the map without the key, in constant time if the map is not used afterwards.
#[weir::function(pure, total)]
pub fn without(mut map: Entries, key: &MapKey) -> Entries {
    map.remove(&key.0);
    map
}

/// Returns the entries of both maps; for a key in both, the value of the second counts.
#[weir::function(pure, total, room = room::of_pairs(other.len()), units = 8 * units::length(other))]
pub fn merged(mut map: Entries, other: Entries) -> Entries {
    map.extend(other);
    map
}
