//! The signals of a Unix process as events.

use std::fmt;
use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio::task::AbortHandle;

use crate::channel::Channel;
use crate::event::Event;

/// A kind of signal of this process, such as `SIGTERM`, whose arrival is an event.
///
/// Arrivals that nobody has synchronised yet count as one, and each is taken by one synchronisation: fire a
/// [`Signal`](crate::Signal) if many are to know. As long as the runtime lives, the signal has no other effect; the system's
/// default action does not come back when this is dropped.
///
/// ```no_run
/// use weir_events::{Channel, ProcessSignal, choose};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// let requests = Channel::<String>::rendezvous();
/// let terminate = ProcessSignal::terminate()?;
/// let next = choose([requests.recv().wrap(Result::ok), terminate.arrived().wrap(|()| None)]);
/// while let Some(request) = next.synchronise().await {
///     println!("{request}");
/// }
/// # Ok(())
/// # }
/// ```
pub struct ProcessSignal {
    kind: SignalKind,
    arrivals: Channel<()>,
    forwarding: AbortHandle,
}

impl ProcessSignal {
    /// Begins to receive signals of this kind.
    ///
    /// # Errors
    /// If the system forbids it, as it does for `SIGKILL`.
    ///
    /// # Panics
    /// Outside of a tokio runtime with I/O enabled.
    pub fn new(kind: SignalKind) -> io::Result<Self> {
        let mut signals = signal(kind)?;
        let arrivals = Channel::bounded(1);
        let unsynchronised = arrivals.clone();
        let forward = async move {
            while signals.recv().await.is_some() {
                // If an arrival waits already, they count as one.
                _ = unsynchronised.try_send(());
            }
        };
        let forwarding = tokio::spawn(forward).abort_handle();
        Ok(ProcessSignal { kind, arrivals, forwarding })
    }

    /// Begins to receive `SIGINT`, which Ctrl-C sends.
    ///
    /// # Errors
    /// As of [`new`](ProcessSignal::new).
    pub fn interrupt() -> io::Result<Self> {
        ProcessSignal::new(SignalKind::interrupt())
    }

    /// Begins to receive `SIGTERM`, which asks a service to end.
    ///
    /// # Errors
    /// As of [`new`](ProcessSignal::new).
    pub fn terminate() -> io::Result<Self> {
        ProcessSignal::new(SignalKind::terminate())
    }

    /// Returns true if the signal has arrived since the last time that its event took effect.
    pub fn has_arrived(&self) -> bool {
        !self.arrivals.is_empty()
    }

    /// Returns an event that takes effect when the signal arrives, or has arrived since the last time.
    ///
    /// Cancellation safe: a synchronisation that does not take effect leaves the arrival for the next one.
    pub fn arrived(&self) -> Event<()> {
        // Nobody closes the channel.
        self.arrivals.recv().wrap(|_| ())
    }
}

impl Drop for ProcessSignal {
    fn drop(&mut self) {
        self.forwarding.abort();
    }
}

impl fmt::Debug for ProcessSignal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ProcessSignal").field("kind", &self.kind).finish_non_exhaustive()
    }
}
