//! Processor load: the number of processors, and how many of them other processes keep busy.

use std::fs;
use std::time::Instant;

/// Meter of the processor time that other processes use. Reads `/proc`; without it, others count as idle.
pub(crate) struct ProcessorLoad {
    processors: f64,
    /// Processor time of the whole system and of this process in ticks, and the time when they were read.
    last: (Option<(f64, f64)>, Instant),
}

/// The unit of processor times in `/proc`: Linux uses hundredths of a second on every architecture.
const TICKS_PER_SECOND: f64 = 100.0;

impl ProcessorLoad {
    /// Creates a meter that starts now.
    pub(crate) fn new(processors: usize, now: Instant) -> Self {
        ProcessorLoad { processors: processors as f64, last: (busy(), now) }
    }

    /// Returns the number of processors that this process may use.
    pub(crate) fn processors(&self) -> f64 {
        self.processors
    }

    /// Returns the mean number of processors that other processes kept busy since the last call.
    pub(crate) fn busy_by_others(&mut self, now: Instant) -> f64 {
        let now = (busy(), now);
        let last = std::mem::replace(&mut self.last, now);
        let (Some((all, own)), Some((all_before, own_before))) = (now.0, last.0) else { return 0.0 };
        let others = (all - all_before) - (own - own_before);
        let elapsed = now.1.saturating_duration_since(last.1).as_secs_f64();
        (others / TICKS_PER_SECOND / elapsed).max(0.0)
    }
}

/// Reads the processor time of the system and of this process, in ticks.
fn busy() -> Option<(f64, f64)> {
    Some((
        busy_machine(&fs::read_to_string("/proc/stat").ok()?)?,
        busy_process(&fs::read_to_string("/proc/self/stat").ok()?)?,
    ))
}

/// Parses the busy ticks of `cpu user nice system idle iowait irq softirq …`.
fn busy_machine(stat: &str) -> Option<f64> {
    let times: Vec<f64> =
        stat.lines().next()?.split_whitespace().skip(1).filter_map(|time| time.parse().ok()).collect();
    let busy = |index: usize| times.get(index).copied().unwrap_or(0.0);
    Some(busy(0) + busy(1) + busy(2) + busy(5) + busy(6))
}

/// Parses the sum of fields 14 and 15. Field 2 is the program's name in parentheses, which may contain anything.
fn busy_process(stat: &str) -> Option<f64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut time = || fields.next()?.parse::<f64>().ok();
    Some(time()? + time()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_formats_of_proc_are_read() {
        assert_eq!(busy_machine("cpu  10 1 5 100 7 2 3 0 0 0\ncpu0 1 2 3"), Some(21.0));
        assert_eq!(busy_process("12 (a ) b) S 1 1 1 0 -1 4 1 0 0 0 70 30 0 0 20"), Some(100.0));
        assert_eq!(busy_process("nonsense"), None);
    }
}
