//! Sums, averages, numbers of different values, and groups of the rows that fulfil conditions.

use weir::Generic;

use super::grouping::{TableGrouping, average_in, distinct_in, sum_of};
use super::later::{average_of_snapshot, computed_later, distinct_of_snapshot, groups_of_snapshot, sum_of_snapshot};
use super::query_site::DecodedQuery;
use super::schema::TableSearch;
use super::statement_units::units_of_search;
use super::{QueryArguments, Table};
use crate::{Limited, list};

/// Returns the sum of a column of the rows that fulfil the conditions. A sum that does not fit into 64 bits ends the flow.
#[weir::function(
    internal,
    reads,
    sees_snapshot,
    may_end,
    units = units_of_search((table, transaction), (query, arguments)),
    later = computed_later((table, transaction), (query, arguments), sum_of_snapshot(column))
)]
pub(super) fn sum(
    table: &Table,
    transaction: i64,
    query: DecodedQuery,
    arguments: QueryArguments,
    column: usize,
) -> Limited<i64> {
    let search = TableSearch::new(query.0, arguments.0);
    Limited(table.0.rows.sum(transaction, &search, column).and_then(list::whole_sum))
}

/// Returns the average of a column of the rows that fulfil the conditions; `None` if there are none.
#[weir::function(
    internal,
    reads,
    sees_snapshot,
    may_end,
    units = units_of_search((table, transaction), (query, arguments)),
    later = computed_later((table, transaction), (query, arguments), average_of_snapshot(column))
)]
pub(super) fn average(
    table: &Table,
    transaction: i64,
    query: DecodedQuery,
    arguments: QueryArguments,
    column: usize,
) -> Limited<Option<f64>> {
    let search = TableSearch::new(query.0, arguments.0);
    let groups = table.0.rows.group(transaction, &search, &TableGrouping::average(column));
    Limited(groups.map(|groups| average_in(&groups)))
}

/// Returns the number of different values of a column in the rows that fulfil the conditions.
#[weir::function(
    internal,
    reads,
    sees_snapshot,
    may_end,
    units = units_of_search((table, transaction), (query, arguments)),
    later = computed_later((table, transaction), (query, arguments), distinct_of_snapshot(column))
)]
pub(super) fn distinct(
    table: &Table,
    transaction: i64,
    query: DecodedQuery,
    arguments: QueryArguments,
    column: usize,
) -> Limited<i64> {
    let search = TableSearch::new(query.0, arguments.0);
    let groups = table.0.rows.group(transaction, &search, &TableGrouping::distinct(column));
    Limited(groups.map(|groups| distinct_in(&groups)))
}

/// A pair of the values in which the rows of a group agree, and of its aggregates.
type Group = Generic<'g'>;

/// Returns the groups of the rows that fulfil the conditions, in the order of their first rows.
#[weir::function(
    internal,
    reads,
    sees_snapshot,
    may_end,
    units = units_of_search((table, transaction), (query, arguments)),
    later = computed_later((table, transaction), (query, arguments), groups_of_snapshot(grouping))
)]
pub(super) fn group(
    table: &Table,
    transaction: i64,
    query: DecodedQuery,
    arguments: QueryArguments,
    grouping: TableGrouping,
) -> Limited<Vec<Group>> {
    let search = TableSearch::new(query.0, arguments.0);
    let groups = table.0.rows.group(transaction, &search, &grouping);
    Limited(groups.map(|groups| groups.into_iter().map(Generic).collect()))
}

/// Returns the sum of a group. A sum that does not fit into 64 bits ends the flow.
#[weir::function(internal, pure)]
pub(super) fn whole_sum(high: i64, low: i64) -> Limited<i64> {
    Limited(list::whole_sum(sum_of(high, low)))
}

/// Returns the average of a group with this sum and this number of rows.
#[weir::function(internal, pure, total)]
pub(super) fn whole_average(high: i64, low: i64, count: i64) -> Option<f64> {
    list::average_of(sum_of(high, low), count)
}
