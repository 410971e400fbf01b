//! Parallelism: the number of cores that compute for one flow.

use std::fmt;

/// The number of cores that compute for one flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Parallelism {
    /// All that are idle.
    #[default]
    Auto,
    /// One: a flow runs on its own thread.
    Off,
    /// At most this many.
    AtMost(usize),
}

impl Parallelism {
    /// Returns the number of threads that help a flow on a machine with this number of cores.
    #[must_use]
    pub fn helpers(self, cores: usize) -> usize {
        match self {
            Parallelism::Auto if cores > 1 => cores,
            Parallelism::Auto | Parallelism::Off => 0,
            Parallelism::AtMost(most) => most.saturating_sub(1),
        }
    }
}

impl fmt::Display for Parallelism {
    /// Writes it as in a plan.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Parallelism::Auto => f.write_str("\"auto\""),
            Parallelism::Off => f.write_str("\"off\""),
            Parallelism::AtMost(most) => most.fmt(f),
        }
    }
}
