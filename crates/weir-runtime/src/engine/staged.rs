//! The engine `staged`: a queue and a thread pool for each section; the size of the pool follows the length of the
//! queue.
//!
//! SEDA (Welsh, Culler and Brewer, SOSP 2001), the third runtime of Flux (§3.2) and the basis of FLUXO: a controller
//! adds a thread to a stage whose queue is long, and removes one that was not needed.

use weir_ir::plan::Granularity;
use weir_scheduler::ThreadControl;

use super::{Drive, EngineRow, ThreadingModel};
use crate::instance::BlockingPlacement;

/// A queue is long from one part in this many of its capacity on, and a thread is then added. Chosen by judgement: an
/// eighth distinguishes a standing queue from a burst, and leaves room for the flows that arrive until the new thread
/// runs.
const LONG_QUEUE: usize = 8;

/// The engine's row.
pub(super) const ROW: EngineRow = EngineRow {
    name: "staged",
    doc: "a queue and a pool for each section; pools follow their queues",
    loops: |_| 1,
    blocking: BlockingPlacement::InPlace,
    drive: Drive::Sections(ThreadingModel {
        granularity: Granularity::Whole,
        shares_threads: false,
        keeps_on_loops: false,
        control: |threads, queue| ThreadControl::QueueLength {
            threads_min: 1,
            threads_max: threads,
            queue_length: (queue / LONG_QUEUE).max(1),
        },
    }),
};
