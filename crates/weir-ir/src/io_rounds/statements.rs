//! Statements on tables among the calls of a flow.

use std::collections::BTreeSet;

use weir_host::{Mode, Resource, Text, Value};

use super::io_call::Ahead;
use crate::graph::{Graph, Node, NodeKind, Operand};

/// The module whose functions are statements if they take a table.
const MODULE: &str = "tables.";

/// The function that begins a transaction.
const BEGIN: &str = "tables.begin";

/// The function that waits until what was written is durable.
const SETTLE: &str = "tables.settle";

/// The function that takes back what a transaction has changed: it is called only where the flow fails.
const ROLL_BACK: &str = "tables.roll_back";

/// The function that commits what a transaction has done to one of its tables, or if its last argument says so, to all.
const COMMIT: &str = "tables.commit";

/// The function that sends such a commit without waiting for its answer, and the one that waits for it behind the step.
const PLACE_COMMIT: &str = "tables.place_commit";
const COMMITTED: &str = "tables.committed";

/// The beginning of the names of changes that are sent without waiting for their answer.
const PLACED: &str = "tables.place_";

/// The functions that take a table and are no statements: one names it for a query that is joined with it, four ask early for what a
/// statement reads, and two compute the cursors of a page.
const NO_STATEMENTS: [&str; 9] = [
    "tables.joined_table",
    "tables.expect",
    "tables.expect_each",
    "tables.expect_select",
    "tables.expect_count",
    "tables.check_cursor",
    "tables.next_page",
    ROLL_BACK,
    PLACE_COMMIT,
];

/// The functions whose reads of a table in PostgreSQL are sent one behind the other on one connection, before the first is answered.
const SENT_READS: [&str; 4] = ["tables.get", "tables.get_all", "tables.select", "tables.count"];

/// The function that reads a row with others, wherever their reads stand: nothing waits for it but what needs its answer.
const GATHERED_READ: &str = "tables.row";

/// The names of calls that ask early for what a statement reads: the name of the read, and one of these.
const EXPECTATIONS: [(&str, Ahead); 3] =
    [(".expect", Ahead::AskedEarly), (".expect_each", Ahead::AskedEarly), (".together", Ahead::SentTogether)];

/// Returns the table of a statement, if the node of the graph is one.
pub(super) fn table_of<'a>(graph: &Graph, node: &'a Node) -> Option<&'a Text> {
    let NodeKind::Call { function, .. } = &node.kind else { return None };
    let Some(Operand::Shared(table)) = node.inputs.first() else { return None };
    let is_statement = function.starts_with(MODULE) && !NO_STATEMENTS.contains(&function.as_str());
    (is_statement && (!is_commit(node) || commits_all(graph, node))).then_some(table)
}

/// Returns true if the flow begins nothing else during the node: it is a statement under locks that an atomic step has, or has one in a
/// body. One that takes the lock of its table holds up nothing that does not need its answer, nor does one on a table of the
/// `unchanged` outside of steps.
pub(super) fn holds_up_flow(graph: &Graph, node: &Node, unchanged: &BTreeSet<Text>) -> bool {
    let takes_no_lock = |table: &Text| {
        let is_own = |resource: &Resource| matches!(resource, Resource::Shared(name) if name == table);
        let is_in_step = unchanged.contains(table) && !reads_unchanged(graph, node, unchanged);
        is_in_step || node.uses.iter().any(|usage| usage.held && is_own(&usage.resource))
    };
    let inside = |body: &Graph| body.nodes.iter().any(|inner| holds_up_flow(body, inner, unchanged));
    (!is_gathered_read(node) && table_of(graph, node).is_some_and(takes_no_lock)) || node.bodies().iter().any(inside)
}

/// Returns true if the node is a statement on one of the `unchanged` tables, which no flow changes, outside of steps that hold
/// something for it. Such statements need one another only to begin.
pub(super) fn reads_unchanged(graph: &Graph, node: &Node, unchanged: &BTreeSet<Text>) -> bool {
    let only_reads = || node.uses.iter().all(|usage| usage.mode == Mode::Read && !usage.held);
    !is_gathered_read(node) && table_of(graph, node).is_some_and(|table| unchanged.contains(table)) && only_reads()
}

