//! The closed list of things that can happen in a running program, and a recorder of them.
//!
//! An [`Event`] is one thing that happened at one time; [`EventKind`] lists them all. A [`Recorder`] keeps the latest events
//! in a bounded ring for each [`Reader`], which takes them out. Profiler, dashboard and log are readers: the trace is the
//! only way out of a running program. How long things took is counted in a [`Histogram`] and told as [`Durations`].
//!
//! Architecture invariant: this crate knows nothing of Weir and reads no clock; whoever records says when.

mod durations;
mod event;
mod recorder;

pub use durations::{Durations, Histogram};
pub use event::{Detail, EventKind, FlowKey, TraceEvent};
pub use recorder::{Recorder, TraceReader};
