//! The image cache against a naive model that searches a list.

use bytes::Bytes;
use proptest::prelude::*;
use weir_library::image::Cache;

/// Accounted overhead of an entry; the capacity below is in units of whole entries.
const ENTRY: u64 = 192;

fn value(length: usize) -> Bytes {
    Bytes::from(vec![b'v'; length])
}

#[test]
fn stored_values_are_returned() {
    let mut cache = Cache::new(10_000);
    assert!(cache.is_empty() && cache.get("a").is_none());
    assert!(cache.put("a", Bytes::from_static(b"one")));
    assert_eq!(cache.get("a").unwrap(), "one");
    assert!(cache.put("a", Bytes::from_static(b"two")));
    assert_eq!((cache.get("a").unwrap().as_ref(), cache.len()), (b"two".as_ref(), 1));
    assert_eq!(cache.bytes(), ENTRY + 1 + 3);
}

#[test]
fn the_least_used_and_oldest_entry_is_evicted_first() {
    let mut cache = Cache::new(3 * (ENTRY + 2));
    for key in ["a", "b", "c"] {
        assert!(cache.put(key, value(1)));
    }
    cache.get("a");
    assert!(cache.put("d", value(1)));
    assert!(!cache.contains("b"), "b was used as little as c, but before it");
    assert!(cache.put("e", value(1)));
    assert!(!cache.contains("c") && cache.contains("a"));
}

#[test]
fn a_value_in_use_is_not_evicted_until_it_is_dropped() {
    let mut cache = Cache::new(ENTRY + 2);
    assert!(cache.put("a", value(1)));
    let held = cache.get("a").unwrap();
    let part = held.slice(..1);
    drop(held);
    assert!(!cache.put("b", value(1)), "a slice still holds it");
    std::thread::spawn(move || drop(part)).join().unwrap();
    assert!(cache.put("b", value(1)));
    assert!(!cache.contains("a"));
}

#[test]
fn a_static_value_or_one_held_by_its_producer_is_still_evicted() {
    let mut cache = Cache::new(ENTRY + 2);
    let kept = value(1);
    assert!(cache.put("a", kept.clone()));
    assert!(cache.put("b", Bytes::from_static(b"s")));
    assert!(cache.put("c", value(1)));
    assert_eq!(kept, value(1));
}

#[test]
fn a_value_larger_than_the_cache_is_not_stored() {
    let mut cache = Cache::new(ENTRY + 10);
    assert!(cache.put("a", value(5)));
    assert!(!cache.put("b", value(100)));
    assert!(cache.contains("a"));
    assert!(!cache.put("a", value(100)));
    assert!(cache.is_empty(), "the old value would be stale");
}

struct Modelled {
    key: String,
    size: u64,
    uses: u64,
    used_at: u64,
}

struct Model {
    capacity: u64,
    entries: Vec<Modelled>,
    now: u64,
}

impl Model {
    fn get(&mut self, key: &str) -> bool {
        self.now += 1;
        let Some(entry) = self.entries.iter_mut().find(|entry| entry.key == key) else { return false };
        (entry.uses, entry.used_at) = (entry.uses + 1, self.now);
        true
    }

    fn put(&mut self, key: &str, size: u64, held: &[(String, Bytes)]) -> bool {
        self.now += 1;
        self.entries.retain(|entry| entry.key != key);
        if size > self.capacity {
            return false;
        }
        while self.size() + size > self.capacity {
            let free = self.entries.iter().filter(|entry| !held.iter().any(|(key, _)| *key == entry.key));
            let Some(victim) = free.min_by_key(|entry| (entry.uses, entry.used_at)).map(|entry| entry.key.clone())
            else {
                return false;
            };
            self.entries.retain(|entry| entry.key != victim);
        }
        self.entries.push(Modelled { key: key.into(), size, uses: 1, used_at: self.now });
        true
    }

    fn size(&self) -> u64 {
        self.entries.iter().map(|entry| entry.size).sum()
    }
}

#[derive(Clone, Debug)]
enum Step {
    Get { key: u8, hold: bool },
    Put { key: u8, length: usize },
    Release { at: usize },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0u8..12, any::<bool>()).prop_map(|(key, hold)| Step::Get { key, hold }),
        3 => (0u8..12, 0usize..600).prop_map(|(key, length)| Step::Put { key, length }),
        2 => (0usize..4).prop_map(|at| Step::Release { at }),
    ]
}

proptest! {
    #[test]
    fn the_cache_agrees_with_the_model(steps in proptest::collection::vec(step(), 1..200), capacity in 300u64..2500) {
        let mut cache = Cache::new(capacity);
        let mut model = Model { capacity, entries: Vec::new(), now: 0 };
        let mut held: Vec<(String, Bytes)> = Vec::new();
        for step in steps {
            match step {
                Step::Get { key, hold } => {
                    let key = format!("k{key}");
                    let found = cache.get(&key);
                    prop_assert_eq!(found.is_some(), model.get(&key));
                    held.extend(found.filter(|value| hold && !value.is_empty()).map(|value| (key, value)));
                }
                Step::Put { key, length } => {
                    let key = format!("k{key}");
                    let size = ENTRY + key.len() as u64 + length as u64;
                    prop_assert_eq!(cache.put(&key, value(length)), model.put(&key, size, &held));
                    // A replaced value is not the one that is in use.
                    held.retain(|(other, _)| *other != key);
                }
                Step::Release { at } if at < held.len() => drop(held.swap_remove(at)),
                Step::Release { .. } => {}
            }
            prop_assert_eq!((cache.len(), cache.bytes()), (model.entries.len(), model.size()));
            prop_assert!(model.entries.iter().all(|entry| cache.contains(&entry.key)));
            prop_assert!(cache.bytes() <= capacity);
        }
    }
}
