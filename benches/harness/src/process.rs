//! Processor time and memory of a process with its threads and children, from `/proc`.

use std::fs;
use std::path::Path;
use std::time::Duration;

/// Returns the processor time that the process and all its descendants have used, or `None` if the system does not say.
pub(crate) fn cpu_time(process: u32) -> Option<Duration> {
    let mut sum = Duration::ZERO;
    for thread in fs::read_dir(format!("/proc/{process}/task")).ok()? {
        // A thread that ends meanwhile is not counted; servers keep their threads.
        sum += time_of_thread(&thread.ok()?.path()).unwrap_or_default();
    }
    Some(sum + children(process).into_iter().filter_map(cpu_time).sum::<Duration>())
}

/// Parses the first number of `schedstat`: the time on a processor in nanoseconds.
fn time_of_thread(thread: &Path) -> Option<Duration> {
    let text = fs::read_to_string(thread.join("schedstat")).ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

/// Returns the bytes of memory of the process and all its descendants.
pub(crate) fn memory(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.split_whitespace().next()?;
    let own = kilobytes.parse::<u64>().ok()? * 1024;
    Some(own + children(process).into_iter().filter_map(memory).sum::<u64>())
}

fn children(process: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().filter_map(|child| child.parse().ok()).collect::<Vec<_>>()).collect()
}
