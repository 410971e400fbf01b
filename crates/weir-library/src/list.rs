//! Lists: their ends, their parts, and their order.
//!
//! A list is never changed; each function gives another one. Values of every type have an order: numbers by size, texts
//! by their characters' numbers, lists and records by their first difference.

use crate::Limited;
use indexmap::IndexSet;
use weir::{Elements, Failure, FailureKind, Value};

/// Elements that a list made here has at most.
pub const ELEMENTS_MAX: usize = 10_000_000;

weir::library! {
    /// Lists: their ends, their parts, and their order.
    pub(crate) list: first, last, contains, position, take, skip, reverse, sort, min, max, sum,
        present, unique, concat, numbers, numbered, zip, with
}

/// The first element.
#[weir::function(pure, total)]
pub fn first(list: &[Value]) -> Option<Value> {
    list.first().cloned()
}

/// The last element.
#[weir::function(pure, total)]
pub fn last(list: &[Value]) -> Option<Value> {
    list.last().cloned()
}

/// Whether an element equals `value`.
#[weir::function(pure, total)]
pub fn contains(list: &[Value], value: &Value) -> bool {
    list.contains(value)
}

/// The position of the first element that equals `value`, counted from 0.
#[weir::function(pure, total)]
pub fn position(list: &[Value], value: &Value) -> Option<usize> {
    list.iter().position(|element| element == value)
}

/// The first `count` elements, or all where there are fewer.
#[weir::function(pure, total)]
pub fn take(list: &[Value], count: i64) -> Vec<Value> {
    list[..within(list, count)].to_vec()
}

/// All but the first `count` elements.
#[weir::function(pure, total)]
pub fn skip(list: &[Value], count: i64) -> Vec<Value> {
    list[within(list, count)..].to_vec()
}

fn within(list: &[Value], count: i64) -> usize {
    usize::try_from(count.max(0)).unwrap_or(usize::MAX).min(list.len())
}

/// The elements from the last to the first.
#[weir::function(pure, total)]
pub fn reverse(mut list: Vec<Value>) -> Vec<Value> {
    list.reverse();
    list
}

/// The elements from the least to the greatest; equal ones keep their order.
#[weir::function(pure, total)]
pub fn sort(mut list: Vec<Value>) -> Vec<Value> {
    list.sort();
    list
}

/// The least element; none of an empty list.
#[weir::function(pure, total)]
pub fn min(list: &[Value]) -> Option<Value> {
    list.iter().min().cloned()
}

/// The greatest element; none of an empty list.
#[weir::function(pure, total)]
pub fn max(list: &[Value]) -> Option<Value> {
    list.iter().max().cloned()
}

/// The sum of whole numbers. One that does not fit into 64 bits ends the flow, as `+` does.
#[weir::function(pure)]
pub fn sum(list: &[i64]) -> Limited<i64> {
    // In 128 bits the order of the numbers does not decide whether it fits.
    let sum: i128 = list.iter().copied().map(i128::from).sum();
    let overflow = || Failure::new(FailureKind::Arithmetic, "the sum does not fit into an `Int`");
    Limited(i64::try_from(sum).map_err(|_| overflow()))
}

/// What is there of a list of options: `list.present(for x in xs { if x > 0 { Some(x) } else { None } })` has those
/// above 0.
#[weir::function(pure)]
pub fn present(list: Vec<Option<Value>>) -> Vec<Value> {
    list.into_iter().flatten().collect()
}

/// Each element once, where it comes first.
#[weir::function(pure, total)]
pub fn unique(list: Vec<Value>) -> Vec<Value> {
    list.into_iter().collect::<IndexSet<_>>().into_iter().collect()
}

/// The elements of all lists, one list behind the other.
///
/// # Errors
/// Fails above 10,000,000 elements.
#[weir::function(pure)]
pub fn concat(lists: Vec<Vec<Value>>) -> Result<Vec<Value>, Failure> {
    limited(lists.iter().map(Vec::len).fold(0, usize::saturating_add))?;
    Ok(lists.concat())
}

/// The whole numbers from `from` up to and without `to`.
///
/// # Errors
/// Fails above 10,000,000 elements.
#[weir::function(pure)]
pub fn numbers(from: i64, to: i64) -> Result<Vec<i64>, Failure> {
    let count = if to > from { to.abs_diff(from) } else { 0 };
    limited(usize::try_from(count).unwrap_or(usize::MAX))?;
    Ok((from..to).collect())
}

/// Each element with its position, counted from 0.
#[weir::function(pure, total)]
pub fn numbered(list: Vec<Value>) -> Vec<(usize, Value)> {
    list.into_iter().enumerate().collect()
}

/// Pairs of the elements at one position, as many as the shorter list has.
#[weir::function(pure, total)]
pub fn zip(list: Vec<Value>, other: Vec<weir::Generic<'U'>>) -> Vec<(Value, weir::Generic<'U'>)> {
    list.into_iter().zip(other).collect()
}

/// The list with another element at a position, counted from 0. A list that nothing else uses is changed in place, any other
/// one is copied. A position that the list does not have ends the flow, as `list[position]` does.
#[weir::function(pure)]
pub fn with(mut list: Elements, position: i64, value: Value) -> Limited<Elements> {
    let Some(at) = usize::try_from(position).ok().filter(|at| *at < list.len()) else {
        let message = format!("index {position} of a list of {}", list.len());
        return Limited(Err(Failure::new(FailureKind::Arithmetic, message)));
    };
    match list.unshared() {
        Some(elements) => elements[at] = value,
        None => list = replaced(&list, at, value),
    }
    Limited(Ok(list))
}

fn replaced(list: &[Value], at: usize, value: Value) -> Elements {
    list[..at].iter().cloned().chain([value]).chain(list[at + 1..].iter().cloned()).collect()
}

fn limited(elements: usize) -> Result<(), Failure> {
    if elements <= ELEMENTS_MAX {
        return Ok(());
    }
    Err(Failure::new(FailureKind::Limit, format!("a list of more than {ELEMENTS_MAX} elements")))
}
