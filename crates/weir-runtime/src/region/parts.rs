//! Parts of a region that may run beside the code before them, because they need nothing of it.
//!
//! A part is a *computation*, a loop or a call that declares its units, with the instructions that only it needs. It stands
//! between [`Instruction::BeginPart`](super::Instruction::BeginPart) and [`Instruction::EndPart`](super::Instruction::EndPart).

use std::sync::atomic::{AtomicU64, Ordering};

use weir_host::Resource;

use super::instruction::{FrameSlot, Register, Target};
use super::place::CodePlace;

/// The number of such parts in a region: a set of them is a word.
pub(crate) const PARTS_MAX: usize = 64;

/// A piece of a region that another thread may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RegionPiece {
    /// Rounds of the loop with this number in [`Region::splits`](super::Region::splits).
    Rounds(usize),
    /// The part with this number in [`Region::parts`](super::Region::parts).
    Part(usize),
}

/// A part of a region that may run on another thread while the code before it runs.
#[derive(Clone)]
pub(crate) struct RegionPart {
    /// The first instruction behind which nothing changes what the part needs, and from which the part is certain to be
    /// reached unless an instruction before it fails.
    pub from: Target,
    /// Its [`Instruction::BeginPart`](super::Instruction::BeginPart).
    pub begin: usize,
    /// Its [`Instruction::EndPart`](super::Instruction::EndPart).
    pub end: usize,
    /// The slots that it needs and whose values it takes, and that the code before it does not read.
    pub moved: Box<[FrameSlot]>,
    /// The slots that it needs and that others read, too: the code before it, or steps beside the region.
    pub cloned: Box<[FrameSlot]>,
    /// The slots that it changes.
    pub slots: Box<[FrameSlot]>,
    /// The registers that it changes.
    pub registers: Box<[Register]>,
    /// The choices that it notes.
    pub choices: Box<[u16]>,
}

/// The relation of a computation to those before it.
pub(crate) struct ComputationOrder {
    pub place: CodePlace,
    /// The computations before it beside which it may run.
    pub beside: Vec<CodePlace>,
    /// The reason why it runs after the others, if it may run beside none.
    pub obstacle: Option<PartObstacle>,
}

/// The reason why a computation runs after one before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PartObstacle {
    /// It needs what this place yields.
    Needs(CodePlace),
    /// This place may end the flow before it.
    Ends(CodePlace),
    /// It writes this resource.
    Writes(Resource),
    /// Both write this resource.
    BothWrite(Resource),
    /// This place writes what it reads.
    ReadsWritten(CodePlace, Resource),
    /// It reads a resource under a lock.
    ReadsLocked(Resource),
    /// Both use a value that can only be moved.
    MoveOnly,
    /// The region has too many parts.
    TooMany,
}

impl PartObstacle {
    /// Describes the obstacle, with these names of places.
    pub(crate) fn described(&self, name: impl Fn(&CodePlace) -> String) -> String {
        match self {
            PartObstacle::Needs(place) => format!("it needs the result of `{}`", name(place)),
            PartObstacle::Ends(place) => format!("`{}` may end the flow before it", name(place)),
            PartObstacle::Writes(resource) => format!("it writes `{resource}`"),
            PartObstacle::BothWrite(resource) => format!("both write `{resource}`"),
            PartObstacle::ReadsWritten(place, resource) => {
                format!("it reads `{resource}`, which `{}` writes", name(place))
            }
            PartObstacle::ReadsLocked(resource) => format!("it reads `{resource}` under a lock"),
            PartObstacle::MoveOnly => "both use a value that can only be moved".to_owned(),
            PartObstacle::TooMany => format!("the region has more than {PARTS_MAX} parts"),
        }
    }
}

/// The time that a part took when it last ran on another thread. A hint: all accesses are relaxed.
#[derive(Default)]
pub(crate) struct PartCost {
    /// The time in nanoseconds; 0 if it is not known.
    last_ns: AtomicU64,
    /// The number of times that the part was not offered because it took too little time.
    kept: AtomicU64,
}

/// The number of times that a short part is kept before it is offered again, since its input may have changed. Chosen by
/// judgement: an offer in vain costs some 5 µs.
const KEPT_MAX: u64 = 32;

impl PartCost {
    /// Notes the time that the part took.
    pub(crate) fn note(&self, ns: u64) {
        self.last_ns.store(ns.max(1), Ordering::Relaxed);
        self.kept.store(0, Ordering::Relaxed);
    }

    /// Returns true if the part seems to take at least this long, or if that is not known.
    pub(crate) fn is_at_least(&self, ns: u64) -> bool {
        let last_ns = self.last_ns.load(Ordering::Relaxed);
        last_ns == 0 || last_ns >= ns || self.kept.fetch_add(1, Ordering::Relaxed) >= KEPT_MAX
    }
}

/// The loops of a region whose rounds may be slow, because they took long when they were last measured, or were never measured: a
/// set of bits. A hint: all accesses are relaxed.
pub(crate) struct SlowLoops(AtomicU64);

impl Default for SlowLoops {
    fn default() -> Self {
        SlowLoops(AtomicU64::new(u64::MAX))
    }
}

impl SlowLoops {
    /// Returns the set.
    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Notes the time of a round.
    pub(crate) fn note(&self, split: usize, cost: &RoundCost) {
        if cost.may_be_slow() {
            self.0.fetch_or(1 << split, Ordering::Relaxed);
        } else {
            self.0.fetch_and(!(1 << split), Ordering::Relaxed);
        }
    }
}

/// The time that a round of a loop took when it was last measured. A hint: all accesses are relaxed.
#[derive(Default)]
pub(crate) struct RoundCost(AtomicU64);

/// The time that a round must take for the rounds to be offered before the first one. Rounds that are shorter come to a heartbeat
/// soon enough.
const SLOW_ROUND_NS: u64 = 10_000;

impl RoundCost {
    /// Notes the time.
    pub(crate) fn note(&self, ns: u64) {
        self.0.store(ns.max(1), Ordering::Relaxed);
    }

    /// Returns the time in nanoseconds; 0 if it is not known.
    pub(crate) fn ns(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns true if a round seems to take long, or if that is not known.
    pub(crate) fn may_be_slow(&self) -> bool {
        !(1..SLOW_ROUND_NS).contains(&self.ns())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_part_is_offered_again_after_some_time() {
        let cost = PartCost::default();
        assert!(cost.is_at_least(10), "nothing is known yet");
        cost.note(9);
        assert_eq!((0..).find(|_| cost.is_at_least(10)), Some(KEPT_MAX));
        cost.note(10);
        assert!(cost.is_at_least(10));
    }

    #[test]
    fn rounds_are_offered_early_if_they_are_slow_or_unknown() {
        let cost = RoundCost::default();
        assert!(cost.may_be_slow(), "nothing is known yet");
        for (ns, is_slow) in [(0, false), (SLOW_ROUND_NS - 1, false), (SLOW_ROUND_NS, true)] {
            cost.note(ns);
            assert_eq!(cost.may_be_slow(), is_slow);
        }
    }
}
