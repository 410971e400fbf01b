//! The run of a region that may fork: it offers pieces to other threads, and joins them.

use std::sync::Arc;
use std::task::Context;

use tokio::runtime::Handle;
use weir_host::{Failure, UnitBudget, Value, memory};

use super::{Fork, ForkHandle, JoinedFork};
use crate::fork_account::FlowForks;
use crate::instance::ProgramInstance;
use crate::region::{LongCall, LoopOutcome, Machine, Region, RegionBorders, RegionPiece, RegionStop};
use crate::units::Units;

/// The time that a piece must take for a fork of it to pay. Chosen by judgement: a fork costs some 5 µs, and a thread that
/// sleeps takes as long to begin.
pub(super) const FORKED_MIN_NS: u64 = 30_000;

/// The forks of a frame's region.
#[derive(Default)]
pub(crate) struct RegionForks {
    pub(super) handles: Vec<ForkHandle>,
    pub(super) pace: Option<Pace>,
}

/// The pace of a loop. A fork has it from the thread that has offered it, so that it can divide its rounds when it begins.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    pub split: usize,
    /// The number of rounds that it had begun when the pace was noted.
    pub taken: u64,
    pub at_ns: u64,
    /// The time that a round takes; 0 if it is not known yet.
    pub ns_per_round: u64,
}

/// The idle cores to which a thread may offer pieces, and what it needs for that.
pub(super) struct Offers<'a> {
    /// The number of forks for which cores are idle.
    pub wanted: usize,
    pub program: Arc<ProgramInstance>,
    pub event_loop: &'a Handle,
    pub forks: &'a FlowForks,
}

impl<'a> ForkScene<'a> {
    /// Returns the cores that are idle; `None` if there are none, or if the region may not fork.
    pub(super) fn offers(self) -> Option<Offers<'a>> {
        let forks = self.forks?;
        let wanted = Some(self.instance.helpers.forks_wanted()).filter(|wanted| *wanted > 0)?;
        let (program, event_loop) = (self.instance.this.upgrade()?, self.instance.first_loop.get()?);
        Some(Offers { wanted, program, event_loop, forks })
    }
}

/// The state of a region, which runs and may fork.
pub(crate) struct RegionRun<'a> {
    pub region: &'a Arc<Region>,
    pub slots: &'a mut Vec<Value>,
    pub words: &'a mut Vec<u64>,
    pub choices: &'a mut Vec<u32>,
    pub forks: &'a mut RegionForks,
    /// The instruction that is reported if a host function panics, or if the flow has too much memory when it yields.
    pub current: &'a mut usize,
    pub scene: ForkScene<'a>,
}

/// The surroundings of a region that runs.
#[derive(Clone, Copy)]
pub(crate) struct ForkScene<'a> {
    pub instance: &'a ProgramInstance,
    pub units: &'a Units,
    pub call_budget: UnitBudget,
    /// The account of the flow's forks; `None` if the region runs as one piece, because it is in an atomic step.
    pub forks: Option<&'a FlowForks>,
    /// The fork that runs, and its piece; `None` if the flow runs.
    pub fork: Option<(&'a Arc<Fork>, RegionPiece)>,
    /// True if a helper runs the fork: it may block, and stops at each heartbeat.
    pub is_on_helper: bool,
}

/// The outcome of running a region.
pub(crate) enum RegionRan {
    /// All its nodes have run; of a fork, its piece.
    Through,
    /// The slice is over; it goes on at this instruction.
    Yields(usize),
    /// The call of this instruction takes too long for the thread, and has not begun.
    Calls(usize, LongCall),
    /// It waits for a fork, and goes on at this instruction.
    Joins(usize),
    /// An instruction ends the flow, with an answer or a failure.
    Ends(usize, Result<Value, Box<Failure>>),
}

