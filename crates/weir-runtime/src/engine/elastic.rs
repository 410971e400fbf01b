//! The engine `elastic`: any thread runs any section, and the number of threads follows the measured throughput.
//!
//! The dynamic threading model of the Streams paper (§4). Ports, crews and levels are those of `weir-scheduler`, which says
//! where it differs from the paper. No level is too low to go on: a flow that waits leaves its thread.
//!
//! The paper puts a queue before every operator, and finds (§5.1, §5.2) that a dedicated thread each, or none at all, is
//! often faster. Here only a call with a private state has a queue, because only that has to wait for other flows. All
//! other calls are fused, and parallel by running different flows side by side. Sections of a plan that never wait are
//! fused while they run, where their work is cheaper than a queue; and where one thread does best, the event loop of the
//! source works itself, as under `event`, as long as flows are short and no section holds its thread.
//!
//! A program whose calls have no private state, as most services, is thus one section, and `weir top` shows one row of it:
//! to show more, there would have to be queues that only cost. Bodies of `for` and `loop` are not cut either: what goes
//! through ports is a flow, not one of its rounds. Rounds that were items of their own would let a single long flow use
//! several threads; where many flows are under way they would gain nothing.

use weir_scheduler::{ElasticSettings, ThreadControl};

use super::{Drive, EngineRow, Granularity, ThreadingModel};
use crate::instance::BlockingPlacement;

/// Differences of throughput up to this are no trend: the paper's SENS.
const SENSITIVITY: f64 = 0.05;

/// The engine's row.
pub(super) const ROW: EngineRow = EngineRow {
    name: "elastic",
    doc: "any thread runs any section; their number follows the throughput",
    loops: |_| 1,
    blocking: BlockingPlacement::InPlace,
    drive: Drive::Sections(ThreadingModel {
        granularity: Granularity::States,
        shares_threads: true,
        control: |threads, _| {
            ThreadControl::Elastic(ElasticSettings { threads_min: 1, threads_max: threads, sensitivity: SENSITIVITY })
        },
    }),
};
