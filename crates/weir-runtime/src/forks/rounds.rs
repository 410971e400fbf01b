//! Rounds on several threads: a region that offers rounds of its loops to other threads, and joins them.
//!
//! A fork has a copy of the words of its region, the captured values of its loop, the elements of its rounds, and a list of
//! results of its own. It begins at the first instruction of the loop and ends behind its last round, so that the code is
//! the same for all.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Waker};

use weir_host::{Elements, Failure, FailureKind, UnitBudget, Value, memory};

use super::{Fork, ForkEnd, ForkHandle, JoinedFork};
use crate::fork_account::FlowForks;
use crate::instance::ProgramInstance;
use crate::operations::panicked;
use crate::region::{LongCall, Machine, Region, RegionStop};
use crate::units::Units;

/// The time that the rounds which are left must take for a fork of them to pay. Chosen by judgement: a fork costs some 5 µs,
/// and a thread that sleeps takes as long to begin.
const FORKED_MIN_NS: u64 = 30_000;

/// The forks of a frame's region.
#[derive(Default)]
pub(crate) struct RegionForks {
    handles: Vec<ForkHandle>,
    pace: Option<Pace>,
}

/// The number of rounds that a loop had begun at some time.
#[derive(Clone, Copy)]
struct Pace {
    split: usize,
    taken: u64,
    at_ns: u64,
}

/// The state of a region, which runs and may fork.
pub(crate) struct RegionRun<'a> {
    pub region: &'a Arc<Region>,
    pub slots: &'a mut Vec<Value>,
    pub words: &'a mut Vec<u64>,
    pub choices: &'a mut Vec<u32>,
    pub forks: &'a mut RegionForks,
    /// The instruction that is reported if a host function panics.
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
    /// The fork that runs, and its loop; `None` if the flow runs.
    pub fork: Option<(&'a Arc<Fork>, usize)>,
}

/// The outcome of running a region.
pub(crate) enum RegionRan {
    /// All its nodes have run; of a fork, all its rounds.
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

/// The continuation of a region behind the last round of a loop.
enum AfterLoop {
    GoOn(usize),
    Waits,
    Through,
    Ends(usize, Result<Value, Box<Failure>>),
}

impl RegionForks {
    /// Gives up all forks.
    pub(crate) fn give_up(&mut self) {
        self.handles.clear();
        self.pace = None;
    }
}

impl RegionRun<'_> {
    /// Runs from an instruction on.
    pub(crate) fn run(&mut self, mut at: usize, context: &Context<'_>) -> RegionRan {
        let may_fork =
            self.scene.forks.is_some() && !self.region.splits.is_empty() && self.scene.instance.helpers.has_any();
        loop {
            let units = self.scene.units;
            let stopped = if may_fork { units.with_heartbeats(|| self.run_on(at)) } else { self.run_on(at) };
            match stopped {
                RegionStop::Yields(next) => {
                    if may_fork {
                        self.offer(next, false);
                    }
                    if units.is_over() {
                        return RegionRan::Yields(next);
                    }
                    at = next;
                }
                RegionStop::Calls(next, long) => {
                    if may_fork {
                        self.offer(next, true);
                    }
                    return RegionRan::Calls(next, long);
                }
                RegionStop::LoopEnds(split) => match self.join(split, context) {
                    AfterLoop::GoOn(next) => at = next,
                    AfterLoop::Waits => return RegionRan::Joins(self.region.splits[split].end),
                    AfterLoop::Through => return RegionRan::Through,
                    AfterLoop::Ends(at, how) => return self.ended(at, how),
                },
                RegionStop::Ends(at, how) => return self.ended(at, how),
                RegionStop::Done => return RegionRan::Through,
            }
        }
    }

    fn ended(&mut self, at: usize, how: Result<Value, Box<Failure>>) -> RegionRan {
        self.forks.give_up();
        RegionRan::Ends(at, how)
    }

