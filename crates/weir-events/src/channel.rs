//! Channels: where offers to send and offers to receive meet.
//!
//! Each file imports those named before it here at the most, and none imports this one.

mod closed;
mod outcome;
mod parcel;

pub(crate) mod entry;

mod effects;
mod state;

pub(crate) mod core;

mod deposits;
mod waiting;

mod leaves;

mod handle;

mod direct;
mod tasks;

pub use closed::Closed;
pub use direct::{SendError, TryReceiveError, TrySendError};
pub(crate) use effects::Effects;
pub use handle::Channel;
pub use parcel::Parcel;
pub use tasks::{Receiving, Sending};
