//! Random statements on tables in memory and in databases, which agree.

use test_support::random::Random;
use weir::{Failure, FailureKind, Value};

use super::schema;
use super::test_database::TestDatabase;
use crate::tables::cursor::cursor as cursor_of;
use crate::tables::grouping::{GroupCondition, GroupOrder, TableAggregate, TableGrouping};
use crate::tables::row::fields;
use crate::tables::rows::TableRows;
use crate::tables::schema::{RowOrder, TableCondition, TableQuery, TableSearch};
use crate::tables::storage::TableStorage;

/// Number of random statements of one run.
pub(super) const STATEMENTS: usize = 4_000;

/// Returns the key of a row of [`schema`].
pub(super) fn key_of(row: &Value) -> Value {
    schema().key_of(fields(row))
}

/// Random rows and queries of [`schema`].
pub(super) struct RandomRows(Random);

impl RandomRows {
    pub(super) fn new(seed: u64) -> Self {
        RandomRows(Random::new(seed))
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0.below(limit)
    }

    pub(super) fn text(&mut self) -> Value {
        const TEXTS: [&str; 7] = ["", "a", "B", "ä", "a\0b", "z\u{1F600}", "'; --"];
        Value::text(TEXTS[self.below(7) as usize])
    }

    pub(super) fn row(&mut self) -> Value {
        const WEIGHTS: [f64; 6] = [0.0, -0.0, 1.5, -1e300, f64::INFINITY, f64::NAN];
        let note =
            if self.below(2) == 0 { Value::none() } else { Value::some(Value::text(&self.below(40).to_string())) };
        let weights = if self.below(50) == 0 { 6 } else { 5 };
        let row = [
            self.text(),
            Value::Int(self.below(5) as i64 - 2),
            Value::Float(WEIGHTS[self.below(weights) as usize]),
            Value::Variant(self.below(2) as u32, None),
            note,
            Value::Time([0, 1, i64::MIN, i64::MAX][self.below(4) as usize]),
            Value::Duration([0, -1, i64::MIN, i64::MAX][self.below(4) as usize]),
            Value::bytes(vec![self.below(2) as u8; 3]),
            Value::Size([0, 1, i64::MAX as u64 - 1][self.below(3) as usize]),
            Value::Bool(self.below(2) == 0),
        ];
        Value::Record(row.into())
    }

    pub(super) fn search(&mut self) -> TableSearch {
        const COMPARISONS: [&str; 6] = ["==", "!=", "<", "<=", ">", ">="];
        let columns = [0, 1, 3, 4, 5, 6, 7, 8, 9];
        let mut values =
            vec![Value::Int(if self.below(3) == 0 { self.below(5) as i64 - 1 } else { i64::MAX }), Value::Unit];
        let mut conditions = Vec::new();
        for _ in 0..self.below(4) {
            let column = columns[self.below(9) as usize];
            let equality = matches!(column, 3 | 4 | 9);
            let comparison = COMPARISONS[self.below(if equality { 2 } else { 6 }) as usize].to_owned();
            let Value::Record(row) = self.row() else { continue };
            values.push(match &row[column] {
                // No row has one.
                Value::Size(_) if self.below(3) == 0 => Value::Size(i64::MAX as u64 + self.below(2)),
                value => value.clone(),
            });
            conditions.push(TableCondition { column, comparison });
        }
        let order = (0..self.below(3)).map(|_| RowOrder {
            column: [0, 1, 2, 3, 5, 6, 8, 9][self.below(8) as usize],
            descending: self.below(2) == 0,
        });
        let order = order.collect();
        TableSearch::new(TableQuery { conditions, order }, Value::Record(values.into()))
    }

