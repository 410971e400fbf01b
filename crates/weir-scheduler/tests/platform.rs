//! The scheduler on a platform whose clock moves only when an item says so: every decision by time is then repeatable.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use weir_scheduler::{
    ElasticSettings, Fusion, InlineOutcome, PortId, PortSettings, RunOutcome, Scheduler, SchedulerPlatform,
    StdPlatform, ThreadControl, ThreadPool, Work,
};

/// A platform whose time passes only by [`ScriptedTime::pass`].
struct ScriptedTime {
    start: Instant,
    passed_ns: AtomicU64,
}

impl ScriptedTime {
    fn pass(&self, time: Duration) {
        self.passed_ns.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }
}

impl SchedulerPlatform for ScriptedTime {
    fn now(&self) -> Instant {
        self.start + Duration::from_nanos(self.passed_ns.load(Ordering::Relaxed))
    }

    fn thread_number(&self) -> usize {
        StdPlatform.thread_number()
    }

    fn processors(&self) -> usize {
        2
    }
}

/// Work whose items say how long they take.
struct Takes(ScriptedTime);

impl Work for Takes {
    type Item = Duration;
    type WorkPlatform = ScriptedTime;

    fn run(&self, _: PortId, time: Duration, _: &mut impl Fusion) -> RunOutcome<Duration> {
        self.0.pass(time);
        RunOutcome::Finished
    }

    fn platform(&self) -> &ScriptedTime {
        &self.0
    }
}

/// A scheduler with one port and an elastic pool of one thread, which therefore allows caller-runs.
fn elastic() -> Scheduler<Takes> {
    let work = Takes(ScriptedTime { start: StdPlatform.now(), passed_ns: AtomicU64::new(0) });
    let settings = ElasticSettings { threads_min: 1, threads_max: 1, sensitivity: 0.05 };
    let pool = ThreadPool { name: "elastic".into(), control: ThreadControl::Elastic(settings) };
    let port = PortSettings { capacity: 4, pool: 0, nonblocking: true };
    Scheduler::start(work, &[port], vec![pool], Duration::from_secs(1)).expect("the system starts threads")
}

/// Runs an item on this thread if the scheduler allows it, and returns whether it did.
fn runs_inline(scheduler: &Scheduler<Takes>, time: Duration) -> bool {
    let ran = scheduler.run_inline(PortId(0), |fusion| {
        let remaining = scheduler.work().run(PortId(0), time, fusion).remaining();
        InlineOutcome { answer: (), remaining }
    });
    ran.is_some()
}

#[test]
fn short_items_always_run_on_the_thread_that_brings_them() {
    let scheduler = elastic();
    assert!((0..1_000).all(|_| runs_inline(&scheduler, Duration::from_micros(1))));
}

#[test]
fn after_a_long_item_the_next_255_are_left_to_the_pool() {
    let scheduler = elastic();
    assert!(runs_inline(&scheduler, Duration::from_millis(1)));
    let next: Vec<bool> = (0..256).map(|_| runs_inline(&scheduler, Duration::from_micros(1))).collect();
    assert!(next[..255].iter().all(|inline| !inline) && next[255], "{next:?}");
}

#[test]
fn a_second_long_item_doubles_the_number_that_is_left_to_the_pool() {
    let scheduler = elastic();
    let left_to_pool = || (0..).take_while(|_| !runs_inline(&scheduler, Duration::from_millis(1))).count();
    assert!(runs_inline(&scheduler, Duration::from_millis(1)));
    assert_eq!([left_to_pool(), left_to_pool(), left_to_pool()], [255, 511, 1_023]);
}

/// Two ports with a thread each; the items take some time at both.
struct Stages {
    time: ScriptedTime,
    /// The number of items that the first port has run when an item leaves the second.
    passed: AtomicU64,
    left_at: Sender<u64>,
    /// The items that wait at the first port until the test says so.
    go_on: Mutex<Receiver<()>>,
}

impl Work for Stages {
    type Item = Duration;
    type WorkPlatform = ScriptedTime;

    fn run(&self, port: PortId, time: Duration, _: &mut impl Fusion) -> RunOutcome<Duration> {
        if port == PortId(1) {
            self.left_at.send(self.passed.load(Ordering::Relaxed)).expect("the test receives all of them");
            return RunOutcome::Finished;
        }
        self.go_on.lock().recv().expect("the test lets each item pass");
        self.time.pass(time);
        self.passed.fetch_add(1, Ordering::Relaxed);
        RunOutcome::Next(PortId(1), time)
    }

    fn platform(&self) -> &ScriptedTime {
        &self.time
    }
}

/// Returns the numbers of items of this duration that the first stage has run when the first items leave the second. The
/// first stage waits for the second whenever it has run `pass` of them.
fn left_at(time: Duration, nonblocking: bool, pass: usize) -> Vec<u64> {
    let (left_at, lefts) = channel();
    let (may_go_on, go_on) = channel();
    let clock = ScriptedTime { start: StdPlatform.now(), passed_ns: AtomicU64::new(0) };
    let work = Stages { time: clock, passed: AtomicU64::new(0), left_at, go_on: Mutex::new(go_on) };
    let pools = ["one", "other"].map(|name| ThreadPool { name: name.into(), control: ThreadControl::Fixed(1) });
    let ports = [0, 1].map(|pool| PortSettings { capacity: 64, pool, nonblocking });
    let scheduler =
        Scheduler::start(work, &ports, pools.to_vec(), Duration::from_secs(1)).expect("the system starts threads");
    assert!(scheduler.submit_all(&mut (0..32).map(|_| (PortId(0), time))).is_ok());
    let left = (0..32 / pass).flat_map(|_| {
        (0..pass).for_each(|_| may_go_on.send(()).expect("the stage receives it"));
        lefts.iter().take(pass).collect::<Vec<_>>()
    });
    left.collect()
}

#[test]
fn items_that_take_long_go_on_at_once() {
    let one_by_one: Vec<u64> = (1..=32).collect();
    assert_eq!(left_at(Duration::from_millis(20), false, 1), one_by_one);
    assert_eq!(left_at(Duration::from_millis(20), true, 1), one_by_one);
}

#[test]
fn items_that_take_some_time_go_on_in_small_batches() {
    let by_eight = (1..=4).flat_map(|batch| [8 * batch; 8]).collect::<Vec<u64>>();
    assert_eq!(left_at(Duration::from_micros(5), true, 8), by_eight);
}