    fn run_on(&mut self, at: usize) -> RegionStop {
        let instance = self.scene.instance;
        let of_forks = self.forks.handles.iter().fold(0, |all, handle| all | 1 << handle.split);
        let machine = Machine {
            slots: self.slots,
            words: self.words,
            choices: self.choices,
            shared: &instance.resources.shared,
            environment: &instance.environment,
            platform: &*instance.platform,
            call_budget: self.scene.call_budget,
            at: self.current,
            stops_after: self.scene.fork.map_or(of_forks, |(_, split)| of_forks | 1 << split),
        };
        self.region.run(machine, at, self.scene.units)
    }

    /// Offers rounds to an idle core, if that seems to pay; `is_long` if the current round is known to take long.
    #[cold]
    fn offer(&mut self, at: usize, is_long: bool) {
        let (region, instance) = (Arc::clone(self.region), self.scene.instance);
        let Some(forks) = self.scene.forks.filter(|_| instance.helpers.want_work()) else { return };
        let Some((split, taken, left)) = region.splits_around(at).find_map(|split| self.rounds_left(split)) else {
            return;
        };
        if instance.helpers.fork_always() || is_long || self.pays(split, taken, left) {
            let rounds = self.divide(split, taken as usize, left as usize);
            let fork = Fork::new(rounds, self.scene.fork.map(|(fork, _)| fork), forks.account());
            self.forks.handles.push(ForkHandle { split, fork: Arc::clone(&fork) });
            fork.offer(instance);
        }
    }

    /// Returns the loop, the rounds that it has begun and those that are left; `None` if none is left.
    fn rounds_left(&self, split: usize) -> Option<(usize, u64, u64)> {
        // A fork has only rounds of its own loop, and of those inside.
        if self.scene.fork.is_some_and(|(_, own)| split < own) {
            return None;
        }
        let row = &self.region.tables.loops[usize::from(self.region.splits[split].row)];
        let Value::List(list) = &self.slots[usize::from(row.list)] else { return None };
        let taken = self.words[usize::from(row.count)];
        let left = (list.len() as u64).checked_sub(taken).filter(|left| *left > 0)?;
        Some((split, taken, left))
    }

    /// Returns true if the rounds that are left seem to take long enough, at the pace since the last heartbeat.
    fn pays(&mut self, split: usize, taken: u64, left: u64) -> bool {
        let at_ns = self.scene.instance.platform.now_ns();
        let last = self.forks.pace.replace(Pace { split, taken, at_ns });
        let Some(last) = last.filter(|last| last.split == split && last.taken <= taken) else { return false };
        let ns_per_round = at_ns.saturating_sub(last.at_ns) / (taken - last.taken).max(1);
        ns_per_round.saturating_mul(left) >= FORKED_MIN_NS
    }

    /// Moves the upper half of the rounds that are left to a fork.
    fn divide(&mut self, split: usize, taken: usize, left: usize) -> ForkedRounds {
        let row = &self.region.splits[split];
        let list = usize::from(self.region.tables.loops[usize::from(row.row)].list);
        let mut slots = vec![Value::Absent; self.region.slots];
        if let Value::List(elements) = &mut self.slots[list] {
            let from = taken + left / 2;
            slots[list] = Value::List(elements.range(from, elements.len()));
            elements.keep(0, from);
        }
        for captured in &row.captured {
            slots[*captured as usize] = self.slots[*captured as usize].clone();
        }
        slots[usize::from(row.results)] = Value::List(Elements::default());
        let words = self.words[..self.region.window()].to_vec();
        ForkedRounds {
            region: Arc::clone(self.region),
            split,
            at: usize::from(row.first),
            slots,
            words,
            choices: self.choices.clone(),
            forks: RegionForks::default(),
        }
    }

