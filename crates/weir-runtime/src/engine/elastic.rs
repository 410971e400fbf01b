//! The engine `elastic`: any thread runs any section, and the number of threads follows the measured throughput.
//!
//! The dynamic threading model of the Streams paper (§4). Ports, crews and levels are those of `weir-scheduler`, which says
//! where it differs from the paper. No level is too low to go on: a flow that waits leaves its thread.

use weir_scheduler::{Control, Settings};

use super::{Drive, EngineRow, Threading};
use crate::live::Blocking;

/// Differences of throughput up to this are no trend: the paper's SENS.
const SENSITIVITY: f64 = 0.05;

/// The engine's row.
pub(super) const ROW: EngineRow = EngineRow {
    name: "elastic",
    doc: "any thread runs any section; their number follows the throughput",
    loops: |_| 1,
    blocking: Blocking::InPlace,
    drive: Drive::Sections(Threading {
        cuts_calls: true,
        shares_threads: true,
        control: |threads, _| Control::Elastic(Settings { level_min: 1, level_max: threads, sensitivity: SENSITIVITY }),
    }),
};
