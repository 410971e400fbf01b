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
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Waker};

use parking_lot::{Condvar, Mutex};
use weir_host::{Elements, Failure, Value};

use crate::fork_account::ForkAccount;
use crate::region::RegionPiece;
use pieces::ForkedPiece;
use rounds_ahead::RoundsAhead;

mod parts;
mod pieces;
pub(crate) mod region_run;
mod rounds;
mod rounds_ahead;

/// A piece of a region that another thread may run.
pub(crate) struct Fork {
    state: Mutex<ForkState>,
    ended: Condvar,
    given_up: AtomicBool,
    /// The fork that has offered this one; `None` if the flow has.
    offered_by: Option<Arc<Fork>>,
    account: Arc<ForkAccount>,
}

enum ForkState {
    /// Nobody has begun the piece. The waker of the flow that waits for its end, if it does.
    Offered(Box<ForkedPiece>, Option<Waker>),
    /// A helper runs it. The waker of the flow that waits for its end, if it does.
    UnderWay(Option<Waker>),
    /// A part of it has run, and nobody runs it. The waker of the flow that waits, for a fork of this one.
    HandedBack(Box<ForkedPiece>, Option<Waker>),
    Ended(ForkEnd),
    /// The piece or its results were taken out.
    Taken,
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

/// The state of a fork that a flow joins.
pub(crate) enum JoinedFork {
    /// Nobody has begun the piece, which is the flow's again.
    Unbegun(Box<ForkedPiece>),
    /// A part of the piece has run, and the flow goes on with it.
    Begun(Box<ForkedPiece>),
    /// It has ended.
    Ended(ForkEnd),
    /// It is under way.
    UnderWay,
}

impl Fork {
    fn new(piece: ForkedPiece, offered_by: Option<&Arc<Fork>>, account: &Arc<ForkAccount>) -> Arc<Fork> {
        Arc::new(Fork {
            state: Mutex::new(ForkState::Offered(Box::new(piece), None)),
            ended: Condvar::new(),
            given_up: AtomicBool::new(false),
            offered_by: offered_by.cloned(),
            account: Arc::clone(account),
        })
    }

    /// Returns true if nobody needs the results any more.
    fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed) || self.offered_by.as_ref().is_some_and(|by| by.is_given_up())
    }

    /// Takes the piece out to run it; `None` if another thread has it.
    fn begin(&self) -> Option<Box<ForkedPiece>> {
        let mut state = self.state.lock();
        match std::mem::replace(&mut *state, ForkState::UnderWay(None)) {
            ForkState::Offered(piece, waiter) | ForkState::HandedBack(piece, waiter) => {
                *state = ForkState::UnderWay(waiter);
                Some(piece)
            }
            other => {
                *state = other;
                None
            }
        }
    }

    /// Notes the end of the piece, and wakes who waits for it.
    fn end(&self, end: ForkEnd) {
        let mut state = self.state.lock();
        let before = std::mem::replace(&mut *state, ForkState::Ended(end));
        drop(state);
        self.ended.notify_all();
        if let ForkState::UnderWay(Some(waiter)) = before {
            waiter.wake();
        }
    }

    /// Leaves a piece of which a part has run to the flow, and wakes who waits for it. A helper that begins it nevertheless
    /// wakes `waiter`.
    fn hand_back(&self, piece: Box<ForkedPiece>, waiter: Option<Waker>) {
        let mut state = self.state.lock();
        let before = std::mem::replace(&mut *state, ForkState::HandedBack(piece, waiter));
        drop(state);
        self.ended.notify_all();
        if let ForkState::UnderWay(Some(waiter)) = before {
            waiter.wake();
        }
    }

    /// Leaves a piece, which the flow has taken out, to a helper; registers the task that is woken at its end.
    fn leave_to_helper(&self, piece: Box<ForkedPiece>, context: &Context<'_>) {
        *self.state.lock() = ForkState::Offered(piece, Some(context.waker().clone()));
    }

    /// Returns true if the piece was handed back, and makes it one that is offered.
    fn is_to_be_offered_again(&self) -> bool {
        let mut state = self.state.lock();
        match std::mem::replace(&mut *state, ForkState::Taken) {
            ForkState::HandedBack(piece, waiter) => *state = ForkState::Offered(piece, waiter),
            other => {
                *state = other;
                return false;
            }
        }
        true
    }

    /// Takes out the piece that no helper runs, or the end; otherwise registers the task that is woken at the end.
    fn join(&self, context: &Context<'_>) -> JoinedFork {
        let mut state = self.state.lock();
        match std::mem::replace(&mut *state, ForkState::Taken) {
            ForkState::Offered(piece, _) | ForkState::HandedBack(piece, _) => {
                if piece.is_begun {
                    JoinedFork::Begun(piece)
                } else {
                    JoinedFork::Unbegun(piece)
                }
            }
            ForkState::Ended(end) => JoinedFork::Ended(end),
            ForkState::UnderWay(_) | ForkState::Taken => {
                *state = ForkState::UnderWay(Some(context.waker().clone()));
                JoinedFork::UnderWay
            }
        }
    }

    /// Does the same for a flow, which leaves long calls to helpers, and with `keeps_offers` all that is offered to them.
    fn join_flow(&self, context: &Context<'_>, keeps_offers: bool) -> JoinedFork {
        if let ForkState::Offered(piece, waiter) = &mut *self.state.lock()
            && (keeps_offers || piece.long.is_some())
        {
            *waiter = Some(context.waker().clone());
            return JoinedFork::UnderWay;
        }
        self.join(context)
    }

    /// Blocks this thread until the fork, which is under way, has ended or was handed back.
    fn wait(&self) {
        let mut state = self.state.lock();
        while matches!(*state, ForkState::UnderWay(_)) {
            self.ended.wait(&mut state);
        }
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
        self.fork.given_up.store(true, Ordering::Relaxed);
        drop(self.fork.begin());
    }
}
