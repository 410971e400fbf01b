//! An idle program does nothing: none of its threads wakes up, under any engine.
//!
//! The system counts how often a thread goes to sleep voluntarily, so the test does not depend on the load of the
//! machine. Only Linux provides the counter.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use crate::support::Served;

const HELLO: &str = "examples/hello/main.weir";
/// Duration longer than any poll interval.
const WHILE: Duration = Duration::from_secs(1);
/// Number of [`WHILE`]s after which the work that follows the last response has finished.
const LOOKS_MAX: usize = 20;

/// Number of voluntary context switches, by thread.
fn sleeps(pid: u32) -> BTreeMap<String, u64> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("the process runs");
    let count = |task: &fs::DirEntry| {
        let status = fs::read_to_string(task.path().join("status")).ok()?;
        let field = |name: &str| Some(status.lines().find_map(|line| line.strip_prefix(name))?.trim().to_owned());
        let thread = format!("{} {}", field("Name:")?, task.file_name().display());
        Some((thread, field("voluntary_ctxt_switches:")?.parse().ok()?))
    };
    // A thread may end while it is read.
    tasks.flatten().filter_map(|task| count(&task)).collect()
}

#[test]
fn a_program_that_has_nothing_to_do_wakes_no_thread() {
    let served: Vec<_> = weir_runtime::ENGINES
        .iter()
        .map(|engine| {
            let served = Served::start(HELLO, &["--engine", engine.name, "--threads", "2"]);
            assert_eq!(served.get("/").status, 200);
            (engine.name, served)
        })
        .collect();
    let all = || served.iter().map(|(name, served)| (*name, sleeps(served.pid()))).collect::<Vec<_>>();
    let mut seen = all();
    assert!(seen.iter().all(|(_, sleeps)| sleeps.len() > 1), "threads are seen: {seen:?}");
    for look in 1.. {
        // There is no event to wait for in an idle program.
        std::thread::park_timeout(WHILE);
        let before = std::mem::replace(&mut seen, all());
        if seen == before {
            break;
        }
        assert!(look < LOOKS_MAX, "some thread wakes up again and again:\n{before:?}\n{seen:?}");
    }
    served.into_iter().for_each(|(name, served)| assert_eq!(served.stop().0, Some(0), "{name}"));
}
