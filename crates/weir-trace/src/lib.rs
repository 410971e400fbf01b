//! Trace: the closed list of event kinds of a running program, and a recorder with one bounded ring per reader.
//!
//! A [`TraceEvent`] is one [`EventKind`] at one time. A [`Recorder`] keeps the latest events in a ring for each
//! [`TraceReader`]. Profiler, dashboard and log are readers: the trace is the only way out of a running program.
//! Durations are counted in a [`Histogram`] and read as [`Durations`].
//!
//! Architecture invariant: this crate knows nothing of Weir and reads no clock. The caller passes the time of each
//! event.

mod durations;
mod event;
mod recorder;

pub use durations::{Durations, Histogram};
pub use event::{BacktraceEntry, BatchDeparture, Detail, EventKind, FlowKey, RefusalReason, TraceEvent};
pub use recorder::{Recorder, TraceReader};
