//! The error of an operation on a closed channel.

use std::fmt;

/// The channel is closed: a sent value cannot be received any more, or nothing is left to receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Closed;

impl fmt::Display for Closed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the channel is closed")
    }
}

impl std::error::Error for Closed {}
