//! The cache of Flux's image server: bounded, with least-frequently-used eviction and reference counts.
//!
//! Flux (§2.5) has three nodes for the cache: `CheckCache` increments the reference count of the item it finds,
//! `StoreInCache` evicts the least frequently used item *with a zero reference count*, and `Complete` decrements it.
//! Here the value that [`get`] returns holds the reference, and dropping it on any thread releases it, so that a flow
//! that fails cannot forget to. The reference count is the one that [`Bytes`] keeps of its clones anyway.

use std::fmt;

use bytes::Bytes;
use weir::Size;
use weir::memory::of_program;

use super::lfu::LfuCache;

/// Accounted overhead of an entry in bytes, beyond its key and value.
const ENTRY_BYTES: u64 = 192;

/// A bounded cache of bytes by key.
#[derive(weir::Type)]
#[weir(opaque, unique, name = "image.Cache")]
pub struct Cache {
    entries: LfuCache<Bytes>,
}

impl Cache {
    /// Creates an empty cache whose keys and values, plus 192 bytes for each entry, take at most `capacity` bytes.
    pub fn new(capacity: u64) -> Self {
        Cache { entries: LfuCache::new(capacity) }
    }

    /// Returns the value of `key` and counts the use. The entry is not evicted while any clone of the value lives.
    pub fn get(&mut self, key: &str) -> Option<Bytes> {
        self.entries.get(key).cloned()
    }

    /// Stores `value` under `key` in place of an earlier value. Evicts the least frequently used entries, the least
    /// recently used first among equals, but none that is in use. Returns `false`, and leaves nothing under `key`, if
    /// the value is larger than the cache or too much of the cache is in use.
    pub fn put(&mut self, key: &str, value: Bytes) -> bool {
        let size = ENTRY_BYTES + key.len() as u64 + value.len() as u64;
        // Copied so that the reference count includes only the values that this cache hands out, and so that a slice of
        // something large is charged only its own length. An empty value has no reference count; evicting it while in
        // use does no harm.
        let free = |held: &Bytes| held.is_empty() || held.is_unique();
        of_program(|| self.entries.put(key, Bytes::copy_from_slice(&value), size, free))
    }

    /// Returns `true` if `key` has a value; does not count as a use.
    pub fn contains(&self, key: &str) -> bool {
        self.entries.contains(key)
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns `true` if there is no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of bytes in use, of `capacity`.
    pub fn bytes(&self) -> u64 {
        self.entries.size()
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cache({} values, {} bytes)", self.len(), self.bytes())
    }
}

/// Creates a cache of at most `capacity` bytes.
// Not `pure`, because two caches of equal capacity are distinct. The functions of a cache affect only the cache itself.
#[weir::function(reads)]
pub fn cache(capacity: Size) -> Cache {
    Cache::new(capacity.0)
}

/// Returns the value of `key`, if the cache has one. It is a writer of the cache, because it counts the use.
#[weir::function(reads)]
pub fn get(cache: &mut Cache, key: &str) -> Option<Bytes> {
    cache.get(key)
}

/// Stores a value under `key`; a value that does not fit is not stored.
#[weir::function(reads)]
pub fn put(cache: &mut Cache, key: &str, value: Bytes) {
    cache.put(key, value);
}
