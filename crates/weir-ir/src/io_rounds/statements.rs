//! Statements on tables among the calls of a flow.

use weir_host::{Mode, Resource, Text};

use crate::graph::{Graph, Node, NodeKind, Operand};

/// The module whose functions are statements if they take a table.
const MODULE: &str = "tables.";

/// The function that waits until what was written is durable.
const SETTLE: &str = "tables.settle";

/// The functions that take a table and are no statements: one names it for a query that is joined with it, the others ask early for
/// rows that a statement reads.
const NO_STATEMENTS: [&str; 3] = ["tables.joined_table", "tables.expect", "tables.expect_each"];

/// Returns the table of a statement, if the node is one.
pub(super) fn table_of(node: &Node) -> Option<&Text> {
    let NodeKind::Call { function } = &node.kind else { return None };
    let Some(Operand::Shared(table)) = node.inputs.first() else { return None };
    (function.starts_with(MODULE) && !NO_STATEMENTS.contains(&function.as_str())).then_some(table)
}

/// Returns true if a flow writes a table, so that its answer waits for the commit.
pub(super) fn writes_tables(graph: &Graph) -> bool {
    graph.nodes.iter().any(|node| {
        let writes = |table: &Text| {
            let of_table = |resource: &Resource| matches!(resource, Resource::Shared(name) if name == table);
            node.uses.iter().any(|usage| usage.mode == Mode::Write && of_table(&usage.resource))
        };
        table_of(node).is_some_and(writes) || node.bodies().iter().any(writes_tables)
    })
}

/// Returns true if a function waits for the commit of what was written.
pub(super) fn is_settle(function: &str) -> bool {
    function == SETTLE
}
