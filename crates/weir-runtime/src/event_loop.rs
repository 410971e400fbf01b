//! Event loops: threads whose tasks never move to another thread.
//!
//! The runtime of an event loop must be created on the loop's own thread, but before the loop has any work, because
//! shared values are created and sources are opened with its I/O and timers:
//!
//! 1. [`EventLoop::start`] starts the thread, which creates the runtime and drives the I/O and timers that other
//!    threads wait for.
//! 2. The loop receives its work ([`EventLoop::run`]), and ends when the work does; if it is dropped instead, it ends
//!    at once.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;

use tokio::runtime::{Builder, Handle, LocalOptions, LocalRuntime};
use tokio::sync::oneshot;
use tokio::task::spawn_local;
use weir_host::{LocalFuture, begin_event_thread};

use crate::helpers::CoreUse;
use crate::platform::Platform;

/// The work of an event loop, begun on its own thread.
pub(crate) type LoopWork = Box<dyn FnOnce() -> LocalFuture<()> + Send>;

/// An event loop that has not received its work yet.
pub(crate) struct EventLoop {
    handle: Handle,
    work: oneshot::Sender<LoopWork>,
    thread: JoinHandle<()>,
}

impl EventLoop {
    /// Starts the event loop with this index, on a thread of its own.
    ///
    /// # Errors
    /// Fails if the system provides no thread, no I/O readiness or no timers.
    pub(crate) fn start(platform: &dyn Platform, cores: &Arc<CoreUse>, index: usize) -> io::Result<EventLoop> {
        let cores = Arc::clone(cores);
        let (made, is_made) = sync_channel(1);
        let (work, given) = oneshot::channel();
        let body = move || match new_runtime(&cores) {
            Ok(runtime) => {
                // The thread that starts the loop waits for this message, so sending cannot fail.
                _ = made.send(Ok(runtime.handle().clone()));
                cores.begin();
                begin_event_thread();
                drive(runtime, given);
                cores.rest();
            }
            Err(error) => _ = made.send(Err(explained(error))),
        };
        let thread = platform.thread(&format!("weir loop {index}"), Box::new(body))?;
        let handle = is_made.recv().map_err(|_| io::Error::other("an event loop ended before it began"))??;
        Ok(EventLoop { handle, work, thread })
    }

    /// Returns the handle by which other threads use the loop's I/O and timers.
    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Passes the loop its work, after which it ends.
    pub(crate) fn run(self, work: LoopWork) -> JoinHandle<()> {
        // If the thread has panicked, joining it reports that.
        _ = self.work.send(work);
        self.thread
    }
}

/// The number of threads for look-ups of names and reads of files by the library. Chosen by judgement: those that wait for a
/// disk or a name server need few, and calls of programs have pools of their own (`blocking_pool`).
const BLOCKING_THREADS_MAX: usize = 32;

fn new_runtime(cores: &Arc<CoreUse>) -> io::Result<LocalRuntime> {
    let (parked, unparked) = (Arc::clone(cores), Arc::clone(cores));
    Builder::new_current_thread()
        .enable_all()
        .on_thread_park(move || parked.rest())
        .on_thread_unpark(move || unparked.begin())
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .build_local(LocalOptions::default())
}

/// Explains an error of the system that a user can mend.
fn explained(error: io::Error) -> io::Error {
    /// `EMFILE` and `ENFILE` of all systems on which tokio runs.
    const NO_DESCRIPTORS: [i32; 2] = [24, 23];
    if !error.raw_os_error().is_some_and(|raw| NO_DESCRIPTORS.contains(&raw)) {
        return error;
    }
    let message = "no file descriptor is left for an event loop; raise the limit of open files (`ulimit -n`), or use fewer \
                   threads (`--threads`)";
    io::Error::other(message)
}

/// Drives the event loop on its thread.
fn drive(runtime: LocalRuntime, given: oneshot::Receiver<LoopWork>) {
    runtime.block_on(async {
        if let Ok(work) = given.await {
            // As a task, so that a panic in it is contained; the panic was reported when it happened.
            _ = spawn_local(work()).await;
        }
    });
    // Jobs that block a thread of the blocking pool forever must not delay the end.
    runtime.shutdown_background();
}