/// Returns true if the node, which is in no atomic step, is a read of a table that is sent before the earlier ones are answered.
pub(super) fn is_sent_read(node: &Node) -> bool {
    let only_reads = || node.uses.iter().all(|usage| usage.mode == Mode::Read && !usage.held);
    matches!(&node.kind, NodeKind::Call { function, .. } if SENT_READS.contains(&function.as_str())) && only_reads()
}

/// Returns true if the node reads a row with others.
pub(super) fn is_gathered_read(node: &Node) -> bool {
    matches!(&node.kind, NodeKind::Call { function, .. } if function.as_str() == GATHERED_READ)
}

/// Returns true if the node is no mere computation, so that it counts when it begins.
pub(super) fn may_be_held_up(node: &Node) -> bool {
    !matches!(node.kind, NodeKind::Prim(_) | NodeKind::Switch { .. } | NodeKind::Select { .. })
}

/// Returns true if the node commits what a transaction has done to a table, or waits for that.
pub(super) fn is_commit(node: &Node) -> bool {
    matches!(&node.kind, NodeKind::Call { function, .. } if [COMMIT, COMMITTED].contains(&function.as_str()))
}

/// Returns true if a node that commits is the last one of its transaction.
fn commits_all(graph: &Graph, node: &Node) -> bool {
    match node.inputs.last() {
        Some(Operand::Constant(index)) => graph.constants.get(*index as usize) != Some(&Value::Bool(false)),
        _ => true,
    }
}

/// Returns true if the flow goes on before the statement is answered.
pub(super) fn is_placed(function: &str) -> bool {
    function.starts_with(PLACED)
}

/// Returns the name of the read for whose answer the node asks early, if it does that, and the way in which the flow runs ahead of it.
pub(super) fn expected_read(node: &Node) -> Option<(&str, Ahead)> {
    let name = node.name.as_str();
    EXPECTATIONS.iter().find_map(|(ending, ahead)| Some((name.strip_suffix(ending)?, *ahead)))
}

/// Returns true if a flow writes a table.
pub(super) fn writes_tables(graph: &Graph) -> bool {
    graph.nodes.iter().any(|node| writes_table(graph, node) || node.bodies().iter().any(writes_tables))
}

/// Returns true if the node is a statement that writes its table, or commits a transaction.
pub(super) fn writes_table(graph: &Graph, node: &Node) -> bool {
    table_of(graph, node).is_some_and(|table| {
        let of_table = |resource: &Resource| matches!(resource, Resource::Shared(name) if name == table);
        node.uses.iter().any(|usage| usage.mode == Mode::Write && of_table(&usage.resource))
    })
}

/// Returns true if a flow writes a table or executes a transaction, so that its answer waits for a commit.
pub(super) fn has_commits(graph: &Graph) -> bool {
    let has_commit = |node: &Node| writes_table(graph, node) || is_begin(node);
    graph.nodes.iter().any(|node| has_commit(node) || node.bodies().iter().any(has_commits))
}

/// Returns true if the node begins a transaction.
pub(super) fn is_begin(node: &Node) -> bool {
    matches!(&node.kind, NodeKind::Call { function, .. } if function.as_str() == BEGIN)
}

/// Returns true if a wait of a flow is one for everything that was executed before.
pub(super) fn settles_all(graph: &Graph) -> bool {
    let constant = |input: &Operand| match input {
        Operand::Constant(index) => graph.constants.get(*index as usize),
        _ => None,
    };
    graph.nodes.iter().any(|node| match &node.kind {
        NodeKind::Call { function, .. } if is_settle(function) => {
            node.inputs.first().and_then(constant) == Some(&Value::Bool(true))
        }
        kind => kind.bodies().iter().any(settles_all),
    })
}

/// Returns true if a function waits for the commit of what was written.
pub(super) fn is_settle(function: &str) -> bool {
    function == SETTLE
}
