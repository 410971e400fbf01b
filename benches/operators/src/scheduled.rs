//! Weir's own threading models: fused calls, and the scheduler with different thread pools.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use weir_scheduler::{
    ElasticSettings, Fusion, PortId, PortSettings, RunOutcome, Scheduler, StdPlatform, ThreadControl, ThreadPool, Work,
};

use crate::family::{GraphCase, OPERATORS, Tuple, operate};
use crate::measure::{Meter, ModelRow};
use crate::{BenchResult, chart};

/// The number of tuples that may wait at an operator.
const CAPACITY: usize = 128;
/// The period of the controller.
pub(crate) const PERIOD: Duration = Duration::from_millis(100);
/// The number of periods for the elastic engine to find its number of threads, which is its bound, and for `dedicated`
/// to fill a thousand queues.
const SETTLE_PERIODS: u32 = 20;

/// The operators. Those of branch b are at the ports b * depth to (b + 1) * depth - 1; the sink is the last port.
pub(crate) struct Operators {
    case: GraphCase,
    sunk: AtomicU64,
}

impl Operators {
    fn new(case: GraphCase) -> Self {
        Operators { case, sunk: AtomicU64::new(0) }
    }

    fn count(&self) -> u64 {
        self.sunk.load(Ordering::Relaxed)
    }
}

impl Work for Operators {
    type Item = Box<Tuple>;
    type WorkPlatform = StdPlatform;

    #[inline]
    fn run(&self, port: PortId, tuple: Box<Tuple>, _: &mut impl Fusion) -> RunOutcome<Box<Tuple>> {
        self.step(port, tuple).into()
    }

    fn platform(&self) -> &StdPlatform {
        &StdPlatform
    }
}

impl Operators {
    /// Runs one operator on a tuple. Returns the tuple and its next port.
    #[inline]
    fn step(&self, PortId(port): PortId, mut tuple: Box<Tuple>) -> Option<(PortId, Box<Tuple>)> {
        if port == OPERATORS {
            // The sink runs one tuple at a time, so that no other thread writes the counter.
            self.sunk.store(self.count() + 1, Ordering::Relaxed);
            return None;
        }
        operate(&mut tuple, self.case.cost);
        let last = (port + 1).is_multiple_of(self.case.family.depth());
        Some((PortId(if last { OPERATORS } else { port + 1 }), tuple))
    }
}

/// Runs all operators as calls on one thread.
pub(crate) fn manual(case: GraphCase, span: Duration) -> ModelRow {
    let operators = Operators::new(case);
    let mut number = 0;
    let mut run_until = |end: Instant| {
        while Instant::now() < end {
            for _ in 0..8 {
                pass(&operators, number);
                number += 1;
            }
        }
    };
    run_until(Instant::now() + span / 4);
    let meter = Meter::start(operators.count());
    run_until(Instant::now() + span);
    meter.row(case, "manual", operators.count())
}

/// Takes a tuple through the graph by calls.
fn pass(operators: &Operators, number: u64) {
    let family = operators.case.family;
    let tuple = Box::new(Tuple::new(number, family.branches()));
    let mut at = Some((PortId(tuple.branch * family.depth()), tuple));
    while let Some((port, tuple)) = at {
        at = operators.step(port, tuple);
    }
}

/// Measures one pool of `threads` threads.
pub(crate) fn fixed(case: GraphCase, threads: usize, span: Duration) -> BenchResult<ModelRow> {
    let pools = vec![ThreadPool { name: "static".into(), control: ThreadControl::Fixed(threads) }];
    scheduled(case, &format!("static-{threads}"), pools, |_| 0, span / 4, span)
}

/// Measures one thread per operator.
pub(crate) fn dedicated(case: GraphCase, span: Duration) -> BenchResult<ModelRow> {
    let pools = (0..=OPERATORS).map(|port| ThreadPool { name: port.to_string(), control: ThreadControl::Fixed(1) });
    scheduled(case, "dedicated", pools.collect(), |port| port, PERIOD * SETTLE_PERIODS, span)
}

