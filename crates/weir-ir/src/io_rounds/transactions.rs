//! The statements of a transaction that a flow waits for, in a database that takes a round trip for each answer.
//!
//! The first statement that a flow waits for begins the transaction; only behind it is a change sent without waiting for its answer.
//! Changes of some tables are always waited for ([`awaits_change`]). Rows that were asked for early are asked for again if such a change
//! was made meanwhile.

use std::collections::BTreeSet;

use indexmap::IndexMap;
use weir_host::Text;

use super::io_call::Ahead;
use super::moment::Moment;
use super::statements::{is_placed, table_of, writes_table};
use crate::graph::{Graph, Node, NodeKind};

/// The transaction that a flow executes.
#[derive(Default)]
pub(super) struct RunningTransaction {
    /// True if one of its statements has been answered.
    has_begun: bool,
    /// The moments at which it asks early for what calls read, by the names of these calls, and the ways in which it does.
    expected: IndexMap<Text, (Moment, Ahead)>,
}

impl RunningTransaction {
    /// Notes that it asks for the answer of a read, unless it has done that before.
    pub(super) fn ask(&mut self, (read, ahead): (&str, Ahead), at: Moment) {
        self.expected.entry(read.into()).or_insert((at, ahead));
    }

    /// Returns the moment at which the answer of a read was asked for, if that was before.
    pub(super) fn asked(&self, read: &Text, before: &Moment) -> Option<(Moment, Ahead)> {
        self.expected.get(read).filter(|(asked, _)| asked.round <= before.round).cloned()
    }

    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Notes that a statement of it was answered.
    pub(super) fn answered(&mut self, graph: &Graph, node: &Node) {
        self.has_begun = true;
        if writes_table(graph, node) {
            self.expected.clear();
        }
    }

    /// Notes that a body is executed repeatedly: its rounds ask again for rows behind a change that one of them waits for.
    pub(super) fn repeat(&mut self, body: &Graph, awaited: &BTreeSet<Text>) {
        if has_awaited_change(body, awaited) {
            self.expected.clear();
        }
    }
}

/// Returns true if the flow waits for the answer to a change, even if the transaction has begun: the program needs the answer, or the
/// table is one of those whose changes are `awaited`.
pub(super) fn awaits_change(graph: &Graph, node: &Node, awaited: &BTreeSet<Text>) -> bool {
    let NodeKind::Call { function, .. } = &node.kind else { return false };
    writes_table(graph, node)
        && (!is_placed(function) || table_of(graph, node).is_some_and(|table| awaited.contains(table)))
}

fn has_awaited_change(body: &Graph, awaited: &BTreeSet<Text>) -> bool {
    let inside = |node: &Node| node.bodies().iter().any(|inner| has_awaited_change(inner, awaited));
    body.nodes.iter().any(|node| awaits_change(body, node, awaited) || inside(node))
}
