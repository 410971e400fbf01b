//! Forks: pieces of a region that another core runs for a flow.
//!
//! A piece is one of two things: some rounds of a loop whose rounds have no order among each other
//! (`prepare/regions/splits.rs`), or a part that needs nothing of the code before it (`prepare/regions/build/parts.rs`). A flow
//! offers pieces at a *heartbeat*, a safe point at least 50 µs after the one before, or before a call that takes long, and
//! only if cores are idle: a saturated machine pays a few relaxed loads for each. It offers the outermost piece, because that
//! takes the longest. A part is offered as a whole. The rounds that are left of a loop are shared with all idle cores at once:
//! each gets a [`Fork`] of about as many rounds as the flow keeps, if that seems to pay. A fork does the same, and because it
//! knows the pace of the loop, also before its first round.
//!
//! 1. *Offer.* A fork is offered to the [`Helpers`](crate::helpers::Helpers), threads that do nothing else.
//! 2. *Run.* A helper begins the fork and runs it, slice by slice. It stops at the end of a slice if the fork is given up. The
//!    forks of a loop share its list, and each takes its own elements out of it when it begins (`RoundsAhead`), so that no
//!    thread does that for the others.
//! 3. *Hand back.* At each heartbeat a helper lets other threads have its core for a moment ([`Helpers::must_leave`]). If they
//!    need it for long, it hands the piece back as it is. The flow offers it once more when cores are idle again.
//! 4. *Join.* At the end of a loop, the flow takes the forks of its rounds in their order, and at the beginning of a part the
//!    fork of the part. It runs one that nobody has begun itself, and goes on with one that was handed back. It takes over what
//!    one has done that has ended; if that has ended the flow, later ones do not count. For one that is under way it waits, as a
//!    step that waits without a wait number (`frame.rs`). A fork that joins forks of its own blocks its thread instead, and leaves
//!    its place among the helpers to another one.
//!
//! Results, failures and their places are those of code that runs in the order of the text. Memory is charged to the flow, and
//! the slices of its forks count as turns of the flow ([`ForkAccount`]). A fork is given up when the frame that has offered it
//! goes on without it, because something before it has failed, or because the flow was cancelled.
//!
//! [`Helpers::must_leave`]: crate::helpers::Helpers::must_leave

use std::sync::Arc;

use weir_host::{Elements, Failure, Value};

use crate::fork_account::ForkAccount;
use crate::region::RegionPiece;
use hand_over::{HandOver, JoinedPiece};
use pieces::ForkedPiece;
use rounds_ahead::RoundsAhead;

mod hand_over;
#[cfg(test)]
mod model;
mod parts;
mod pieces;
pub(crate) mod region_run;
mod rounds;
mod rounds_ahead;
mod sync;

/// A piece of a region that another thread may run.
pub(crate) struct Fork {
    hand_over: HandOver<Box<ForkedPiece>, ForkEnd>,
    /// The fork that has offered this one; `None` if the flow has.
    offered_by: Option<Arc<Fork>>,
    account: Arc<ForkAccount>,
}

/// The end of a fork.
pub(crate) enum ForkEnd {
    /// The results of all rounds of a `for`.
    Results(Elements),
    /// The part, or the rounds of a `fold`, with what it has changed.
    Piece(Box<ForkedPiece>),
    /// The instruction that has ended the flow, with an answer or a failure.
    Exit(usize, Result<Value, Box<Failure>>),
}

/// The outcome of joining a fork.
pub(crate) type JoinedFork = JoinedPiece<Box<ForkedPiece>, ForkEnd>;

impl Fork {
    fn new(piece: ForkedPiece, offered_by: Option<&Arc<Fork>>, account: &Arc<ForkAccount>) -> Arc<Fork> {
        let hand_over = HandOver::new(Box::new(piece));
        Arc::new(Fork { hand_over, offered_by: offered_by.cloned(), account: Arc::clone(account) })
    }

    /// Returns true if nobody needs the results any more.
    fn is_given_up(&self) -> bool {
        self.hand_over.is_given_up() || self.offered_by.as_ref().is_some_and(|by| by.is_given_up())
    }
}

/// A fork of a frame. Dropping it gives the fork up.
pub(crate) struct ForkHandle {
    piece: RegionPiece,
    /// The rounds, if they may have to run once more.
    repeated: Option<RoundsAhead>,
    fork: Arc<Fork>,
}

impl Drop for ForkHandle {
    fn drop(&mut self) {
        self.fork.hand_over.give_up();
    }
}
