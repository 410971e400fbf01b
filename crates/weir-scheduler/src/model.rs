//! Model check of the protocols between threads with loom: every interleaving of a few threads.
//!
//! | model | protocol | property |
//! |---|---|---|
//! | `waking` | idle set, port queue, ready queue | no wake-up is lost |
//! | `claiming` | port queue | two threads never run a port at once, and no item is left behind |
//! | `listing` | ready queue | a port is popped once, after everything that happened before its push |
//! | `exclusive_and_shared`, `bias_owners` | execution mode, biased lock | exclusive threads are alone and hand over writes |
//! | `parking`, `ending` | controller parking | an item and the end unpark the controller |
//!
//! The files under test are compiled a second time here over loom's primitives, so that the check is part of the
//! ordinary tests. Each mutant leaves out or weakens one step of a protocol, and its model must fail
//! (`every_mutant_is_caught`).

use loom::sync::Arc;
use loom::sync::atomic::Ordering;
use loom::thread;

use controller_parking::ControllerParking;
use execution_mode::ModeLock;
use idle_set::IdleSet;
use port_queue::{PortQueue, Released, Remaining};
use ready_queue::ReadyQueue;
use sync::{AtomicBool, AtomicUsize, SchedulerMutant};

#[path = "biased_lock.rs"]
#[expect(clippy::duplicate_mod, reason = "this copy is over loom's primitives")]
mod biased_lock;
#[path = "controller_parking.rs"]
#[expect(clippy::duplicate_mod, reason = "this copy is over loom's primitives")]
mod controller_parking;
#[path = "execution_mode.rs"]
#[expect(clippy::duplicate_mod, reason = "this copy is over loom's primitives")]
#[expect(dead_code, reason = "the model chooses its own bias threshold")]
mod execution_mode;
#[path = "idle_set.rs"]
#[expect(clippy::duplicate_mod, reason = "this copy is over loom's primitives")]
#[expect(dead_code, reason = "the model uses a part of it")]
mod idle_set;
#[path = "port_queue.rs"]
#[expect(clippy::duplicate_mod, reason = "this copy is over loom's primitives")]
#[expect(dead_code, reason = "the model uses a part of it")]
mod port_queue;
#[path = "ready_queue.rs"]
#[expect(clippy::duplicate_mod, reason = "this copy is over loom's primitives")]
mod ready_queue;

/// Loom's primitives under the names of `crate::sync`.
mod sync {
    use std::cell::Cell;

    pub(crate) use loom::sync::MutexGuard;
    use loom::sync::atomic::fence;
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
    pub(crate) use loom::thread::{Thread, current, park};

    pub(crate) use crate::sync::SchedulerMutant;

    pub(crate) use LoomMutex as Mutex;
    pub(crate) use LoomSpinWait as SpinWait;

    pub(crate) struct LoomMutex<T>(loom::sync::Mutex<T>);

    impl<T> LoomMutex<T> {
        pub(crate) fn new(value: T) -> Self {
            LoomMutex(loom::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
            self.0.lock().unwrap()
        }
    }

    /// A model has no time: a lock is free or it is not.
    pub(crate) fn lock_within<T>(mutex: &LoomMutex<T>) -> Option<MutexGuard<'_, T>> {
        mutex.0.try_lock().ok()
    }

    pub(crate) fn has_heavy_fence() -> bool {
        true
    }

    /// Loom has no asymmetric fence, so that both halves are full fences.
    pub(crate) fn heavy_fence() {
        fence(Ordering::SeqCst);
    }

    pub(crate) fn light_fence() {
        fence(Ordering::SeqCst);
    }

    #[derive(Default)]
    pub(crate) struct LoomSpinWait(());

    impl LoomSpinWait {
        #[expect(clippy::unused_self, reason = "the system's counts")]
        pub(crate) fn pause(&mut self) {
            loom::thread::yield_now();
        }

        /// A model has no time: the first wait is the last.
        #[expect(clippy::unused_self, reason = "the system's counts")]
        pub(crate) fn is_over(&self) -> bool {
            true
        }
    }

