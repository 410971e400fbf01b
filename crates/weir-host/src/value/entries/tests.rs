//! Maps beside ordered maps of a library.

use super::*;

fn key(key: i64) -> Value {
    Value::Int(key)
}

fn keys(map: &Entries) -> Vec<i64> {
    map.keys().map(|key| if let Value::Int(key) = key { *key } else { panic!("no number") }).collect()
}

#[test]
fn random_changes_agree_with_an_ordered_map() {
    let mut random = 1_u64;
    let (mut map, mut model) = (Entries::default(), indexmap::IndexMap::new());
    for round in 0..20_000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let of = key((random >> 33) as i64 % 200);
        match (random >> 20) % 5 {
            0 | 1 => assert_eq!(map.insert(of.clone(), key(round)), model.insert(of, key(round))),
            2 | 3 => assert_eq!(map.remove(&of), model.shift_remove(&of)),
            _ => assert_eq!(map.remove_first(), model.shift_remove_index(0)),
        }
        assert_eq!(map.len(), model.len());
        assert!(map.iter().eq(&model), "after {round} changes");
    }
}

#[test]
fn an_entry_is_changed_where_it_is_unless_others_hold_the_map() {
    for keys in [0..3, 0..300] {
        let mut map: Entries = keys.map(|number| (Value::text(&number.to_string()), key(number))).collect();
        let (two, missing) = (Value::text("2"), Value::text("x"));
        *map.entry_to_change(&two).expect("nobody else holds the map").expect("it has the key") = key(7);
        assert_eq!(map.get(&two), Some(&key(7)));
        assert_eq!(map.entry_to_change(&missing), Some(None));
        let other = map.clone();
        assert_eq!(map.entry_to_change(&two), None);
        drop(map.insert(two.clone(), key(8)));
        assert_eq!((other.get(&two), map.get(&two)), (Some(&key(7)), Some(&key(8))));
    }
}

#[test]
fn random_changes_of_consecutive_keys_agree_with_an_ordered_map() {
    let mut random = 3_u64;
    for _ in 0..200 {
        let (mut map, mut model) = (Entries::default(), indexmap::IndexMap::new());
        let mut next = -20;
        for round in 0..100 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let of = key((random >> 33) as i64 % 100 - 20);
            match (random >> 20) % 16 {
                0 => assert_eq!(map.remove(&of), model.shift_remove(&of)),
                1 => assert_eq!(map.remove_first(), model.shift_remove_index(0)),
                2 if round > 60 => assert_eq!(map.insert(of.clone(), key(round)), model.insert(of, key(round))),
                3 | 4 => assert_eq!(map.get(&of), model.get(&of)),
                5 => assert_eq!(
                    map.take(&of).map(|_| map.insert(of.clone(), key(1))),
                    model.get_mut(&of).map(|old| {
                        *old = key(1);
                        Some(Value::Absent)
                    })
                ),
                _ => {
                    assert_eq!(map.insert(key(next), key(round)), model.insert(key(next), key(round)));
                    next += 1;
                }
            }
            assert!(map.len() == model.len() && map.iter().eq(&model), "after {round} changes");
        }
    }
}

#[test]
fn short_texts_are_one_key_however_they_are_stored() {
    let mut grown = crate::Text::with_capacity(100);
    grown.push("a name");
    let mut map: Entries = (0..20).map(|number| (Value::text(&format!("name {number}")), key(number))).collect();
    map.insert(Value::Text(grown.clone()), key(100));
    assert_eq!((map.get(&Value::text("a name")), map.get(&Value::Text(grown))), (Some(&key(100)), Some(&key(100))));
}

#[test]
fn random_changes_beside_snapshots_agree_with_an_ordered_map_and_leave_the_snapshots_alone() {
    let mut random = 5_u64;
    // The base of the persistent form has gaps.
    let mut map: Entries = (0..400).map(|number| (key(number), key(-number))).collect();
    (0..90).for_each(|number| drop(map.remove(&key(number * 3))));
    let mut model: indexmap::IndexMap<Value, Value> = map.clone().into_iter().collect();
    let mut snapshots = Vec::new();
    for round in 0..3_000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if round % 100 == 0 {
            snapshots.push((map.clone(), model.clone()));
        }
        let of = key((random >> 33) as i64 % 450);
        match (random >> 20) % 6 {
            0 | 1 => assert_eq!(map.insert(of.clone(), key(round)), model.insert(of, key(round))),
            2 | 3 => assert_eq!(map.remove(&of), model.shift_remove(&of)),
            4 => assert_eq!(map.remove_first(), model.shift_remove_index(0)),
            _ => assert_eq!(map.get(&of), model.get(&of)),
        }
        assert!(map.len() == model.len() && map.iter().eq(&model), "after {round} changes");
    }
    snapshots.iter().for_each(|(map, model)| assert!(map.iter().eq(model)));
}

#[test]
fn the_first_change_beside_a_snapshot_copies_few_entries() {
    let text = |number: i64| Value::text(&format!("a text with its memory {number}"));
    let mut map: Entries = (0..10_000).map(|number| (key(number), text(number))).collect();
    let earlier = map.clone();
    map.insert(key(5), text(0));
    let MapForm::Persistent(dictionary) = &map.form else { panic!("the map was shared") };
    assert!(dictionary.adopted() < 20, "{} entries were copied", dictionary.adopted());
    assert_eq!((earlier.get(&key(5)), map.get(&key(5))), (Some(&text(5)), Some(&text(0))));
    // After enough changes the entries of the snapshot are not needed.
    (0..10_000).for_each(|number| drop(map.insert(key(number), text(number + 1))));
    let address = earlier.address();
    drop(earlier);
    assert!(map.address() != address && map.iter().map(|(_, value)| value.clone()).eq((1..10_001).map(text)));
}

#[test]
fn a_key_that_comes_again_keeps_its_place() {
    let mut map: Entries = [1, 2, 3].map(|number| (key(number), Value::Unit)).into_iter().collect();
    assert_eq!(map.insert(key(1), Value::Bool(true)), Some(Value::Unit));
    map.remove(&key(2));
    map.insert(key(2), Value::Unit);
    assert_eq!(keys(&map), [1, 3, 2]);
}

#[test]
fn a_holder_of_an_earlier_state_keeps_it() {
    let mut map: Entries = (0..10).map(|number| (key(number), key(number))).collect();
    let earlier = map.clone();
    map.remove(&key(3));
    map.insert(key(4), key(40));
    assert_eq!((earlier.len(), earlier.get(&key(4))), (10, Some(&key(4))));
    assert_eq!((map.len(), map.get(&key(4)), map.get(&key(3))), (9, Some(&key(40)), None));
}

#[test]
fn a_queue_of_bounded_length_stays_small() {
    let mut map = Entries::default();
    for number in 0..10_000 {
        map.insert(key(number), Value::Unit);
        if map.len() > 10 {
            map.remove_first();
        }
    }
    assert_eq!(keys(&map), (9_990..10_000).collect::<Vec<_>>());
    let MapForm::Compact(dictionary) = &map.form else { panic!("nobody shared the map") };
    assert!(dictionary.positions() <= 30, "{} positions for 10 entries", dictionary.positions());
}
