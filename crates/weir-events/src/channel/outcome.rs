//! The results of trying to send and to receive.

/// Result of trying to send. Unless it is `Done`, the value is still where it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// A receiver or the buffer has the value.
    Done,
    /// The channel is closed.
    Closed,
    /// No receiver or buffer slot takes the value now.
    Full,
    /// A peer has committed the initiator to another base event meanwhile.
    Taken,
}

/// Result of trying to receive.
pub(crate) enum Received<T> {
    /// A value.
    Done(T),
    /// No value is left, and none will arrive.
    Closed,
    /// No value is available now.
    Empty,
    /// A peer has committed the initiator to another base event meanwhile.
    Taken,
}