/// Measures one pool that finds its number of threads.
pub(crate) fn elastic(case: GraphCase, threads_max: usize, span: Duration) -> BenchResult<ModelRow> {
    scheduled(case, "elastic", elastic_pool(threads_max), |_| 0, PERIOD * SETTLE_PERIODS, span)
}

/// Runs `watch` on such a pool from its start on.
pub(crate) fn while_elastic<R>(
    case: GraphCase,
    threads_max: usize,
    watch: impl FnOnce(&Scheduler<Operators>) -> R,
) -> BenchResult<R> {
    while_scheduled(case, elastic_pool(threads_max), |_| 0, |scheduler| Ok(watch(scheduler)))
}

fn elastic_pool(threads_max: usize) -> Vec<ThreadPool> {
    let settings = ElasticSettings { threads_min: 1, threads_max, sensitivity: 0.05 };
    vec![ThreadPool { name: "elastic".into(), control: ThreadControl::Elastic(settings) }]
}

fn scheduled(
    case: GraphCase,
    model: &str,
    pools: Vec<ThreadPool>,
    pool_of: impl Fn(usize) -> usize,
    settle: Duration,
    span: Duration,
) -> BenchResult<ModelRow> {
    while_scheduled(case, pools, pool_of, |scheduler| {
        let mut samples = chart::Samples::new();
        // The ports of its branch, and the sink.
        let ports_of_tuple = case.family.depth() + 1;
        samples.watch(scheduler, ports_of_tuple, settle);
        samples.settled();
        let meter = Meter::start(scheduler.work().count());
        samples.watch(scheduler, ports_of_tuple, span);
        let row = meter.row(case, model, scheduler.work().count());
        if model == "elastic" {
            samples.write(case)?;
        }
        Ok(row)
    })
}

/// Runs `watch` while tuples pass these pools.
fn while_scheduled<R>(
    case: GraphCase,
    pools: Vec<ThreadPool>,
    pool_of: impl Fn(usize) -> usize,
    watch: impl FnOnce(&Scheduler<Operators>) -> BenchResult<R>,
) -> BenchResult<R> {
    let ports: Vec<PortSettings> = (0..=OPERATORS)
        .map(|port| PortSettings { capacity: CAPACITY, pool: pool_of(port), nonblocking: true })
        .collect();
    let scheduler = Scheduler::start(Operators::new(case), &ports, pools, PERIOD)?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| source(&scheduler, case, &stop));
        let seen = watch(&scheduler);
        stop.store(true, Ordering::Relaxed);
        seen
    })
}

/// Submits tuples as fast as it can.
fn source(scheduler: &Scheduler<Operators>, case: GraphCase, stop: &AtomicBool) {
    let family = case.family;
    let tuple = |number| {
        let tuple = Box::new(Tuple::new(number, family.branches()));
        (PortId(tuple.branch * family.depth()), tuple)
    };
    let mut tuples = (0..).take_while(|_| !stop.load(Ordering::Relaxed)).map(tuple);
    while let Err(full) = scheduler.submit_all(&mut tuples) {
        let (port, tuple) = full.0;
        let mut waiting = Some(tuple);
        while let Some(tuple) = waiting.take().filter(|_| !stop.load(Ordering::Relaxed)) {
            if let Err(full) = scheduler.submit(port, tuple) {
                waiting = Some(full.0);
                wait_for_room(scheduler, port);
            }
        }
    }
}

fn wait_for_room(scheduler: &Scheduler<Operators>, port: PortId) {
    use std::sync::Arc;
    use std::task::{Context, Wake, Waker};
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    if scheduler.poll_room(port, &Context::from_waker(&waker)).is_pending() {
        // The end of the run makes no room, so that the wait has a time-out.
        std::thread::park_timeout(Duration::from_millis(50));
    }
}
