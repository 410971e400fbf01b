//! Multicast: every port receives everything that was sent after it was made (§4.1, "Mailboxes and Multicast").

use std::fmt;
use std::sync::Arc;

use crate::channel::{Channel, Closed, MatchEffects};
use crate::event::{Event, always};
use crate::primitives::SpinLock;

/// A channel with one sending side and any number of ports; a port is a rendezvous channel fed by asynchronous sends.
///
/// All ports see the same order. Sending never waits: a port whose owner does not receive grows.
pub struct Multicast<T> {
    ports: Arc<SpinLock<Ports<T>>>,
}

struct Ports<T> {
    open: Vec<Channel<T>>,
    closed: bool,
}

/// One receiver of a [`Multicast`]; dropping it ends its subscription.
pub struct Port<T: Send + 'static> {
    channel: Channel<T>,
    ports: Arc<SpinLock<Ports<T>>>,
}

impl<T> Clone for Multicast<T> {
    fn clone(&self) -> Self {
        Multicast { ports: self.ports.clone() }
    }
}

impl<T> fmt::Debug for Multicast<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Multicast").field("ports", &self.ports.lock().open.len()).finish()
    }
}

impl<T: Send + 'static> fmt::Debug for Port<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Port").field("waiting", &self.channel.len()).finish()
    }
}

impl<T: Clone + Send + 'static> Multicast<T> {
    /// A multicast without ports.
    pub fn new() -> Self {
        Multicast { ports: Arc::new(SpinLock::new(Ports { open: Vec::new(), closed: false })) }
    }

    /// A new port, which receives what is sent from now on.
    pub fn port(&self) -> Port<T> {
        let channel = Channel::rendezvous();
        let mut ports = self.ports.lock();
        if ports.closed {
            channel.close();
        } else {
            ports.open.push(channel.clone());
        }
        drop(ports);
        Port { channel, ports: self.ports.clone() }
    }

    /// Sends a clone of `value` to every port, without waiting for any.
    pub fn post(&self, value: T) {
        // Cloning and waking are foreign code and must not run under the lock; the order of the ports' values is
        // decided under it. So the clones are made first, one for each port that is there now.
        let expected = self.ports.lock().open.len();
        let mut copies: Vec<T> = (0..expected).map(|_| value.clone()).collect();
        loop {
            let ports = self.ports.lock();
            let missing = ports.open.len().saturating_sub(copies.len());
            if missing == 0 {
                let sent = ports.open.iter().zip(copies);
                let effects: Vec<_> = sent.map(|(port, copy)| port.core.send_buffered_deferred(copy)).collect();
                drop(ports);
                effects.into_iter().for_each(MatchEffects::run);
                return;
            }
            drop(ports);
            copies.extend((0..missing).map(|_| value.clone()));
        }
    }

    /// An event that sends to every port; it can always take effect.
    pub fn send(&self, value: T) -> Event<()>
    where
        T: Sync,
    {
        let multicast = self.clone();
        always(()).wrap(move |()| multicast.post(value.clone()))
    }

    /// Closes all ports: they drain, and then report it.
    pub fn close(&self) {
        let mut ports = self.ports.lock();
        ports.closed = true;
        let open = std::mem::take(&mut ports.open);
        drop(ports);
        open.iter().for_each(Channel::close);
    }
}

impl<T: Clone + Send + 'static> Default for Multicast<T> {
    fn default() -> Self {
        Multicast::new()
    }
}

impl<T: Send + 'static> Port<T> {
    /// An event that receives the next value. Cancellation safe like [`Channel::receive`].
    pub fn receive(&self) -> Event<Result<T, Closed>> {
        self.channel.receive()
    }
}

impl<T: Send + 'static> Drop for Port<T> {
    fn drop(&mut self) {
        let mut ports = self.ports.lock();
        if let Some(place) = ports.open.iter().position(|channel| *channel == self.channel) {
            let gone = ports.open.remove(place);
            drop(ports);
            drop(gone);
        }
    }
}
