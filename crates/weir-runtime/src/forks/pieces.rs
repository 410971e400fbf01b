//! Pieces of a region that run on their own: rounds of a loop, or a part.
//!
//! A piece has a copy of the words of its region and the values that it needs. It begins at an instruction of the region and
//! ends behind another one, so that the code is the same for all.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Waker};

use tokio::runtime::Handle;
use weir_host::{Elements, Failure, FailureKind, UnitBudget, Value, memory};

use super::region_run::{ForkScene, Offers, RegionForks, RegionRan, RegionRun};
use super::rounds_ahead::RoundsAhead;
use super::{Fork, ForkEnd, ForkHandle};
use crate::fork_account::FlowForks;
use crate::instance::ProgramInstance;
use crate::operations::panicked;
use crate::region::{LoopOutcome, Region, RegionPiece};
use crate::units::Units;

/// A piece with what it needs to run on another thread.
pub(crate) struct ForkedPiece {
    pub(super) region: Arc<Region>,
    pub(super) piece: RegionPiece,
    /// The instruction at which it goes on.
    pub(super) at: usize,
    /// Its rounds before they begin.
    pub(super) ahead: Option<RoundsAhead>,
    pub(super) slots: Vec<Value>,
    pub(super) words: Vec<u64>,
    pub(super) choices: Vec<u32>,
    pub(super) forks: RegionForks,
}

/// The outcome of a piece that does not go on.
enum PieceOutcome {
    /// It has come to its end.
    Through,
    /// An instruction has ended the flow, with an answer or a failure.
    Exit(usize, Result<Value, Box<Failure>>),
}

impl Fork {
    /// Offers the fork to the helpers of this program.
    pub(super) fn offer(self: Arc<Fork>, program: Arc<ProgramInstance>, event_loop: &Handle) {
        let helpers = Arc::clone(&program);
        helpers.helpers.offer(event_loop, move || self.run(&program));
    }

    /// Runs the piece on this thread, unless another thread has begun it.
    fn run(self: &Arc<Fork>, instance: &ProgramInstance) {
        let Some(mut piece) = self.begin() else { return };
        let begun_ns = instance.platform.now_ns();
        let outcome = loop {
            if self.is_given_up() {
                let failure = Failure::new(FailureKind::Cancelled, "the results are not needed any more");
                break PieceOutcome::Exit(piece.at, Err(Box::new(failure)));
            }
            if let Some(outcome) = piece.run_slice(self, instance) {
                break outcome;
            }
        };
        piece.note_cost(instance.platform.now_ns().saturating_sub(begun_ns));
        self.end(piece.end(outcome));
    }
}

impl RegionRun<'_> {
    /// Offers a fork, and keeps the rounds that may have to run once more.
    pub(super) fn offer_fork(&mut self, forked: ForkedPiece, repeated: Option<RoundsAhead>, offers: &Offers<'_>) {
        let piece = forked.piece;
        let fork = Fork::new(forked, self.scene.fork.map(|(fork, _)| fork), offers.forks.account());
        self.forks.handles.push(ForkHandle { piece, repeated, fork: Arc::clone(&fork) });
        fork.offer(Arc::clone(&offers.program), offers.event_loop);
    }
}

impl ForkedPiece {
    /// Runs the piece for a slice, on the account of its flow; returns its outcome if it does not go on.
    fn run_slice(&mut self, fork: &Arc<Fork>, instance: &ProgramInstance) -> Option<PieceOutcome> {
        let before = fork.account.balance();
        let entered = memory::enter(before);
        let mut current = self.at;
        let ran = catch_unwind(AssertUnwindSafe(|| self.advance(fork, instance, &mut current)));
        let mut outcome = ran.unwrap_or_else(|panic| {
            let failure = panicked(self.region.called(current).unwrap_or_default(), &*panic);
            Some(PieceOutcome::Exit(current, Err(failure)))
        });
        if outcome.is_none()
            && let Err(failure) = memory::check()
        {
            outcome = Some(PieceOutcome::Exit(current, Err(failure)));
        }
        fork.account.charge_slice(entered.leave() - before);
        outcome
    }

    fn advance(&mut self, fork: &Arc<Fork>, instance: &ProgramInstance, current: &mut usize) -> Option<PieceOutcome> {
        let (units, forks) = (Units::slice(instance.slice), FlowForks::of(&fork.account));
        let mut run = RegionRun {
            region: &self.region,
            slots: &mut self.slots,
            words: &mut self.words,
            choices: &mut self.choices,
            forks: &mut self.forks,
            current,
            scene: ForkScene {
                instance,
                units: &units,
                // A helper has nothing else to do.
                call_budget: UnitBudget::UNLIMITED,
                forks: Some(&forks),
                fork: Some((fork, self.piece)),
            },
        };
        if let (RegionPiece::Rounds(split), Some(ahead)) = (self.piece, self.ahead.take()) {
            run.begin_rounds(split, ahead);
        }
        match run.run(self.at, &Context::from_waker(Waker::noop())) {
            RegionRan::Yields(at) | RegionRan::Joins(at) | RegionRan::Calls(at, _) => {
                self.at = at;
                None
            }
            RegionRan::Ends(at, how) => Some(PieceOutcome::Exit(at, how)),
            RegionRan::Through => Some(PieceOutcome::Through),
        }
    }

    /// Notes the time that the piece took, by which it is decided whether it is offered again.
    fn note_cost(&self, ns: u64) {
        if let RegionPiece::Part(part) = self.piece {
            self.region.part_costs[part].note(ns);
        }
    }

    /// Returns what the flow joins.
    fn end(mut self: Box<Self>, outcome: PieceOutcome) -> ForkEnd {
        match (outcome, self.piece) {
            (PieceOutcome::Exit(at, how), _) => ForkEnd::Exit(at, how),
            (PieceOutcome::Through, RegionPiece::Part(_)) => ForkEnd::Piece(self),
            (PieceOutcome::Through, RegionPiece::Rounds(split)) => match self.region.splits[split].outcome {
                LoopOutcome::Reductions(_) => ForkEnd::Piece(self),
                LoopOutcome::List(results) => match self.slots[usize::from(results)].take() {
                    Value::List(results) => ForkEnd::Results(results),
                    _ => ForkEnd::Results(Elements::default()),
                },
            },
        }
    }
}
