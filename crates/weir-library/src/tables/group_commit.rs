//! Group commit: one sync makes all commits durable that were executed before it.
//!
//! Commits are numbered in the order of their execution. A thread syncs when somebody waits, and publishes the number up to which
//! commits are durable. What a sync is, the database knows ([`LogSync`]). If one fails, everyone who waits for it gets the failure.
//! A failure that leaves it unknown which commits are durable is final: nothing more is written until the program starts again
//! and reads what is there.
//!
//! A database may execute several statements as one transaction, a *group*, although each counts as a commit. If a group is
//! lost, the flows fail that have written in it ([`GroupCommit::lose`]).

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Condvar, Mutex};
use tokio::sync::watch;
use weir::{Failure, SeenCommits};

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
    /// The number of the last commit that is durable.
    durable: AtomicU64,
    progress: watch::Sender<LogProgress>,
    /// True if a failure is final.
    failed: AtomicBool,
    wanted: Mutex<SyncRequest>,
    wake: Condvar,
    without_thread: OnceLock<Box<dyn SyncWithoutThread>>,
}

impl std::fmt::Debug for GroupCommit {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "GroupCommit({} of {})", self.durable(), self.executed_count())
    }
}

/// The progress of the thread.
#[derive(Clone, Debug, Default)]
struct LogProgress {
    /// The number of the last commit that is durable.
    durable: u64,
    /// The number of syncs that have failed, and the failure of the last one.
    failures: u64,
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

impl LogProgress {
    /// Returns the failure of a flow that has made commits from `first` to `last`, if some of them may be lost.
    fn lost(&self, first: u64, last: u64) -> Option<&Failure> {
        let lost = self.lost.iter().rev().find(|lost| first != 0 && lost.first <= last && first <= lost.last);
        lost.map(|lost| &lost.failure)
    }
}

/// Requests to the thread.
#[derive(Debug, Default)]
struct SyncRequest {
    sync: bool,
    end: bool,
    /// True while a task makes syncs, so that the thread makes none.
    has_task: bool,
    /// True if the thread makes the next sync, because a task could not.
    needs_thread: bool,
}

impl GroupCommit {
    /// Starts the thread.
    pub(super) fn begin(mut log: impl LogSync) -> Result<Arc<GroupCommit>, Failure> {
        let group = Arc::new(GroupCommit {
            executed: AtomicU64::new(0),
            visible: AtomicU64::new(0),
            durable: AtomicU64::new(0),
            progress: watch::Sender::new(LogProgress::default()),
            failed: AtomicBool::new(false),
            wanted: Mutex::default(),
            wake: Condvar::new(),
            without_thread: OnceLock::new(),
        });
        let shared = Arc::clone(&group);
        let thread = std::thread::Builder::new().name("weir-tables".to_owned());
        thread.spawn(move || while shared.wait() && shared.sync(&mut log) {})?;
        Ok(group)
    }

    /// Notes that the flow has executed a commit, which others see.
    pub(super) fn executed(&self) {
        self.executed_in_group();
        self.group_executed();
    }

    /// Notes that the flow has executed a commit, which others see when its group is committed.
    pub(super) fn executed_in_group(&self) {
        SeenCommits::wrote(self.executed.fetch_add(1, Ordering::AcqRel) + 1);
    }

    /// Notes that the flow has executed a commit that has waited for the disk. What was executed before so many commits is
    /// durable as well.
    pub(super) fn executed_durably(&self, before: u64) {
        let number = self.executed.fetch_add(1, Ordering::AcqRel) + 1;
        SeenCommits::wrote(number);
        self.group_executed();
        // Another one may have been counted meanwhile, and not be durable.
        self.synced(if number == before + 1 { number } else { before });
    }

    /// Notes that others see the commits of a group.
    pub(super) fn group_executed(&self) {
        self.visible.store(self.executed_count(), Ordering::Release);
    }

