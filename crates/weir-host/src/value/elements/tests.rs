//! Lists beside vectors.

use super::*;
use crate::Entries;

fn numbers(numbers: impl IntoIterator<Item = i64>) -> Elements {
    numbers.into_iter().map(Value::Int).collect()
}

#[test]
fn a_holder_of_an_earlier_state_keeps_it() {
    let mut list = numbers(0..3);
    let earlier = list.clone();
    list.push(Value::Int(3));
    list.set(0, Value::Int(9));
    assert_eq!((earlier, list), (numbers(0..3), numbers([9, 1, 2, 3])));
}

#[test]
fn random_changes_beside_snapshots_agree_with_a_vector_and_leave_the_snapshots_alone() {
    let texts = |from: i64, to: i64| (from..to).map(|number| Value::text(&number.to_string()));
    let record = |number| Value::Record([Value::Int(number), Value::Bool(number % 3 == 0)].into());
    let starts: [Elements; 3] = [numbers(0..2_000), texts(0, 500).collect(), (0..1_000).map(record).collect()];
    for (mut list, mut random) in starts.into_iter().zip([1_u64, 2, 3]) {
        let (mut model, mut snapshots) = (list.to_vec(), Vec::new());
        for round in 0..2_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            if round % 100 == 0 {
                snapshots.push((list.clone(), model.clone()));
            }
            let at = (random >> 33) as usize % model.len().max(1);
            match (random >> 20) % 5 {
                0 | 1 => {
                    list.push(model[at].clone());
                    model.push(model[at].clone());
                }
                2 => {
                    list.set(at, model[0].clone());
                    model[at] = model[0].clone();
                }
                3 => {
                    list.remove_first(at % 3);
                    model.drain(..at % 3);
                }
                _ => assert_eq!(list.get(at), model.get(at).cloned()),
            }
            assert_eq!(list.len(), model.len());
        }
        snapshots.push((list, model));
        snapshots.iter().for_each(|(list, model)| assert_eq!(&list.to_vec(), model));
        snapshots.into_iter().for_each(|(list, model)| assert!(list.into_iter().eq(model)));
    }
}

#[test]
fn pushing_to_an_unshared_list_leaves_the_elements_where_they_are_most_of_the_time() {
    let mut list = Elements::default();
    let mut moves = 0;
    for number in 0..10_000 {
        let before = list.address();
        list.push(Value::Int(number));
        moves += usize::from(list.address() != before);
    }
    assert!(moves <= 20, "{moves} allocations for 10,000 elements");
}

#[test]
fn sorting_agrees_with_comparing_whole_elements() {
    let text = |number: i64| Value::text(["", "a", "a\0", "longer text", "longer text 2", "é"][number as usize % 6]);
    let float =
        |number: i64| Value::Float([0.0, -0.0, f64::NAN, -f64::NAN, f64::INFINITY, -1.5, 2.5][number as usize % 7]);
    let nested = |number: i64| Value::Record([Value::Record([text(number)].into()), Value::Int(-number)].into());
    let makers: [&dyn Fn(i64) -> Value; 8] = [
        &|number| Value::Record([Value::Int(number % 7 - 3), text(number)].into()),
        &|number| Value::Record([text(number), Value::Int(-number)].into()),
        &|number| Value::Record([float(number), text(number * 5)].into()),
        &|number| if number % 3 == 0 { Value::none() } else { Value::some(text(number)) },
        &|number| Value::list(vec![text(number), text(number / 2)]),
        &|number| Value::Record([Value::Bool(number % 2 == 0), text(number)].into()),
        &|number| Value::Record([Value::Size(number.unsigned_abs()), text(number)].into()),
        &nested,
    ];
    for make in makers {
        let mut model: Vec<Value> = (0..500).map(|number| make(number * 7_919 % 101)).collect();
        let mut list: Elements = model.iter().cloned().collect();
        list.sort();
        model.sort();
        assert_eq!(list.to_vec(), model);
    }
}

#[test]
fn a_list_with_room_for_further_words_stays_where_it_is() {
    let mut list: Elements = [Value::Int(0)].into_iter().collect();
    list.reserve_words(10_000);
    let address = list.as_ints().map(<[i64]>::as_ptr);
    assert!((1..=10_000).all(|word| list.push_word(word)));
    assert_eq!((list.len(), list.as_ints().map(<[i64]>::as_ptr)), (10_001, address));
    let mut texts: Elements = [Value::text("a")].into_iter().collect();
    texts.reserve_words(10_000);
    assert_eq!(texts.get(0), Some(Value::text("a")));
}

