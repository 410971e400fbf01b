//! The engine `staged`: a queue and a pool of threads for each section, whose size follows the length of the queue.
//!
//! SEDA (Welsh, Culler and Brewer, SOSP 2001), the third runtime of Flux (§3.2) and the basis of FLUXO: a controller adds
//! a thread to a stage whose queue is long, and takes one away where none was needed.

use weir_scheduler::ThreadControl;

use super::{Drive, EngineRow, Granularity, ThreadingModel};
use crate::instance::BlockingPlacement;

/// A thread more from this part of a full queue on.
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
        control: |threads, queue| ThreadControl::QueueLength {
            threads_min: 1,
            threads_max: threads,
            queue_length: (queue / LONG_QUEUE).max(1),
        },
    }),
};
