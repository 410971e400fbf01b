//! Helpers: the threads that run forks on cores that are otherwise idle.
//!
//! The threads of an engine say when they begin and end to rest ([`CoreUse`]), so that a core is known to be idle without
//! asking the system. A fork is offered only while the working threads and the forks, those that no helper has begun included, are
//! fewer than the cores, so that a flow may offer as many forks at once as cores are idle.
//!
//! A helper has a core only as long as nobody else of the program needs it. The system does not tell that a thread waits for the
//! core, and would let it wait for some milliseconds. Therefore a helper yields its core at each heartbeat, and leaves its fork
//! if more threads work than there are cores ([`Helpers::must_leave`]). For a while no fork is offered then.
//!
//! Under an engine whose sections have threads of their own, a fork takes the place of a thread of its section that has no work
//! ([`SectionThreads`]): threads and forks at work for a section are at most as many as it has threads, unless one
//! of its threads gets work, which makes the helper leave its fork. There a fork is offered when a helper has begun the one before.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;
use tokio::runtime::Handle;

use crate::blocking_pool::BlockingPool;
use crate::platform::Platform;

/// The number of cores, and of threads of the engine that work on one.
pub(crate) struct CoreUse {
    cores: usize,
    working: CachePadded<AtomicUsize>,
}

impl CoreUse {
    /// Returns the use of this number of cores, on which no thread works.
    pub(crate) fn new(cores: usize) -> Arc<CoreUse> {
        Arc::new(CoreUse { cores, working: CachePadded::default() })
    }

    /// Returns the number of cores.
    pub(crate) fn cores(&self) -> usize {
        self.cores
    }

    /// Notes that a thread begins to work.
    pub(crate) fn begin(&self) {
        self.working.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that a thread begins to rest.
    pub(crate) fn rest(&self) {
        self.working.fetch_sub(1, Ordering::Relaxed);
    }

    /// Runs something on this thread, which rested before and rests afterwards.
    pub(crate) fn working<R>(&self, work: impl FnOnce() -> R) -> R {
        self.begin();
        let result = work();
        self.rest();
        result
    }

    /// Runs what this thread waits in, during which it rests.
    pub(crate) fn resting<R>(&self, wait: impl FnOnce() -> R) -> R {
        self.rest();
        let result = wait();
        self.begin();
        result
    }
}

/// The threads of a section, and how many of them work, forks of its flows included. Hints: all accesses are relaxed.
pub(crate) struct SectionThreads {
    threads: usize,
    working: CachePadded<AtomicUsize>,
}

thread_local! {
    /// The section for which this thread works.
    static SECTION: RefCell<Option<Arc<SectionThreads>>> = const { RefCell::new(None) };
}

impl SectionThreads {
    /// Returns the threads of a section that has at most this many.
    pub(crate) fn new(threads: usize) -> Arc<SectionThreads> {
        Arc::new(SectionThreads { threads, working: CachePadded::default() })
    }

    /// Notes that this thread begins to work for the section.
    pub(crate) fn begin(self: &Arc<Self>) {
        self.working.fetch_add(1, Ordering::Relaxed);
        SECTION.set(Some(Arc::clone(self)));
    }

