//! What is learned of a channel that was closed.

use std::fmt;

/// The channel is closed: what was sent can no longer be received, or nothing is left to receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Closed;

impl fmt::Display for Closed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the channel is closed")
    }
}

impl std::error::Error for Closed {}
