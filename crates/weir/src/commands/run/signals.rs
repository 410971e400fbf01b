//! Signals: the first SIGTERM or SIGINT lets a program finish, the second ends it at once.

use std::io;
use std::sync::mpsc;
use std::thread;

use tokio::signal::unix::{Signal, SignalKind, signal};
use weir_runtime::Stopper;

use crate::Exit;

/// Listens for signals from now on.
pub(super) struct Signals {
    stoppers: mpsc::Sender<Stopper>,
}

impl Signals {
    /// Stops this program when a signal comes, or has come.
    pub(super) fn stop(self, stopper: Stopper) {
        // The thread at the other end never ends before the process.
        let _ = self.stoppers.send(stopper);
    }
}

/// Begins to listen.
///
/// # Errors
/// Fails where the system gives no thread or no signals.
pub(super) fn listen() -> io::Result<Signals> {
    let signals = receive()?;
    let (stoppers, received) = mpsc::channel();
    thread::Builder::new().name("weir stop".into()).spawn(move || obey(&signals, &received))?;
    Ok(Signals { stoppers })
}

/// Signals as messages, one for each.
///
/// # Errors
/// Fails where the system gives no thread or no signals.
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
        // A signal before the program has started ends the process: there is nothing to finish.
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
