//! The condition in SQL that a row comes behind the one before a page.
//!
//! Columns of one direction are compared as one row value, so that an index finds the place: `(sent, id) > (?1, ?2)`. If the
//! directions differ, the first columns of one direction bound the search, and the rest decides among equal rows.

use super::dialect::Dialect;
use super::schema::{PageStart, Schema};
use super::sql::list;
use super::sql_value::Bound;
use super::statements::ordered;

/// A column and its value in the row before the page.
struct Compared {
    column: String,
    value: String,
    descending: bool,
}

impl Dialect {
    /// Returns the condition that a row comes behind the one before a page. Adds its parameters.
    pub(super) fn behind<'s>(
        self,
        schema: &'s Schema,
        after: &'s [PageStart],
        parameters: &mut Vec<Bound<'s>>,
    ) -> String {
        let compared = after.iter().map(|start| {
            let column = &schema.columns[start.column];
            let value = match &start.value {
                // Variants are ordered by their places, which are no values of the database.
                weir::Value::Variant(tag, None) => tag.to_string(),
                value => {
                    parameters.push(Bound::limit(value, column));
                    self.parameter_of(column, parameters.len())
                }
            };
            Compared { column: ordered(schema, self, start.column), value, descending: start.descending }
        });
        behind(&compared.collect::<Vec<_>>())
    }
}

fn behind(compared: &[Compared]) -> String {
    let Some(first) = compared.first() else { return "1 = 0".to_owned() };
    let run = compared.iter().take_while(|other| other.descending == first.descending).count();
    let (same, others) = compared.split_at(run);
    let [columns, values] = [rows(same, |one| &one.column), rows(same, |one| &one.value)];
    let comparison = if first.descending { "<" } else { ">" };
    let strictly = format!("{columns} {comparison} {values}");
    if others.is_empty() {
        return strictly;
    }
    format!("{columns} {comparison}= {values} AND ({strictly} OR ({columns} = {values} AND {}))", behind(others))
}

/// Returns the parts as one row value.
fn rows(compared: &[Compared], part: fn(&Compared) -> &String) -> String {
    let parts = list(compared.iter().map(part).cloned(), ", ");
    if compared.len() == 1 { parts } else { format!("({parts})") }
}
