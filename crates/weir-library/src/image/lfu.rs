//! O(1) LFU cache (Shah, Mitra, Matani 2010): a bounded map with least-frequently-used eviction in constant time.
//!
//! Every `get` counts as a *use*; a new entry has one use. Entries with equal uses are in one *bucket*, ordered by
//! their last use; buckets are ordered by uses. The victim is therefore the oldest entry of the first bucket, and a use
//! moves an entry to the neighbouring bucket. No step visits more than neighbours, except that eviction passes over
//! entries that are in use.
//!
//! The structure is from Shah, Mitra and Matani, "An O(1) algorithm for implementing the LFU cache eviction scheme"
//! (2010). Ties are broken by least recent use, which the paper leaves open.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

use indexmap::IndexMap;

/// A bounded map from text to `V`.
pub(super) struct LfuCache<V> {
    capacity: u64,
    size: u64,
    index: IndexMap<Box<str>, SlabKey<LfuEntry<V>>>,
    entries: Slab<LfuEntry<V>>,
    buckets: Slab<Bucket<V>>,
    fewest: Option<SlabKey<Bucket<V>>>,
}

struct LfuEntry<V> {
    key: Box<str>,
    value: V,
    size: u64,
    bucket: SlabKey<Bucket<V>>,
    older: Option<SlabKey<LfuEntry<V>>>,
    newer: Option<SlabKey<LfuEntry<V>>>,
}

/// All entries with equal `uses`. A bucket is empty only in the middle of an operation.
struct Bucket<V> {
    uses: u64,
    oldest: Option<SlabKey<LfuEntry<V>>>,
    newest: Option<SlabKey<LfuEntry<V>>>,
    fewer: Option<SlabKey<Bucket<V>>>,
    more: Option<SlabKey<Bucket<V>>>,
}

impl<V> LfuCache<V> {
    /// Creates an empty map for values whose sizes add up to at most `capacity`.
    pub(super) fn new(capacity: u64) -> Self {
        let (entries, buckets) = (Slab::new(), Slab::new());
        LfuCache { capacity, size: 0, index: IndexMap::new(), entries, buckets, fewest: None }
    }

    /// Returns the value of `key` and counts the use.
    pub(super) fn get(&mut self, key: &str) -> Option<&V> {
        let id = *self.index.get(key)?;
        self.count_use(id);
        Some(&self.entries[id].value)
    }

    /// Stores `value` under `key`, with one use, in place of an earlier value. Evicts only entries that are `free`,
    /// until the value fits. Returns `false` if it cannot fit; then `key` has no value.
    pub(super) fn put(&mut self, key: &str, value: V, size: u64, free: impl Fn(&V) -> bool) -> bool {
        if let Some(id) = self.index.get(key) {
            self.remove(*id);
        }
        if size > self.capacity {
            return false;
        }
        while self.size > self.capacity - size {
            let Some(victim) = self.victim(&free) else { return false };
            self.remove(victim);
        }
        self.insert(key, value, size);
        true
    }

    /// Returns `true` if `key` has a value; does not count as a use.
    pub(super) fn contains(&self, key: &str) -> bool {
        self.index.contains_key(key)
    }

    /// Returns the number of keys.
    pub(super) fn len(&self) -> usize {
        self.index.len()
    }

