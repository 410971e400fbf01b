//! The way to the rows of a query in a table in memory: by the key or an index, in the order of the query if it has one.

use weir::{Failure, Value};

use super::index::KeyBounds;
use crate::tables::schema::{TableCondition, TableSearch};

/// The part of an index that holds the rows of a query, and the order in which it is visited.
pub(super) struct AccessPath {
    /// The index; `None` for the key.
    pub(super) index: Option<usize>,
    /// The least values of its columns.
    pub(super) low: Vec<Value>,
    /// The greatest values of its columns; empty if the query asks for one value of each.
    pub(super) high: Vec<Value>,
    /// The direction of the visit if the rows then come in the order of the query.
    pub(super) direction: Option<Direction>,
    /// The least and the greatest key, if all columns of an index have the values that the query asks for.
    pub(super) keys: KeyBounds,
    /// The values of the index, and the key, of the row before a page.
    pub(super) start: Option<(Vec<Value>, Value)>,
    /// True if all rows between `low` and `high` fulfil the conditions.
    pub(super) accepts_all: bool,
    /// True if the path is an index, and the query asks for one value of each of its columns, which `low` has.
    pub(super) is_point: bool,
}

/// The direction of a visit.
#[derive(Clone, Copy)]
pub(super) struct Direction {
    /// True if the greatest values of the columns come first.
    pub(super) descending: bool,
    /// True if the greatest key comes first among rows that agree in the columns of an index.
    pub(super) keys_descending: bool,
}

/// The worth of a path: the number of columns whose values are known, a bound of one more, and the order of the query. The more, the
/// fewer rows are visited.
pub(super) type PathWorth = (usize, bool, bool);

impl AccessPath {
    /// Returns what the path by these columns is worth.
    pub(super) fn worth(search: &TableSearch, index: Option<usize>, columns: &[usize], key: &[usize]) -> PathWorth {
        let known = columns.iter().take_while(|at| search.equal(**at).is_some()).count();
        let bounds = bounded_column((index, columns), known, key).map(|column| search.bounds(column));
        let is_bounded = bounds.is_some_and(|(least, greatest)| least.is_some() || greatest.is_some());
        (known, is_bounded, direction(search, index, &columns[known..], key).is_some())
    }

    pub(super) fn of(search: &TableSearch, index: Option<usize>, columns: &[usize], key: &[usize]) -> AccessPath {
        let mut low: Vec<Value> = Vec::with_capacity(columns.len());
        low.extend(columns.iter().map_while(|at| search.equal(*at).cloned()));
        let known = low.len();
        let is_point = index.is_some() && known == columns.len();
        let mut high = Vec::new();
        if !is_point {
            high.reserve_exact(columns.len());
            high.extend_from_slice(&low);
            if let Some(column) = columns.get(known) {
                let (least, greatest) = search.bounds(*column);
                low.push(least.cloned().unwrap_or(Value::Absent));
                high.push(greatest.cloned().unwrap_or_else(greatest_value));
            }
            low.resize(columns.len(), Value::Absent);
            high.resize_with(columns.len(), greatest_value);
        }
        let direction = direction(search, index, &columns[known..], key);
        let is_fixed = |(condition, value): (&TableCondition, &Value)| {
            condition.comparison == "=="
                && columns[..known].contains(&condition.column)
                && search.equal(condition.column) == Some(value)
        };
        let are_fixed = search.conditions().all(is_fixed);
        let accepts_all = search.after.is_none() && are_fixed;
        // Mostly no condition is left that could bound the keys.
        let of_key = bounded_column((index, columns), known, key).filter(|_| known == columns.len() && !are_fixed);
        let (least, greatest) = of_key.map_or((None, None), |column| search.bounds(column));
        let keys = (least.cloned(), greatest.cloned());
        let mut path = AccessPath { index, low, high, direction, keys, start: None, accepts_all, is_point };
        path.begin_behind(search, known, columns, key);
        path
    }

    /// Begins an ordered visit at the row before the page.
    fn begin_behind(&mut self, search: &TableSearch, known: usize, columns: &[usize], key: &[usize]) {
        let (Some(after), Some(direction)) = (&search.after, self.direction) else { return };
        let rest = &columns[known..];
        let matching = after.iter().zip(rest).take_while(|(start, column)| start.column == **column).count();
        let values = after[..matching].iter().map(|start| start.value.clone());
        let mut place: Vec<Value> = self.low[..known].iter().cloned().chain(values).collect();
        let is_whole = place.len() == columns.len();
        if direction.descending {
            place.resize_with(columns.len(), greatest_value);
            self.high = place.clone().min(std::mem::take(&mut self.high));
        } else {
            place.resize(columns.len(), Value::Absent);
            self.low = place.clone().max(std::mem::take(&mut self.low));
        }
        let of_key = |at: &usize| {
            let start = after.iter().find(|start| start.column == *at).map(|start| &start.value);
            start.or_else(|| search.equal(*at)).cloned()
        };
        let keys: Option<Vec<Value>> = key.iter().map(of_key).collect();
        self.start = keys.filter(|_| is_whole && self.index.is_some()).map(|keys| (place, key_value(&keys)));
    }
}

/// Returns the column whose bounds the path uses: the first one behind those whose values are known, and behind all columns of an
/// index, the key.
fn bounded_column((index, columns): (Option<usize>, &[usize]), known: usize, key: &[usize]) -> Option<usize> {
    match (columns.get(known), index, key) {
        (Some(column), ..) => Some(*column),
        (None, Some(_), [key]) => Some(*key),
        _ => None,
    }
}

/// Returns a value that is greater than that of any column.
fn greatest_value() -> Value {
    Value::Failure(Box::new(Failure::function("")))
}

/// Returns the key of these columns.
pub(super) fn key_value(columns: &[Value]) -> Value {
    match columns {
        [only] => only.clone(),
        several => Value::Record(several.into()),
    }
}

/// Returns the direction in which the columns of an index behind its prefix, and then the key, put the rows into the order of
/// a query, if they do.
fn direction(search: &TableSearch, index: Option<usize>, columns: &[usize], key: &[usize]) -> Option<Direction> {
    let order = &search.query.order;
    let Some(first) = order.first() else {
        let by_key = index.is_none() || columns.is_empty();
        return by_key.then_some(Direction { descending: false, keys_descending: false });
    };
    let descending = first.descending;
    if order.iter().any(|order| order.descending != descending) {
        return None;
    }
    let ordered = || order.iter().map(|order| order.column);
    if ordered().eq(columns.iter().copied()) {
        return Some(Direction { descending, keys_descending: false });
    }
    let with_key = index.is_some() && ordered().eq(columns.iter().chain(key).copied());
    with_key.then_some(Direction { descending, keys_descending: descending })
}
