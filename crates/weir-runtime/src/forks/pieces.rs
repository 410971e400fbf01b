//! Pieces of a region that run on their own: rounds of a loop, or a part.
//!
//! A piece has a copy of the words of its region and the values that it needs. It begins at an instruction of the region and
//! ends behind another one, so that the code is the same for all.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Waker};

use tokio::runtime::Handle;
use weir_host::{Elements, Failure, FailureKind, UnitBudget, Value, memory};

use super::region_run::{AfterJoin, ForkScene, Offers, RegionForks, RegionRan, RegionRun};
use super::rounds_ahead::RoundsAhead;
use super::{Fork, ForkEnd, ForkHandle};
use crate::fork_account::FlowForks;
use crate::helpers::HelperBeats;
use crate::instance::ProgramInstance;
use crate::operations::panicked;
use crate::region::{LongCall, LoopOutcome, Region, RegionPiece};
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
    /// True if a part of it has run.
    pub(super) is_begun: bool,
    /// A call that takes too long for the thread that came to it, and its instruction. A helper makes it.
    pub(super) long: Option<(usize, LongCall)>,
}

/// The outcome of running a piece for a while.
pub(super) enum PieceRan {
    /// Its slice is over, or a heartbeat has come.
    Yields,
    /// It waits for a fork of its own.
    Waits,
    /// It has come to a long call, which a helper is to make.
    Calls,
    /// It does not go on.
    Ended(PieceOutcome),
}

/// The outcome of a piece that does not go on.
pub(super) enum PieceOutcome {
    /// It has come to its end.
    Through,
    /// An instruction has ended the flow, with an answer or a failure.
    Exit(usize, Result<Value, Box<Failure>>),
}

/// The surroundings of a piece that runs.
#[derive(Clone, Copy)]
pub(super) struct PieceScene<'a> {
    pub fork: &'a Arc<Fork>,
    pub instance: &'a ProgramInstance,
    pub units: &'a Units,
    pub call_budget: UnitBudget,
    /// True if a helper runs it, and false if the flow does.
    pub is_on_helper: bool,
}

impl Fork {
    /// Offers the fork to the helpers of this program.
    pub(super) fn offer(self: Arc<Fork>, program: Arc<ProgramInstance>, event_loop: &Handle) {
        let helpers = Arc::clone(&program);
        helpers.helpers.offer(event_loop, move || self.run(&program));
    }

    /// Has a helper of this program run the fork.
    pub(super) fn run_on_helper(self: Arc<Fork>, program: Arc<ProgramInstance>, event_loop: &Handle) {
        let helpers = Arc::clone(&program);
        helpers.helpers.run(event_loop, move || self.run(&program));
    }

    /// Runs the piece on this thread, unless another thread has begun it.
    fn run(self: &Arc<Fork>, instance: &ProgramInstance) {
        let Some(mut piece) = self.hand_over.begin() else { return };
        let (begun_ns, mut beats) = (instance.platform.now_ns(), HelperBeats::default());
        let mut units = Units::slice(instance.slice);
        let outcome = loop {
            if self.is_given_up() {
                let failure = Failure::new(FailureKind::Cancelled, "the results are not needed any more");
                break PieceOutcome::Exit(piece.at, Err(Box::new(failure)));
            }
            if let PieceRan::Ended(outcome) = piece.run_on_helper(self, instance, &units) {
                break outcome;
            }
            if units.is_over() {
                self.account.charge_slice();
                units = Units::slice(instance.slice);
            }
            if instance.helpers.must_leave(&mut beats) {
                return self.hand_over.hand_back(piece, None);
            }
        };
        instance.helpers.note_end();
        piece.note_cost(instance.platform.now_ns().saturating_sub(begun_ns));
        self.account.charge_slice();
        // What a piece that has failed held is released here.
        let end = self.account.charged(|| piece.end(outcome));
        self.hand_over.end(end);
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

    /// Goes on with a fork that was handed back; returns what stops this thread, unless it comes to the end of the fork.
    pub(super) fn go_on_with(
        &self,
        handle: usize,
        mut piece: Box<ForkedPiece>,
        border: usize,
        context: &Context<'_>,
    ) -> Option<AfterJoin> {
        let fork = &self.forks.handles[handle].fork;
        let ForkScene { instance, units, call_budget, is_on_helper, .. } = self.scene;
        match piece.run(PieceScene { fork, instance, units, call_budget, is_on_helper }, context) {
            PieceRan::Ended(outcome) => {
                fork.hand_over.end(piece.end(outcome));
                None
            }
            PieceRan::Yields => {
                fork.hand_over.hand_back(piece, None);
                (units.is_over() || is_on_helper).then_some(AfterJoin::Yields(border))
            }
            PieceRan::Waits => {
                fork.hand_over.hand_back(piece, Some(context.waker().clone()));
                Some(AfterJoin::Waits(border))
            }
            PieceRan::Calls => {
                fork.hand_over.leave_to_helper(piece, context.waker().clone());
                if let (Some(program), Some(event_loop)) = (instance.this.upgrade(), instance.first_loop.get()) {
                    Arc::clone(fork).run_on_helper(program, event_loop);
                }
                Some(AfterJoin::Waits(border))
            }
        }
    }
}

impl ForkedPiece {
    /// Runs the piece until a heartbeat, on the account of its flow.
    fn run_on_helper(&mut self, fork: &Arc<Fork>, instance: &ProgramInstance, units: &Units) -> PieceRan {
        // A helper has nothing else to do.
        let scene = PieceScene { fork, instance, units, call_budget: UnitBudget::UNLIMITED, is_on_helper: true };
        fork.account.charged(|| self.run(scene, &Context::from_waker(Waker::noop())))
    }

