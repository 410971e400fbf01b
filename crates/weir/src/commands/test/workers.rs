//! The threads that run tests, and the time limit of each test.
//!
//! 1. A worker claims a test, says that it begins, runs it, and sends its result.
//! 2. The receiver waits for the next message until the earliest deadline of the tests that run.
//! 3. If a deadline passes, the test has failed. Nothing can interrupt the evaluator, so its worker is left behind, and
//!    another one takes its place; the process ends without waiting for it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use weir_host::{Failure, FailureKind, Text};
use weir_ir::evaluate::Evaluator;
use weir_ir::expr::{Origin, Program};
use weir_library::http::{RouteFailure, RouteFailures};
use weir_library::output::Outputs;
use weir_library::random::Randomness;
use weir_library::tables::{ScratchSchemas, TableLocation, TableStorage};

use crate::Library;
use crate::run::failure_location::inlined_backtrace;

/// Tests to run.
pub(super) struct TestRun {
    pub(super) tests: Program,
    /// The indices of the tests that were chosen.
    pub(super) chosen: Vec<usize>,
    pub(super) library: Library,
    /// The schemas of the tables of each test; `None` if they are in memory.
    pub(super) schemas: Option<Arc<ScratchSchemas>>,
    /// The seed of the random numbers that each test draws.
    pub(super) seed: u64,
    /// The time limit of each test.
    pub(super) limit: Duration,
}

/// Result of one test.
pub(super) struct TestResult {
    pub(super) failure: Option<Failure>,
    /// The place in the source of the operation that failed.
    pub(super) failed_at: Option<Origin>,
    /// The text that the test printed.
    pub(super) printed: String,
    /// The failures of the routes that the test has called.
    pub(super) routes: Vec<RouteFailure>,
    pub(super) took: Duration,
}

/// A message of a worker about the test at this position among the chosen ones.
enum TestProgress {
    Begins(usize),
    Ends(usize, Box<TestResult>),
}

/// The tests and the number of those that were claimed.
struct ClaimedTests {
    run: TestRun,
    next: AtomicUsize,
}

/// Runs the tests on one thread per core; the results are in the order of `chosen`.
pub(super) fn run_all(run: TestRun, runtime: &tokio::runtime::Handle) -> Vec<TestResult> {
    let (count, limit) = (run.chosen.len(), run.limit);
    let tests = Arc::new(ClaimedTests { run, next: AtomicUsize::new(0) });
    let (sender, progress) = channel();
    let begin = || begin_worker(&tests, &sender, runtime);
    (0..thread::available_parallelism().map_or(1, usize::from).min(count)).for_each(|_| begin());
    collect(&progress, count, limit, begin)
}

/// Collects the results of this many tests.
fn collect(progress: &Receiver<TestProgress>, count: usize, limit: Duration, begin: impl Fn()) -> Vec<TestResult> {
    let mut begun: BTreeMap<usize, Instant> = BTreeMap::new();
    let mut results: BTreeMap<usize, TestResult> = BTreeMap::new();
    while results.len() < count {
        let earliest = begun.iter().min_by_key(|(_, since)| **since).map(|(at, since)| (*at, *since));
        let left = earliest.map_or(limit, |(_, since)| limit.saturating_sub(since.elapsed()));
        match (progress.recv_timeout(left), earliest) {
            (Ok(TestProgress::Begins(at)), _) => _ = begun.insert(at, Instant::now()),
            // The result of a test whose time was up comes too late.
            (Ok(TestProgress::Ends(at, result)), _) => {
                if begun.remove(&at).is_some() {
                    results.insert(at, *result);
                }
            }
            (Err(RecvTimeoutError::Timeout), Some((at, since))) => {
                begun.remove(&at);
                results.insert(at, overdue(limit, since));
                begin();
            }
            (Err(RecvTimeoutError::Timeout), None) => {}
            (Err(RecvTimeoutError::Disconnected), _) => break,
        }
    }
    results.into_values().collect()
}

fn overdue(limit: Duration, since: Instant) -> TestResult {
    let message = format!("the test takes longer than its limit of {limit:?}; `--time-limit` sets another one");
    let failure = Some(Failure::new(FailureKind::Timeout, message));
    TestResult { failure, failed_at: None, printed: String::new(), routes: Vec::new(), took: since.elapsed() }
}

/// Starts a thread that runs tests until none is left.
fn begin_worker(tests: &Arc<ClaimedTests>, progress: &Sender<TestProgress>, runtime: &tokio::runtime::Handle) {
    let (tests, progress, runtime) = (Arc::clone(tests), progress.clone(), runtime.clone());
    thread::spawn(move || {
        let _inside = runtime.enter();
        while let Some(at) = tests.claim() {
            let ended = progress.send(TestProgress::Begins(at)).and_then(|()| {
                let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| tests.run.result(at)));
                progress.send(TestProgress::Ends(at, Box::new(result.unwrap_or_else(|_| panicked()))))
            });
            if ended.is_err() {
                return;
            }
        }
    });
}

fn panicked() -> TestResult {
    let failure = Failure::new(FailureKind::Panic, "the evaluator panicked: this is a bug of Weir");
    TestResult {
        failure: Some(failure),
        failed_at: None,
        printed: String::new(),
        routes: Vec::new(),
        took: Duration::ZERO,
    }
}

impl ClaimedTests {
    fn claim(&self) -> Option<usize> {
        let at = self.next.fetch_add(1, Ordering::Relaxed);
        (at < self.run.chosen.len()).then_some(at)
    }
}

impl TestRun {
    /// Runs the test at this position among the chosen ones.
    fn result(&self, at: usize) -> TestResult {
        let mut library = self.library.clone();
        library.environment.insert(Randomness::seeded(self.seed));
        library.environment.insert_placing(self.tables());
        let outputs = Outputs::capturing();
        library.environment.insert(outputs.clone());
        let routes = RouteFailures::default();
        library.environment.insert(routes.clone());
        let begun = Instant::now();
        let flow = self.chosen[at];
        let (failure, failed_at) = match Evaluator::of_flow(&self.tests, &library, (0, flow)) {
            Ok(mut evaluator) => {
                evaluator.expire_time_limits();
                let result = evaluator.run(0, flow, Vec::new());
                (result.err().map(|failure| *failure), evaluator.failed_at())
            }
            Err(initial) => (Some(initial.failure), initial.failed_at),
        };
        let (took, printed) = (begun.elapsed(), outputs.captured().unwrap_or_default());
        let (failure, failed_at) = match (failure, failed_at) {
            (Some(failure), Some(origin)) => {
                let (failure, origin) = with_inlined_calls(&self.tests, failure, origin);
                (Some(failure), Some(origin))
            }
            other => other,
        };
        TestResult { failure, failed_at, printed, routes: routes.take(), took }
    }

    /// Returns empty tables.
    fn tables(&self) -> TableStorage {
        let place = match &self.schemas {
            Some(schemas) => TableLocation::Scratch(Arc::new(schemas.schema())),
            None => TableLocation::Memory,
        };
        TableStorage::at(place)
    }
}

/// Adds the inlined calls around the operation that failed to the backtrace of a failure that has none, and returns the
/// place outside of them.
pub(super) fn with_inlined_calls(program: &Program, mut failure: Failure, failed_at: Origin) -> (Failure, Origin) {
    if !failure.backtrace().is_empty() {
        return (failure, failed_at);
    }
    let (sites, origin, _) = inlined_backtrace(program, failed_at, Text::default());
    sites.into_iter().for_each(|site| failure.propagated(site));
    (failure, origin)
}
