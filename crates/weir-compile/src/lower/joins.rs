//! Lowers a query and the reads of its rounds by keys, such as `for m in messages { (m.text, users[m.from]) }`, to one statement
//! that joins the tables, so that both see one moment.
//!
//! A read is joined if each part of its key is a column of the row, or does not mention the row, and if no two databases would have to
//! join them: a query must not hold its table while another database answers. The statement is a step that holds all of its tables,
//! unless a transaction around it does.

use weir_host::{Mode, Resource, Text, Type, Value};
use weir_ir::expr::{Atom, Constraint};
use weir_ir::prim::Prim;
use weir_syntax::Span;
use weir_syntax::ast::{Expr, ExprKind};

use super::Lowering;
use super::conditions::{ComparedValue, DividedCondition};
use super::keyed_reads::{KeyedRead, PairedList};
use super::table_description::{option, record};
use super::tables::outside;
use crate::declarations::name_in_database;
use crate::lang_items::JOINED;
use crate::typed_tree::LocalId;

/// Maximum number of tables that are joined to a query. Further reads are statements of their own.
const JOINS_MAX: usize = 8;

/// A table that a query is joined with, and the reads that its rows answer.
pub(super) struct QueryJoin<'a> {
    table: Text,
    /// The columns of the row that have the parts of the key; `None` for the next of the values.
    columns: Vec<Option<u32>>,
    values: Vec<&'a Expr>,
    reads: Vec<KeyedRead<'a>>,
}

impl<'a> Lowering<'a, '_> {
    /// Returns the tables that a query is joined with: those of reads whose keys its rows have.
    pub(super) fn joins(&self, table: &Text, row: LocalId, reads: Vec<KeyedRead<'a>>) -> Vec<QueryJoin<'a>> {
        let mut joins: Vec<QueryJoin<'a>> = Vec::new();
        for read in reads {
            let Some(join) = self.join_of(table, row, read) else { continue };
            let same = |known: &QueryJoin<'a>| {
                known.table == join.table && known.columns == join.columns && join.values.is_empty()
            };
            match joins.iter().position(same) {
                Some(known) => joins[known].reads.push(read),
                None if joins.len() < JOINS_MAX => joins.push(join),
                None => {}
            }
        }
        joins
    }

    fn join_of(&self, table: &Text, row: LocalId, read: KeyedRead<'a>) -> Option<QueryJoin<'a>> {
        let other = self.table_named(read.object)?;
        let are_apart =
            self.is_stored(table) && self.is_stored(&other) && self.database_of(table) != self.database_of(&other);
        if are_apart || self.is_in_transaction_of(&other) != self.is_in_transaction_of(table) {
            return None;
        }
        let key = self.table(&other).key.len();
        let parts: Vec<&'a Expr> = match &read.key.kind {
            ExprKind::Tuple(parts) if key > 1 => parts.iter().collect(),
            _ => vec![read.key],
        };
        let mut join = QueryJoin { table: other, columns: Vec::new(), values: Vec::new(), reads: vec![read] };
        for part in &parts {
            match self.column_of(row, part) {
                Some(column) => join.columns.push(Some(column)),
                None if self.mentions(row, part) => return None,
                None => {
                    join.columns.push(None);
                    join.values.push(part);
                }
            }
        }
        (parts.len() == key).then_some(join)
    }

    /// Returns whether a transaction around the current expression holds the table.
    fn is_in_transaction_of(&self, table: &Text) -> bool {
        self.steps.iter().filter_map(|step| step.transaction.as_ref()).any(|of| of.tables.contains(table))
    }

    /// Returns the rows of a query. `describe` makes its description and arguments.
    pub(super) fn select_joined(
        &mut self,
        table: &Text,
        (joins, divided): (Vec<QueryJoin<'a>>, DividedCondition<'a>),
        span: Span,
        describe: impl FnOnce(&mut Self, &DividedCondition<'a>) -> (Atom, Atom),
    ) -> PairedList<'a> {
        let mut divided = divided;
        let mut paired = PairedList::plain(Atom::Value(Value::Unit), self.row_type(table));
        divided.values.extend(joins.iter().flat_map(|join| &join.values).copied().map(ComparedValue::Of));
        let (query, arguments) = describe(self, &divided);
        let given = vec![Atom::Shared(table.clone()), outside(), query, arguments];
        if joins.is_empty() {
            let rows = Type::list(paired.element_type.clone());
            paired.list = self.call_tables("select", given, rows, span);
            return paired;
        }
        let tables: Vec<Text> = joins.iter().map(|join| join.table.clone()).collect();
        let description = Value::list(joins.iter().map(QueryJoin::description).collect());
        for join in joins {
            let row = Type::option(self.row_type(&join.table));
            paired.element_type = Type::tuple(vec![paired.element_type, row]);
            paired.reads.push(join.reads);
        }
        let rows = Type::list(paired.element_type.clone());
        let call = |lowering: &mut Self| {
            let joined = tables.iter().map(|other| {
                lowering.call_tables("joined_table", vec![Atom::Shared(other.clone())], Type::named(JOINED), span)
            });
            let joined: Vec<Atom> = joined.collect();
            let joined = lowering.prim(Prim::List, joined, Type::list(Type::named(JOINED)), span);
            let more = [Atom::Value(description), joined];
            lowering.call_tables("join", given.into_iter().chain(more).collect(), rows.clone(), span)
        };
        paired.list = if self.is_in_transaction_of(table) {
            call(self)
        } else {
            let open_block = self.build_block(call);
            let held = std::iter::once(table).chain(&tables).map(|table| Constraint {
                resource: Resource::Shared(table.clone()),
                mode: Mode::Read,
                per_session: false,
            });
            let held: Vec<Constraint> = held.collect();
            self.step(open_block, (rows.clone(), None), span, |_, _| (held, Vec::new()))
        };
        paired
    }
}

impl QueryJoin<'_> {
    /// Returns the join as a value of the type `tables.Join`.
    fn description(&self) -> Value {
        let columns = self.columns.iter().map(|column| option(column.map(|column| Value::Int(column.into()))));
        record([Value::text(name_in_database(&self.table)), Value::list(columns.collect())])
    }
}
