//! Signals: the first SIGTERM, SIGINT, SIGHUP or SIGQUIT lets flows in progress finish, the second ends the process at
//! once. SIGUSR1 and SIGUSR2 are ignored, because a script that sends them to a service does not mean to kill it; so is
//! SIGHUP under `nohup`. SIGXFSZ is ignored, so that a write beyond the limit of a file's size fails instead of killing the
//! process.

use std::future::poll_fn;
use std::io;
use std::sync::mpsc;
use std::task::Poll;
use std::thread;

use tokio::signal::unix::{Signal, SignalKind, signal};
use weir_runtime::Stopper;

use super::watcher_link::WatcherLink;
use crate::Exit;
use crate::terminal::Terminal;

/// A listener for signals.
pub(super) struct Signals {
    stoppers: mpsc::Sender<Stopper>,
}

/// A reason to stop the program.
#[derive(PartialEq, Eq)]
enum StopRequest {
    Signal,
    /// The watcher has closed its connection, or was killed.
    Watcher,
}

impl Signals {
    /// Stops the program at the next signal, or at one that has already arrived.
    pub(super) fn stop(self, stopper: Stopper) {
        // The thread at the other end never ends before the process.
        let _ = self.stoppers.send(stopper);
    }
}

/// Starts to listen, also to the watcher that has started this process.
///
/// # Errors
/// Fails if the system provides no thread or no signals.
pub(super) fn listen(watcher: Option<WatcherLink>, terminal: &Terminal) -> io::Result<Signals> {
    let (requests, requested) = mpsc::channel();
    let of_watcher = requests.clone();
    for_each(move || requests.send(StopRequest::Signal).is_ok())?;
    if let Some(watcher) = watcher {
        thread::Builder::new().name("weir watcher".into()).spawn(move || {
            watcher.wait_for_end();
            // The thread at the other end never ends before the process.
            let _ = of_watcher.send(StopRequest::Watcher);
        })?;
    }
    let (stoppers, received) = mpsc::channel();
    let terminal = terminal.clone();
    thread::Builder::new().name("weir stop".into()).spawn(move || obey(&requested, &received, terminal))?;
    Ok(Signals { stoppers })
}

/// Calls this function for each signal, on a thread of its own, until it returns false.
///
/// # Errors
/// Fails if the system provides no thread or no signals.
pub(crate) fn for_each(heard: impl FnMut() -> bool + Send + 'static) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let signals = {
        let _inside = runtime.enter();
        ignore(&[SignalKind::user_defined1(), SignalKind::user_defined2(), file_size()])?;
        stopping().map(signal).collect::<io::Result<Vec<_>>>()?
    };
    let pass_on = move || runtime.block_on(pass_on(signals, heard));
    thread::Builder::new().name("weir signals".into()).spawn(pass_on).map(drop)
}

/// Has a write beyond the limit of a file's size fail instead of killing the process.
///
/// # Errors
/// Fails if the system provides no signals.
#[cfg(feature = "tools")]
pub(crate) fn ignore_file_size() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let _inside = runtime.enter();
    ignore(&[file_size()])
}

fn file_size() -> SignalKind {
    SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())
}

/// With a listener, which nobody reads, a signal has no other effect.
fn ignore(signals: &[SignalKind]) -> io::Result<()> {
    signals.iter().try_for_each(|kind| signal(*kind).map(drop))
}

/// Returns the signals that stop the program.
fn stopping() -> impl Iterator<Item = SignalKind> {
    let kinds = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup(), SignalKind::quit()];
    kinds.into_iter().filter(|kind| *kind != SignalKind::hangup() || !is_ignored(*kind))
}

/// Returns true if the process was started with this signal ignored (Linux).
fn is_ignored(kind: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    mask >> (kind.as_raw_value() - 1) & 1 == 1
}

async fn pass_on(mut signals: Vec<Signal>, mut heard: impl FnMut() -> bool) {
    loop {
        poll_fn(|context| {
            let arrived = signals.iter_mut().any(|signal| signal.poll_recv(context).is_ready());
            if arrived { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        if !heard() {
            return;
        }
    }
}

/// Stops the program at the first request. A second signal ends the process: the watcher has none of its own to add, because a
/// signal of the terminal reaches both.
fn obey(requests: &mpsc::Receiver<StopRequest>, stoppers: &mpsc::Receiver<Stopper>, mut terminal: Terminal) {
    let leave = || std::process::exit(Exit::Interrupted.code().into());
    let (mut is_told, mut is_signalled) = (false, false);
    for request in requests {
        if !is_told {
            // Before the program has started there is nothing to finish.
            match stoppers.try_recv() {
                Ok(stopper) => stopper.stop(),
                Err(_) => {
                    let message = "the program was stopped before it had started: it still made its shared values or opened its sources";
                    terminal.fail(Exit::Interrupted, message, &[]);
                    leave()
                }
            }
        }
        is_told = true;
        if request == StopRequest::Signal {
            if is_signalled {
                leave()
            }
            is_signalled = true;
        }
    }
}
