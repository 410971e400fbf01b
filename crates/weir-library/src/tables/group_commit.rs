//! Group commit: one sync of the log makes all commits durable that were executed before it.
//!
//! Commits are numbered in the order of their execution. The thread syncs the log when somebody waits, and publishes the
//! number up to which commits are durable. If a sync fails, the log may hold anything: everyone who waits gets the failure,
//! and nothing more is written until the program starts again and reads the log.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Condvar, Mutex};
use tokio::sync::watch;
use weir::Failure;

use super::checkpoint::Checkpoints;

/// The state that the thread, the writer and those who wait share.
#[derive(Debug)]
pub(super) struct GroupCommit {
    /// The number of the last commit that was executed.
    executed: AtomicU64,
    /// The number of the last commit that is durable, or the failure of a sync.
    durable: watch::Sender<Result<u64, Failure>>,
    failed: AtomicBool,
    wanted: Mutex<SyncRequest>,
    wake: Condvar,
}

/// Requests to the thread.
#[derive(Debug, Default)]
struct SyncRequest {
    sync: bool,
    end: bool,
}

impl GroupCommit {
    /// Starts the thread.
    pub(super) fn begin(path: &Path, checkpoints: Checkpoints) -> Result<Arc<GroupCommit>, Failure> {
        let group = Arc::new(GroupCommit {
            executed: AtomicU64::new(0),
            durable: watch::Sender::new(Ok(0)),
            failed: AtomicBool::new(false),
            wanted: Mutex::default(),
            wake: Condvar::new(),
        });
        let (shared, path) = (Arc::clone(&group), path.to_owned());
        let thread = std::thread::Builder::new().name("weir-tables".to_owned());
        thread.spawn(move || SyncThread { path, shared, log: None, checkpoints }.run())?;
        Ok(group)
    }

    /// Notes that a commit was executed.
    pub(super) fn executed(&self) {
        self.executed.fetch_add(1, Ordering::AcqRel);
    }

    /// Waits until every commit that was executed before is durable.
    pub(super) async fn settled(&self) -> Result<(), Failure> {
        let target = self.executed.load(Ordering::Acquire);
        let mut durable = self.durable.subscribe();
        loop {
            match &*durable.borrow_and_update() {
                Ok(number) if *number >= target => return Ok(()),
                Ok(_) => {}
                Err(failure) => return Err(failure.clone()),
            }
            self.ask(|wanted| wanted.sync = true);
            if durable.changed().await.is_err() {
                return Err(Failure::function("the database is closed"));
            }
        }
    }

    pub(super) fn check(&self) -> Result<(), Failure> {
        if !self.failed.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.durable.borrow().clone().map(|_| ())
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
}

/// The thread that syncs the log.
struct SyncThread {
    path: PathBuf,
    shared: Arc<GroupCommit>,
    log: Option<File>,
    checkpoints: Checkpoints,
}

impl SyncThread {
    fn run(mut self) {
        while self.shared.wait() {
            let executed = self.shared.executed.load(Ordering::Acquire);
            if let Err(error) = self.sync() {
                let message = format!("cannot make the tables durable: {error}; restart the program");
                self.shared.failed.store(true, Ordering::Relaxed);
                _ = self.shared.durable.send_replace(Err(Failure::function(message)));
                return;
            }
            _ = self.shared.durable.send_replace(Ok(executed));
            let log_bytes = self.log.as_ref().and_then(|log| log.metadata().ok()).map_or(0, |log| log.len());
            self.checkpoints.bound(log_bytes);
        }
    }

    fn sync(&mut self) -> std::io::Result<()> {
        let log = match self.log.take() {
            Some(log) => log,
            None => {
                let mut name = self.path.clone().into_os_string();
                name.push("-wal");
                let log = File::open(name)?;
                if let Some(folder) = self.path.parent() {
                    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
                    File::open(folder)?.sync_all()?;
                }
                log
            }
        };
        let log = self.log.insert(log);
        #[cfg(test)]
        return super::durable_files::DurableFiles::synced(&self.path, || log.sync_data());
        #[cfg(not(test))]
        log.sync_data()
    }
}
