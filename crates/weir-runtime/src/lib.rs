//! Makes a graph under a plan live: frames, sections, engines and resources.
//!
//! [`start()`] prepares a program ([`PrepareError`] where it and the library do not belong together), opens its sources and
//! gives its flows to an [engine](ENGINES). One execution of an entry point's body is a *flow*; it lives in a *frame*, a
//! pooled object with a slot for each value that is alive. Flows meet in *resources* only, under constraints that suspend
//! them and never hold a thread.
//!
//! Architecture invariant: no syntax, no terminal, no protocol is known here; the trace is the only way out; and all that
//! the runtime itself wants of the outside (clock, threads, randomness) goes through [`Machine`].

mod crowd;
mod engine;
mod event_loop;
mod flow;
mod frame;
mod live;
mod lock;
mod machine;
#[cfg(test)]
mod modelled;
mod prepare;
mod resources;
mod running;
mod spare;
mod start;
mod step;
mod striped;
mod turn;

pub use engine::{ENGINES, EngineRow, Section, Steering, engine, engine_facts};
pub use lock::{Limits as SessionLimits, SESSION_IDLE_MAX, SESSIONS_MAX};
pub use machine::{Machine, Real, Scripted};
pub use prepare::PrepareError;
pub use running::{Running, Stopper, Watcher};
pub use start::{Options, StartError, sections, start};
