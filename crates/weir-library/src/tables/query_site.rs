//! The queries of a program: constants that are decoded once, with the SQL and the work of their executions.
//!
//! A query is a constant of the program, so that its place in memory tells which one it is. Each thread decodes it when it meets
//! it first. The SQL differs only in what [`SqlCase`] says; everything else is a parameter.

use std::cell::RefCell;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use indexmap::IndexMap;
use parking_lot::Mutex;
use weir::{Failure, HostType, Type, TypeDefinition, Value};

use super::query::TableQuery;
use super::read_work::ReadWork;

/// Maximum number of queries that a thread keeps; a program has one for each place.
const KEPT_MAX: usize = 1_024;
/// Maximum number of statements in SQL that are kept for a query; most have one.
const SQL_MAX: usize = 8;

/// A query as a parameter of a function.
#[derive(Clone, Debug)]
pub struct DecodedQuery(pub(super) Arc<QuerySite>);

/// A query with what is known of its executions.
#[derive(Debug)]
pub(super) struct QuerySite {
    query: TableQuery,
    pub(super) work: ReadWork,
    sql: Mutex<Vec<(SqlCase, Arc<str>)>>,
    /// The index by which the query searches a table in memory, and the number of the table; `None` for the key.
    index: OnceLock<(u64, Option<usize>)>,
}

/// The case of a query on which its SQL depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SqlCase {
    /// The number of the table.
    pub(super) table: u64,
    pub(super) form: SqlForm,
    /// True if the program bounds the number of rows.
    pub(super) is_limited: bool,
    /// True if a page begins behind a row.
    pub(super) is_behind: bool,
    /// A bit for each condition whose value is absent.
    pub(super) absent: u64,
}

/// The form of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SqlForm {
    Rows,
    Count,
    Sum(usize),
    Deletion,
}

impl QuerySite {
    /// Returns the SQL of this case, if it is known.
    pub(super) fn sql(&self, case: SqlCase) -> Option<Arc<str>> {
        self.sql.lock().iter().find(|(known, _)| *known == case).map(|(_, sql)| Arc::clone(sql))
    }

    /// Returns the index by which the query searches a table in memory, and chooses it the first time. A constant that queries of
    /// several tables share keeps the index of the first of them.
    pub(super) fn index_in(&self, table: u64, choose: impl Fn() -> Option<usize>) -> Option<usize> {
        match self.index.get_or_init(|| (table, choose())) {
            (known, index) if *known == table => *index,
            _ => choose(),
        }
    }

    pub(super) fn keep(&self, case: SqlCase, sql: &Arc<str>) {
        let mut kept = self.sql.lock();
        if kept.len() < SQL_MAX {
            kept.push((case, Arc::clone(sql)));
        }
    }
}

impl From<TableQuery> for Arc<QuerySite> {
    fn from(query: TableQuery) -> Self {
        Arc::new(QuerySite { query, work: ReadWork::unknown(), sql: Mutex::default(), index: OnceLock::new() })
    }
}

impl Deref for QuerySite {
    type Target = TableQuery;

    fn deref(&self) -> &TableQuery {
        &self.query
    }
}

thread_local! {
    /// The queries that this thread has met, by their places. A query is kept with its site, so that no other takes its place.
    static MET: RefCell<IndexMap<usize, (Value, Arc<QuerySite>), foldhash::fast::RandomState>> = RefCell::default();
}

impl DecodedQuery {
    /// Returns the query of a constant.
    pub(super) fn of(value: &Value) -> Result<Self, Failure> {
        let Value::Record(parts) = value else {
            return TableQuery::from_value(value.clone()).map(|query| DecodedQuery(query.into()));
        };
        let place = parts.as_ptr().addr();
        MET.with_borrow_mut(|met| {
            if let Some((_, site)) = met.get(&place) {
                return Ok(DecodedQuery(Arc::clone(site)));
            }
            if met.len() >= KEPT_MAX {
                met.clear();
            }
            let site: Arc<QuerySite> = TableQuery::from_value(value.clone())?.into();
            met.insert(place, (value.clone(), Arc::clone(&site)));
            Ok(DecodedQuery(site))
        })
    }
}

impl HostType for DecodedQuery {
    fn ty() -> Type {
        TableQuery::ty()
    }

    fn define(definitions: &mut Vec<TypeDefinition>) {
        TableQuery::define(definitions);
    }

    fn from_value(value: Value) -> Result<Self, Failure> {
        DecodedQuery::of(&value)
    }

    #[inline]
    fn copied(value: &Value) -> Option<Self> {
        // The constant stays where it is. If it cannot be decoded, `from_value` says why.
        DecodedQuery::of(value).ok()
    }

    fn into_value(self) -> Result<Value, Failure> {
        self.0.query.clone().into_value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::schema::TableCondition;

    fn query(column: usize) -> Value {
        let condition = TableCondition { column, comparison: "==".to_owned() };
        TableQuery { conditions: vec![condition], order: Vec::new() }.into_value().unwrap()
    }

    #[test]
    fn a_constant_is_one_site_and_an_equal_one_another() {
        let (first, second) = (query(1), query(1));
        let site = |value: &Value| DecodedQuery::from_value(value.clone()).unwrap().0;
        assert!(Arc::ptr_eq(&site(&first), &site(&first)));
        assert!(!Arc::ptr_eq(&site(&first), &site(&second)));
        // None of those that were met and are gone is mistaken for another one.
        for column in 0..2 * KEPT_MAX {
            assert_eq!(site(&query(column)).conditions[0].column, column);
        }
        assert_eq!(site(&first).conditions[0].column, 1);
    }
}