    /// Notes that the last commits were lost, from this number on.
    pub(super) fn lose(&self, first: u64, failure: Failure) {
        let last = self.executed_count();
        self.progress.send_modify(|progress| match progress.lost.last_mut() {
            Some(before) if before.last + 1 >= first => before.last = last,
            _ => progress.lost.push(LostGroup { first, last, failure }),
        });
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

    /// Begins a sync, for which nobody waits.
    pub(super) fn begin_sync(self: &Arc<Self>) {
        let Some(syncs) = self.without_thread.get() else { return self.ask(|wanted| wanted.sync = true) };
        let mut wanted = self.wanted.lock();
        wanted.sync = true;
        if wanted.needs_thread {
            drop(wanted);
            self.wake.notify_one();
        } else if !std::mem::replace(&mut wanted.has_task, true) {
            drop(wanted);
            syncs.spawn(Box::pin(SyncTask(Arc::clone(self)).run()));
        }
    }

    /// Notes that nobody knows what is durable.
    pub(super) fn give_up(&self, failure: Failure) {
        self.fail(SyncFailure { failure, is_final: true });
    }

    /// Waits until every commit that was executed before is durable.
    pub(super) async fn settled(self: &Arc<Self>) -> Result<(), Failure> {
        self.settled_to(SeenCommits { last: u64::MAX, ..SeenCommits::default() }).await
    }

    /// Waits until these commits are durable, and those before. Fails if one that the flow has made is lost.
    pub(super) async fn settled_to(self: &Arc<Self>, commits: SeenCommits) -> Result<(), Failure> {
        let target = commits.last.min(self.executed_count());
        if target <= self.durable() && commits.first_own == 0 {
            return Ok(());
        }
        let mut progress = self.progress.subscribe();
        let failures_before = progress.borrow().failures;
        loop {
            {
                let now = progress.borrow_and_update();
                if let Some(lost) = now.lost(commits.first_own, target) {
                    return Err(lost.clone());
                }
                if now.durable >= target {
                    return Ok(());
                }
                if let Some(last) = &now.last
                    && (last.is_final || now.failures > failures_before)
                {
                    return Err(last.failure.clone());
                }
            }
            self.begin_sync();
            if progress.changed().await.is_err() {
                return Err(Failure::function("the database is closed"));
            }
        }
    }

    /// Fails if nobody knows what is durable: then nothing more is written.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if !self.failed.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.progress.borrow().last.as_ref().map_or(Ok(()), |last| Err(last.failure.clone()))
    }

    /// Ends the thread.
    pub(super) fn end(&self) {
        self.ask(|wanted| wanted.end = true);
    }

    fn ask(&self, what: impl FnOnce(&mut SyncRequest)) {
        what(&mut self.wanted.lock());
        self.wake.notify_one();
    }

    /// Waits for a request; false at the end.
    fn wait(&self) -> bool {
        let mut wanted = self.wanted.lock();
        while (!wanted.sync || wanted.has_task) && !wanted.end {
            self.wake.wait(&mut wanted);
        }
        (wanted.sync, wanted.needs_thread) = (false, false);
        !wanted.end
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
        self.progress.send_modify(|progress| progress.durable = progress.durable.max(executed));
    }

    /// Notes a failure, unless one before is final.
    fn fail(&self, failed: SyncFailure) {
        self.failed.fetch_or(failed.is_final, Ordering::Relaxed);
        self.progress.send_modify(|progress| {
            progress.failures += 1;
            if progress.last.as_ref().is_none_or(|last| !last.is_final) {
                progress.last = Some(failed);
            }
        });
    }
}

/// A task that makes syncs. If it ends before its time, the thread goes on.
struct SyncTask(Arc<GroupCommit>);

impl SyncTask {
    async fn run(self) {
        let group = Arc::clone(&self.0);
        let Some(syncs) = group.without_thread.get() else { return };
        loop {
            group.wanted.lock().sync = false;
            let executed = group.executed_count();
            if syncs.sync().await.is_err() {
                return;
            }
            group.synced(executed);
            let mut wanted = group.wanted.lock();
            if !wanted.sync || wanted.end {
                wanted.has_task = false;
                return;
            }
        }
    }
}

impl Drop for SyncTask {
    fn drop(&mut self) {
        let mut wanted = self.0.wanted.lock();
        if std::mem::take(&mut wanted.has_task) {
            (wanted.sync, wanted.needs_thread) = (true, true);
            drop(wanted);
            self.0.wake.notify_one();
        }
    }
}
