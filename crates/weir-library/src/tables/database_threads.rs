//! The threads of a database in another process, on which reads wait for it that cannot wait without a thread: such as a first one, whose
//! statement is not prepared yet, and those that are known as slow.
//!
//! The program has few threads for calls that take long, and all databases would share them: reads of a slow one would hold up those of
//! the others. Only beyond the number of these threads does a read need one of the program, so that it notices that it is overloaded.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use weir::{Failure, SeenCommits, memory};

/// Maximum number of reads of a database that wait on its threads. Chosen by judgement: four times as many as it executes at a time.
const THREADS_MAX: usize = 64;

/// The threads of a database.
pub(super) struct DatabaseThreads {
    handle: Handle,
    free: Arc<Semaphore>,
}

/// A thread of a database for one read.
pub(super) struct DatabaseThread {
    handle: Handle,
    permit: OwnedSemaphorePermit,
}

impl DatabaseThreads {
    /// Returns threads that this event loop starts when they are needed.
    pub(super) fn new(handle: Handle) -> DatabaseThreads {
        DatabaseThreads { handle, free: Arc::new(Semaphore::new(THREADS_MAX)) }
    }

    /// Returns a thread; `None` if all are used.
    pub(super) fn take(&self) -> Option<DatabaseThread> {
        let permit = Arc::clone(&self.free).try_acquire_owned().ok()?;
        Some(DatabaseThread { handle: self.handle.clone(), permit })
    }
}

impl DatabaseThread {
    /// Reads on the thread, and notes the commits that this has seen.
    pub(super) async fn read<T: Send + 'static>(
        self,
        read: impl FnOnce() -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let DatabaseThread { handle, permit } = self;
        let reading = move || {
            let _permit = permit;
            read()
        };
        elsewhere(&handle, reading).await
    }
}

/// Reads on a thread that may block, and notes the commits that it has seen.
pub(super) async fn elsewhere<T: Send + 'static>(
    handle: &Handle,
    read: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let account = memory::carried();
    let reading = handle.spawn_blocking(move || {
        let mut seen = SeenCommits::default();
        let entered = seen.enter();
        let (found, bytes) = account.run(read);
        drop(entered);
        (found, bytes, seen)
    });
    let ended = reading.await.map_err(|error| Failure::function(format!("a read of rows ended: {error}")));
    let (found, bytes, seen) = ended?;
    memory::take_over(bytes);
    SeenCommits::add(seen);
    found
}
