//! Scheduler: bounded port queues, thread pools that serve them, and a controller that finds the number of threads.
//!
//! A *port* is a bounded FIFO queue with one consumer at a time. A *thread pool* is a set of worker threads and the
//! ports that they serve. The engines `staged`, `manual`, `dedicated` and `elastic` differ only in how ports are
//! assigned to pools and in how many threads a pool has: one pool per port is the dedicated threading model of the
//! Streams paper (PLDI 2017, §2.2), one pool for all ports is its dynamic model.
//!
//! The path of an item:
//! 1. A producer submits it to a port (`submit`). If the port's queue (`port_queue`) was idle, the producer pushes the
//!    port to the ready queue of its pool (`ready_queue`) and wakes one sleeping worker (`idle_set`).
//! 2. A worker pops the port (`worker`), takes a batch of items and runs them (`batch_execution`). Consecutive ports
//!    are *fused*: the worker passes an item on by a function call as long as the fusion limit of the port allows it
//!    (`fusion_limit`).
//! 3. Items that cannot be passed on are put into the queue of the next port as one batch. The worker continues with
//!    that port itself, while the items are still in its cache.
//! 4. If the next queue is full, the *port* waits for room. Its worker continues with another port.
//!
//! While a pool needs only one thread, that thread may be the producer (*caller-runs*, `caller_runs`): it executes its
//! items inline, without a queue. The execution mode of the pool (`execution_mode`) decides who may do so: in exclusive
//! mode one thread owns all ports of the pool, in shared mode every worker claims the ports that it runs. A producer
//! that enters exclusive mode again and again becomes the owner of a biased lock (`biased_lock`) and then enters by
//! plain writes.
//!
//! Once per period the controller (`controller`) measures the throughput of every pool and sets its number of threads
//! (`thread_count`, `throughput_history`, `measurement_noise`). It parks while the scheduler is idle
//! (`controller_parking`).
//!
//! Differences from the algorithm of the Streams paper (§4.1):
//! * The ready queue lists the ports that have work. The paper lists the ports that are free, and threads search that
//!   list for work.
//! * A worker takes a batch under one short lock. The paper moves one tuple at a time behind two try-locks.
//! * A producer never drains a full queue itself. The paper's `reschedule` does, which nests one stack frame per port
//!   and can spin forever in a cycle of ports.
//! * Ports are fused by measured cost. The paper queues tuples before every operator, and reports (§5.1, §5.2) that no
//!   queue at all is often faster.
//!
//! The protocols between threads are in `biased_lock`, `controller_parking`, `execution_mode`, `idle_set`, `port_queue`
//! and `ready_queue`. Each states its memory orderings and is model checked (`model`).
//!
//! Architecture invariant: this crate knows neither graphs nor frames, and contains no `unsafe` code.

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
mod platform;
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

pub use platform::{SchedulerPlatform, StdPlatform};
pub use scheduler::{PoolSnapshot, PortSettings, QueueSnapshot, Scheduler};
pub use submit::{CallerFusion, Full, InlineOutcome};
pub use thread_count::{ElasticSettings, ThreadCountController};
pub use thread_pool::{ThreadControl, ThreadPool};
pub use work::{Fusion, PortId, RunOutcome, Work};
