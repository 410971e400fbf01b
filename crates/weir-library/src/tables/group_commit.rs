//! Group commit: one sync makes all commits durable that were executed before it.
//!
//! Commits are numbered in the order of their execution. A thread syncs when somebody waits, and publishes the number up to which
//! commits are durable. What a sync is, the database knows ([`LogSync`]). If one fails, everyone who waits for it gets the failure.
//! A failure that leaves it unknown which commits are durable is final: nothing more is written until the program starts again
//! and reads what is there.
//!
//! A database may execute several statements as one transaction, a *group*, although each counts as a commit. If a group is
//! lost, the flows fail that have written in it ([`GroupCommit::lose`]).
//!
//! A sync takes as long for many commits as for one. So it begins when an event loop whose flows wait has gone once around: all flows
//! that were ready have had their turn (`sync_requests`).

pub(super) mod commit_waiters;
pub(super) mod sync_requests;

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::thread::ThreadId;

use parking_lot::Mutex;
use tokio::task::yield_now;
use weir::{Failure, SeenCommits, memory};

use self::commit_waiters::CommitWaiters;
use self::sync_requests::SyncRequests;

/// The sync of a database.
pub(super) trait LogSync: Send + 'static {
    /// Makes every commit durable that was executed before.
    fn sync(&mut self) -> Result<(), SyncFailure>;

    /// Is called after those who waited for a sync.
    fn synced(&mut self) {}
}

/// A sync that needs no thread. Fails if a thread has to make it instead, such as after the connection was lost.
pub(super) trait SyncWithoutThread: Send + Sync + 'static {
    /// Makes every commit durable that was executed before.
    fn sync(&self) -> SyncAnswer;

    /// Runs a task.
    fn spawn(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>);
}

/// The answer to a sync without a thread.
pub(super) type SyncAnswer = Pin<Box<dyn Future<Output = Result<(), ()>> + Send>>;

/// The failure of a sync.
#[derive(Clone, Debug)]
pub(super) struct SyncFailure {
    pub(super) failure: Failure,
    /// True if nobody knows what is durable, so that later syncs cannot succeed.
    pub(super) is_final: bool,
}

/// The state that the thread, the writer and those who wait share.
pub(super) struct GroupCommit {
    /// The number of the last commit that was executed.
    executed: AtomicU64,
    /// The number of the last commit that other connections see.
    visible: AtomicU64,
    /// The number of the last commit that is noted, as all before are, for the reads that depend on it.
    noted: AtomicU64,
    /// True if nobody knows which rows a commit has written, because the database has triggers: then nothing is noted any more.
    has_triggers: AtomicBool,
    /// The number of the last commit that is durable.
    durable: AtomicU64,
    /// The failures, and the groups that were lost.
    failures: Mutex<LogFailures>,
    /// True if something has failed.
    has_failures: AtomicBool,
    /// True if a failure is final.
    failed: AtomicBool,
    waiters: CommitWaiters,
    requests: SyncRequests,
    without_thread: OnceLock<Box<dyn SyncWithoutThread>>,
}

impl std::fmt::Debug for GroupCommit {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "GroupCommit({} of {})", self.durable(), self.executed_count())
    }
}

/// Failures, and lost groups.
#[derive(Debug, Default)]
struct LogFailures {
    /// The number of syncs that have failed, and the failure of the last one.
    count: u64,
    last: Option<SyncFailure>,
    /// The groups that were lost, in ascending order.
    lost: Vec<LostGroup>,
}

/// The commits of groups that were lost, and why.
#[derive(Clone, Debug)]
struct LostGroup {
    first: u64,
    last: u64,
    failure: Failure,
}

impl LogFailures {
    /// Returns the failure of a flow that has made commits from `first` to `last`, if some of them may be lost.
    fn lost(&self, first: u64, last: u64) -> Option<&Failure> {
        let lost = self.lost.iter().rev().find(|lost| first != 0 && lost.first <= last && first <= lost.last);
        lost.map(|lost| &lost.failure)
    }
}

impl GroupCommit {
    /// Starts the thread.
    pub(super) fn begin(mut log: impl LogSync) -> Result<Arc<GroupCommit>, Failure> {
        let group = Arc::new(GroupCommit {
            executed: AtomicU64::new(0),
            visible: AtomicU64::new(0),
            noted: AtomicU64::new(0),
            has_triggers: AtomicBool::new(false),
            durable: AtomicU64::new(0),
            failures: Mutex::default(),
            has_failures: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            waiters: CommitWaiters::default(),
            requests: SyncRequests::default(),
            without_thread: OnceLock::new(),
        });
        let shared = Arc::clone(&group);
        let thread = std::thread::Builder::new().name("weir-tables".to_owned());
        thread.spawn(move || while shared.requests.wait() && shared.sync(&mut log) {})?;
        Ok(group)
    }

