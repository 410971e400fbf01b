//! Runs a graph under a plan: frames, sections, engines and resources.
//!
//! [`start()`] prepares a program ([`PrepareError`] if the program does not match the library), opens its sources and
//! gives its flows to an [engine](ENGINES). One execution of an entry point's body is a *flow*; it lives in a *frame*,
//! a pooled object with a slot for each live value. Flows share only *resources*, under locks that suspend them and
//! never block a thread.
//!
//! Architecture invariant: the runtime knows no syntax, no terminal and no protocol; the trace is the only way out; and
//! everything that the runtime itself needs of the system (clock, threads, random numbers) goes through [`Platform`].

mod admission;
mod batching;
mod blocking_pool;
mod constant_copies;
mod engine;
mod entry_flows;
mod event_loop;
mod flow;
mod flow_section;
mod flow_sessions;
mod fork_account;
mod forks;
mod frame;
mod helpers;
mod instance;
mod lock;
#[cfg(test)]
mod loom_support;
mod object_pool;
mod operations;
mod overload;
mod platform;
mod prepare;
mod prim_units;
mod region;
mod resources;
mod running;
mod start;
mod step;
mod striped;
mod ticket_gate;
mod units;
mod wait_set;

pub use engine::{ENGINES, EngineRow, EngineSection, ThreadCountPolicy, engine, engine_facts};
pub use helpers::ForkPolicy;
pub use lock::{SESSION_IDLE_MAX, SESSIONS_MAX, SessionLimits};
pub use platform::{Platform, ScriptedPlatform, SystemPlatform};
pub use prepare::{IndependentPart, LoopRounds, PrepareError, QueuedCall, name_of_batches};
pub use running::{RunningProgram, Stopper, Watcher};
pub use start::{
    CheckedStart, Options, StartError, StartFailure, independent_parts, loops, queued_calls, regions,
    run_on_calling_thread, sections, start,
};
pub use units::SliceLength;
