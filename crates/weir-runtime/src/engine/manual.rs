//! The engine `manual`: the plan assigns nodes to sections, and threads to each section.
//!
//! The section mappings of the Ohua thesis (§2.4), and the threaded ports of the Streams paper (PLDI 2017, §2.2).

use weir_ir::plan::Granularity;
use weir_scheduler::ThreadControl;

use super::{Drive, EngineRow, ThreadingModel};
use crate::instance::BlockingPlacement;

/// The engine's row.
pub(super) const ROW: EngineRow = EngineRow {
    name: "manual",
    doc: "sections and their threads as the plan says",
    loops: |_| 1,
    blocking: BlockingPlacement::InPlace,
    drive: Drive::Sections(ThreadingModel {
        granularity: Granularity::Whole,
        shares_threads: false,
        keeps_on_loops: false,
        control: |threads, _| ThreadControl::Fixed(threads),
    }),
};
