//! Ages of cookies and of cached responses, as header fields have them.

use std::time::Duration;

/// Returns a time in seconds, as header fields have it. A part of a second counts as one, because 0 would say "not at all".
pub(super) fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}