    /// Joins the forks of a loop whose own rounds have all run.
    fn join(&mut self, split: usize, context: &Context<'_>) -> AfterLoop {
        let row = &self.region.splits[split];
        let (list, results) = (self.region.tables.loops[usize::from(row.row)].list, row.results);
        // The last fork of a loop has its lowest rounds.
        while let Some(lowest) = self.forks.handles.iter().rposition(|handle| handle.split == split) {
            match self.forks.handles[lowest].fork.join(context) {
                JoinedFork::Unbegun(mut rounds) => {
                    self.forks.handles.remove(lowest);
                    self.slots[usize::from(list)] = rounds.slots[usize::from(list)].take();
                    return AfterLoop::GoOn(row.first.into());
                }
                JoinedFork::Ended(ForkEnd::Results(more)) => {
                    self.forks.handles.remove(lowest);
                    if let Value::List(results) = &mut self.slots[usize::from(results)] {
                        results.append(more);
                    }
                }
                JoinedFork::Ended(ForkEnd::Exit(at, how)) => return AfterLoop::Ends(at, how),
                JoinedFork::UnderWay if self.scene.fork.is_some() => {
                    self.scene.instance.helpers.resting(|| self.forks.handles[lowest].fork.wait());
                }
                JoinedFork::UnderWay => return AfterLoop::Waits,
            }
        }
        match self.scene.fork {
            Some((_, own)) if own == split => AfterLoop::Through,
            _ => AfterLoop::GoOn(row.end + 1),
        }
    }
}

/// Rounds of a loop, with what they need to run on another thread.
pub(crate) struct ForkedRounds {
    region: Arc<Region>,
    /// The number of the loop in the region.
    split: usize,
    /// The instruction at which they go on.
    at: usize,
    slots: Vec<Value>,
    words: Vec<u64>,
    choices: Vec<u32>,
    forks: RegionForks,
}

impl Fork {
    /// Offers the fork to the helpers of this program. One that none of them can take is left to the flow.
    fn offer(self: Arc<Fork>, instance: &ProgramInstance) {
        let (Some(program), Some(event_loop)) = (instance.this.upgrade(), instance.first_loop.get()) else { return };
        instance.helpers.offer(event_loop, move || self.run(&program));
    }

    /// Runs the rounds on this thread, unless another thread has begun them.
    fn run(self: &Arc<Fork>, instance: &ProgramInstance) {
        let Some(mut rounds) = self.begin() else { return };
        let end = loop {
            if self.is_given_up() {
                let failure = Failure::new(FailureKind::Cancelled, "the rounds are not needed any more");
                break ForkEnd::Exit(rounds.at, Err(Box::new(failure)));
            }
            if let Some(end) = rounds.run_slice(self, instance) {
                break end;
            }
        };
        drop(rounds);
        self.end(end);
    }
}

impl ForkedRounds {
    /// Runs the rounds for a slice, on the account of their flow; returns their end if they have ended.
    fn run_slice(&mut self, fork: &Arc<Fork>, instance: &ProgramInstance) -> Option<ForkEnd> {
        let before = fork.account.balance();
        let entered = memory::enter(before);
        let mut current = self.at;
        let ran = catch_unwind(AssertUnwindSafe(|| self.advance(fork, instance, &mut current)));
        let mut end = ran.unwrap_or_else(|panic| {
            let failure = panicked(self.region.called(current).unwrap_or_default(), &*panic);
            Some(ForkEnd::Exit(current, Err(failure)))
        });
        if end.is_none()
            && let Err(failure) = memory::check()
        {
            end = Some(ForkEnd::Exit(self.at, Err(failure)));
        }
        fork.account.charge_slice(entered.leave() - before);
        end
    }

    fn advance(&mut self, fork: &Arc<Fork>, instance: &ProgramInstance, current: &mut usize) -> Option<ForkEnd> {
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
                fork: Some((fork, self.split)),
            },
        };
        match run.run(self.at, &Context::from_waker(Waker::noop())) {
            RegionRan::Yields(at) | RegionRan::Joins(at) | RegionRan::Calls(at, _) => {
                self.at = at;
                None
            }
            RegionRan::Ends(at, how) => Some(ForkEnd::Exit(at, how)),
            RegionRan::Through => {
                let results = usize::from(self.region.splits[self.split].results);
                match self.slots[results].take() {
                    Value::List(results) => Some(ForkEnd::Results(results)),
                    _ => Some(ForkEnd::Results(Elements::default())),
                }
            }
        }
    }
}
