//! The look-ups of statements on tables with references: a change looks up the rows that its row references, and a deletion those that
//! reference its rows. Outside of a transaction, the look-ups and the statement are one. An `update_all` may be several statements, too.

use weir_host::{Text, Value};

use super::io_call::ExplainedTables;
use super::statements::table_of;
use crate::graph::{Graph, Node, Operand};

/// The name that a look-up has among the calls of a flow.
const LOOK_UP: &str = "tables.look_up";
/// The name of the commit behind the statement.
const COMMITTED: &str = "tables.committed";

/// The function that replaces the rows of an `update_all`.
const REPLACE_ROWS: &str = "tables.replace_rows";
/// The names that its statements have among the calls of a flow, in their order, if a unique value moves from one row to another.
const REPLACEMENT: [&str; 5] = [
    "tables.set_savepoint",
    "tables.read_columns",
    "tables.delete_old_rows",
    "tables.insert_new_rows",
    "tables.release_savepoint",
];

/// Returns the function and the table of each statement that a call executes, one after the other.
pub(super) fn executed_by(
    tables: &ExplainedTables,
    graph: &Graph,
    node: &Node,
    function: &Text,
) -> Vec<(Text, Option<Text>)> {
    let table = table_of(graph, node);
    if function.as_str() == REPLACE_ROWS && !table.is_some_and(|table| tables.updated_in_place.contains(table)) {
        return REPLACEMENT.map(|statement| (statement.into(), table.cloned())).to_vec();
    }
    let own = (function.clone(), table.cloned());
    let looked_up = table.map_or_else(Vec::new, |table| looked_up(tables, function, table));
    if looked_up.is_empty() {
        return vec![own];
    }
    let look_ups = looked_up.into_iter().map(|table| (LOOK_UP.into(), Some(table)));
    let commit = (!is_in_transaction(graph, node)).then(|| (COMMITTED.into(), None));
    look_ups.chain([own]).chain(commit).collect()
}

/// Returns the tables in which a statement looks rows up.
fn looked_up(tables: &ExplainedTables, function: &Text, table: &Text) -> Vec<Text> {
    let statement = function.trim_start_matches("tables.").trim_start_matches("place_");
    match statement {
        "insert" | "upsert" | "replace" => tables.references.get(table).cloned().unwrap_or_default(),
        "delete" | "delete_all" => {
            let others = tables.referenced_by.get(table);
            others.map_or_else(Vec::new, |others| std::iter::once(table).chain(others).cloned().collect())
        }
        _ => Vec::new(),
    }
}

/// Returns true if a statement is in a transaction of the program: its number is not 0.
fn is_in_transaction(graph: &Graph, node: &Node) -> bool {
    match node.inputs.get(1) {
        Some(Operand::Constant(index)) => graph.constants.get(*index as usize) != Some(&Value::Int(0)),
        _ => true,
    }
}
