//! The processor time of a server, its threads and its children, from `/proc`.

use std::fs;
use std::path::Path;
use std::time::Duration;

/// What the process and all processes below it have used so far; `None` where the system does not say.
pub(crate) fn time_of(process: u32) -> Option<Duration> {
    let mut sum = Duration::ZERO;
    for thread in fs::read_dir(format!("/proc/{process}/task")).ok()? {
        // A thread that ends meanwhile takes its share along; servers keep theirs.
        let thread = thread.ok()?.path();
        sum += time_of_thread(&thread).unwrap_or_default();
        let children = fs::read_to_string(thread.join("children")).unwrap_or_default();
        sum += children.split_whitespace().filter_map(|child| time_of(child.parse().ok()?)).sum::<Duration>();
    }
    Some(sum)
}

/// The first number of `schedstat` is the time on a processor, in nanoseconds.
fn time_of_thread(thread: &Path) -> Option<Duration> {
    let text = fs::read_to_string(thread.join("schedstat")).ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}
