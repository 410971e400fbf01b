//! Groups of rows that agree in some columns, with aggregates of each: their description, and how a table in memory computes
//! them.
//!
//! A group is a pair of the values in which its rows agree and of its aggregates. Groups come in the order of their first
//! rows, as those of a list do. A sum is two numbers, the first of which counts 2^32, so that it fails only where the
//! program uses it.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use weir::Value;

use super::schema::{ColumnSchema, Schema, TableSearch, accepts};
use super::statements::NUMBER;
use crate::list;

/// The columns in which the rows of a group agree, and its aggregates.
#[derive(weir::Type, Clone, Debug, PartialEq)]
#[weir(name = "tables.Grouping")]
pub struct TableGrouping {
    /// The columns in which the rows of a group agree; if there are none, all rows are one group.
    pub columns: Vec<usize>,
    /// The aggregates.
    pub aggregates: Vec<TableAggregate>,
    /// The conditions that a group must fulfil. Their values follow those of the query.
    pub conditions: Vec<GroupCondition>,
    /// The parts by which groups are ordered; the order of their first rows decides among equal ones.
    pub order: Vec<GroupOrder>,
}

/// A comparison of a part of a group with a value.
#[derive(weir::Type, Clone, Debug, PartialEq)]
#[weir(name = "tables.GroupCondition")]
pub struct GroupCondition {
    /// The place of the part: the columns come first, then the aggregates.
    pub part: usize,
    /// `==`, `!=`, `<`, `<=`, `>` or `>=`.
    pub comparison: String,
}

/// A part by which groups are ordered.
#[derive(weir::Type, Clone, Debug, PartialEq)]
#[weir(name = "tables.GroupOrder")]
pub struct GroupOrder {
    /// The place of the part, as that of a condition.
    pub part: usize,
    /// True if the largest value comes first.
    pub descending: bool,
}

/// An aggregate of the rows of a group.
#[derive(weir::Type, Clone, Debug, PartialEq)]
#[weir(name = "tables.Aggregate")]
pub struct TableAggregate {
    /// `count`, `distinct` (the number of different values), `max`, `min` or `sum`.
    pub kind: String,
    /// The column; `count` uses none.
    pub column: usize,
}

/// Bits of a sum that its second number has.
const LOW_BITS: u32 = 32;

/// Returns a sum from its two numbers.
pub(super) fn sum_of(high: i64, low: i64) -> i128 {
    (i128::from(high) << LOW_BITS) + i128::from(low)
}

/// Returns a sum as two numbers.
fn in_halves(sum: i128) -> Value {
    let half = |number: i128| Value::Int(i64::try_from(number).unwrap_or(i64::MAX));
    Value::Record([half(sum >> LOW_BITS), half(sum & ((1 << LOW_BITS) - 1))].into())
}

/// Returns a group: a pair of its key and of its aggregates.
fn group(key: &[Value], aggregates: Vec<Value>) -> Value {
    let key = match key {
        [] => Value::Unit,
        [only] => only.clone(),
        several => Value::Record(several.into()),
    };
    Value::Record([key, Value::Record(aggregates.into())].into())
}

impl TableGrouping {
    /// Returns the grouping of all rows with one aggregate.
    fn whole(kind: &str, column: usize) -> TableGrouping {
        TableGrouping {
            columns: Vec::new(),
            aggregates: vec![TableAggregate { kind: kind.to_owned(), column }],
            conditions: Vec::new(),
            order: Vec::new(),
        }
    }

    /// Returns the columns that are read.
    pub fn columns_read(&self) -> impl Iterator<Item = usize> {
        let aggregated = self.aggregates.iter().filter(|aggregate| aggregate.kind != "count");
        self.columns.iter().copied().chain(aggregated.map(|aggregate| aggregate.column))
    }

    /// Returns the grouping of all rows with the number of different values of a column.
    pub(super) fn distinct(column: usize) -> TableGrouping {
        TableGrouping::whole("distinct", column)
    }

