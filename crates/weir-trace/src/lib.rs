//! The closed list of things that can happen in a running program, and a recorder of them.
//!
//! An [`Event`] is one thing that happened at one time; [`What`] lists them all. A [`Recorder`] keeps the latest events
//! in a bounded ring; a [`Reader`] takes them out. Profiler, dashboard and log are readers: the trace is the only way out
//! of a running program.
//!
//! Architecture invariant: this crate knows nothing of Weir and reads no clock; whoever records says when.

mod event;
mod recorder;

pub use event::{Event, FlowKey, What};
pub use recorder::{Detail, Reader, Recorder};
