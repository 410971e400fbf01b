//! Runs items through ports on threads: queues, who runs what next, and how many threads there are.
//!
//! A *port* is a place where items wait to be worked on, one at a time and in the order in which they came. A *crew* is a
//! set of threads and the ports that they serve. Which ports share a crew and how many threads it has is all that
//! distinguishes the engines `staged`, `manual`, `dedicated` and `elastic`: one crew for each port is the dedicated
//! threading model of the Streams paper (PLDI 2017, §2.2), one crew for all ports the dynamic one.
//!
//! Differences to the paper's algorithm (§4.1), with the reason:
//! * Ports that have work are listed, not ports that are free: a port enters the list of its crew when it turns from
//!   empty to non-empty, so that nobody walks over a thousand empty ports to find work.
//! * A thread takes a batch of items under one short lock, and then carries the batch to the next port itself while it is
//!   hot. The paper moves tuples one by one, behind two try-locks each.
//! * A full queue does not make the producer's thread work it off by itself (`reschedule`), which nests a stack frame for
//!   each port and can spin in a ring: the producing *port* waits, and its thread goes on with something else.
//! * Ports are *fused* while they run, by what their work was measured to cost: a thread takes an item on from call to call
//!   through ports that are idle, and a queue is left only where it pays (`turn`). The paper puts a queue before every
//!   operator, and finds (§5.1, §5.2) that none at all is often faster.
//! * At level 1 an elastic crew's one thread is whoever has something to do, and that may be the source's (`feed`).
//!
//! Architecture invariant: it knows neither graphs nor frames, and has no `unsafe` code.

mod batch_execution;
mod biased_lock;
mod caller_runs;
mod controller;
mod controller_parking;
mod execution_mode;
mod fence;
mod fusion_limit;
mod idle_set;
mod measurement_noise;
#[cfg(test)]
mod model;
mod port_queue;
#[cfg(test)]
mod port_queue_tests;
mod processor_load;
mod ready_queue;
mod scheduler;
mod state;
mod submit;
mod sync;
mod thread_count;
mod thread_pool;
mod throughput_history;
mod work;
mod worker;
mod worker_local;

pub use scheduler::{PoolSnapshot, PortSettings, QueueSnapshot, Scheduler};
pub use submit::{CallerFusion, Full, InlineOutcome};
pub use thread_count::{ElasticSettings, ThreadCountController};
pub use thread_pool::{ThreadControl, ThreadPool};
pub use work::{Fusion, PortId, Work};
