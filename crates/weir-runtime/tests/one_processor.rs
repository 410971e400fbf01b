//! Flows that wait on a single processor, where the thread that wakes a flow cannot run beside the thread that goes on
//! with it.
#![cfg(target_os = "linux")]

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use test_support::flows::gates::{Gates, library};
use test_support::flows::{Feed, options, start_expr};
use weir_host::{Value, World};
use weir_runtime::ENGINES;

/// Two calls that wait, with a computation between them.
const PROGRAM: &str = "\
entry test from test.feed ordered
  arguments
    yield (0,)
  flow feed (%0 x: Int) -> Int
    %1: Int = call a.wait at a (%0)
    %2: Int = add(%1, 1)
    %3: Int = call b.wait at b (%2)
    %4: Int = multiply(%3, 2)
    yield %4
";
/// The number of flows that wait at a time.
const FLOWS: i64 = 40;

/// Binds this thread, and the threads that it starts, to the first processor that it may run on.
fn keep_to_one_processor() {
    let all = sched_getaffinity(None).expect("it is known where this thread runs");
    let first = (0..CpuSet::MAX_CPU).find(|processor| all.is_set(*processor)).expect("it runs somewhere");
    let mut one = CpuSet::new();
    one.set(first);
    sched_setaffinity(None, &one).expect("a thread may be kept to where it runs");
}

#[test]
fn flows_that_wait_go_on_under_every_engine() {
    keep_to_one_processor();
    for row in ENGINES {
        let (feed, gates) = (Feed::new(), Gates::new());
        let mut library = library([gates.waiting("a.wait", World::Reads), gates.waiting("b.wait", World::Reads)]);
        feed.put(&mut library, "test", "feed");
        let program = weir_ir::parse::expr(PROGRAM).unwrap();
        let running = start_expr(&program, &library, options(row.name, 1));
        let answers: Vec<_> = (0..FLOWS).map(|number| feed.begin(vec![Value::Int(number)])).collect();
        for _ in 0..2 * FLOWS {
            gates.next().release();
        }
        for (number, answer) in (0..).zip(answers) {
            assert_eq!(answer.blocking_recv().unwrap(), Ok(Value::Int((number + 1) * 2)), "{}", row.name);
        }
        drop(feed);
        running.wait().unwrap();
    }
}