    pub(crate) fn unlock_fair<T>(guard: MutexGuard<'_, T>) {
        drop(guard);
    }

    thread_local! {
        /// The mutant under test. All threads of a model run on one system thread.
        pub(crate) static MUTANT: Cell<Option<SchedulerMutant>> = const { Cell::new(None) };
    }

    pub(crate) fn is(mutant: SchedulerMutant) -> bool {
        MUTANT.get() == Some(mutant)
    }
}

/// One port with the ready queue and the idle set of its pool.
struct PoolModel {
    queue: PortQueue<u32>,
    ready: ReadyQueue,
    idle: IdleSet,
}

impl PoolModel {
    fn new() -> Self {
        PoolModel { queue: PortQueue::new(4, 2), ready: ReadyQueue::new(1), idle: IdleSet::new() }
    }

    fn submit(&self, item: u32) {
        if self.queue.try_put(item).expect("there is room").must_schedule {
            self.schedule();
        }
    }

    fn schedule(&self) {
        self.ready.push(0);
        self.idle.wake();
    }

    /// Works until this many items have arrived. A lost wake-up leaves it parked, which loom reports as a deadlock.
    fn work(&self, items: usize) {
        let (mut batch, mut released) = (Vec::new(), Released::default());
        while batch.len() < items {
            match self.ready.pop() {
                Some(_) => {
                    self.queue.take_batch(1, &mut batch, &mut released);
                    if self.queue.finish_batch() == Remaining::More {
                        self.schedule();
                    }
                }
                None => {
                    self.idle.sleep(0, || !self.ready.is_empty());
                    thread::yield_now();
                }
            }
        }
    }
}

/// A port that asserts that it never runs on two threads at once. `count` is not synchronised, so that a missing
/// ordering shows.
struct ExclusivePort {
    runs: AtomicBool,
    count: AtomicUsize,
}

impl ExclusivePort {
    fn new() -> Self {
        ExclusivePort { runs: AtomicBool::new(false), count: AtomicUsize::new(0) }
    }

    fn run(&self) {
        assert!(!self.runs.swap(true, Ordering::Relaxed), "the port runs on two threads at once");
        self.count.store(self.count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.runs.store(false, Ordering::Relaxed);
    }
}

/// One port that a thread with an item runs inline if it can claim it.
struct FusedModel {
    pool: PoolModel,
    port: ExclusivePort,
    done: AtomicUsize,
}

impl FusedModel {
    fn pass(&self, item: u32) {
        if self.pool.queue.try_claim() {
            self.run_items(1);
        } else {
            self.pool.submit(item);
        }
        while self.pool.ready.pop().is_some() {
            let mut batch = Vec::new();
            self.pool.queue.take_batch(2, &mut batch, &mut Released::default());
            self.run_items(batch.len());
        }
    }

    fn run_items(&self, items: usize) {
        self.port.run();
        self.done.fetch_add(items, Ordering::Relaxed);
        if self.pool.queue.finish_batch() == Remaining::More {
            self.pool.schedule();
        }
    }
}

fn check(mutant: Option<SchedulerMutant>, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        sync::MUTANT.set(mutant);
        model();
    });
}

fn waking() {
    let pool = Arc::new(PoolModel::new());
    let other = pool.clone();
    let worker = thread::spawn(move || other.work(2));
    pool.submit(1);
    pool.submit(2);
    worker.join().unwrap();
}

fn claiming() {
    let fused = Arc::new(FusedModel { pool: PoolModel::new(), port: ExclusivePort::new(), done: AtomicUsize::new(0) });
    let other = fused.clone();
    let thread = thread::spawn(move || other.pass(1));
    fused.pass(2);
    thread.join().unwrap();
    assert_eq!(fused.done.load(Ordering::Relaxed), 2, "nothing is left behind");
}

/// Two ports, and how often each was pushed and popped.
struct ReadyModel {
    ready: ReadyQueue,
    made: [AtomicUsize; 2],
    taken: [AtomicUsize; 2],
}

