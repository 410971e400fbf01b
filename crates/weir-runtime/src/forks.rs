//! Forks: rounds of a loop that another core runs for a flow.
//!
//! Rounds that have no order among each other (`prepare/regions/splits.rs`) may run on several cores. A flow offers some of
//! them at a *heartbeat*, a safe point at least 50 µs after the one before, and only if a core is idle: a saturated machine
//! pays a relaxed load for each. The rounds that are left are halved, those of the outermost loop that has any, because it has
//! the longest: the upper half becomes a [`Fork`], and the flow goes on with the lower one. A fork does the same.
//!
//! 1. *Offer.* A fork is offered to the [`Helpers`](crate::helpers::Helpers), threads that do nothing else.
//! 2. *Run.* A helper begins the fork and runs it, slice by slice. It stops at the end of a slice if the fork is given up.
//! 3. *Join.* At the end of the loop, the flow takes its forks in the order of the rounds. It runs one that nobody has begun
//!    itself. It adds the results of one that has ended to its own; if a round has ended the flow, later ones do not count.
//!    For one that is under way it waits, as a step that waits without a wait bit (`frame.rs`). A fork that joins
//!    forks of its own blocks its thread instead, and leaves its place among the helpers to another one.
//!
//! Results, failures and their places are those of rounds that run one after the other. Memory is charged to the flow, and
//! the slices of its forks count as turns of the flow ([`ForkAccount`]). A fork is given up when the frame that has offered it
//! goes on without it, because an earlier round has failed, or because the flow was cancelled.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Waker};

use parking_lot::{Condvar, Mutex};
use weir_host::{Elements, Failure, Value};

use crate::fork_account::ForkAccount;
use rounds::ForkedRounds;

pub(crate) mod rounds;

/// Rounds of a loop that another thread may run.
pub(crate) struct Fork {
    state: Mutex<ForkState>,
    ended: Condvar,
    given_up: AtomicBool,
    /// The fork that has offered this one; `None` if the flow has.
    offered_by: Option<Arc<Fork>>,
    account: Arc<ForkAccount>,
}

enum ForkState {
    /// Nobody has begun the rounds.
    Offered(Box<ForkedRounds>),
    /// A helper runs them. The waker of the flow that waits for their end, if it does.
    UnderWay(Option<Waker>),
    Ended(ForkEnd),
    /// The rounds or their results were taken out.
    Taken,
}

/// The end of a fork.
pub(crate) enum ForkEnd {
    /// The results of all rounds.
    Results(Elements),
    /// The instruction that has ended the flow, with an answer or a failure.
    Exit(usize, Result<Value, Box<Failure>>),
}

/// The state of a fork that a flow joins.
pub(crate) enum JoinedFork {
    /// Nobody has begun the rounds, which are the flow's again.
    Unbegun(Box<ForkedRounds>),
    /// They have ended.
    Ended(ForkEnd),
    /// They are under way.
    UnderWay,
}

impl Fork {
    fn new(rounds: ForkedRounds, offered_by: Option<&Arc<Fork>>, account: &Arc<ForkAccount>) -> Arc<Fork> {
        Arc::new(Fork {
            state: Mutex::new(ForkState::Offered(Box::new(rounds))),
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

    /// Takes the rounds out to run them; `None` if another thread has them.
    fn begin(&self) -> Option<Box<ForkedRounds>> {
        let mut state = self.state.lock();
        match std::mem::replace(&mut *state, ForkState::UnderWay(None)) {
            ForkState::Offered(rounds) => Some(rounds),
            other => {
                *state = other;
                None
            }
        }
    }

    /// Notes the end of the rounds, and wakes who waits for it.
    fn end(&self, end: ForkEnd) {
        let mut state = self.state.lock();
        let before = std::mem::replace(&mut *state, ForkState::Ended(end));
        drop(state);
        self.ended.notify_all();
        if let ForkState::UnderWay(Some(waiter)) = before {
            waiter.wake();
        }
    }

    /// Takes out the rounds that nobody has begun, or the end; otherwise registers the task that is woken at the end.
    fn join(&self, context: &Context<'_>) -> JoinedFork {
        let mut state = self.state.lock();
        match std::mem::replace(&mut *state, ForkState::Taken) {
            ForkState::Offered(rounds) => JoinedFork::Unbegun(rounds),
            ForkState::Ended(end) => JoinedFork::Ended(end),
            ForkState::UnderWay(_) | ForkState::Taken => {
                *state = ForkState::UnderWay(Some(context.waker().clone()));
                JoinedFork::UnderWay
            }
        }
    }

    /// Blocks this thread until the fork, which is under way, has ended.
    fn wait(&self) {
        let mut state = self.state.lock();
        while matches!(*state, ForkState::UnderWay(_)) {
            self.ended.wait(&mut state);
        }
    }
}

/// A fork of a frame. Dropping it gives the fork up.
pub(crate) struct ForkHandle {
    /// The number of the loop in its region.
    split: usize,
    fork: Arc<Fork>,
}

impl Drop for ForkHandle {
    fn drop(&mut self) {
        self.fork.given_up.store(true, Ordering::Relaxed);
        drop(self.fork.begin());
    }
}
