//! Stable sorting of values by prefixes.
//!
//! A prefix is a number that orders values of one kind as far as it goes ([`Value::order_prefix`]). The prefixes lie one
//! after the other, so that most comparisons do not read the values, which are elsewhere in memory.

use crate::Value;

impl Value {
    /// Returns the positions of the values in ascending order. Of equal values, the first one comes first.
    #[must_use]
    pub fn ascending_positions(values: &[Value]) -> Vec<usize> {
        if !values.is_sorted_by(|one, other| one.order_kinds() == other.order_kinds()) {
            let mut positions: Vec<usize> = (0..values.len()).collect();
            positions.sort_by(|at, place| values[*at].cmp(&values[*place]));
            return positions;
        }
        let prefixes = values.iter().enumerate().map(|(position, value)| (value.order_prefix(), position));
        let mut order: Vec<(u64, usize)> = prefixes.collect();
        order.sort_by(|(one, at), (other, place)| one.cmp(other).then_with(|| values[*at].cmp(&values[*place])));
        order.into_iter().map(|(_, position)| position).collect()
    }
}

/// Sorts values in ascending order; the sort is stable.
pub(super) fn sort(values: &mut [Value]) {
    let positions = Value::ascending_positions(values);
    let sorted: Vec<Value> = positions.into_iter().map(|position| values[position].take()).collect();
    values.iter_mut().zip(sorted).for_each(|(place, value)| *place = value);
}
