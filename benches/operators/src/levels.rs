//! Thread count of the elastic engine over time: when it is found, whether it stays, and how many threads are
//! runnable.
//!
//! A period is what the engine looks at; its level should be found within twenty, and then stay. Threads that would run are
//! counted as the system has them, a few times in each period: more of them than processors should not be seen for long.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weir_scheduler::{Scheduler, Work};

use crate::family::Case;
use crate::{Outcome, processors, scheduled};

/// Time between two observations.
const EVERY: Duration = Duration::from_millis(5);

/// The observations.
struct Seen {
    /// By look.
    levels: Vec<usize>,
    /// By look: how many threads ran or would have.
    runnable: Vec<usize>,
    /// Number of observations per second.
    looks_in_second: f64,
}

pub(crate) const HEADING: &str = "family      cost level  found in period  changes after 20  runnable: most; more than processors: share of time, longest";

/// Prints the row of a case.
pub(crate) fn run(case: Case, periods: u32) -> Outcome<Value> {
    let span = scheduled::PERIOD * periods;
    let seen = scheduled::while_elastic(case, processors(), |scheduler| Seen::watch(scheduler, span))?;
    let (found, changes) = (seen.found(), seen.changes_after(20));
    let (most, share) = (seen.runnable.iter().max().unwrap_or(&0), seen.crowded_share());
    let crowded_ms = seen.crowded_longest() * 1e3;
    let level = seen.levels.last().unwrap_or(&0);
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

impl Seen {
    fn watch<W: Work>(scheduler: &Scheduler<W>, span: Duration) -> Seen {
        let begin = Instant::now();
        let (mut levels, mut runnable) = (Vec::new(), Vec::new());
        while begin.elapsed() < span {
            std::thread::park_timeout(EVERY);
            levels.push(scheduler.pool_snapshots().iter().map(|pool| pool.threads).sum());
            // Not the one that counts.
            runnable.push(count_runnable().saturating_sub(1));
        }
        let looks_in_second = levels.len() as f64 / begin.elapsed().as_secs_f64();
        Seen { levels, runnable, looks_in_second }
    }

    /// The period of a look.
    fn period(&self, look: usize) -> usize {
        (look as f64 / self.looks_in_second / scheduled::PERIOD.as_secs_f64()) as usize
    }

    /// The looks at which there was another level than before.
    fn changes(&self) -> impl DoubleEndedIterator<Item = usize> {
        (1..self.levels.len()).filter(|look| self.levels[*look] != self.levels[look - 1])
    }

    /// The period in which the level was reached that it had in the end, not to be left any more.
    fn found(&self) -> usize {
        self.changes().next_back().map_or(0, |look| self.period(look))
    }

    fn changes_after(&self, period: usize) -> usize {
        self.changes().filter(|look| self.period(*look) >= period).count()
    }

    /// The share of looks at which more threads than processors were seen.
    fn crowded_share(&self) -> f64 {
        let crowded = self.runnable.iter().filter(|threads| **threads > processors()).count();
        crowded as f64 / self.runnable.len().max(1) as f64
    }

    /// The longest time in seconds for which more threads than processors were seen at every look.
    fn crowded_longest(&self) -> f64 {
        let crowded = self.runnable.split(|threads| *threads <= processors());
        crowded.map(<[usize]>::len).max().unwrap_or(0) as f64 / self.looks_in_second
    }
}

/// Returns the number of runnable threads of this process; 0 if the system does not report it.
fn count_runnable() -> usize {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else { return 0 };
    let states = tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("stat")).ok());
    // The state comes after the name, which is in parentheses and may hold anything.
    states.filter(|stat| stat.rsplit_once(')').is_some_and(|(_, rest)| rest.starts_with(" R"))).count()
}
