//! The state beside the words that instructions work on, and their outcomes.

use weir_host::{Environment, Failure, Shared, UnitBudget, Value};

use super::stop::{After, RegionBorders, RegionStop};
use crate::platform::Platform;
use crate::units::{self, Spent, Units};

/// The part of a region's state that is no word.
pub(crate) struct Outside<'a> {
    pub slots: &'a mut [Value],
    pub choices: &'a mut [u32],
    pub shared: &'a [Shared],
    pub environment: &'a Environment,
    pub platform: &'a dyn Platform,
    pub units: &'a Units,
    /// The units that a call may take on this thread.
    pub call_budget: UnitBudget,
    /// The instruction that is reported if a host function panics, or if the flow has too much memory when it yields.
    pub current: &'a mut usize,
    /// The borders of loops and parts at which the region stops.
    pub borders: RegionBorders,
}

impl Outside<'_> {
    /// Spends units; returns true if the slice is over.
    #[inline(always)]
    pub(super) fn spend(&self, units: u32) -> bool {
        self.units.spend_timed(units, self.platform) == Spent::Yield
    }

    /// Yields at the safe point of an instruction, to go on at another one.
    #[cold]
    pub(super) fn yields(&mut self, at: usize, next: usize) -> RegionStop {
        *self.current = at;
        RegionStop::Yields(next)
    }
}

/// Returns the number of a register, slot or row as an index.
#[inline(always)]
pub(super) fn r(number: u16) -> usize {
    usize::from(number)
}

/// Ends the flow with the failure of an instruction.
#[cold]
pub(super) fn fails(at: usize, failure: Box<Failure>) -> After {
    After::Stop(RegionStop::Ends(at, Err(failure)))
}

/// Spends the units of a call, which may have taken long.
#[inline(always)]
pub(super) fn spent_call(at: usize, outside: &mut Outside<'_>) -> After {
    if outside.spend(units::CALL) { After::Stop(outside.yields(at, at + 1)) } else { After::Next }
}
