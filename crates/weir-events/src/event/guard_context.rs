//! The state that a synchronisation collects while its guards run, before any branch is tried.

use super::nacks::NackSet;

/// The nacks that the guards have made, and the current nesting depth.
#[derive(Default)]
pub(crate) struct GuardContext {
    pub(crate) nacks: NackSet,
    depth: usize,
}

/// Maximum nesting depth of guards inside guards; deeper nesting is taken for an endless event.
pub const GUARD_DEPTH_MAX: usize = 256;

impl GuardContext {
    /// Enters the event that a guard has made.
    pub(super) fn enter(&mut self) {
        self.depth += 1;
        assert!(self.depth <= GUARD_DEPTH_MAX, "guards are nested deeper than {GUARD_DEPTH_MAX}");
    }

    /// Leaves the event that a guard has made.
    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }
}
