//! What a synchronisation gathers while its guards run, before anything is tried.

use super::nacks::NackSet;

/// What the guards have made so far, and how deep they are.
#[derive(Default)]
pub(crate) struct GuardContext {
    pub(crate) nacks: NackSet,
    depth: usize,
}

/// Guards that make guards that make guards … : more than this many inside each other is taken for an endless event.
pub const GUARD_DEPTH_MAX: usize = 256;

impl GuardContext {
    /// Goes into what a guard has made.
    pub(super) fn enter(&mut self) {
        self.depth += 1;
        assert!(self.depth <= GUARD_DEPTH_MAX, "guards are nested deeper than {GUARD_DEPTH_MAX}");
    }

    /// Is through with it.
    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }
}
