//! Maps: their keys, their values, and maps with one entry more or less. Entries keep the order in which they came.
//!
//! A map is never changed; each function gives another one. `map[key]` is what is under a key.

use weir::{Entries, Generic, Value};

type MapKey = Generic<'K'>;
type MapValue = Generic<'V'>;

weir::library! {
    /// Maps: their keys, their values, and maps with one entry more or less.
    pub(crate) map: keys, values, entries, of, sort, contains, with, without, merged
}

/// The keys, in order.
#[weir::function(pure)]
pub fn keys(map: &Entries) -> Vec<MapKey> {
    map.keys().cloned().map(Generic).collect()
}

/// The values, in the order of their keys.
#[weir::function(pure)]
pub fn values(map: Entries) -> Vec<MapValue> {
    map.into_iter().map(|(_, value)| Generic(value)).collect()
}

/// Each key with its value.
#[weir::function(pure)]
pub fn entries(map: Entries) -> Vec<(MapKey, MapValue)> {
    map.into_iter().map(|(key, value)| (Generic(key), Generic(value))).collect()
}

/// The map of keys and values; the last value of a key counts.
#[weir::function(pure)]
pub fn of(entries: Vec<(MapKey, MapValue)>) -> Entries {
    entries.into_iter().map(|(key, value)| (key.0, value.0)).collect()
}

/// The map with its keys from the least to the greatest.
#[weir::function(pure)]
pub fn sort(map: Entries) -> Entries {
    let mut entries: Vec<(Value, Value)> = map.into_iter().collect();
    entries.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    entries.into_iter().collect()
}

/// Whether there is something under the key.
#[weir::function(pure)]
pub fn contains(map: &Entries, key: &MapKey) -> bool {
    map.contains_key(&key.0)
}

/// The map with this value under the key. Takes constant time if the map is not used afterwards.
#[weir::function(pure)]
pub fn with(mut map: Entries, key: MapKey, value: MapValue) -> Entries {
    map.insert(key.0, value.0);
    map
}

/// The map with nothing under the key. Takes constant time if the map is not used afterwards.
#[weir::function(pure)]
pub fn without(mut map: Entries, key: &MapKey) -> Entries {
    map.remove(&key.0);
    map
}

/// The entries of both; where both have a key, the value of the second.
#[weir::function(pure)]
pub fn merged(mut map: Entries, other: Entries) -> Entries {
    map.extend(other);
    map
}
