//! The statements of searches, whose SQL is composed once for each case (`query_site`).

use std::sync::Arc;

use super::dialect::Dialect;
use super::query_site::{SqlCase, SqlForm};
use super::schema::{PageStart, Schema, TableSearch};
use super::sql_value::{Bound, SqlValue};
use super::statements::{NUMBER, TableStatements};

impl TableStatements {
    /// Returns the SQL of a search, and its parameters.
    pub(super) fn search<'s>(
        &self,
        schema: &'s Schema,
        search: &'s TableSearch,
        form: SqlForm,
    ) -> (Arc<str>, Vec<Bound<'s>>) {
        let case = self.case(schema, search, form);
        if let Some(sql) = case.and_then(|case| search.query.sql(case)) {
            return (sql, parameters(schema, search, form));
        }
        let (sql, composed) = match form {
            SqlForm::Rows => self.select(schema, search),
            SqlForm::Count => self.count(schema, search),
            SqlForm::Sum(column) => self.sum(schema, search, column),
            SqlForm::Deletion => self.delete_all(schema, search),
        };
        let sql: Arc<str> = sql.into();
        if let Some(case) = case {
            let same = |(one, other): (&Bound<'_>, Bound<'_>)| one.stored() == other.stored();
            debug_assert!(composed.iter().zip(parameters(schema, search, form)).all(same), "{sql}");
            search.query.keep(case, &sql);
        }
        (sql, composed)
    }

    /// Returns what the SQL of a statement depends on; `None` if it has values in it.
    fn case(&self, schema: &Schema, search: &TableSearch, form: SqlForm) -> Option<SqlCase> {
        let mut absent = 0;
        for (at, (condition, value)) in search.conditions().enumerate() {
            let bit = 1_u64.checked_shl(u32::try_from(at).ok()?)?;
            let bound = Bound::new(value, &schema.columns[condition.column]);
            absent |= if is_absent(bound) { bit } else { 0 };
            if self.dialect == Dialect::Postgres && bound.is_unstorable_in_postgres() {
                return None;
            }
        }
        let has_variant = |after: &Vec<_>| after.iter().any(PageStart::is_variant);
        let case = SqlCase {
            table: self.number,
            form,
            is_limited: search.is_limited(),
            is_behind: search.after.is_some(),
            absent,
        };
        (!search.after.as_ref().is_some_and(has_variant)).then_some(case)
    }
}

/// Returns the parameters of a statement, in the order in which its SQL has them.
fn parameters<'s>(schema: &'s Schema, search: &'s TableSearch, form: SqlForm) -> Vec<Bound<'s>> {
    let column = |at: usize| &schema.columns[at];
    let conditions = search.conditions().map(|(condition, value)| Bound::limit(value, column(condition.column)));
    let after = search.after.iter().flatten().map(|start| Bound::limit(&start.value, column(start.column)));
    let limit = (form == SqlForm::Rows).then_some(Bound::new(&search.limit_value, &NUMBER));
    conditions.filter(|bound| !is_absent(*bound)).chain(after).chain(limit).collect()
}

/// Returns whether a condition compares with an absent value, which is no parameter.
fn is_absent(bound: Bound<'_>) -> bool {
    bound.column.optional && bound.stored() == SqlValue::Null
}