/// The reason why a thread offers pieces.
#[derive(Clone, Copy)]
enum OfferReason {
    /// A safe point some time after the one before.
    Heartbeat,
    /// The instruction is a call that takes long.
    LongCall,
}

/// The continuation of a region at a border where other threads have run something for it.
pub(super) enum AfterJoin {
    GoOn(usize),
    /// It waits, and comes to this instruction again.
    Waits(usize),
    /// The slice is over, and it comes to this instruction again.
    Yields(usize),
    Through,
    Ends(usize, Result<Value, Box<Failure>>),
}

impl RegionForks {
    /// Gives up all forks.
    #[inline]
    pub(crate) fn give_up(&mut self) {
        self.handles.clear();
        self.pace = None;
    }

    /// Returns the borders at which a region stops to join its forks.
    fn borders(&self) -> RegionBorders {
        let loop_ends = self.pace.map_or(0, |pace| 1 << pace.split);
        let mut borders = RegionBorders { loop_ends, ..RegionBorders::default() };
        for handle in &self.handles {
            match handle.piece {
                RegionPiece::Rounds(split) => borders.loop_ends |= 1 << split,
                RegionPiece::Part(part) => borders.part_beginnings |= 1 << part,
            }
        }
        borders
    }
}

impl RegionRun<'_> {
    /// Runs from an instruction on.
    pub(crate) fn run(&mut self, mut at: usize, context: &Context<'_>) -> RegionRan {
        let may_fork = self.scene.forks.is_some() && self.region.may_fork() && self.scene.instance.helpers.has_any();
        let mut begun = None;
        loop {
            let units = self.scene.units;
            let borders = self.borders(may_fork, begun.take());
            let mut run = || self.run_on(at, borders);
            let stopped = if may_fork { units.with_heartbeats(run) } else { run() };
            let joined = match stopped {
                RegionStop::Yields(next) => {
                    if may_fork {
                        self.offer(next, OfferReason::Heartbeat);
                        self.let_others_run();
                    }
                    if units.is_over() || self.scene.is_on_helper {
                        return RegionRan::Yields(next);
                    }
                    AfterJoin::GoOn(next)
                }
                RegionStop::Calls(next, long) => {
                    if may_fork {
                        self.offer(next, OfferReason::LongCall);
                    }
                    return RegionRan::Calls(next, long);
                }
                RegionStop::LoopBegins(split, next) => {
                    self.begin_loop(split);
                    begun = Some(split);
                    AfterJoin::GoOn(next)
                }
                RegionStop::LoopEnds(split) => self.join_rounds(split, context),
                RegionStop::PartBegins(part) => self.join_part(part, context),
                RegionStop::Ends(at, how) => AfterJoin::Ends(at, how),
                RegionStop::Done | RegionStop::PartEnds => AfterJoin::Through,
            };
            match joined {
                AfterJoin::GoOn(next) => at = next,
                AfterJoin::Waits(border) => return RegionRan::Joins(border),
                AfterJoin::Yields(border) => return RegionRan::Yields(border),
                AfterJoin::Through => {
                    // A piece of this region would be taken for one of the next region.
                    assert!(self.forks.handles.is_empty(), "every fork is joined where its piece begins or ends");
                    return RegionRan::Through;
                }
                AfterJoin::Ends(at, how) => {
                    self.forks.give_up();
                    return RegionRan::Ends(at, how);
                }
            }
        }
    }

    /// Lets other threads have the core for a moment while the flow has forks. They may wait for this core although the others
    /// are only used by helpers, and the system would let them wait for some milliseconds.
    fn let_others_run(&self) {
        if !self.forks.handles.is_empty() && !self.scene.is_on_helper && !self.scene.instance.helpers.fork_always() {
            std::thread::yield_now();
        }
    }

    fn run_on(&mut self, at: usize, borders: RegionBorders) -> RegionStop {
        let (instance, reduces) = (self.scene.instance, self.reduces());
        let machine = Machine {
            slots: self.slots,
            words: self.words,
            choices: self.choices,
            shared: &instance.resources.shared,
            environment: &instance.environment,
            platform: &*instance.platform,
            call_budget: self.scene.call_budget,
            at: self.current,
            borders,
            reduces,
        };
        self.region.run(machine, at, self.scene.units)
    }

    /// Returns true if the rounds of a `fold` run for another thread.
    fn reduces(&self) -> bool {
        let of_fold = |split: usize| matches!(self.region.splits[split].outcome, LoopOutcome::Reductions(_));
        matches!(self.scene.fork, Some((_, RegionPiece::Rounds(split))) if of_fold(split))
    }

    /// Returns the borders at which the region stops. The loop `begun` begins now.
    fn borders(&self, may_fork: bool, begun: Option<usize>) -> RegionBorders {
        let mut borders = self.forks.borders();
        if may_fork {
            borders.loop_beginnings = self.slow_loops() & !begun.map_or(0, |split| 1 << split);
        }
        match self.scene.fork {
            Some((_, RegionPiece::Rounds(split))) => borders.loop_ends |= 1 << split,
            Some((_, RegionPiece::Part(part))) => borders.part_ends |= 1 << part,
            None => {}
        }
        borders
    }

    /// Returns the outermost loops whose rounds may be slow: a set of bits.
    fn slow_loops(&self) -> u64 {
        let outer = self.region.outer_splits;
        if self.scene.instance.helpers.fork_always() { outer } else { outer & self.region.slow_loops.get() }
    }

    /// Offers a part to an idle core, or rounds to all idle cores, if that seems to pay.
    #[cold]
    fn offer(&mut self, at: usize, reason: OfferReason) {
        let Some(offers) = self.scene.offers() else { return };
        let handed_back = self.forks.handles.iter().find(|handle| handle.fork.hand_over.is_to_be_offered_again());
        if let Some(handle) = handed_back {
            return Arc::clone(&handle.fork).offer(offers.program, offers.event_loop);
        }
        // No part is in rounds that other threads may run, so that its piece is the outermost.
        if let Some(part) = self.part_behind(at) {
            let forked = self.split_off(part);
            return self.offer_fork(forked, None, &offers);
        }
        let Some(rounds) = self.rounds_around(at) else { return };
        self.note_rounds(&rounds);
        let forks = match reason {
            OfferReason::Heartbeat => self.forks_that_pay(&rounds, offers.wanted),
            OfferReason::LongCall => offers.wanted,
        };
        if forks > 0 {
            self.share_rounds(&rounds, forks, &offers);
        }
    }

    /// Takes out a piece that no helper has, or the end of a fork.
    pub(super) fn take(&self, handle: usize, context: &Context<'_>) -> JoinedFork {
        let (on_helper, is_flow) = (self.scene.is_on_helper, self.scene.fork.is_none());
        let keeps_offers = is_flow && self.scene.instance.helpers.keep_offers();
        // A flow leaves long calls to helpers. A helper may not wait for another one: all of them may wait for others.
        let hand_over = &self.forks.handles[handle].fork.hand_over;
        let joined = hand_over.join(context.waker(), |piece| !on_helper && (keeps_offers || piece.long.is_some()));
        if !on_helper && !matches!(joined, JoinedFork::UnderWay) {
            // What forks have released is free for the rounds that run now.
            self.scene.forks.into_iter().for_each(|forks| memory::charge(forks.take_bytes()));
        }
        joined
    }

    /// Blocks this thread until a fork of this fork, which is under way, has ended or was handed back; the flow waits without
    /// blocking.
    pub(super) fn wait(&self, handle: usize, border: usize) -> Option<AfterJoin> {
        if !self.scene.is_on_helper {
            return Some(AfterJoin::Waits(border));
        }
        self.scene.instance.helpers.resting(|| self.forks.handles[handle].fork.hand_over.wait());
        None
    }
}
