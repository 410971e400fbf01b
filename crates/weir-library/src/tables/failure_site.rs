//! The place in the program to which the failure of a placed change belongs.

use weir::{Failure, PropagationSite};

/// The place in the program to which the failure of a placed change belongs.
#[derive(weir::Type, Clone, Debug, PartialEq)]
#[weir(name = "tables.FailureSite")]
pub struct FailureSite {
    /// The places where a `fn` gives the failure to its caller, innermost first.
    pub passed: Vec<PassedPlace>,
    /// The position in the source, in bytes, where the failure leaves the flow.
    pub position: i64,
}

/// A place where a `fn` gives a failure to its caller.
#[derive(weir::Type, Clone, Debug, PartialEq)]
#[weir(name = "tables.PassedPlace")]
pub struct PassedPlace {
    /// The function that failed there; empty if it was no call.
    pub failed: String,
    /// The `fn` with that place.
    pub function: String,
    /// The position in the source, in bytes.
    pub position: i64,
}

impl FailureSite {
    /// Returns a failure that belongs to this place.
    pub(super) fn failure(&self, failure: Failure) -> Failure {
        let sites = self.passed.iter().map(|place| PropagationSite {
            failed: place.failed.as_str().into(),
            function: place.function.as_str().into(),
            position: offset(place.position),
        });
        failure.placed_at(offset(self.position), sites.collect())
    }
}

fn offset(position: i64) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}
