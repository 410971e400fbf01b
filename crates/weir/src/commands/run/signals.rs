//! Signals: the first SIGTERM or SIGINT lets flows in progress finish, the second ends the process at once.

use std::io;
use std::sync::mpsc;
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
pub(in crate::commands) fn receive() -> io::Result<mpsc::Receiver<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (terminate, interrupt) = {
        let _inside = runtime.enter();
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?)
    };
    let (heard, received) = mpsc::channel();
    let pass_on = move || runtime.block_on(pass_on(terminate, interrupt, heard));
    thread::Builder::new().name("weir signals".into()).spawn(pass_on)?;
    Ok(received)
}

async fn pass_on(mut terminate: Signal, mut interrupt: Signal, heard: mpsc::Sender<()>) {
    loop {
        next(&mut terminate, &mut interrupt).await;
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
            Err(_) => leave(),
        }
        if signals.recv().is_ok() {
            leave();
        }
    }
}

async fn next(terminate: &mut Signal, interrupt: &mut Signal) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}
