//! Lists and maps under random changes, compared with plain models, while snapshots of earlier states are held.
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use std::hash::{BuildHasher, RandomState};

use indexmap::IndexMap;
use weir_host::{Elements, Entries, Value};

/// A linear congruential generator.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound.max(1)
    }

    /// Returns an element; usually of the same type as all others with the same `kind`.
    fn element(&mut self, kind: usize) -> Value {
        let number = self.below(1_000) as i64;
        match if self.below(400) == 0 { self.below(6) } else { kind } {
            0 => Value::Int(number),
            1 => Value::Float(number as f64 / 3.0),
            2 => Value::Bool(number % 2 == 0),
            3 => Value::Time(number),
            4 => Value::text(&format!("a text that is stored on the heap: {number}")),
            _ => Value::list(vec![Value::Int(number)]),
        }
    }
}

fn assert_list(list: &Elements, model: &[Value]) {
    assert_eq!(list.len(), model.len());
    assert!(list.iter().map(std::borrow::Cow::into_owned).eq(model.iter().cloned()));
    let (list, other) = (Value::List(list.clone()), Value::List(model.iter().cloned().collect()));
    assert_eq!(list, other);
    assert_eq!(list.to_string(), other.to_string());
    let hasher = RandomState::new();
    assert_eq!(hasher.hash_one(&list), hasher.hash_one(&other));
}

fn change_list(random: &mut Random, kind: usize, list: &mut Elements, model: &mut Vec<Value>) {
    let (length, element) = (model.len(), random.element(kind));
    match random.below(12) {
        0 if length > 0 => {
            let index = random.below(length);
            list.set(index, element.clone());
            model[index] = element;
        }
        1 => {
            let count = random.below(4);
            list.remove_first(count);
            model.drain(..count.min(length));
        }
        2 if random.below(50) == 0 => {
            let from = random.below(length);
            let to = from + random.below(length - from + 1);
            list.keep(from, to);
            *model = model[from..to].to_vec();
        }
        3 => {
            let more: Vec<Value> = (0..random.below(20)).map(|_| random.element(kind)).collect();
            list.append(more.iter().cloned().collect());
            model.extend(more);
        }
        4 if random.below(100) == 0 => {
            list.sort();
            model.sort();
        }
        5 if random.below(100) == 0 => {
            list.reverse();
            model.reverse();
        }
        6 if length > 0 => {
            let index = random.below(length);
            assert_eq!(list.get(index).as_ref(), model.get(index));
            let from = index / 2;
            assert_eq!(list.range(from, index).to_vec(), model[from..index]);
        }
        _ => {
            list.push(element.clone());
            model.push(element);
        }
    }
}

#[test]
fn lists_agree_with_vectors_and_snapshots_never_change() {
    for kind in 0..6 {
        let mut random = Random(kind as u64);
        let (mut list, mut model, mut snapshots) = (Elements::default(), Vec::new(), Vec::new());
        for round in 0..6_000 {
            change_list(&mut random, kind, &mut list, &mut model);
            if random.below(100) == 0 {
                snapshots.push((list.clone(), model.clone()));
            }
            if random.below(150) == 0 {
                snapshots.clear();
            }
            if round % 500 == 0 {
                assert_list(&list, &model);
            }
        }
        snapshots.push((list, model));
        snapshots.iter().for_each(|(list, model)| assert_list(list, model));
    }
}

fn assert_map(map: &Entries, model: &IndexMap<Value, Value>) {
    assert_eq!((map.len(), map.first()), (model.len(), model.first()));
    assert!(map.iter().eq(model));
    let (map, other) = (Value::Map(map.clone()), Value::Map(model.clone().into_iter().collect()));
    assert_eq!(map, other);
    assert_eq!(map.to_string(), other.to_string());
    let hasher = RandomState::new();
    assert_eq!(hasher.hash_one(&map), hasher.hash_one(&other));
}

