//! Event loops: threads with tasks that never leave them.
//!
//! What drives a loop has to be made on the loop's own thread, and yet be there before the loop has anything to do: shared
//! values are made and sources are opened with its I/O and timers.
//! 1. [`EventLoop::start`] makes both, and the thread drives what others wait for.
//! 2. It is given its work ([`EventLoop::run`]), and ends with that; or it is dropped, and ends at once.

use std::io;
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;

use tokio::runtime::{Handle, LocalRuntime};
use tokio::sync::oneshot;
use tokio::task::spawn_local;
use weir_host::LocalFuture;

use crate::platform::Platform;

/// What a loop has to do, begun on its own thread.
pub(crate) type LoopWork = Box<dyn FnOnce() -> LocalFuture<()> + Send>;

/// A loop that has no work yet.
pub(crate) struct EventLoop {
    handle: Handle,
    work: oneshot::Sender<LoopWork>,
    thread: JoinHandle<()>,
}

impl EventLoop {
    /// The loop of this number, on a thread of its own.
    ///
    /// # Errors
    /// Fails where the system gives no thread, or nothing to watch files and time with.
    pub(crate) fn start(platform: &dyn Platform, index: usize) -> io::Result<EventLoop> {
        let (made, is_made) = sync_channel(1);
        let (work, given) = oneshot::channel();
        let body = move || match LocalRuntime::new() {
            Ok(runtime) => {
                // Whoever starts it waits for this.
                _ = made.send(Ok(runtime.handle().clone()));
                drive(runtime, given);
            }
            Err(error) => _ = made.send(Err(error)),
        };
        let thread = platform.thread(&format!("weir loop {index}"), Box::new(body))?;
        let handle = is_made.recv().map_err(|_| io::Error::other("an event loop ended before it began"))??;
        Ok(EventLoop { handle, work, thread })
    }

    /// What others use its I/O and timers by.
    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Gives it its work, with which it ends.
    pub(crate) fn run(self, work: LoopWork) -> JoinHandle<()> {
        // Where the thread has panicked, who joins it sees that.
        _ = self.work.send(work);
        self.thread
    }
}

/// What the thread does.
fn drive(runtime: LocalRuntime, given: oneshot::Receiver<LoopWork>) {
    runtime.block_on(async {
        if let Ok(work) = given.await {
            // As a task: what panicked in it has been reported; there is nothing else that could.
            _ = spawn_local(work()).await;
        }
    });
    // Jobs that hold a thread of the blocking pool for ever must not hold up the end.
    runtime.shutdown_background();
}
