//! The engine `manual`: the plan says which nodes are a section, and how many threads each section has.
//!
//! The section mappings of the Ohua thesis (§2.4), and the threaded ports of the Streams paper (§2.2).

use weir_scheduler::ThreadControl;

use super::{Drive, EngineRow, Grain, Threading};
use crate::live::Blocking;

/// The engine's row.
pub(super) const ROW: EngineRow = EngineRow {
    name: "manual",
    doc: "sections and their threads as the plan says",
    loops: |_| 1,
    blocking: Blocking::InPlace,
    drive: Drive::Sections(Threading {
        grain: Grain::Whole,
        shares_threads: false,
        control: |threads, _| ThreadControl::Fixed(threads),
    }),
};
