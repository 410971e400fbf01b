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
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (terminate, interrupt) = {
        let _inside = runtime.enter();
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?)
    };
    let (stoppers, received) = mpsc::channel::<Stopper>();
    let obey = move || runtime.block_on(obey(terminate, interrupt, received));
    thread::Builder::new().name("weir signals".into()).spawn(obey)?;
    Ok(Signals { stoppers })
}

async fn obey(mut terminate: Signal, mut interrupt: Signal, stoppers: mpsc::Receiver<Stopper>) {
    next(&mut terminate, &mut interrupt).await;
    // A signal before the program has started ends the process: there is nothing to finish.
    match stoppers.try_recv() {
        Ok(stopper) => stopper.stop(),
        Err(_) => std::process::exit(Exit::Interrupted.code().into()),
    }
    next(&mut terminate, &mut interrupt).await;
    std::process::exit(Exit::Interrupted.code().into());
}

async fn next(terminate: &mut Signal, interrupt: &mut Signal) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}
