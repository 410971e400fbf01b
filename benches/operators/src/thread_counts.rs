//! Number of threads of the elastic engine over time: when it is found, whether it stays, and the number of runnable
//! threads.
//!
//! The number should be found within 20 periods of the controller, and then stay. Runnable threads are counted several
//! times per period as the system reports them: there should not be more of them than processors for long.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weir_scheduler::{Scheduler, Work};

use crate::family::GraphCase;
use crate::{BenchResult, processors, scheduled};

/// The time between two samples.
const EVERY: Duration = Duration::from_millis(5);

/// The samples of one run.
struct ThreadCountSamples {
    /// The number of threads, by sample.
    thread_counts: Vec<usize>,
    /// The number of runnable threads, by sample.
    runnable: Vec<usize>,
    /// The number of samples per second.
    looks_in_second: f64,
}

pub(crate) const HEADING: &str = "family      cost level  found in period  changes after 20  runnable: most; more than processors: share of time, longest";

/// Measures a case, prints its row and returns it.
pub(crate) fn run(case: GraphCase, periods: u32) -> BenchResult<Value> {
    let span = scheduled::PERIOD * periods;
    let seen = scheduled::while_elastic(case, processors(), |scheduler| ThreadCountSamples::watch(scheduler, span))?;
    let (found, changes) = (seen.found(), seen.changes_after(20));
    let (most, share) = (seen.runnable.iter().max().unwrap_or(&0), seen.oversubscribed_share());
    let crowded_ms = seen.oversubscribed_longest() * 1e3;
    let level = seen.thread_counts.last().unwrap_or(&0);
    let (family, cost) = (case.family.name(), case.cost);
    println!(
        "{family:<8} {cost:>7} {level:>5} {found:>16} {changes:>17} {most:>14}; {:.0} %, {crowded_ms:.0} ms",
        share * 1e2
    );
    Ok(json!({
        "family": family, "cost": cost, "periods": periods, "level": level, "found_in_period": found,
        "changes_after_20": changes, "runnable_most": most, "crowded_share": share, "crowded_longest_ms": crowded_ms,
    }))
}

impl ThreadCountSamples {
    fn watch<W: Work>(scheduler: &Scheduler<W>, span: Duration) -> ThreadCountSamples {
        let begin = Instant::now();
        let (mut thread_counts, mut runnable) = (Vec::new(), Vec::new());
        while begin.elapsed() < span {
            std::thread::park_timeout(EVERY);
            thread_counts.push(scheduler.pool_snapshots().iter().map(|pool| pool.threads).sum());
            // Without the thread that samples.
            runnable.push(count_runnable().saturating_sub(1));
        }
        let looks_in_second = thread_counts.len() as f64 / begin.elapsed().as_secs_f64();
        ThreadCountSamples { thread_counts, runnable, looks_in_second }
    }

    /// Returns the period of a sample.
    fn period(&self, look: usize) -> usize {
        (look as f64 / self.looks_in_second / scheduled::PERIOD.as_secs_f64()) as usize
    }

    /// Returns the samples with another number of threads than the one before.
    fn changes(&self) -> impl DoubleEndedIterator<Item = usize> {
        (1..self.thread_counts.len()).filter(|look| self.thread_counts[*look] != self.thread_counts[look - 1])
    }

    /// Returns the period from which on the number of threads did not change.
    fn found(&self) -> usize {
        self.changes().next_back().map_or(0, |look| self.period(look))
    }

    fn changes_after(&self, period: usize) -> usize {
        self.changes().filter(|look| self.period(*look) >= period).count()
    }

    /// Returns the share of samples with more runnable threads than processors.
    fn oversubscribed_share(&self) -> f64 {
        let crowded = self.runnable.iter().filter(|threads| **threads > processors()).count();
        crowded as f64 / self.runnable.len().max(1) as f64
    }

    /// Returns the longest time in seconds in which all samples had more runnable threads than processors.
    fn oversubscribed_longest(&self) -> f64 {
        let crowded = self.runnable.split(|threads| *threads <= processors());
        crowded.map(<[usize]>::len).max().unwrap_or(0) as f64 / self.looks_in_second
    }
}

/// Returns the number of runnable threads of this process, or 0 if the system does not say.
fn count_runnable() -> usize {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else { return 0 };
    let states = tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("stat")).ok());
    // The state follows the name, which is in parentheses and may contain anything.
    states.filter(|stat| stat.rsplit_once(')').is_some_and(|(_, rest)| rest.starts_with(" R"))).count()
}
