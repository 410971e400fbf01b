//! The cache of Flux's image server: bounded, least frequently used first out, with reference counts.
//!
//! Flux (§2.5) has three nodes at the cache: `CheckCache` increments the reference count of the item it finds,
//! `StoreInCache` evicts the least frequently used item *with a zero reference count*, and `Complete` decrements it.
//! Here the value that [`get`] hands out holds the reference, and dropping it releases it, on whatever thread that is:
//! so a flow that fails cannot forget to. The count is the one that [`Bytes`] keeps of its clones anyway.

use std::fmt;

use bytes::Bytes;
use weir::Size;

use super::lfu::LfuCache;

/// What an entry is charged beyond its key and value: its places in the map and in the order.
const ENTRY_BYTES: u64 = 192;

/// Bytes by key, of bounded size.
#[derive(weir::Type)]
#[weir(opaque, unique, name = "image.Cache")]
pub struct Cache {
    entries: LfuCache<Bytes>,
}

impl Cache {
    /// An empty cache whose keys and values, with 192 bytes for each entry, take at most `capacity` bytes.
    pub fn new(capacity: u64) -> Self {
        Cache { entries: LfuCache::new(capacity) }
    }

    /// The value of `key`, whose use is counted. While any clone of it lives, the entry is not evicted.
    pub fn get(&mut self, key: &str) -> Option<Bytes> {
        self.entries.get(key).cloned()
    }

    /// Puts `value` under `key` in place of what was there, evicting what was used least, and of that what was used
    /// longest ago; nothing that is in use. False, and nothing under `key`, where the value is larger than the cache
    /// or what is left of it is in use.
    pub fn put(&mut self, key: &str, value: Bytes) -> bool {
        let size = ENTRY_BYTES + key.len() as u64 + value.len() as u64;
        // A copy: its count then has only what this cache hands out and not the giver's clones, and it is charged what
        // it takes even where the giver's value is a slice of something large.
        // An empty value has no count, and its holder loses nothing with it.
        let free = |held: &Bytes| held.is_empty() || held.is_unique();
        self.entries.put(key, Bytes::copy_from_slice(&value), size, free)
    }

    /// Whether `key` has a value; does not count as a use.
    pub fn contains(&self, key: &str) -> bool {
        self.entries.contains(key)
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes taken, of `capacity`.
    pub fn bytes(&self) -> u64 {
        self.entries.size()
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cache({} values, {} bytes)", self.len(), self.bytes())
    }
}

/// A cache of at most `capacity` bytes.
// Not `pure`: two caches of one capacity are two. What the functions of a cache do is done to the cache alone.
#[weir::function(reads)]
pub fn cache(capacity: Size) -> Cache {
    Cache::new(capacity.0)
}

/// What the cache has under `key`. A writer, because it counts the use.
#[weir::function(reads)]
pub fn get(cache: &mut Cache, key: &str) -> Option<Bytes> {
    cache.get(key)
}

/// Puts a value under `key`; one that finds no room is not kept.
#[weir::function(reads)]
pub fn put(cache: &mut Cache, key: &str, value: Bytes) {
    cache.put(key, value);
}