    /// Notes that the flow has executed a commit, which others see.
    pub(super) fn executed(&self) {
        self.executed_in_group();
        self.group_executed();
    }

    /// Notes that the flow has executed a commit, which others see when its group is committed.
    pub(super) fn executed_in_group(&self) {
        SeenCommits::wrote(self.count());
    }

    /// Counts a commit before others see it, and returns its number. If it succeeds, the flow has made it ([`SeenCommits::wrote`]). In
    /// any case, [`GroupCommit::group_executed`] follows.
    pub(super) fn count(&self) -> u64 {
        self.executed.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Counts a commit that stands for those which a flow has perhaps seen before their answers, and returns its number: a sync that
    /// begins later makes all of them durable.
    pub(super) fn count_seen(&self) -> u64 {
        let number = self.count();
        self.group_executed();
        number
    }

    /// Notes that the rows are noted which all commits have written so far. One flow writes at a time, so that all are its own.
    pub(super) fn noted(&self) {
        if !self.has_triggers() {
            self.noted.fetch_max(self.executed_count(), Ordering::AcqRel);
        }
    }

    /// Notes that the database has triggers, before they can write. From then on each commit counts as one that has written any row of any
    /// table, also if the triggers are removed: what they have written may not be durable.
    pub(super) fn found_triggers(&self) {
        self.has_triggers.store(true, Ordering::Release);
    }

    /// Returns whether each commit counts as one that has written any row of any table.
    pub(super) fn has_triggers(&self) -> bool {
        self.has_triggers.load(Ordering::Acquire)
    }

    /// Returns whether the rows are noted that the commits up to this one have written.
    #[inline]
    pub(super) fn are_noted_to(&self, commit: u64) -> bool {
        commit <= self.noted.load(Ordering::Acquire)
    }

    /// Notes that the flow has executed a commit that has waited for the disk. What was executed before so many commits is
    /// durable as well.
    pub(super) fn executed_durably(&self, before: u64) {
        let number = self.count();
        SeenCommits::wrote(number);
        self.group_executed();
        // Another one may have been counted meanwhile, and not be durable.
        self.synced(if number == before + 1 { number } else { before });
    }

    /// Notes that others see the commits of a group.
    pub(super) fn group_executed(&self) {
        self.visible.store(self.executed_count(), Ordering::Release);
    }

    /// Notes that these commits were lost, from the first to the last one.
    pub(super) fn lose(&self, (first, last): (u64, u64), failure: Failure) {
        if last < first {
            // The group had no commit yet, and a later one has the number.
            return;
        }
        let mut failures = self.failures.lock();
        match failures.lost.last_mut() {
            Some(before) if before.last + 1 >= first => before.last = last,
            _ => failures.lost.push(LostGroup { first, last, failure }),
        }
        self.has_failures.store(true, Ordering::Release);
        drop(failures);
        self.waiters.wake_all();
        self.group_executed();
    }

    /// Returns whether others see a commit.
    #[inline]
    pub(super) fn is_visible(&self, commit: u64) -> bool {
        commit <= self.visible.load(Ordering::Acquire)
    }

    /// Returns the number of the last commit that was executed.
    pub(super) fn executed_count(&self) -> u64 {
        self.executed.load(Ordering::Acquire)
    }

    /// Returns the number of the last commit that is durable.
    #[inline]
    pub(super) fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    /// Makes syncs without a thread from now on, as far as that is possible.
    pub(super) fn sync_without_thread(&self, syncs: impl SyncWithoutThread) {
        _ = self.without_thread.set(Box::new(syncs));
    }

    /// Begins a sync, for which nobody waits yet.
    pub(super) fn begin_sync(self: &Arc<Self>) {
        match self.without_thread.get() {
            None => self.requests.add(),
            Some(_) => self.sync_now(),
        }
    }

    /// Begins a sync.
    fn sync_now(self: &Arc<Self>) {
        let Some(syncs) = self.without_thread.get() else { return self.requests.add_due() };
        if self.requests.begins_task() {
            memory::of_program(|| syncs.spawn(Box::pin(SyncTask(Arc::clone(self)).run())));
        }
    }

    /// Notes that nobody knows what is durable.
    pub(super) fn give_up(&self, failure: Failure) {
        self.fail(SyncFailure { failure, is_final: true });
    }

    /// Waits until every commit that was executed before is durable. The sync begins at once: the thread of an event loop may block
    /// for it, so that no turn of the loop ends.
    pub(super) async fn settled(self: &Arc<Self>) -> Result<(), Failure> {
        self.settle(SeenCommits { last: SeenCommits::ALL, ..SeenCommits::default() }, false).await
    }

    /// Returns whether these commits are durable, and those before, and nothing has failed.
    pub(super) fn is_settled_to(&self, commits: SeenCommits) -> bool {
        commits.last.min(self.executed_count()) <= self.durable() && !self.has_failures.load(Ordering::Acquire)
    }

    /// Waits until these commits are durable, and those before. Fails if one that the flow has made is lost.
    pub(super) async fn settled_to(self: &Arc<Self>, commits: SeenCommits) -> Result<(), Failure> {
        self.settle(commits, true).await
    }

    async fn settle(self: &Arc<Self>, commits: SeenCommits, waits_for_turn: bool) -> Result<(), Failure> {
        let target = commits.last.min(self.executed_count());
        if target <= self.durable() && commits.first_own == 0 {
            return Ok(());
        }
        let failures_before = if self.has_failures.load(Ordering::Acquire) { self.failures.lock().count } else { 0 };
        let settled = || self.settled_now((commits.first_own, target), failures_before);
        if let Some(settled) = settled() {
            return settled;
        }
        if !waits_for_turn {
            self.sync_now();
        } else if let Some(turn) = self.begin_turn() {
            yield_now().await;
            drop(turn);
        }
        let mut place = self.waiters.place();
        poll_fn(|context| {
            if let Some(settled) = settled() {
                return Poll::Ready(settled);
            }
            place.wait(target, context.waker());
            // It may have become durable meanwhile.
            settled().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    /// Returns the outcome for a flow that waits for this commit, and has made commits from another one on; `None` if it is not
    /// known yet.
    fn settled_now(&self, (first_own, target): (u64, u64), failures_before: u64) -> Option<Result<(), Failure>> {
        let is_durable = self.durable() >= target;
        if self.has_failures.load(Ordering::Acquire) {
            let failures = self.failures.lock();
            if let Some(lost) = failures.lost(first_own, target) {
                return Some(Err(lost.clone()));
            }
            if let Some(last) = &failures.last
                && !is_durable
                && (last.is_final || failures.count > failures_before)
            {
                return Some(Err(last.failure.clone()));
            }
        }
        is_durable.then_some(Ok(()))
    }

    /// Begins a turn of the event loop, unless one is open.
    fn begin_turn(self: &Arc<Self>) -> Option<LoopTurn> {
        self.requests.begin_turn().then(|| LoopTurn(Arc::clone(self), std::thread::current().id()))
    }

    /// Fails if nobody knows what is durable: then nothing more is written.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if !self.failed.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.failures.lock().last.as_ref().map_or(Ok(()), |last| Err(last.failure.clone()))
    }

    /// Ends the thread.
    pub(super) fn end(&self) {
        self.requests.end();
    }

    /// Makes a sync, and returns whether others can follow.
    fn sync(&self, log: &mut impl LogSync) -> bool {
        let executed = self.executed.load(Ordering::Acquire);
        let Err(failed) = log.sync() else {
            self.synced(executed);
            log.synced();
            return true;
        };
        let is_final = failed.is_final;
        self.fail(failed);
        !is_final
    }

    /// Notes that the commits up to this one are durable.
    fn synced(&self, executed: u64) {
        self.durable.fetch_max(executed, Ordering::AcqRel);
        self.waiters.durable(executed);
    }

    /// Notes a failure, unless one before is final.
    fn fail(&self, failed: SyncFailure) {
        self.failed.fetch_or(failed.is_final, Ordering::Relaxed);
        let mut failures = self.failures.lock();
        failures.count += 1;
        if failures.last.as_ref().is_none_or(|last| !last.is_final) {
            failures.last = Some(failed);
        }
        self.has_failures.store(true, Ordering::Release);
        drop(failures);
        self.waiters.wake_all();
    }
}

/// A turn of an event loop. When it is dropped, a sync begins.
struct LoopTurn(Arc<GroupCommit>, ThreadId);

impl Drop for LoopTurn {
    fn drop(&mut self) {
        self.0.requests.end_turn(self.1);
        self.0.sync_now();
    }
}

/// A task that makes syncs. If it ends before its time, the thread goes on.
struct SyncTask(Arc<GroupCommit>);

impl SyncTask {
    async fn run(self) {
        let group = Arc::clone(&self.0);
        let Some(syncs) = group.without_thread.get() else { return };
        loop {
            group.requests.take();
            let executed = group.executed_count();
            if syncs.sync().await.is_err() {
                return;
            }
            group.synced(executed);
            if group.requests.ends_task() {
                return;
            }
        }
    }
}

impl Drop for SyncTask {
    fn drop(&mut self) {
        self.0.requests.needs_thread();
    }
}
