//! Multicast: every port receives every value that was sent after the port was created (§4.1, "Mailboxes and
//! Multicast").

use std::fmt;
use std::sync::Arc;

use crate::channel::{Channel, Closed, SendError};
use crate::event::{Event, always};
use crate::primitives::SpinLock;

/// A channel with one sending side and any number of ports; a port is a rendezvous channel fed by asynchronous sends.
///
/// All ports see the same order. With [`new`](Multicast::new) a send never waits, and the queue of a port whose owner
/// does not receive grows without limit. With [`bounded`](Multicast::bounded) a send waits for the slowest port.
pub struct Multicast<T> {
    ports: Arc<SpinLock<Ports<T>>>,
    /// The free slots, if there is a bound.
    slots: Option<Channel<()>>,
}

struct Ports<T> {
    open: Vec<Channel<PortCopy<T>>>,
    closed: bool,
}

/// One receiver of a [`Multicast`]; dropping it ends its subscription.
pub struct MulticastPort<T: Send + 'static> {
    channel: Channel<PortCopy<T>>,
    ports: Arc<SpinLock<Ports<T>>>,
}

/// The copy of a value for one port.
#[derive(Clone)]
struct PortCopy<T> {
    value: T,
    /// Shared by all copies of the value; freed with the last of them.
    _slot: Option<Arc<MulticastSlot>>,
}

/// One of the slots of a bounded multicast, taken by a value that not all ports have received.
struct MulticastSlot(Channel<()>);

impl Drop for MulticastSlot {
    fn drop(&mut self) {
        // A closed multicast needs no slots.
        _ = self.0.post(());
    }
}

impl<T> Clone for Multicast<T> {
    fn clone(&self) -> Self {
        Multicast { ports: self.ports.clone(), slots: self.slots.clone() }
    }
}

impl<T> fmt::Debug for Multicast<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Multicast").field("ports", &self.ports.lock().open.len()).finish()
    }
}

impl<T: Send + 'static> fmt::Debug for MulticastPort<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("MulticastPort").field("waiting", &self.channel.len()).finish()
    }
}

impl<T: Clone + Send + 'static> Multicast<T> {
    /// Creates a multicast without ports and without a bound.
    pub fn new() -> Self {
        Multicast::with_slots(None)
    }

    /// Creates a multicast without ports in which a send waits while a port has not received `capacity` sent values.
    /// With 0 every send waits forever.
    pub fn bounded(capacity: usize) -> Self {
        let slots = Channel::rendezvous();
        (0..capacity).for_each(|_| _ = slots.post(()));
        Multicast::with_slots(Some(slots))
    }

    fn with_slots(slots: Option<Channel<()>>) -> Self {
        Multicast { ports: Arc::new(SpinLock::new(Ports { open: Vec::new(), closed: false })), slots }
    }

    /// Creates a port, which receives the values that are sent from now on.
    pub fn port(&self) -> MulticastPort<T> {
        let channel = Channel::rendezvous();
        let mut ports = self.ports.lock();
        if ports.closed {
            channel.close();
        } else {
            ports.open.push(channel.clone());
        }
        drop(ports);
        MulticastPort { channel, ports: self.ports.clone() }
    }

    /// Sends a clone of `value` to every port at once, even beyond the bound.
    ///
    /// # Errors
    /// If the multicast is closed; the error returns the value.
    pub fn post(&self, value: T) -> Result<(), SendError<T>> {
        self.post_copies(PortCopy { value, _slot: None }).map_err(|copy| SendError(copy.value))
    }

    /// Returns an event that sends a clone of `value` to every port; it waits only for room in a bounded multicast.
    ///
    /// Cancellation safe: a synchronisation that does not take effect sends nothing.
    pub fn send(&self, value: T) -> Event<Result<(), Closed>>
    where
        T: Sync,
    {
        let multicast = self.clone();
        let send = move |slot| {
            let copy = PortCopy { value: value.clone(), _slot: slot };
            multicast.post_copies(copy).map_err(|_| Closed)
        };
        match self.slots.clone() {
            None => always(()).wrap(move |()| send(None)),
            Some(slots) => slots.recv().wrap(move |slot| {
                slot?;
                send(Some(Arc::new(MulticastSlot(slots.clone()))))
            }),
        }
    }

    fn post_copies(&self, copy: PortCopy<T>) -> Result<(), PortCopy<T>> {
        // Cloning, waking and dropping are user code and must not run under the lock; the order of the ports' values is
        // decided under it. So the clones are made first, one for each port that is there now.
        let mut copies: Vec<PortCopy<T>> = Vec::new();
        loop {
            let ports = self.ports.lock();
            if ports.closed {
                return Err(copy);
            }
            let missing = ports.open.len().saturating_sub(copies.len());
            if missing == 0 {
                let sent: Vec<_> =
                    ports.open.iter().map_while(|port| Some(port.core.post_deferred(copies.pop()?))).collect();
                drop(ports);
                sent.into_iter().for_each(|(_, effects)| effects.run());
                return Ok(());
            }
            drop(ports);
            copies.extend((0..missing).map(|_| copy.clone()));
        }
    }

    /// Closes the multicast: its ports can still receive the values that they hold, and then report it.
    pub fn close(&self) {
        let mut ports = self.ports.lock();
        ports.closed = true;
        let open = std::mem::take(&mut ports.open);
        drop(ports);
        open.iter().for_each(Channel::close);
        self.slots.iter().for_each(Channel::close);
    }
}

impl<T: Clone + Send + 'static> Default for Multicast<T> {
    fn default() -> Self {
        Multicast::new()
    }
}

impl<T: Send + 'static> MulticastPort<T> {
    /// Returns an event that receives the next value, or `Closed` once the multicast is closed and no value is left.
    /// Cancellation safe like [`Channel::recv`].
    pub fn recv(&self) -> Event<Result<T, Closed>> {
        self.channel.recv().wrap(|copy| copy.map(|PortCopy { value, .. }| value))
    }
}

impl<T: Send + 'static> Drop for MulticastPort<T> {
    fn drop(&mut self) {
        let mut ports = self.ports.lock();
        if let Some(place) = ports.open.iter().position(|channel| *channel == self.channel) {
            let gone = ports.open.remove(place);
            drop(ports);
            drop(gone);
        }
        // Copies that will not be received free their slots.
        self.channel.close();
        while self.channel.try_recv().is_ok() {}
    }
}
