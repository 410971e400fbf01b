//! The statements of a group of changes. The insertions into a table are one statement, as long as no other change of the table
//! stands between them: they commute with the changes of other tables, because no row of a group references another.

use tokio_postgres::types::ToSql;
use weir::{Failure, Value};

use super::connection::{Executed, SqlStatement};
use super::publications::{GroupPublications, Publications};
use super::queued_change::QueuedChange;
use super::received_row::ReceivedRow;
use super::table_layout::TableLayout;
use crate::tables::constraint;
use crate::tables::insertion::given_columns;
use crate::tables::row::fields;
use crate::tables::rows::RowChange;
use crate::tables::sql_value::Bound;
use crate::tables::write_sets::TableWrite;

/// The statements of a group.
pub(super) struct GroupStatements<'g> {
    group: &'g [QueuedChange],
    parts: Vec<GroupPart<'g>>,
}

enum GroupPart<'g> {
    /// A change, by its number in the group.
    Change(usize, Vec<Bound<'g>>, Publications),
    /// Insertions into a table, by their numbers.
    Insertions(Vec<usize>, GroupInsertion<'g>),
}

/// The insertion of several rows.
struct GroupInsertion<'g> {
    sql: &'g str,
    /// A list of values for each column.
    columns: Vec<Vec<Bound<'g>>>,
    published: Option<GroupPublications>,
}

impl<'g> GroupStatements<'g> {
    pub(super) fn of(group: &'g [QueuedChange]) -> GroupStatements<'g> {
        let mut parts: Vec<GroupPart<'g>> = Vec::new();
        // The tables with insertions that further ones can join.
        let mut open: Vec<(usize, usize)> = Vec::new();
        for (at, queued) in group.iter().enumerate() {
            let (table, identity) = (&queued.table, queued.table.identity());
            let joined = open.iter().find(|(of, _)| *of == identity).map(|(_, part)| *part);
            match (&queued.change, &table.statements.insert_many) {
                (RowChange::Insert(_), Some(sql)) if queued.joins => {
                    match joined.and_then(|part| parts.get_mut(part)) {
                        Some(GroupPart::Insertions(members, _)) => members.push(at),
                        _ => {
                            open.push((identity, parts.len()));
                            let insertion = GroupInsertion { sql, columns: Vec::new(), published: None };
                            parts.push(GroupPart::Insertions(vec![at], insertion));
                        }
                    }
                }
                (change, _) => {
                    open.retain(|(of, _)| *of != identity);
                    parts.push(GroupPart::Change(at, table.change_parameters(change), table.publications(change)));
                }
            }
        }
        parts.iter_mut().for_each(|part| part.fill(group));
        GroupStatements { group, parts }
    }

    /// Returns the statements, in their order.
    pub(super) fn statements(&self) -> Vec<SqlStatement<'_>> {
        let mut statements = Vec::with_capacity(2 * self.parts.len());
        for part in &self.parts {
            match part {
                GroupPart::Change(at, parameters, published) => {
                    let QueuedChange { table, change, .. } = &self.group[*at];
                    statements.extend(table.change_statements(change, parameters, published).into_iter().flatten());
                }
                GroupPart::Insertions(_, GroupInsertion { sql, columns, published }) => {
                    statements.push(SqlStatement::new(sql, columns));
                    statements.extend(published.as_ref().map(GroupPublications::statement));
                }
            }
        }
        statements
    }

    /// Returns the answer of each change, in the order of the group; `None` if nothing of it has happened,
    /// because a table has too few numbers left.
    pub(super) fn answers(&self, executed: &[Executed]) -> Option<Vec<Result<Value, Failure>>> {
        let mut answers: Vec<Option<Result<Value, Failure>>> = self.group.iter().map(|_| None).collect();
        let mut begin = 0;
        for part in &self.parts {
            let of_part = executed.get(begin);
            match part {
                GroupPart::Change(at, parameters, published) => {
                    let QueuedChange { table, change, .. } = &self.group[*at];
                    let statements = table.change_statements(change, parameters, published);
                    answers[*at] = Some(table.change_answer(change, statements.as_ref().and(of_part)));
                    begin += statements.map_or(0, |statements| statements.len());
                }
                GroupPart::Insertions(members, insertion) => {
                    let keys = inserted_keys(self.group, members, (of_part?, self.parts.len() == 1))?;
                    members.iter().zip(keys).for_each(|(at, key)| answers[*at] = Some(key));
                    begin += 1 + usize::from(insertion.published.is_some());
                }
            }
        }
        answers.into_iter().collect()
    }
}

