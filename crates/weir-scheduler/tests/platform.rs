//! The scheduler on a platform whose clock moves only when an item says so: every decision by time is then repeatable.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

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