fn change_map(random: &mut Random, map: &mut Entries, model: &mut IndexMap<Value, Value>, keys: usize) {
    let key = Value::text(&format!("key {}", random.below(keys)));
    let value = Value::Int(random.below(1_000) as i64);
    match random.below(10) {
        0 | 1 => assert_eq!(map.remove(&key), model.shift_remove(&key)),
        2 => assert_eq!(map.remove_first(), model.shift_remove_index(0)),
        3 => assert_eq!(map.get(&key), model.get(&key)),
        4 if random.below(500) == 0 => {
            let mut entries: Vec<(Value, Value)> = std::mem::take(map).into_iter().collect();
            entries.sort();
            *map = entries.into_iter().collect();
            model.sort_keys();
        }
        _ => assert_eq!(map.insert(key.clone(), value.clone()), model.insert(key, value)),
    }
}

#[test]
fn maps_agree_with_ordered_maps_and_snapshots_never_change() {
    for keys in [20, 600, 5_000] {
        let mut random = Random(keys as u64);
        let (mut map, mut model, mut snapshots) = (Entries::default(), IndexMap::new(), Vec::new());
        for round in 0..15_000 {
            change_map(&mut random, &mut map, &mut model, keys);
            if random.below(200) == 0 {
                snapshots.push((map.clone(), model.clone()));
            }
            if random.below(1_000) == 0 {
                snapshots.clear();
            }
            if round % 1_000 == 0 {
                assert_map(&map, &model);
            }
        }
        snapshots.push((map, model));
        snapshots.iter().for_each(|(map, model)| assert_map(map, model));
    }
}

#[test]
fn entries_of_a_persistent_map_can_be_changed_in_place_when_nobody_shares_them() {
    let mut map: Entries = (0..2_000).map(|key| (Value::Int(key), Value::Int(key))).collect();
    let snapshot = map.clone();
    map.insert(Value::Int(0), Value::Int(7));
    let other = map.clone();
    assert!(map.unshared().is_none());
    drop(other);
    map.unshared().unwrap().for_each(|(_, value)| *value = Value::Unit);
    assert!(map.values().all(|value| *value == Value::Unit) && map.len() == 2_000);
    assert!(snapshot.iter().all(|(key, value)| key == value));
}

#[test]
fn elements_can_be_taken_out_of_a_persistent_list() {
    let texts: Elements = (0..1_000).map(|number| Value::text(&number.to_string())).collect();
    let (mut list, snapshot) = (texts.clone(), texts.clone());
    list.push(Value::Unit);
    let mut other = list.clone();
    assert_eq!(other.take(3), Some(Value::text("3")));
    assert_eq!(other.get(3), Some(Value::text("3")), "the list is shared");
    drop(other);
    assert_eq!((list.take(3), list.take(1_001)), (Some(Value::text("3")), None));
    assert_eq!((list.get(3), snapshot.get(3)), (Some(Value::Absent), Some(Value::text("3"))));
    assert_eq!(list.unshared().unwrap().len(), 1_001);
}

#[test]
fn a_range_is_moved_out_unless_the_list_is_shared_or_packed() {
    let mut texts: Elements = (0..9).map(|number| Value::text(&number.to_string())).collect();
    let some: Elements = [Value::text("2"), Value::text("3")].into_iter().collect();
    let snapshot = texts.clone();
    assert_eq!(texts.take_range(2, 4), some);
    assert_eq!(texts, snapshot, "the list is shared");
    drop(snapshot);
    assert_eq!(texts.take_range(2, 4), some);
    let left = [1, 2, 3, 4].map(|index| texts.get(index).unwrap());
    assert_eq!(left, [Value::text("1"), Value::Absent, Value::Absent, Value::text("4")]);
    let mut numbers: Elements = (0..9).map(Value::Int).collect();
    assert_eq!(numbers.take_range(7, 9).as_ints(), Some([7, 8].as_slice()));
    assert_eq!(numbers.as_ints().map(<[i64]>::len), Some(9));
}
