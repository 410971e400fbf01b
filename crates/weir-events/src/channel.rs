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

mod buffered_offers;
mod waiting;

mod base_events;

mod handle;

mod direct;
mod tasks;

pub use closed::Closed;
pub use direct::{SendError, TryReceiveError, TrySendError};
pub(crate) use effects::MatchEffects;
pub use handle::Channel;
pub use parcel::Parcel;
pub use tasks::{Receiving, Sending};
