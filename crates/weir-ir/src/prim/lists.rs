//! Primitives on whole lists and maps.
//!
//! A list that grows element by element is kept as a list of lists, each at least twice as long as the one behind it:
//! the digits of a binary counter. [`collect`] adds a digit and carries, [`flatten`] makes one list of them.

use weir_host::memory::ask;
use weir_host::{Elements, Entries, Failure, Value};

use super::moving::{elements, move_or_clone};

/// Returns the elements without `front` elements at the front and `back` at the back.
pub(super) fn middle(all: &Elements, front: i64, back: i64) -> Result<Value, Box<Failure>> {
    let count = |count: i64| usize::try_from(count).unwrap_or(0).min(all.len());
    let (from, to) = (count(front), all.len() - count(back));
    ask(all.bytes_to_append())?;
    Ok(Value::List(all.range(from, to.max(from))))
}

/// About the bytes of a tuple of a key and a value, and of the list's reference to it.
const PAIR_BYTES: usize = 64;

/// Returns the keys and values of a map as tuples.
pub(super) fn pairs(map: &Entries) -> Result<Value, Box<Failure>> {
    ask(map.len() * PAIR_BYTES)?;
    Ok(Value::List(map.iter().map(|(key, value)| pair(key, value.clone())).collect()))
}

/// Does the same, and moves move-only values out of the map.
pub(super) fn pairs_moving(map: &mut Entries) -> Result<Value, Box<Failure>> {
    ask(map.len() * PAIR_BYTES)?;
    if let Some(entries) = map.unshared() {
        return Ok(Value::List(entries.map(|(key, value)| pair(key, move_or_clone(value))).collect()));
    }
    pairs(map)
}

fn pair(key: &Value, value: Value) -> Value {
    Value::Record([key.clone(), value].into())
}

/// Returns the lists with one more element.
pub(super) fn collect(lists: &Elements, element: Value) -> Result<Value, Box<Failure>> {
    collected(lists.to_vec(), element)
}

/// Does the same, and moves move-only elements out of the lists.
pub(super) fn collect_moving(lists: &mut Elements, element: Value) -> Result<Value, Box<Failure>> {
    collected(elements(lists), element)
}

fn collected(mut lists: Vec<Value>, element: Value) -> Result<Value, Box<Failure>> {
    let mut last = vec![element];
    while lists.last().is_some_and(|list| length(list) <= last.len()) {
        ask(2 * last.len() * size_of::<Value>())?;
        let mut joined = lists.pop().map(|mut list| parts(&mut list)).unwrap_or_default();
        joined.append(&mut last);
        last = joined;
    }
    lists.push(Value::list(last));
    Ok(Value::list(lists))
}

/// Returns the elements of all lists.
pub(super) fn flatten(lists: &Elements) -> Result<Value, Box<Failure>> {
    let mut all = Elements::default();
    for list in lists {
        if let Value::List(elements) = &*list {
            ask(elements.bytes_to_append())?;
            all.append(elements.clone());
        }
    }
    Ok(Value::List(all))
}

/// Does the same, and moves move-only elements out of the lists.
pub(super) fn flatten_moving(lists: &mut Elements) -> Result<Value, Box<Failure>> {
    let mut all = Vec::new();
    for list in &mut elements(lists) {
        ask(length(list) * size_of::<Value>())?;
        all.append(&mut parts(list));
    }
    Ok(Value::list(all))
}

fn parts(list: &mut Value) -> Vec<Value> {
    if let Value::List(list) = list { elements(list) } else { Vec::new() }
}

fn length(list: &Value) -> usize {
    if let Value::List(elements) = list { elements.len() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prim::Prim;

    fn numbers(numbers: impl IntoIterator<Item = i64>) -> Value {
        Value::List(numbers.into_iter().map(Value::Int).collect())
    }

    #[test]
    fn what_was_collected_comes_back_in_its_order_out_of_few_lists() {
        let mut lists = Value::list(Vec::new());
        for number in 0..1000 {
            lists = Prim::Collect.apply_moving(&mut [lists, Value::Int(number)]).unwrap();
            let Value::List(digits) = &lists else { panic!("{lists} is no list") };
            assert!(digits.len() <= 10, "{number} elements in {} lists", digits.len());
        }
        assert_eq!(Prim::Flatten.apply(&[&lists]).unwrap(), numbers(0..1000));
        assert_eq!(Prim::Flatten.apply_moving(&mut [lists]).unwrap(), numbers(0..1000));
    }

    #[test]
    fn a_middle_is_what_front_and_back_leave() {
        let middle = |front, back| middle(&[1, 2, 3].map(Value::Int).into_iter().collect(), front, back).unwrap();
        assert_eq!(middle(1, 1), numbers([2]));
        assert_eq!(middle(0, 0), numbers([1, 2, 3]));
        assert_eq!(middle(2, 2), numbers([]));
        assert_eq!(middle(9, 9), numbers([]));
    }

    #[test]
    fn pairs_come_in_the_order_of_their_keys_first_coming() {
        let keys = ["b", "a", "b"].map(Value::text);
        let operands = [&keys[0], &Value::Int(1), &keys[1], &Value::Int(2), &keys[2], &Value::Int(3)];
        let mut map = Prim::Map.apply(&operands).unwrap();
        let wanted =
            Value::list(Vec::from([("b", 3), ("a", 2)].map(|(key, n)| pair(&Value::text(key), Value::Int(n)))));
        assert_eq!(Prim::Pairs.apply(&[&map]).unwrap(), wanted);
        assert_eq!(Prim::Pairs.apply_moving(std::slice::from_mut(&mut map)).unwrap(), wanted);
    }
}
