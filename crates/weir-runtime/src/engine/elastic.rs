//! The engine `elastic`: any thread runs any section, and the number of threads follows the measured throughput.
//!
//! The dynamic threading model of the Streams paper (PLDI 2017, §4). Ports, thread pools and the controller of thread
//! counts are those of `weir-scheduler`, which states its differences from the paper. No thread count is too low for
//! progress, because a flow that waits leaves its thread.
//!
//! The paper puts a queue before every operator, and finds (§5.1, §5.2) that a dedicated thread for each operator, or
//! none at all, is often faster. Here only a call with a private state has a queue, because only such a call has to
//! wait for other flows. All other calls are fused, and run in parallel on different flows. Sections of a plan that
//! never wait are fused at run time, if their work is cheaper than a queue. If one thread performs best, the event loop
//! of the source runs the flows itself (caller-runs), like under `event`, as long as flows are short. A blocking call
//! runs on the blocking pool, and its flow waits without a thread: threads that only wait would stand in the way of the
//! sections that compute, and the controller could not tell the two apart.
//!
//! A program whose calls have no private state, like most services, is thus a single section, and `weir top` shows one
//! row for it; more rows would need more queues, which only add cost. Bodies of `for` and `loop` are not divided
//! either: an item of a port is a flow, not an iteration. Iterations as items of their own would let one long flow use
//! several threads, but gain nothing if many flows are in progress.

use weir_ir::plan::Granularity;
use weir_scheduler::{ElasticSettings, ThreadControl};

use super::{Drive, EngineRow, ThreadingModel};
use crate::instance::BlockingPlacement;

/// The relative difference of throughput up to which the controller sees no trend: the paper's SENS, with the paper's
/// value.
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
