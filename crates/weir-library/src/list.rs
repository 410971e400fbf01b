//! Functions on lists: elements, parts, order and combination.
//!
//! Lists are immutable; every function returns a new one. Values of every type are ordered: numbers by size, texts by
//! code points, lists and records lexicographically.

use std::borrow::Cow;

use crate::{Limited, room, units};
use indexmap::IndexSet;
use weir::{Elements, Failure, FailureKind, Value};

/// Maximum number of elements in a list that these functions create.
pub const ELEMENTS_MAX: usize = 10_000_000;

weir::library! {
    /// Functions on lists: elements, parts, order and combination.
    pub(crate) list: first, last, contains, position, take, skip, reverse, sort, min, max, sum, average,
        present, unique, concat, numbers, numbered, zip, with,
        sort_keyed, min_keyed, max_keyed
}

/// Returns the first element.
#[weir::function(pure, total)]
pub fn first(list: &Elements) -> Option<Value> {
    list.get(0)
}

/// Returns the last element.
#[weir::function(pure, total)]
pub fn last(list: &Elements) -> Option<Value> {
    list.get(list.len().checked_sub(1)?)
}

/// Returns `true` if an element equals `value`.
#[weir::function(pure, total, units = units::to_read(list))]
pub fn contains(list: &Elements, value: &Value) -> bool {
    list.iter().any(|element| *element == *value)
}

/// Returns the position of the first element that equals `value`, counted from 0.
#[weir::function(pure, total, units = units::to_read(list))]
pub fn position(list: &Elements, value: &Value) -> Option<usize> {
    list.iter().position(|element| *element == *value)
}

/// Returns the first `count` elements, or all if there are fewer.
#[weir::function(pure, total, units = units::length(list) / 4)]
pub fn take(mut list: Elements, count: i64) -> Elements {
    list.keep(0, within(&list, count));
    list
}

/// Returns all but the first `count` elements.
#[weir::function(pure, total, units = units::length(list) / 4)]
pub fn skip(mut list: Elements, count: i64) -> Elements {
    list.keep(within(&list, count), list.len());
    list
}

fn within(list: &Elements, count: i64) -> usize {
    usize::try_from(count.max(0)).unwrap_or(usize::MAX).min(list.len())
}

/// Returns the elements in reverse order.
#[weir::function(pure, total, room = list.bytes_to_copy(), units = units::length(list))]
pub fn reverse(mut list: Elements) -> Elements {
    list.reverse();
    list
}

/// Returns the elements in ascending order; the sort is stable.
#[weir::function(pure, total, room = 2 * list.bytes_to_append(), units = units::to_sort(list))]
pub fn sort(mut list: Elements) -> Elements {
    list.sort();
    list
}

/// Returns the least element; `None` if the list is empty.
#[weir::function(pure, total, units = units::to_read(list))]
pub fn min(list: &Elements) -> Option<Value> {
    list.iter().min().map(Cow::into_owned)
}

/// Returns the greatest element; `None` if the list is empty.
#[weir::function(pure, total, units = units::to_read(list))]
pub fn max(list: &Elements) -> Option<Value> {
    list.iter().max().map(Cow::into_owned)
}

/// A key and the element that it belongs to.
type Keyed = (weir::Generic<'k'>, Value);

/// Returns the second values of the pairs, in ascending order of the first; the sort is stable.
#[weir::function(internal, pure, total, room = room::of_values(pairs.len()), units = units::to_sort(pairs))]
pub fn sort_keyed(pairs: Vec<Keyed>) -> Vec<Value> {
    let (keys, mut values): (Vec<Value>, Vec<Value>) = pairs.into_iter().map(|(key, value)| (key.0, value)).unzip();
    Value::ascending_positions(&keys).into_iter().map(|position| values[position].take()).collect()
}

/// Returns the second value of the first pair whose first value is the least; `None` if there are no pairs.
#[weir::function(internal, pure, total, units = units::to_read(pairs))]
pub fn min_keyed(pairs: Vec<Keyed>) -> Option<Value> {
    pairs.into_iter().min_by(|(one, _), (other, _)| one.cmp(other)).map(|(_, value)| value)
}

/// Returns the second value of the first pair whose first value is the greatest; `None` if there are no pairs.
#[weir::function(internal, pure, total, units = units::to_read(pairs))]
pub fn max_keyed(pairs: Vec<Keyed>) -> Option<Value> {
    // `max_by` returns the last of several.
    pairs.into_iter().rev().max_by(|(one, _), (other, _)| one.cmp(other)).map(|(_, value)| value)
}