/// Returns the keys of rows that were inserted together; `None` if the table has given no number, and nothing else was changed.
fn inserted_keys(
    group: &[QueuedChange],
    members: &[usize],
    (executed, is_whole_group): (&Executed, bool),
) -> Option<Vec<Result<Value, Failure>>> {
    let TableLayout { schema, triggers, .. } = &*group.get(*members.first()?)?.table;
    let is_out_of_numbers = schema.auto && executed.count == 0;
    if is_out_of_numbers && is_whole_group {
        return None;
    }
    let inserted = match executed.rows() {
        Ok(rows) if schema.auto => numbers_of(rows),
        Ok(_) => Vec::new(),
        Err(failure) => return Some(members.iter().map(|_| Err(failure.clone())).collect()),
    };
    let count = if schema.auto { inserted.len() as u64 } else { executed.count };
    if count != members.len() as u64 {
        // Nobody knows which ones. From now on, each is a statement.
        triggers.have_kept_row();
        let failure = match members {
            _ if is_out_of_numbers => constraint::no_number_given(schema),
            [_] if schema.auto => constraint::kept_out(schema),
            [only] => constraint::not_inserted(schema, inserted_row(&group[*only].change)),
            several => constraint::some_kept_out(schema, (count, several.len())),
        };
        return Some(members.iter().map(|_| Err(failure.clone())).collect());
    }
    if !schema.auto {
        let answer = |at: &usize| group[*at].table.change_answer(&group[*at].change, None);
        return Some(members.iter().map(answer).collect());
    }
    Some(inserted.into_iter().map(|number| Ok(Value::Int(number))).collect())
}

/// Returns the numbers of inserted rows in their order, without those that the database has not told.
fn numbers_of(rows: &[ReceivedRow]) -> Vec<i64> {
    let mut numbers: Vec<i64> = rows.iter().filter_map(|row| row.try_get::<_, Option<i64>>(0).ok().flatten()).collect();
    numbers.sort_unstable();
    numbers
}

impl<'g> GroupPart<'g> {
    /// Adds the values of the rows of insertions.
    fn fill(&mut self, group: &'g [QueuedChange]) {
        let GroupPart::Insertions(members, insertion) = self else { return };
        let Some(table) = members.first().map(|first| &group[*first].table) else { return };
        let rows: Vec<&'g [Value]> = members.iter().map(|at| inserted_row(&group[*at].change)).collect();
        let column = |at: usize| rows.iter().map(|row| Bound::new(&row[at], &table.schema.columns[at])).collect();
        insertion.columns = given_columns(&table.schema).into_iter().map(column).collect();
        insertion.published = Some(published(table, &rows));
    }
}

fn inserted_row(change: &RowChange) -> &[Value] {
    match change {
        RowChange::Insert(row) => fields(row),
        _ => &[],
    }
}

fn published(table: &TableLayout, rows: &[&[Value]]) -> GroupPublications {
    let (program, schema) = (table.program, &table.schema);
    if schema.auto {
        return GroupPublications::of_numbered(program, schema, rows.len());
    }
    let writes: Vec<TableWrite> = rows.iter().map(|row| TableWrite::of_row(schema, &schema.key_of(row))).collect();
    GroupPublications::of(program, &writes)
}

impl GroupPublications {
    fn statement(&self) -> SqlStatement<'_> {
        let parameters = self.parameters.iter().map(|parameter| &**parameter as &(dyn ToSql + Sync));
        SqlStatement { sql: self.sql, parameters: parameters.collect() }
    }
}
