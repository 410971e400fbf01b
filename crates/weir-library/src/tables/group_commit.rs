//! Group commit: one sync makes all commits durable that were executed before it.
//!
//! Commits are numbered in the order of their execution. A thread syncs when somebody waits, and publishes the number up to which
//! commits are durable. What a sync is, the database knows ([`LogSync`]). If one fails, everyone who waits for it gets the failure.
//! A failure that leaves it unknown which commits are durable is final: nothing more is written until the program starts again
//! and reads what is there.
//!
//! A database may execute several statements as one transaction, a *group*, although each counts as a commit. If a group is
//! lost, the flows fail that have written in it ([`GroupCommit::lose`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

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

/// The failure of a sync.
#[derive(Clone, Debug)]
pub(super) struct SyncFailure {
    pub(super) failure: Failure,
    /// True if nobody knows what is durable, so that later syncs cannot succeed.
    pub(super) is_final: bool,
}

/// The state that the thread, the writer and those who wait share.
#[derive(Debug)]
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

    /// Begins a sync, for which nobody waits.
    pub(super) fn begin_sync(&self) {
        self.ask(|wanted| wanted.sync = true);
    }

    /// Notes that nobody knows what is durable.
    pub(super) fn give_up(&self, failure: Failure) {
        self.fail(SyncFailure { failure, is_final: true });
    }

    /// Waits until every commit that was executed before is durable.
    pub(super) async fn settled(&self) -> Result<(), Failure> {
        self.settled_to(SeenCommits { last: u64::MAX, ..SeenCommits::default() }).await
    }

    /// Waits until these commits are durable, and those before. Fails if one that the flow has made is lost.
    pub(super) async fn settled_to(&self, commits: SeenCommits) -> Result<(), Failure> {
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
        while !wanted.sync && !wanted.end {
            self.wake.wait(&mut wanted);
        }
        wanted.sync = false;
        !wanted.end
    }

    /// Makes a sync, and returns whether others can follow.
    fn sync(&self, log: &mut impl LogSync) -> bool {
        let executed = self.executed.load(Ordering::Acquire);
        let Err(failed) = log.sync() else {
            self.durable.store(executed, Ordering::Release);
            self.progress.send_modify(|progress| progress.durable = executed);
            log.synced();
            return true;
        };
        let is_final = failed.is_final;
        self.fail(failed);
        !is_final
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
