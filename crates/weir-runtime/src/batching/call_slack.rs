//! The slack of a call: how long it may wait for others.

/// The latest time of a call that waits for another one without a limit.
pub(super) const NO_LIMIT: u64 = u64::MAX;

/// The slack of a call that gathers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CallSlack {
    /// The latest time at which the call may be sent; 0 for at once, and [`NO_LIMIT`] if a call is certain to join.
    pub latest_ns: u64,
    /// The time at which its flow is expected to make a further call of the function, which does not need this one; `None` if it
    /// makes none.
    pub next_ns: Option<u64>,
}
