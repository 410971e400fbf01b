//! The machine as the steering sees it: its processors, and how many of them others keep busy.

use std::fs;
use std::time::Instant;

/// Reads `/proc`; where there is none, others are taken to be idle.
pub(crate) struct ProcessorLoad {
    processors: f64,
    /// Busy time of the machine and of this process, in ticks, and when they were read.
    last: (Option<(f64, f64)>, Instant),
}

/// Linux counts times in `/proc` in hundredths of a second on every machine that it runs on.
const TICKS_PER_SECOND: f64 = 100.0;

impl ProcessorLoad {
    pub(crate) fn new() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        ProcessorLoad { processors: processors as f64, last: (busy(), Instant::now()) }
    }

    /// How many processors this process may use.
    pub(crate) fn processors(&self) -> f64 {
        self.processors
    }

    /// How many processors other processes kept busy since the last call.
    pub(crate) fn busy_by_others(&mut self) -> f64 {
        let now = (busy(), Instant::now());
        let last = std::mem::replace(&mut self.last, now);
        let (Some((all, own)), Some((all_before, own_before))) = (now.0, last.0) else { return 0.0 };
        let others = (all - all_before) - (own - own_before);
        let elapsed = (now.1 - last.1).as_secs_f64();
        (others / TICKS_PER_SECOND / elapsed).max(0.0)
    }
}

fn busy() -> Option<(f64, f64)> {
    Some((
        busy_machine(&fs::read_to_string("/proc/stat").ok()?)?,
        busy_process(&fs::read_to_string("/proc/self/stat").ok()?)?,
    ))
}

/// `cpu user nice system idle iowait irq softirq …`
fn busy_machine(stat: &str) -> Option<f64> {
    let times: Vec<f64> =
        stat.lines().next()?.split_whitespace().skip(1).filter_map(|time| time.parse().ok()).collect();
    let busy = |index: usize| times.get(index).copied().unwrap_or(0.0);
    Some(busy(0) + busy(1) + busy(2) + busy(5) + busy(6))
}

/// The 14th and 15th fields; the second is the program's name in parentheses, which may hold anything.
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