    /// Returns the grouping of all rows with the two parts of the average of a column: the sum and the number of rows.
    pub(super) fn average(column: usize) -> TableGrouping {
        let mut grouping = TableGrouping::whole("sum", column);
        grouping.aggregates.push(TableAggregate { kind: "count".to_owned(), column });
        grouping
    }

    /// Returns the conditions of groups with the values that they compare with.
    pub(super) fn conditions<'s>(
        &'s self,
        search: &'s TableSearch,
    ) -> impl Iterator<Item = (&'s GroupCondition, &'s Value)> {
        self.conditions.iter().zip(search.values.iter().skip(2 + search.query.conditions.len()))
    }

    /// Returns a part of a group.
    fn part<'v>(&self, group: &'v Value, at: usize) -> &'v Value {
        let [key, aggregates] = match group {
            Value::Record(pair) => [pair.first(), pair.get(1)],
            _ => [None, None],
        };
        let within = |of: Option<&'v Value>, at: usize| match of {
            Some(Value::Record(parts)) => parts.get(at),
            other => other,
        };
        let found = match at.checked_sub(self.columns.len()) {
            Some(at) => within(aggregates, at),
            None if self.columns.len() == 1 => key,
            None => within(key, at),
        };
        found.unwrap_or(&Value::Absent)
    }

    /// Chooses and orders groups, which come in the order of their first rows.
    fn chosen(&self, search: &TableSearch, mut groups: Vec<Value>) -> Vec<Value> {
        if self.columns.is_empty() {
            return groups;
        }
        groups.retain(|group| {
            self.conditions(search).all(|(of, value)| accepts(&of.comparison, self.part(group, of.part), value))
        });
        groups.sort_by(|one, other| {
            let by = self.order.iter().map(|by| {
                let compared = self.part(one, by.part).cmp(self.part(other, by.part));
                if by.descending { compared.reverse() } else { compared }
            });
            by.fold(Ordering::Equal, Ordering::then)
        });
        groups.truncate(search.limit);
        groups
    }

    /// Returns a group from the row of a database. `read` returns the value at a position as one of a column; `None` if
    /// another program has stored something else there: then this fails with the column.
    pub(super) fn group(
        &self,
        schema: &Schema,
        read: impl Fn(usize, &ColumnSchema) -> Option<Value>,
    ) -> Result<Value, usize> {
        let number = whole_number();
        let keys = self.columns.iter().enumerate();
        let keys = keys.map(|(at, column)| read(at, &schema.columns[*column]).ok_or(*column));
        let keys: Vec<Value> = keys.collect::<Result<_, _>>()?;
        let mut at = keys.len();
        let mut aggregates = Vec::with_capacity(self.aggregates.len());
        for aggregate in &self.aggregates {
            let value = match &*aggregate.kind {
                "sum" => {
                    at += 1;
                    match (read(at - 1, &number), read(at, &number)) {
                        (Some(Value::Int(high)), Some(Value::Int(low))) => Some(in_halves(sum_of(high, low))),
                        _ => None,
                    }
                }
                "max" | "min" => read(at, &schema.columns[aggregate.column]),
                _ => read(at, &number),
            };
            at += 1;
            aggregates.push(value.ok_or(aggregate.column)?);
        }
        Ok(group(&keys, aggregates))
    }
}

/// Returns the aggregates of the only group of all rows.
pub(super) fn only_aggregates(groups: &[Value]) -> Vec<Value> {
    let parts = |value: &Value| match value {
        Value::Record(parts) => parts.to_vec(),
        _ => Vec::new(),
    };
    groups.first().map(parts).and_then(|pair| pair.get(1).map(parts)).unwrap_or_default()
}

/// Returns the column of a number that the database computes.
fn whole_number() -> ColumnSchema {
    let (name, kind) = (String::new(), "Int".to_owned());
    ColumnSchema { name, kind, ..NUMBER.clone() }
}

/// The groups of rows that a table in memory visits.
pub(super) struct GroupsInMemory<'g> {
    grouping: &'g TableGrouping,
    /// The key of the first row of each group, and its aggregates so far.
    groups: BTreeMap<Vec<Value>, (Value, Vec<Accumulator>)>,
}

