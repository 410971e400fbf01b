//! Channels: the rendezvous of offers to send and offers to receive.
//!
//! Each file imports at most those declared before it here, and none imports this one.

mod closed;
mod outcome;
mod parcel;

pub(crate) mod entry;

mod effects;

mod senders;

mod rare;

mod state;

mod closing;
mod receipts;

pub(crate) mod core;

mod buffered_offers;
mod waiting;

mod base_events;

mod handle;

mod direct;
mod tasks;

pub use closed::Closed;
pub use direct::{SendError, TryRecvError, TrySendError};
pub use handle::Channel;
pub use parcel::Parcel;
pub use tasks::{Receiving, Sending};
