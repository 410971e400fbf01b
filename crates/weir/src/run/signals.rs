//! Signals: the first SIGTERM, SIGINT, SIGHUP or SIGQUIT lets flows in progress finish, the second ends the process at
//! once. SIGUSR1 and SIGUSR2 are ignored, because a script that sends them to a service does not mean to kill it; so is
//! SIGHUP under `nohup`. SIGXFSZ is ignored, so that a write beyond the limit of a file's size fails instead of killing the
//! process.

use std::future::poll_fn;
use std::io::{self, Write};
use std::sync::mpsc;
use std::task::Poll;
use std::thread;

use tokio::signal::unix::{Signal, SignalKind, signal};
use weir_runtime::Stopper;

use crate::Exit;

/// A listener for signals.
pub(super) struct Signals {
    stoppers: mpsc::Sender<Stopper>,
}

impl Signals {
    /// Stops the program at the next signal, or at one that has already arrived.
    pub(super) fn stop(self, stopper: Stopper) {
        // The thread at the other end never ends before the process.
        let _ = self.stoppers.send(stopper);
    }
}

/// Starts to listen.
///
/// # Errors
/// Fails if the system provides no thread or no signals.
pub(super) fn listen() -> io::Result<Signals> {
    let signals = receive()?;
    let (stoppers, received) = mpsc::channel();
    thread::Builder::new().name("weir stop".into()).spawn(move || obey(&signals, &received))?;
    Ok(Signals { stoppers })
}

/// Returns a channel with one message for each signal.
///
/// # Errors
/// Fails if the system provides no thread or no signals.
pub(crate) fn receive() -> io::Result<mpsc::Receiver<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let signals = {
        let _inside = runtime.enter();
        // With a listener, which nobody reads, the signal has no other effect.
        let file_size = SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw());
        for kind in [SignalKind::user_defined1(), SignalKind::user_defined2(), file_size] {
            drop(signal(kind)?);
        }
        stopping().map(signal).collect::<io::Result<Vec<_>>>()?
    };
    let (heard, received) = mpsc::channel();
    let pass_on = move || runtime.block_on(pass_on(signals, heard));
    thread::Builder::new().name("weir signals".into()).spawn(pass_on)?;
    Ok(received)
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

async fn pass_on(mut signals: Vec<Signal>, heard: mpsc::Sender<()>) {
    loop {
        poll_fn(|context| {
            let arrived = signals.iter_mut().any(|signal| signal.poll_recv(context).is_ready());
            if arrived { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        if heard.send(()).is_err() {
            return;
        }
    }
}

fn obey(signals: &mpsc::Receiver<()>, stoppers: &mpsc::Receiver<Stopper>) {
    let leave = || std::process::exit(Exit::Interrupted.code().into());
    if signals.recv().is_ok() {
        // Before the program has started there is nothing to finish.
        match stoppers.try_recv() {
            Ok(stopper) => stopper.stop(),
            Err(_) => {
                let message = "the program was stopped before it had started: it still made its shared values or opened its sources";
                // Nobody is left to read it if this fails.
                _ = writeln!(io::stderr(), "error: {message}");
                leave()
            }
        }
        if signals.recv().is_ok() {
            leave();
        }
    }
}