    /// Returns a grouping of a search, which gets the values of its conditions.
    fn grouping(&mut self, search: &mut TableSearch) -> TableGrouping {
        let count = self.below(4);
        let mut columns: Vec<usize> = (0..count).map(|_| self.below(10) as usize).collect();
        if self.below(3) == 0 {
            columns = [vec![3], vec![0, 3], vec![3, 0, 1]][self.below(3) as usize].clone();
        }
        columns.dedup();
        let aggregate = |random: &mut Self| {
            // A database has the least value of no group of `Bytes`, and of an absent value none.
            let (kind, columns): (&str, &[usize]) = match random.below(5) {
                0 => ("count", &[0]),
                1 => ("distinct", &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
                2 if count > 0 => ("max", &[0, 1, 2, 5, 6, 8]),
                3 if count > 0 => ("min", &[0, 1, 2, 5, 6, 8]),
                _ => ("sum", &[1]),
            };
            let column = columns[random.below(columns.len() as u64) as usize];
            TableAggregate { kind: kind.to_owned(), column }
        };
        let aggregates = (0..=self.below(4)).map(|_| aggregate(self)).collect();
        let mut grouping = TableGrouping { columns, aggregates, conditions: Vec::new(), order: Vec::new() };
        let exact = |grouping: &TableGrouping, at: usize| match grouping.columns.get(at) {
            Some(column) => *column != 2,
            None => ["count", "distinct"].contains(&&*grouping.aggregates[at - grouping.columns.len()].kind),
        };
        let parts = 0..grouping.columns.len() + grouping.aggregates.len();
        for at in parts.filter(|at| exact(&grouping, *at)).collect::<Vec<_>>() {
            // The table orders and compares enums and absent values only by equality.
            let is_ordered = grouping.columns.get(at).is_none_or(|column| ![3, 4, 9].contains(column));
            if is_ordered && self.below(4) == 0 {
                grouping.order.push(GroupOrder { part: at, descending: self.below(2) == 0 });
            }
            if !grouping.columns.is_empty() && self.below(4) == 0 {
                let comparison = if is_ordered { [">", "<=", "!="][self.below(3) as usize] } else { "==" };
                let Value::Record(row) = self.row() else { continue };
                let value = grouping.columns.get(at).map_or(Value::Int(1), |column| row[*column].clone());
                search.values = search.values.iter().cloned().chain([value]).collect();
                grouping.conditions.push(GroupCondition { part: at, comparison: comparison.to_owned() });
            }
        }
        grouping
    }
}

/// Runs a statement on a table, and returns the result as a text.
fn run(table: &dyn TableRows, kind: u64, transaction: i64, seed: u64) -> String {
    let mut random = RandomRows::new(seed);
    let row = random.row();
    let key = key_of(&random.row());
    let result = match kind {
        0..=3 => table.insert(transaction, row).map(|key| format!("{key}")),
        4 | 5 => table.upsert(transaction, row).map(|key| format!("{key}")),
        6 => {
            let own = key_of(&row);
            match table.get(transaction, &own) {
                Ok(Some(_)) => table.replace(transaction, &own, row).map(|row| format!("{row:?}")),
                other => other.map(|_| "none".to_owned()),
            }
        }
        7 => table.delete(transaction, &key).map(|gone| gone.to_string()),
        8 => table.delete_all(transaction, &random.search()).map(|count| count.to_string()),
        9 => table.count(transaction, &random.search()).map(|count| count.to_string()),
        10 => table.sum(transaction, &random.search(), 1).map(|sum| sum.to_string()),
        11 => {
            let keys = [key.clone(), key_of(&row), key];
            table.get_all(transaction, &keys).map(|rows| format!("{rows:?}"))
        }
        12 if seed.is_multiple_of(2) => {
            // The notes, which are unique, move from each row to the next one; sometimes one of them is doubled.
            let old = table.select(transaction, &random.search()).unwrap();
            let notes: Vec<Value> = old.iter().map(|row| fields(row)[4].clone()).collect();
            let next =
                |at: usize| notes[(at + 1 + usize::from(at == 0 && seed.is_multiple_of(8))) % notes.len()].clone();
            let new = old.iter().enumerate().map(|(at, row)| {
                let mut row = fields(row).to_vec();
                (row[4], row[9]) = (next(at), Value::Bool(true));
                Value::Record(row.into())
            });
            table.replace_rows(transaction, &old, new.collect()).map(|count| count.to_string())
        }
        14 => pages(table, transaction, seed),
        13 => {
            let mut search = random.search();
            let grouping = random.grouping(&mut search);
            table.group(transaction, &search, &grouping).map(|groups| format!("{groups:?}"))
        }
        12 => table.get(transaction, &key).map(|row| format!("{row:?}")),
        _ => table.select(transaction, &random.search()).map(|rows| format!("{rows:?}")),
    };
    result.unwrap_or_else(|failure| {
        // Which of several broken rules a failure names is left to the table.
        assert_eq!(failure.kind, FailureKind::Constraint, "{failure}");
        "refused".to_owned()
    })
}

/// Returns the pages of a random query: their rows, and the last cursor. The pages have the rows of the whole query.
fn pages(table: &dyn TableRows, transaction: i64, seed: u64) -> Result<String, Failure> {
    let mut random = RandomRows::new(seed);
    let (schema, mut whole) = (schema(), random.search());
    let limit = 1 + random.below(4) as usize;
    let mut values: Vec<Value> = whole.conditions().map(|(_, value)| value.clone()).collect();
    values.splice(0..0, [Value::Int(limit as i64), Value::none()]);
    (whole.limit, whole.limit_value) = (usize::MAX, Value::Int(i64::MAX));
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = TableSearch::for_rows(&schema, whole.query.clone(), Value::Record(values.clone().into()))?;
        let mut rows = table.select(transaction, &page)?;
        let more = rows.len() > limit;
        rows.truncate(limit);
        all.append(&mut rows);
        if !more {
            break;
        }
        cursor = cursor_of(&schema, &whole.query, fields(&all[all.len() - 1]));
        values[1] = Value::some(Value::text(&cursor));
    }
    assert_eq!(all, table.select(transaction, &whole)?, "{:?} by {limit}", whole.query);
    Ok(format!("{all:?} {cursor}"))
}

#[test]
fn databases_agree_with_memory() {
    for seed in 1..4 {
        for database in TestDatabase::each(&format!("agree_{seed}")) {
            agrees_with_memory(&database, seed);
        }
    }
}

/// Executes the same random statements in memory and in a database.
fn agrees_with_memory(database: &TestDatabase, seed: u64) {
    let memory = TableStorage::default().open(schema()).unwrap();
    let stored = database.storage().open(schema()).unwrap();
    let mut random = RandomRows::new(seed);
    let (mut transaction, mut number) = (0, 0);
    for at in 0..STATEMENTS {
        match random.below(20) {
            0 if transaction == 0 => {
                number += 1;
                transaction = number;
            }
            0 | 1 if transaction != 0 => {
                memory.rows.commit(transaction, true).unwrap();
                stored.rows.commit(transaction, true).unwrap();
                transaction = 0;
            }
            // Left unfinished: the next statement takes it back.
            2 => transaction = 0,
            // Another flow reads what the group of the transaction has written.
            3 | 4 => stored.rows.show(u64::MAX),
            _ => {}
        }
        let kind = random.below(16);
        let of = random.below(u64::MAX);
        let (one, other) = (run(&*memory.rows, kind, transaction, of), run(&*stored.rows, kind, transaction, of));
        assert_eq!(one, other, "statement {at} of seed {seed}, of kind {kind}, in {database:?}");
    }
}