    /// Returns the sum of the sizes of all values.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    fn insert(&mut self, key: &str, value: V, size: u64) {
        let bucket = match self.fewest {
            Some(first) if self.buckets[first].uses == 1 => first,
            first => self.insert_bucket(1, None, first),
        };
        let key: Box<str> = key.into();
        let id = self.entries.insert(LfuEntry { key: key.clone(), value, size, bucket, older: None, newer: None });
        self.index.insert(key, id);
        self.size += size;
        self.link(id, bucket);
    }

    fn remove(&mut self, id: SlabKey<LfuEntry<V>>) {
        self.unlink(id);
        let entry = self.entries.remove(id);
        self.remove_bucket_if_empty(entry.bucket);
        self.index.swap_remove(&entry.key);
        self.size -= entry.size;
    }

    /// Returns the first entry, by uses and then by age, that is `free`.
    fn victim(&self, free: impl Fn(&V) -> bool) -> Option<SlabKey<LfuEntry<V>>> {
        let mut bucket = self.fewest;
        while let Some(bucket_id) = bucket {
            let mut entry = self.buckets[bucket_id].oldest;
            while let Some(id) = entry {
                if free(&self.entries[id].value) {
                    return Some(id);
                }
                entry = self.entries[id].newer;
            }
            bucket = self.buckets[bucket_id].more;
        }
        None
    }

    fn count_use(&mut self, id: SlabKey<LfuEntry<V>>) {
        let from = self.entries[id].bucket;
        let Bucket { uses, oldest, newest, more, .. } = &mut self.buckets[from];
        let (uses, more, is_alone) =
            (*uses + 1, *more, oldest.map(|oldest| oldest.at) == newest.map(|newest| newest.at));
        if is_alone && more.is_none_or(|next| self.buckets[next].uses > uses) {
            // Its bucket becomes the one to which it would be moved, as that of an entry that is used often mostly does.
            self.buckets[from].uses = uses;
            return;
        }
        let to = match more {
            Some(next) if self.buckets[next].uses == uses => next,
            next => self.insert_bucket(uses, Some(from), next),
        };
        self.unlink(id);
        self.link(id, to);
        self.remove_bucket_if_empty(from);
    }

    /// Appends an entry to a bucket as its newest.
    fn link(&mut self, id: SlabKey<LfuEntry<V>>, bucket: SlabKey<Bucket<V>>) {
        let older = self.buckets[bucket].newest.replace(id);
        match older {
            Some(older) => self.entries[older].newer = Some(id),
            None => self.buckets[bucket].oldest = Some(id),
        }
        let entry = &mut self.entries[id];
        (entry.bucket, entry.older, entry.newer) = (bucket, older, None);
    }

    /// Removes an entry from its bucket, which may then be empty.
    fn unlink(&mut self, id: SlabKey<LfuEntry<V>>) {
        let LfuEntry { bucket, older, newer, .. } = self.entries[id];
        match older {
            Some(older) => self.entries[older].newer = newer,
            None => self.buckets[bucket].oldest = newer,
        }
        match newer {
            Some(newer) => self.entries[newer].older = older,
            None => self.buckets[bucket].newest = older,
        }
    }

    fn insert_bucket(
        &mut self,
        uses: u64,
        fewer: Option<SlabKey<Bucket<V>>>,
        more: Option<SlabKey<Bucket<V>>>,
    ) -> SlabKey<Bucket<V>> {
        let id = self.buckets.insert(Bucket { uses, oldest: None, newest: None, fewer, more });
        self.join_buckets(fewer, Some(id));
        self.join_buckets(Some(id), more);
        id
    }

    fn remove_bucket_if_empty(&mut self, id: SlabKey<Bucket<V>>) {
        if self.buckets[id].oldest.is_none() {
            let Bucket { fewer, more, .. } = self.buckets.remove(id);
            self.join_buckets(fewer, more);
        }
    }

    /// Links two buckets as neighbours; without `fewer`, `more` becomes the first bucket.
    fn join_buckets(&mut self, fewer: Option<SlabKey<Bucket<V>>>, more: Option<SlabKey<Bucket<V>>>) {
        match fewer {
            Some(fewer) => self.buckets[fewer].more = more,
            None => self.fewest = more,
        }
        if let Some(more) = more {
            self.buckets[more].fewer = fewer;
        }
    }
}

/// Key of a `T` in its [`Slab`]; valid until the value is removed.
struct SlabKey<T> {
    at: usize,
    of: PhantomData<fn() -> T>,
}

impl<T> Clone for SlabKey<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for SlabKey<T> {}

/// A slab: values at fixed positions, which are reused once their values are removed.
struct Slab<T> {
    slots: Vec<Option<T>>,
    vacant: Vec<usize>,
}

impl<T> Slab<T> {
    fn new() -> Self {
        Slab { slots: Vec::new(), vacant: Vec::new() }
    }

    fn insert(&mut self, value: T) -> SlabKey<T> {
        let at = self.vacant.pop().unwrap_or(self.slots.len());
        if at == self.slots.len() {
            self.slots.push(None);
        }
        self.slots[at] = Some(value);
        SlabKey { at, of: PhantomData }
    }

    fn remove(&mut self, id: SlabKey<T>) -> T {
        let value = self.slots[id.at].take().expect("an id is used only until its value is removed");
        self.vacant.push(id.at);
        value
    }
}

impl<T> Index<SlabKey<T>> for Slab<T> {
    type Output = T;

    fn index(&self, id: SlabKey<T>) -> &T {
        self.slots[id.at].as_ref().expect("an id is used only until its value is removed")
    }
}

impl<T> IndexMut<SlabKey<T>> for Slab<T> {
    fn index_mut(&mut self, id: SlabKey<T>) -> &mut T {
        self.slots[id.at].as_mut().expect("an id is used only until its value is removed")
    }
}