    /// Notes that a thread of the section begins to rest.
    pub(crate) fn rest(&self) {
        self.working.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The rule by which flows use several cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForkPolicy {
    /// The plan's: if a core is idle, and the rounds that are left seem to take long enough.
    #[default]
    AsPlanned,
    /// At every safe point, whatever it costs. For tests: no fork may change an answer.
    Always,
    /// At every safe point, and flows wait for helpers that have not begun what they were offered. For tests, too: flows are
    /// often faster than helpers.
    AlwaysOnHelpers,
    /// At every safe point; of the forks every other one is run at once, by the thread that offers it, and the others are left
    /// to be taken back. For tests of very many programs, too: nothing depends on the speed of threads, and none starts.
    AlwaysInPlace,
}

/// The threads that run forks.
pub(crate) struct Helpers {
    pool: BlockingPool,
    platform: Arc<dyn Platform>,
    /// The number of forks that run at a time; 0 if flows are not forked.
    most: usize,
    counts: Arc<ForkCounts>,
    policy: ForkPolicy,
    /// True if a fork takes the place of a thread of its section.
    in_sections: bool,
    pub(crate) cores: Arc<CoreUse>,
}

/// The numbers of forks. Hints: all accesses are relaxed.
#[derive(Default)]
struct ForkCounts {
    /// The forks that run, without those that wait for forks of their own.
    running: AtomicUsize,
    /// The forks that were offered and that no helper has taken up.
    offered: AtomicUsize,
    /// The time until which no fork is offered, because helpers had to leave theirs.
    pause_until_ns: AtomicU64,
    /// The next such time; 0 if helpers have come to the end of their forks.
    pause_ns: AtomicU64,
    /// The number of choices that a test has left to their order.
    test_choices: AtomicUsize,
}

/// The time for which no fork is offered after a helper had to leave one. It doubles until a helper comes to the end of a fork.
/// Chosen by judgement: an offer and a fork that is handed back cost some 50 µs.
const PAUSE_NS_MIN: u64 = 1_000_000;
/// The longest such time.
const PAUSE_NS_MAX: u64 = 32_000_000;

/// State of a helper between the heartbeats of a fork.
#[derive(Default)]
pub(crate) struct HelperBeats {
    /// The time from which on it yields its core.
    yields_at_ns: u64,
    /// True if others needed the core at the last heartbeat.
    is_core_needed: bool,
}

/// The time that a yield may take until the helper yields less often, and the time for which it then does not. Chosen by
/// judgement: a few requests of the program end meanwhile, and other programs get half of the core at most.
const YIELD_NS_MAX: u64 = 1_000_000;

/// In a test, one choice of so many is that a helper leaves its fork.
const CHOICES: usize = 3;

/// The number of threads for each fork that may run at a time. Chosen by judgement: a helper that waits for a fork of its own
/// leaves its place to another thread, which is rare, and without a thread a fork is run by the flow that has offered it.
const THREADS_PER_FORK: usize = 4;

/// The number of forks that a test offers at a time.
const OFFERED_MAX: usize = 16;

/// The number of forks that a flow offers at once in a test.
const OFFERED_AT_ONCE: usize = 3;

impl Helpers {
    /// Returns helpers for at most this many forks at a time, for this number of cores, and whether forks take the places of
    /// threads of their sections. Their own threads start when they are needed.
    pub(crate) fn new(
        most: usize,
        policy: ForkPolicy,
        (cores, in_sections): (usize, bool),
        platform: &Arc<dyn Platform>,
    ) -> Helpers {
        Helpers {
            pool: BlockingPool::new("helper", THREADS_PER_FORK * most.max(1), platform),
            platform: Arc::clone(platform),
            most,
            counts: Arc::default(),
            policy,
            in_sections,
            cores: CoreUse::new(cores),
        }
    }

    /// Returns true if flows may be forked.
    pub(crate) fn has_any(&self) -> bool {
        self.most > 0
    }

    /// Returns the number of forks for which cores are idle. A hint: two flows may see the same core.
    pub(crate) fn forks_wanted(&self) -> usize {
        let offered = self.counts.offered.load(Ordering::Relaxed);
        if self.in_sections && !SECTION.with_borrow(|section| self.has_place(section.as_deref())) {
            return 0;
        }
        let at_once = if self.in_sections { 1 } else { OFFERED_AT_ONCE };
        if self.fork_always() {
            return OFFERED_MAX.saturating_sub(offered).min(at_once);
        }
        let forks = offered + self.counts.running.load(Ordering::Relaxed);
        let idle = self.cores.cores.saturating_sub(forks + self.cores.working.load(Ordering::Relaxed));
        let wanted = self.most.saturating_sub(forks).min(idle);
        if wanted == 0 || self.pauses() {
            return 0;
        }
        if self.in_sections { wanted.min(1_usize.saturating_sub(offered)) } else { wanted }
    }

    /// Returns true if helpers had to leave their forks a short time ago.
    fn pauses(&self) -> bool {
        let until_ns = self.counts.pause_until_ns.load(Ordering::Relaxed);
        until_ns > 0 && self.platform.now_ns() < until_ns
    }

    /// Lets other threads have the core of this helper, and returns true if the helper must leave its fork: at this heartbeat and
    /// at the one before, more threads work than there are cores.
    pub(crate) fn must_leave(&self, beats: &mut HelperBeats) -> bool {
        if self.fork_always() {
            return self.counts.test_choices.fetch_add(1, Ordering::Relaxed).is_multiple_of(CHOICES);
        }
        let before_ns = self.platform.now_ns();
        if before_ns >= beats.yields_at_ns {
            std::thread::yield_now();
            let after_ns = self.platform.now_ns();
            let was_long = after_ns.saturating_sub(before_ns) > YIELD_NS_MAX;
            beats.yields_at_ns = if was_long { after_ns.saturating_add(YIELD_NS_MAX) } else { 0 };
        }
        let was_needed = std::mem::replace(&mut beats.is_core_needed, self.is_core_needed());
        if !was_needed || !beats.is_core_needed {
            return false;
        }
        let pause_ns = self.counts.pause_ns.load(Ordering::Relaxed).clamp(PAUSE_NS_MIN, PAUSE_NS_MAX);
        self.counts.pause_ns.store(pause_ns * 2, Ordering::Relaxed);
        let until_ns = self.platform.now_ns().saturating_add(pause_ns);
        self.counts.pause_until_ns.store(until_ns, Ordering::Relaxed);
        true
    }

    /// Notes that a helper has come to the end of a fork.
    pub(crate) fn note_end(&self) {
        self.counts.pause_ns.store(0, Ordering::Relaxed);
    }

    /// Returns true if more threads work, for the program or for the section of this helper, than there are cores or threads.
    fn is_core_needed(&self) -> bool {
        let over = |section: &SectionThreads| section.working.load(Ordering::Relaxed) > section.threads;
        let threads = self.counts.running.load(Ordering::Relaxed) + self.cores.working.load(Ordering::Relaxed);
        threads > self.cores.cores || SECTION.with_borrow(|section| section.as_deref().is_some_and(over))
    }

    /// Returns true if a section has a thread without work, or if a test does not mind. The event loop, which has no section, leaves
    /// forks to the threads.
    fn has_place(&self, section: Option<&SectionThreads>) -> bool {
        section.is_some_and(|section| {
            let working = section.working.load(Ordering::Relaxed);
            section.threads > 1 && (working < section.threads || self.fork_always())
        })
    }

    /// Returns true if forks are made whatever they cost.
    pub(crate) fn fork_always(&self) -> bool {
        self.policy != ForkPolicy::AsPlanned
    }

    /// Returns true if flows leave what they have offered to helpers.
    pub(crate) fn keep_offers(&self) -> bool {
        self.policy == ForkPolicy::AlwaysOnHelpers
    }

    /// Offers a fork, which a helper runs inside the runtime of this event loop.
    pub(crate) fn offer(&self, event_loop: &Handle, run: impl FnOnce() + Send + 'static) {
        let is_in_place = self.policy == ForkPolicy::AlwaysInPlace;
        if !is_in_place || self.counts.test_choices.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
            self.run(event_loop, run);
        }
    }

    /// Has a helper run something inside the runtime of this event loop.
    pub(crate) fn run(&self, event_loop: &Handle, run: impl FnOnce() + Send + 'static) {
        if self.policy == ForkPolicy::AlwaysInPlace {
            return run();
        }
        let counts = Arc::clone(&self.counts);
        counts.offered.fetch_add(1, Ordering::Relaxed);
        let section = SECTION.with_borrow(Clone::clone);
        let job = move || {
            counts.offered.fetch_sub(1, Ordering::Relaxed);
            counts.running.fetch_add(1, Ordering::Relaxed);
            section.iter().for_each(SectionThreads::begin);
            run();
            section.iter().for_each(|section| section.rest());
            SECTION.set(None);
            counts.running.fetch_sub(1, Ordering::Relaxed);
        };
        self.pool.add(event_loop, Box::new(job));
    }

    /// Runs what a helper waits in. Another helper may take its place meanwhile.
    pub(crate) fn resting(&self, wait: impl FnOnce()) {
        let section = SECTION.with_borrow(Clone::clone);
        self.counts.running.fetch_sub(1, Ordering::Relaxed);
        section.iter().for_each(|section| section.rest());
        wait();
        section.iter().for_each(SectionThreads::begin);
        self.counts.running.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::{ScriptedPlatform, SystemPlatform};

    #[test]
    fn a_fork_is_wanted_for_each_idle_core() {
        let platform: Arc<dyn Platform> = Arc::new(SystemPlatform::new());
        let helpers = Helpers::new(5, ForkPolicy::AsPlanned, (8, false), &platform);
        assert_eq!(helpers.forks_wanted(), 5, "no more than the plan allows");
        (0..4).for_each(|_| helpers.cores.begin());
        assert_eq!(helpers.forks_wanted(), 4, "threads have the other cores");
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (end, ends) = std::sync::mpsc::channel::<()>();
        helpers.offer(runtime.handle(), move || _ = ends.recv());
        assert_eq!(helpers.forks_wanted(), 3, "one is for the fork, begun or not");
        (0..4).for_each(|_| helpers.cores.begin());
        assert_eq!(helpers.forks_wanted(), 0, "all cores are busy");
        drop(end);
    }

    #[test]
    fn a_fork_takes_the_place_of_a_thread_of_its_section() {
        let platform: Arc<dyn Platform> = Arc::new(SystemPlatform::new());
        let helpers = Helpers::new(4, ForkPolicy::AsPlanned, (8, true), &platform);
        assert_eq!(helpers.forks_wanted(), 0, "an event loop has no section");
        let section = SectionThreads::new(2);
        section.begin();
        assert_eq!(helpers.forks_wanted(), 1, "the other thread has no work");
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (begun, has_begun) = std::sync::mpsc::channel();
        let (end, ends) = std::sync::mpsc::channel::<()>();
        helpers.offer(runtime.handle(), move || {
            begun.send(()).unwrap();
            _ = ends.recv();
        });
        has_begun.recv().unwrap();
        assert_eq!(helpers.forks_wanted(), 0, "a fork has the place of the other thread");
        drop(end);
        SectionThreads::new(1).begin();
        assert_eq!(helpers.forks_wanted(), 0, "a section of one thread");
    }

    #[test]
    fn a_helper_leaves_its_fork_when_more_threads_work_than_cores() {
        let clock = Arc::new(ScriptedPlatform::new(0));
        let platform: Arc<dyn Platform> = Arc::clone(&clock) as _;
        let helpers = Helpers::new(1, ForkPolicy::AsPlanned, (2, false), &platform);
        helpers.cores.begin();
        helpers.counts.running.store(1, Ordering::Relaxed);
        let mut beats = HelperBeats::default();
        assert!(!helpers.must_leave(&mut beats), "the flow and the helper have a core each");
        helpers.cores.begin();
        assert!(!helpers.must_leave(&mut beats), "another flow has begun, perhaps a short one");
        assert!(helpers.must_leave(&mut beats));
        helpers.counts.running.store(0, Ordering::Relaxed);
        helpers.cores.rest();
        assert_eq!(helpers.forks_wanted(), 0, "it is offered again some time later");
        clock.pass_ns(PAUSE_NS_MIN);
        assert_eq!(helpers.forks_wanted(), 1);
        helpers.counts.running.store(1, Ordering::Relaxed);
        (0..2).for_each(|_| helpers.cores.begin());
        assert!(helpers.must_leave(&mut beats));
        (0..2).for_each(|_| helpers.cores.rest());
        helpers.counts.running.store(0, Ordering::Relaxed);
        clock.pass_ns(PAUSE_NS_MIN);
        assert_eq!(helpers.forks_wanted(), 0, "twice as long as before");
        clock.pass_ns(PAUSE_NS_MIN);
        assert_eq!(helpers.forks_wanted(), 1);
    }

    #[test]
    fn a_helper_leaves_its_fork_when_all_threads_of_its_section_have_work() {
        let platform: Arc<dyn Platform> = Arc::new(ScriptedPlatform::new(0));
        let helpers = Helpers::new(4, ForkPolicy::AsPlanned, (8, true), &platform);
        let section = SectionThreads::new(2);
        let mut beats = HelperBeats::default();
        section.begin();
        section.begin();
        assert!(!helpers.must_leave(&mut beats));
        section.begin();
        assert!(!helpers.must_leave(&mut beats));
        assert!(helpers.must_leave(&mut beats));
    }
}