impl<'g> GroupsInMemory<'g> {
    pub(super) fn new(grouping: &'g TableGrouping) -> Self {
        let mut groups = BTreeMap::new();
        if grouping.columns.is_empty() {
            groups.insert(Vec::new(), (Value::Unit, accumulators(grouping)));
        }
        GroupsInMemory { grouping, groups }
    }

    /// Adds a row with this key.
    pub(super) fn add(&mut self, key: Value, row: &[Value]) {
        let values = self.grouping.columns.iter().map(|at| row[*at].clone()).collect();
        let new = || (key.clone(), accumulators(self.grouping));
        let (first, accumulators) = self.groups.entry(values).or_insert_with(new);
        if key < *first {
            *first = key;
        }
        for (accumulator, aggregate) in accumulators.iter_mut().zip(&self.grouping.aggregates) {
            accumulator.add(row.get(aggregate.column));
        }
    }

    /// Returns the groups that the grouping chooses, in its order.
    pub(super) fn groups(self, search: &TableSearch) -> Vec<Value> {
        let mut groups: Vec<_> = self.groups.into_iter().collect();
        groups.sort_by(|(_, (one, _)), (_, (other, _))| one.cmp(other));
        let values = |accumulators: Vec<Accumulator>| accumulators.into_iter().map(Accumulator::value).collect();
        let groups = groups.into_iter().map(|(key, (_, accumulators))| group(&key, values(accumulators))).collect();
        self.grouping.chosen(search, groups)
    }
}

fn accumulators(grouping: &TableGrouping) -> Vec<Accumulator> {
    grouping.aggregates.iter().map(|aggregate| Accumulator::new(&aggregate.kind)).collect()
}

/// An aggregate of the rows so far.
enum Accumulator {
    Count(i64),
    Distinct(BTreeSet<Value>),
    Max(Option<Value>),
    Min(Option<Value>),
    Sum(i128),
}

impl Accumulator {
    fn new(kind: &str) -> Accumulator {
        match kind {
            "distinct" => Accumulator::Distinct(BTreeSet::new()),
            "max" => Accumulator::Max(None),
            "min" => Accumulator::Min(None),
            "sum" => Accumulator::Sum(0),
            _ => Accumulator::Count(0),
        }
    }

    /// Adds the value of the column in another row.
    fn add(&mut self, value: Option<&Value>) {
        let replaces = |best: &Option<Value>, is_better: fn(&Value, &Value) -> bool| {
            value.is_some_and(|value| best.as_ref().is_none_or(|best| is_better(value, best)))
        };
        match self {
            Accumulator::Count(count) => *count += 1,
            Accumulator::Distinct(seen) => seen.extend(value.cloned()),
            Accumulator::Max(best) if replaces(best, |value, best| value > best) => *best = value.cloned(),
            Accumulator::Min(best) if replaces(best, |value, best| value < best) => *best = value.cloned(),
            Accumulator::Sum(sum) => *sum += if let Some(Value::Int(number)) = value { i128::from(*number) } else { 0 },
            Accumulator::Max(_) | Accumulator::Min(_) => {}
        }
    }

    fn value(self) -> Value {
        match self {
            Accumulator::Count(count) => Value::Int(count),
            Accumulator::Distinct(seen) => Value::Int(seen.len() as i64),
            Accumulator::Max(best) | Accumulator::Min(best) => best.unwrap_or(Value::Absent),
            Accumulator::Sum(sum) => in_halves(sum),
        }
    }
}

/// Returns the average of the column that a grouping of all rows has; `None` if there are no rows.
pub(super) fn average_in(groups: &[Value]) -> Option<f64> {
    match &only_aggregates(groups)[..] {
        [Value::Record(halves), Value::Int(count)] => match &halves[..] {
            [Value::Int(high), Value::Int(low)] => list::average_of(sum_of(*high, *low), *count),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the number of different values that a grouping of all rows has.
pub(super) fn distinct_in(groups: &[Value]) -> i64 {
    if let [Value::Int(count)] = only_aggregates(groups)[..] { count } else { 0 }
}
