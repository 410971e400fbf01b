//! Calls: how a function is called, with which values, locks and threads.

use std::sync::Arc;

use weir_host::{Argument, FunctionCode, ImmediateCode, Mode, Outcome, WordCode};

use crate::batching::{self, Gatherer};
use crate::flow_section::CallSection;
use crate::lock::{FairRwLock, SessionTable};
use crate::operations::{KeptFailure, Out};
use crate::region::Scalar;

/// A call on scalars that has no effect, uses nothing but its arguments, and takes about the same time for all of them.
#[derive(Clone, Copy)]
pub(crate) struct VectorCall {
    /// The typed entry point of the function.
    pub code: WordCode,
    /// The type of its result.
    pub result: Scalar,
}

/// A call of the simplest kind.
pub(crate) struct SimpleStep {
    /// The function.
    pub code: Arc<ImmediateCode>,
    /// Its path, for messages.
    pub path: Arc<str>,
    /// Its arguments.
    pub arguments: Box<[Argument]>,
    /// The slots that are not used afterwards, and that the function only borrows.
    pub dead: Box<[u32]>,
    /// True if it changes a value of the frame in place, which another thread would not see changed.
    pub changes: bool,
    /// The form of the call that may be made together with the same call of other flows, if it has one.
    pub vector: Option<VectorCall>,
    /// The slot of its answer.
    pub out: u32,
}

/// A call.
pub(crate) struct CallStep {
    /// The function.
    pub code: FunctionCode,
    /// Its path, for messages.
    pub path: Arc<str>,
    /// Its arguments.
    pub arguments: Box<[Argument]>,
    /// The shared values that arguments index, if one of them belongs to the session; otherwise empty, and arguments
    /// index those of the program.
    pub shared: Box<[SharedOf]>,
    /// The slots that are not used afterwards, and that the function only borrows.
    pub dead: Box<[u32]>,
    /// True if it changes a value of the frame in place. A function that returns at once then runs on the thread of the flow.
    pub changes: bool,
    /// The destination of the answer.
    pub out: Out,
    /// Set if a failure that would end the flow is an answer.
    pub kept_failure: Option<KeptFailure>,
    /// The locks that it holds while it runs, in the canonical order.
    pub locks: Box<[(Arc<FairRwLock>, Mode)]>,
    /// True if it is a read by itself, in no atomic step: it takes no lock of values that have snapshots.
    pub sees_snapshot: bool,
    /// The ticket gate that it waits at.
    pub ticket_gate: Option<usize>,
    /// The index of its private state.
    pub state: Option<usize>,
    /// The gatherer of its function, if calls of this function are gathered.
    pub gatherer: Option<Arc<Gatherer>>,
    /// The section whose threads run it while its flow waits elsewhere; `None` for a call on the thread of its flow.
    pub section: Option<CallSection>,
    /// The atomic steps around it, by the node that begins each.
    pub within: Box<[u32]>,
    /// True if the atomic step around it is this call and no more, and holds only what the call itself uses. Its locks are then
    /// those of the call.
    pub is_whole_step: bool,
    /// True if it waits for the peer of a connection.
    pub awaits_peer: bool,
    /// True if it only reads, and asks a peer: it begins when what its flow has seen is durable.
    pub asks_peer: bool,
}

impl CallStep {
    /// Returns true if the call is gathered.
    #[inline]
    pub(crate) fn is_gathered(&self) -> bool {
        batching::IS_COMPILED && self.gatherer.is_some()
    }

    /// Returns true if it takes none of its locks.
    #[inline]
    pub(crate) fn needs_no_locks(&self) -> bool {
        self.sees_snapshot && see_one_snapshot(self.locks.iter().map(|(lock, _)| &**lock))
    }

    /// Returns the outcome as this step sees it: a failure that it keeps is an answer.
    #[inline]
    pub(crate) fn seen(&self, outcome: Outcome) -> Outcome {
        match self.kept_failure {
            None => outcome,
            Some(kept) => kept.seen(outcome),
        }
    }

    /// Returns true if it is gathered and borrows shared values, which its gatherer knows.
    pub(crate) fn borrows(&self) -> bool {
        self.gatherer.as_ref().is_some_and(|gatherer| !gatherer.borrowed().values.is_empty())
    }
}

/// Returns true if reads of the values behind these locks see a snapshot of all of them.
#[inline]
pub(crate) fn see_one_snapshot<'l>(mut locks: impl Iterator<Item = &'l FairRwLock>) -> bool {
    let Some(first) = locks.next() else { return true };
    let store = first.snapshots();
    store.is_some() && locks.all(|lock| lock.snapshots() == store)
}

/// A shared value of a call.
pub(crate) enum SharedOf {
    /// A shared value of the program, by its index.
    Program(u32),
    /// The value of the flow's session.
    Session(Arc<SessionTable>),
}
