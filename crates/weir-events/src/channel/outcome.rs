//! What came of trying to send or to receive.

/// What came of trying to send. Where it is not `Done`, the value is still where it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// A receiver or the buffer has it.
    Done,
    /// The channel is closed.
    Closed,
    /// Nobody takes it now.
    Full,
    /// The initiator was committed to another base event meanwhile.
    Taken,
}

/// What came of trying to receive.
pub(crate) enum Received<T> {
    /// A value.
    Done(T),
    /// Nothing is left, and nothing will come.
    Closed,
    /// Nothing is here now.
    Empty,
    /// The initiator was committed to another base event meanwhile.
    Taken,
}