impl ReadyModel {
    fn make(&self, port: usize) {
        self.made[port].store(self.made[port].load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.ready.push(port);
    }

    /// Pops a port, and asserts that everything before its push is visible.
    fn take(&self) -> Option<usize> {
        let port = self.ready.pop()?;
        let taken = self.taken[port].load(Ordering::Relaxed) + 1;
        assert_eq!(taken, self.made[port].load(Ordering::Relaxed), "a port is taken as often as it is made ready");
        self.taken[port].store(taken, Ordering::Relaxed);
        Some(port)
    }
}

fn listing() {
    let scheduled =
        Arc::new(ReadyModel { ready: ReadyQueue::new(2), made: Default::default(), taken: Default::default() });
    let other = scheduled.clone();
    let maker = thread::spawn(move || {
        other.make(0);
        other.make(1);
    });
    let other = scheduled.clone();
    let taker = thread::spawn(move || other.take().into_iter().for_each(|port| other.make(port)));
    scheduled.take();
    maker.join().unwrap();
    taker.join().unwrap();
    while scheduled.take().is_some() {}
    let all = |of: &[AtomicUsize; 2]| of.iter().map(|count| count.load(Ordering::Relaxed)).collect::<Vec<_>>();
    assert_eq!(all(&scheduled.made), all(&scheduled.taken), "nothing is left behind");
}

/// Thread numbers.
const SOURCE: usize = 1;
const OTHER: usize = 2;

/// A source enters exclusive mode twice while another thread enters shared mode.
fn exclusive_and_shared(bias_threshold: Option<u32>) {
    let shared = Arc::new((ModeLock::with_bias_after(bias_threshold), ExclusivePort::new()));
    let alone = || {
        let alone = shared.0.try_exclusive_biased(SOURCE);
        alone.iter().for_each(|_| shared.1.run());
        usize::from(alone.is_some())
    };
    let before = alone();
    let other = shared.clone();
    let thread = thread::spawn(move || {
        other.0.enter_shared();
        other.1.run();
        other.0.leave_shared();
    });
    let runs = before + alone();
    thread.join().unwrap();
    assert!(shared.0.try_exclusive().is_some(), "no thread is in either mode");
    assert_eq!(shared.1.count.load(Ordering::Relaxed), runs + 1, "a later thread sees the writes of an earlier one");
}

/// Two threads enter exclusive mode, and either may become the bias owner.
fn bias_owners() {
    let shared = Arc::new((ModeLock::with_bias_after(Some(1)), ExclusivePort::new()));
    let other = shared.clone();
    let alone = |shared: &(ModeLock, ExclusivePort), thread| {
        let alone = shared.0.try_exclusive_biased(thread);
        alone.iter().for_each(|_| shared.1.run());
        usize::from(alone.is_some())
    };
    let first = alone(&shared, SOURCE);
    let thread = thread::spawn(move || alone(&other, OTHER));
    let runs = first + alone(&shared, SOURCE) + thread.join().unwrap();
    assert!(shared.0.try_exclusive().is_some(), "no thread is in either mode");
    assert_eq!(shared.1.count.load(Ordering::Relaxed), runs, "a later thread sees the writes of an earlier one");
}

/// The controller parks while one thread submits an item and another takes it up.
fn parking() {
    let shared = Arc::new((ControllerParking::new(), AtomicUsize::new(0), ReadyQueue::new(1)));
    let other = shared.clone();
    let source = thread::spawn(move || {
        other.1.fetch_add(1, Ordering::AcqRel);
        other.2.push(0);
    });
    let other = shared.clone();
    let worker = thread::spawn(move || {
        while other.2.pop().is_none() {
            thread::yield_now();
        }
        other.0.unpark();
    });
    shared.0.park_unless(|| ControllerParking::read_in_flight(&shared.1) > 0);
    source.join().unwrap();
    worker.join().unwrap();
}

/// The controller parks while another thread ends it.
fn ending() {
    let shared = Arc::new((ControllerParking::new(), AtomicBool::new(false)));
    let other = shared.clone();
    let steering = thread::spawn(move || other.0.park_unless(|| other.1.load(Ordering::Relaxed)));
    shared.1.store(true, Ordering::Relaxed);
    shared.0.unpark_parked();
    steering.join().unwrap();
}

/// Names the mutant to a child process: loom cannot clean up after a model that failed.
const MUTANT: &str = "WEIR_SCHEDULER_MUTANT";
/// The mutants, each with the test that must fail.
const MUTANTS: [(SchedulerMutant, &str); 19] = [
    (SchedulerMutant::NoSecondLook, "model::no_wake_up_is_lost"),
    (SchedulerMutant::RelaxedRegistration, "model::no_wake_up_is_lost"),
    (SchedulerMutant::PlainLoad, "model::no_wake_up_is_lost"),
    (SchedulerMutant::BlindUnschedule, "model::no_wake_up_is_lost"),
    (SchedulerMutant::BlindClaim, "model::a_claimed_port_runs_on_one_thread"),
    (SchedulerMutant::RelaxedSlot, "model::ready_ports_are_taken_once"),
    (SchedulerMutant::AnyLap, "model::ready_ports_are_taken_once"),
    (SchedulerMutant::HeadUnchecked, "model::ready_ports_are_taken_once"),
    (SchedulerMutant::SharedUncounted, "model::an_exclusive_worker_is_alone"),
    (SchedulerMutant::ExclusiveUnchecked, "model::an_exclusive_worker_is_alone"),
    (SchedulerMutant::AnyBiasOwner, "model::a_biased_exclusive_worker_is_alone"),
    (SchedulerMutant::EnterUnfenced, "model::a_biased_exclusive_worker_is_alone"),
    (SchedulerMutant::EnterUnchecked, "model::a_biased_exclusive_worker_is_alone"),
    (SchedulerMutant::LeaveUnreleased, "model::a_biased_exclusive_worker_is_alone"),
    (SchedulerMutant::RevokeUnfenced, "model::a_biased_exclusive_worker_is_alone"),
    (SchedulerMutant::RevokeUnchecked, "model::a_biased_exclusive_worker_is_alone"),
    (SchedulerMutant::ParkUnchecked, "model::an_item_unparks_the_controller"),
    (SchedulerMutant::RelaxedPark, "model::the_end_unparks_the_controller"),
    (SchedulerMutant::PlainInFlight, "model::an_item_unparks_the_controller"),
];

/// Returns the mutant that the parent process has selected.
fn asked() -> Option<SchedulerMutant> {
    let named = std::env::var(MUTANT).ok();
    MUTANTS.into_iter().map(|(mutant, _)| mutant).find(|mutant| named == Some(format!("{mutant:?}")))
}

/// Runs the test in a child process with the mutant, and returns whether it failed.
fn is_caught(mutant: SchedulerMutant, by: &str) -> bool {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    let command = command.args(["--exact", by]).env(MUTANT, format!("{mutant:?}"));
    !command.output().unwrap().status.success()
}

#[test]
fn no_wake_up_is_lost() {
    check(asked(), waking);
}

#[test]
fn a_claimed_port_runs_on_one_thread() {
    check(asked(), claiming);
}

#[test]
fn ready_ports_are_taken_once() {
    check(asked(), listing);
}

#[test]
fn an_exclusive_worker_is_alone() {
    check(asked(), || exclusive_and_shared(None));
}

#[test]
fn a_biased_exclusive_worker_is_alone() {
    check(asked(), || exclusive_and_shared(Some(1)));
    check(asked(), bias_owners);
}

#[test]
fn an_item_unparks_the_controller() {
    check(asked(), parking);
}

#[test]
fn the_end_unparks_the_controller() {
    check(asked(), ending);
}

#[test]
fn every_mutant_is_caught() {
    for (mutant, by) in MUTANTS {
        assert!(is_caught(mutant, by), "{mutant:?} passes {by}");
    }
}
