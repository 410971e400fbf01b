//! Rounds of input and output: the calls of a flow that are under way together, and the reason for which each later call
//! waits for an earlier one.
//!
//! The calls counted are those of functions that may wait or that block. The first round has the calls that wait for no
//! other, and each further round those that wait for a call of the round before. That is how engines execute a flow if all
//! calls take the same time. In a `for` whose elements overlap, the rounds are those of one element; in one whose elements
//! do not, and in `fold` and `loop`, they are those of one round, and each call says so ([`IoCall::in_turn`]).
//!
//! A statement on a table is such a call too. Reads of different tables overlap, and so do reads of one table by keys, queries and counts,
//! which are sent one behind the other on one connection. All other reads of one table keep the order of the text, unless they are gathered. A statement under the locks of an atomic step (a write, all in a transaction, a query of several
//! tables) begins when everything before it has ended, and nothing behind it begins before it has ended. In a transaction a flow
//! may run ahead ([`Ahead`]); a commit of the transaction is one statement, and what takes it back is none, since the flow then
//! fails.

use weir_host::Library;

use crate::graph::Graph;
pub use io_call::{Ahead, CommonArgument, ExplainedTables, IoArm, IoCall, IoWait, TurnReason, WaitReason};

mod ending_arms;
mod executed_body;
mod io_call;
mod moment;
mod moments;
mod orders;
mod referenced_rows;
mod repeated;
mod statements;
mod transactions;

/// Returns whether a flow may learn of what another one has written otherwise than by a table: its answer waits until everything is durable
/// that was executed before, and not only what it has read.
#[must_use]
pub fn waits_for_all_commits(graph: &Graph) -> bool {
    statements::settles_all(graph)
}

/// Returns the calls of a flow, in the order of its text.
#[must_use]
pub fn io_calls(graph: &Graph, library: &Library, tables: &ExplainedTables) -> Vec<IoCall> {
    moments::calls(graph, library, tables)
}