    /// Runs the piece until its slice is over, or until a heartbeat on a helper.
    pub(super) fn run(&mut self, scene: PieceScene<'_>, context: &Context<'_>) -> PieceRan {
        self.is_begun = true;
        let mut current = self.at;
        let ran = catch_unwind(AssertUnwindSafe(|| self.advance(scene, context, &mut current)));
        let ran = ran.unwrap_or_else(|panic| {
            let failure = panicked(self.region.called(current).unwrap_or_default(), &*panic);
            PieceRan::Ended(PieceOutcome::Exit(current, Err(failure)))
        });
        if !matches!(ran, PieceRan::Ended(_))
            && let Err(failure) = memory::check()
        {
            return PieceRan::Ended(PieceOutcome::Exit(current, Err(failure)));
        }
        ran
    }

    fn advance(&mut self, scene: PieceScene<'_>, context: &Context<'_>, current: &mut usize) -> PieceRan {
        if let Some((at, LongCall { call, code, .. })) = self.long.take() {
            *current = at;
            let outcome = call.run(&*code).outcome;
            match self.region.answer_call(at, outcome, &mut self.words, &mut self.slots) {
                Ok(()) => self.at = at + 1,
                Err(failure) => return PieceRan::Ended(PieceOutcome::Exit(at, Err(failure))),
            }
        }
        let PieceScene { fork, instance, units, call_budget, is_on_helper } = scene;
        let forks = FlowForks::of(&fork.account);
        let mut run = RegionRun {
            region: &self.region,
            slots: &mut self.slots,
            words: &mut self.words,
            choices: &mut self.choices,
            forks: &mut self.forks,
            current,
            scene: ForkScene {
                instance,
                units,
                call_budget,
                forks: Some(&forks),
                fork: Some((fork, self.piece)),
                is_on_helper,
            },
        };
        if let (RegionPiece::Rounds(split), Some(ahead)) = (self.piece, self.ahead.take()) {
            run.begin_rounds(split, ahead);
        }
        let (at, ran) = match run.run(self.at, context) {
            RegionRan::Yields(at) => (at, PieceRan::Yields),
            RegionRan::Joins(at) => (at, PieceRan::Waits),
            RegionRan::Calls(at, long) => {
                self.long = Some((at, long));
                (at, PieceRan::Calls)
            }
            RegionRan::Ends(at, how) => return PieceRan::Ended(PieceOutcome::Exit(at, how)),
            RegionRan::Through => return PieceRan::Ended(PieceOutcome::Through),
        };
        self.at = at;
        ran
    }

    /// Notes the time that the piece took, by which it is decided whether it is offered again.
    fn note_cost(&self, ns: u64) {
        if let RegionPiece::Part(part) = self.piece {
            self.region.part_costs[part].note(ns);
        }
    }

    /// Returns what the flow joins.
    pub(super) fn end(mut self: Box<Self>, outcome: PieceOutcome) -> ForkEnd {
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
