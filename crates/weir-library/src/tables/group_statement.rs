//! The statement that groups rows in SQL.

use std::fmt::Write as _;

use super::dialect::Dialect;
use super::grouping::{TableAggregate, TableGrouping};
use super::schema::{ColumnSchema, Schema, TableSearch};
use super::sql::{list, name, quoted};
use super::sql_value::Bound;
use super::statements::{NUMBER, TableStatements, ordered_in};

/// The position of a row among those that fulfil the conditions. A column cannot have the name.
const POSITION: &str = "\"the position\"";

impl TableStatements {
    /// Returns the query for groups, and its parameters. Its columns are those in which the rows of a group agree, and then
    /// the aggregates, of which a sum has two.
    pub(super) fn group<'s>(
        &self,
        schema: &'s Schema,
        search: &'s TableSearch,
        grouping: &'s TableGrouping,
    ) -> (String, Vec<Bound<'s>>) {
        let (condition, mut parameters) = self.condition(schema, search);
        let table = quoted(&schema.name);
        let first = first_row(schema, grouping);
        // PostgreSQL takes the name of a column alone in an order for the aggregate whose function has this name, and SQLite one that is
        // no column for a text.
        let prefix = if first.is_some() { format!("{table}.") } else { "\"rows\".".to_owned() };
        let column = |at: usize| self.dialect.equal_by(format!("{prefix}{}", name(schema, at)), &schema.columns[at]);
        let columns = || grouping.columns.iter().map(|at| column(*at));
        let aggregates = grouping.aggregates.iter().map(|of| self.dialect.aggregate(schema, &prefix, of));
        let selected = list(columns().chain(aggregates), ", ");
        if grouping.columns.is_empty() {
            return (format!("SELECT {selected} FROM {table}{condition}"), parameters);
        }
        let mut groups = format!("GROUP BY {}", list(columns(), ", "));
        for (at, (of, value)) in grouping.conditions(search).enumerate() {
            let (part, column) = self.part(schema, &prefix, (grouping, of.part));
            let test = self.test(part, &of.comparison, Bound::limit(value, column), &mut parameters);
            _ = write!(groups, " {} {test}", if at == 0 { "HAVING" } else { "AND" });
        }
        let by_column = |at: usize| ordered_in(&prefix, (schema, self.dialect), at);
        let mut order = String::new();
        for by in &grouping.order {
            let part = match grouping.columns.get(by.part) {
                Some(column) => by_column(*column),
                None => self.part(schema, &prefix, (grouping, by.part)).0,
            };
            let direction = if by.descending { " DESC" } else { "" };
            _ = write!(order, "{part}{direction}, ");
        }
        order.push_str(&match &first {
            Some(FirstRow::Columns(columns)) => list(columns.iter().map(|at| by_column(*at)), ", "),
            Some(FirstRow::Least(column)) => format!("min({})", by_column(*column)),
            None => format!("min({POSITION})"),
        });
        let mut limit = String::new();
        if search.is_limited() {
            parameters.push(Bound::new(&search.limit_value, &NUMBER));
            limit = format!(" LIMIT {}", self.dialect.parameter(parameters.len()));
        }
        let rows = match &first {
            Some(_) => format!("{table}{condition}"),
            None => {
                let of_table = self.dialect.prefix(schema);
                let key = schema.key.iter().map(|at| ordered_in(&of_table, (schema, self.dialect), *at));
                let key = list(key, ", ");
                format!(
                    "(SELECT *, row_number() OVER (ORDER BY {key}) AS {POSITION} FROM {table}{condition}) AS \"rows\""
                )
            }
        };
        (format!("SELECT {selected} FROM {rows} {groups} ORDER BY {order}{limit}"), parameters)
    }

    /// Returns a part of a group that conditions and orders name, and the column whose values it has.
    fn part<'s>(
        &self,
        schema: &'s Schema,
        prefix: &str,
        (grouping, at): (&TableGrouping, usize),
    ) -> (String, &'s ColumnSchema) {
        match grouping.columns.get(at) {
            Some(column) => (format!("{prefix}{}", name(schema, *column)), &schema.columns[*column]),
            None => {
                let aggregate = grouping.aggregates.get(at.saturating_sub(grouping.columns.len()));
                let of =
                    aggregate.map_or_else(|| "count(*)".to_owned(), |of| self.dialect.aggregate(schema, prefix, of));
                (of, &NUMBER)
            }
        }
    }
}

/// The values by which groups have the order of their first rows.
enum FirstRow<'s> {
    /// These columns, in which the rows of a group agree.
    Columns(&'s [usize]),
    /// The least value of the column.
    Least(usize),
}

/// Returns the values by which groups have the order of their first rows; `None` if only the positions of the rows tell it.
fn first_row<'s>(schema: &'s Schema, grouping: &TableGrouping) -> Option<FirstRow<'s>> {
    /// Kinds of which every database has a least value.
    const HAVE_MIN: [&str; 6] = ["Int", "Text", "Time", "Duration", "Size", "Enum"];
    let leading = schema.key.get(..grouping.columns.len());
    if let Some(leading) = leading.filter(|leading| leading.iter().all(|at| grouping.columns.contains(at))) {
        return Some(FirstRow::Columns(leading));
    }
    match schema.key[..] {
        [only] if HAVE_MIN.contains(&&*schema.columns[only].kind) => Some(FirstRow::Least(only)),
        _ => None,
    }
}

impl Dialect {
    /// Returns an aggregate; a sum as two numbers.
    fn aggregate(self, schema: &Schema, prefix: &str, aggregate: &TableAggregate) -> String {
        let of = &schema.columns[aggregate.column];
        let named = || format!("{prefix}{}", name(schema, aggregate.column));
        let column = || self.equal_by(named(), of);
        let ordered = || self.ordered_by(named(), of);
        match &*aggregate.kind {
            "distinct" if of.optional => {
                let column = column();
                // An absent value is a value, too.
                format!("count(DISTINCT {column}) + CASE WHEN count(*) > count({column}) THEN 1 ELSE 0 END")
            }
            "distinct" => format!("count(DISTINCT {})", column()),
            "max" => format!("max({})", ordered()),
            "min" => format!("min({})", ordered()),
            "sum" => self.sum_in_halves(&self.long(column()), of),
            _ => "count(*)".to_owned(),
        }
    }
}