/// Returns the sum of whole numbers. A sum that does not fit into 64 bits ends the flow, as `+` does.
#[weir::function(pure, units = units::length(list))]
pub fn sum(list: &[i64]) -> Limited<i64> {
    // In 128 bits, intermediate sums cannot overflow, so that the order of the numbers does not matter.
    Limited(whole_sum(list.iter().copied().map(i128::from).sum()))
}

/// Returns a sum as an `Int`.
pub(crate) fn whole_sum(sum: i128) -> Result<i64, Failure> {
    let overflow = |_| Failure::new(FailureKind::Arithmetic, "the sum does not fit into an `Int`");
    i64::try_from(sum).map_err(overflow)
}

/// Returns the average of whole numbers: their sum, which cannot overflow, divided by their number; `None` if the list is
/// empty.
#[weir::function(pure, total, units = units::length(list))]
pub fn average(list: &[i64]) -> Option<f64> {
    average_of(list.iter().copied().map(i128::from).sum(), i64::try_from(list.len()).ok()?)
}

/// Returns the average of numbers with this sum and this count; `None` if there are none.
pub(crate) fn average_of(sum: i128, count: i64) -> Option<f64> {
    (count > 0).then(|| sum as f64 / count as f64)
}

/// Returns the values of a list of options that are not `None`: `list.present(for x in xs { if x > 0 { Some(x) } else {
/// None } })` returns those above 0.
#[weir::function(pure, room = room::of_values(list.len()), units = units::length(list))]
pub fn present(list: Vec<Option<Value>>) -> Vec<Value> {
    list.into_iter().flatten().collect()
}

/// Removes duplicates; the first occurrence of each element remains.
#[weir::function(pure, total, room = room::of_pairs(list.len()), units = 2 * units::to_read(list))]
pub fn unique(list: Vec<Value>) -> Vec<Value> {
    list.into_iter().collect::<IndexSet<_>>().into_iter().collect()
}

/// Concatenates all lists.
///
/// # Errors
/// Fails if the result would have more than 10,000,000 elements.
#[weir::function(pure, room = concat_bytes(lists), units = units::to_concat(lists))]
pub fn concat(lists: Vec<Elements>) -> Result<Elements, Failure> {
    limited(lists.iter().map(Elements::len).fold(0, usize::saturating_add))?;
    let mut all = Elements::default();
    lists.into_iter().for_each(|list| all.append(list));
    Ok(all)
}

/// Returns the whole numbers from `from` (inclusive) to `to` (exclusive).
///
/// # Errors
/// Fails if there are more than 10,000,000.
#[weir::function(pure, room = room::of_numbers(count(*from, *to).min(ELEMENTS_MAX)), units = units::to_count(from, to))]
pub fn numbers(from: i64, to: i64) -> Result<Vec<i64>, Failure> {
    limited(count(from, to))?;
    Ok((from..to).collect())
}

/// Returns each element with its position, counted from 0.
#[weir::function(pure, total, room = room::of_pairs(list.len()), units = 2 * units::length(list))]
pub fn numbered(list: Vec<Value>) -> Vec<(usize, Value)> {
    list.into_iter().enumerate().collect()
}

/// Returns pairs of the elements at equal positions, as many as the shorter list has.
#[weir::function(pure, total, room = room::of_pairs(list.len().min(other.len())), units = 4 * units::length(list))]
pub fn zip(list: Vec<Value>, other: Vec<weir::Generic<'b'>>) -> Vec<(Value, weir::Generic<'b'>)> {
    list.into_iter().zip(other).collect()
}

/// Returns the list with another element at a position, counted from 0, in constant time if the list is not used
/// afterwards. A position that the list does not have ends the flow, as `list[position]` does.
#[weir::function(pure, replaces_element)]
pub fn with(mut list: Elements, position: i64, value: Value) -> Limited<Elements> {
    let Some(at) = usize::try_from(position).ok().filter(|at| *at < list.len()) else {
        let message = format!("index {position} of a list of {}", list.len());
        return Limited(Err(Failure::new(FailureKind::Arithmetic, message)));
    };
    list.set(at, value);
    Limited(Ok(list))
}

fn count(from: i64, to: i64) -> usize {
    if to > from { usize::try_from(to.abs_diff(from)).unwrap_or(usize::MAX) } else { 0 }
}

fn concat_bytes(lists: &[Elements]) -> usize {
    lists.iter().map(Elements::bytes_to_append).fold(0, usize::saturating_add)
}

fn limited(elements: usize) -> Result<(), Failure> {
    if elements <= ELEMENTS_MAX {
        return Ok(());
    }
    Err(Failure::new(FailureKind::Limit, format!("the list would have more than {ELEMENTS_MAX} elements")))
}