#[test]
fn several_words_are_stored_or_added_if_the_list_has_the_places_and_one_owner() {
    let mut list = numbers(0..7);
    assert!(list.set_words(1, 2, 3, 9) && !list.set_words(1, 3, 3, 8) && !list.set_words(7, 1, 1, 8));
    assert!(!list.set_words(1, usize::MAX, 2, 8) && !list.set_words(0, 1, 0, 8));
    assert!(list.push_words(5, 2) && list.push_words(5, 0));
    assert_eq!(list, numbers([0, 9, 2, 9, 4, 9, 6, 5, 5]));
    let other = list.clone();
    assert!(!list.set_words(0, 1, 1, 7) && !list.push_words(7, 1));
    assert_eq!(list, other);
    let mut texts: Elements = [Value::text("a")].into_iter().collect();
    assert!(!texts.set_words(0, 1, 1, 7) && !texts.push_words(7, 1) && !Elements::default().push_words(7, 1));
}

#[test]
fn packed_records_take_other_elements_too() {
    let record = |number| Value::Record([Value::Int(number), Value::Float(0.5)].into());
    let other = Value::Record([Value::Int(1), Value::text("no scalar")].into());
    let mut list: Elements = (0..3).map(record).collect();
    assert_eq!((list.is_packed(), list.len(), list.field_word(1, 0)), (true, 3, Some(1)));
    assert!(list.push_record([3, 0.5_f64.to_bits()].into_iter()) && !list.push_record([3].into_iter()));
    list.set(0, record(9));
    assert_eq!(list, [9, 1, 2, 3].map(record).into_iter().collect());
    list.set(1, other.clone());
    assert!(!list.is_packed());
    list.push(other.clone());
    assert_eq!(list.to_vec(), [record(9), other.clone(), record(2), record(3), other]);
}

#[test]
fn a_range_is_kept_in_place_or_copied() {
    let mut list = numbers(0..5);
    let earlier = list.clone();
    list.keep(1, 4);
    assert_eq!(list, numbers(1..4));
    list.keep(1, 3);
    assert_eq!((list, earlier), (numbers(2..4), numbers(0..5)));
}

/// The sign of NaN depends on the processor and the compiler.
#[test]
fn nan_equals_nan_and_comes_last_whatever_its_bits_are() {
    let float = |number: f64| Value::Float(number);
    let pair = |number: f64, other: i64| Value::Record([float(number), Value::Int(other)].into());
    assert_eq!(float(f64::NAN), float(-f64::NAN));
    assert_eq!(Value::list(vec![float(f64::NAN)]), Value::list(vec![float(-f64::NAN)]));
    let records = |number: f64, other: i64| Value::list(vec![pair(number, other)]);
    assert_eq!(records(f64::NAN, 1), records(-f64::NAN, 1));
    assert!(records(f64::NAN, 1) < records(-f64::NAN, 2) && records(-f64::NAN, 1) < records(f64::NAN, 2));

    let mut map = Entries::default();
    map.insert(float(f64::NAN), Value::Int(1));
    map.insert(float(-f64::NAN), Value::Int(2));
    assert_eq!((map.len(), map.get(&float(f64::NAN))), (1, Some(&Value::Int(2))));

    let sorted = |numbers: &[f64]| {
        let mut list: Elements = numbers.iter().map(|number| Value::Float(*number)).collect();
        list.sort();
        list
    };
    let (infinity, nan) = (f64::INFINITY, f64::NAN);
    assert_eq!(sorted(&[-nan, infinity, 1.0, -infinity]), sorted(&[-infinity, 1.0, infinity, nan]));
    let last = sorted(&[-nan, infinity]).get(1);
    assert!(matches!(last, Some(Value::Float(number)) if number.is_nan()));
}

#[test]
fn appending_moves_or_clones() {
    let mut list = numbers(0..2);
    let other = numbers(2..4);
    list.append(other.clone());
    list.append(other);
    assert_eq!(list, numbers([0, 1, 2, 3, 2, 3]));
}
