//! The engine `dedicated`: a thread for each call.
//!
//! The dedicated threading model of the Streams paper (PLDI 2017, §2.2). Primitives and switches belong to the section
//! of the call before them, because they cost less than a queue.

use weir_ir::plan::Granularity;
use weir_scheduler::ThreadControl;

use super::{Drive, EngineRow, ThreadingModel};
use crate::instance::BlockingPlacement;

/// The engine's row.
pub(super) const ROW: EngineRow = EngineRow {
    name: "dedicated",
    doc: "each call is a section with a thread of its own",
    loops: |_| 1,
    blocking: BlockingPlacement::InPlace,
    drive: Drive::Sections(ThreadingModel {
        granularity: Granularity::Calls,
        shares_threads: false,
        keeps_on_loops: false,
        control: |_, _| ThreadControl::Fixed(1),
    }),
};
