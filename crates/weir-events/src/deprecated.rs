//! Former names, which stay for one release.

use crate::asynchronous::{AsyncEvent, a_recv};
use crate::channel::{Channel, Closed, Parcel, Receiving, SendError, TryRecvError};
use crate::event::Event;
use crate::mailbox::Mailbox;
use crate::multicast::MulticastPort;
use crate::pair::{Receiver, Sender, split};

/// The former limit of implicit threads; only the system limits their number.
#[deprecated(since = "0.2.0", note = "implicit threads have no limit of their own")]
pub const ACTION_THREADS_MAX: usize = usize::MAX;

/// The former name of [`MulticastPort`].
#[deprecated(since = "0.2.0", note = "renamed to `MulticastPort`")]
pub type Port<T> = MulticastPort<T>;

/// The former name of [`TryRecvError`].
#[deprecated(since = "0.2.0", note = "renamed to `TryRecvError`")]
pub type TryReceiveError = TryRecvError;

/// The former way to [`bounded`](crate::bounded), [`rendezvous`](crate::rendezvous) and
/// [`unbounded`](crate::unbounded).
#[deprecated(since = "0.2.0", note = "use `bounded`, `rendezvous` or `unbounded`")]
pub fn halves<T: Send + 'static>(channel: Channel<T>) -> (Sender<T>, Receiver<T>) {
    split(channel)
}

/// The former name of [`a_recv`].
#[deprecated(since = "0.2.0", note = "renamed to `a_recv`")]
pub fn a_receive<T: Send + 'static>(channel: &Channel<T>) -> AsyncEvent<(), Result<T, Closed>> {
    a_recv(channel)
}

impl<T: Send + 'static> Channel<T> {
    /// The former name of [`post`](Channel::post), which does not report a closed channel.
    #[deprecated(since = "0.2.0", note = "use `post`, which reports a closed channel")]
    pub fn send_and_go(&self, value: T) {
        let sent: Result<(), SendError<T>> = self.post(value);
        drop(sent);
    }

    /// The former way to send a value that cannot be cloned.
    #[deprecated(since = "0.2.0", note = "use `send_parcel(&Parcel::new(value))`")]
    pub fn send_once(&self, value: T) -> Event<Result<(), Closed>> {
        self.send_parcel(&Parcel::new(value))
    }

    /// The former name of [`recv`](Channel::recv).
    #[deprecated(since = "0.2.0", note = "renamed to `recv`")]
    pub fn receive(&self) -> Event<Result<T, Closed>> {
        self.recv()
    }

    /// The former name of [`try_recv`](Channel::try_recv).
    ///
    /// # Errors
    /// As there.
    #[deprecated(since = "0.2.0", note = "renamed to `try_recv`")]
    pub fn try_receive(&self) -> Result<T, TryRecvError> {
        self.try_recv()
    }

    /// The former name of [`blocking_recv`](Channel::blocking_recv).
    ///
    /// # Errors
    /// As there.
    #[deprecated(since = "0.2.0", note = "renamed to `blocking_recv`")]
    pub fn blocking_receive(&self) -> Result<T, Closed> {
        self.blocking_recv()
    }

    /// The former name of [`recv_async`](Channel::recv_async).
    #[deprecated(since = "0.2.0", note = "renamed to `recv_async`")]
    pub fn receive_async(&self) -> Receiving<'_, T> {
        self.recv_async()
    }
}

impl<T: Send + 'static> Sender<T> {
    /// The former way to send a value that cannot be cloned.
    #[deprecated(since = "0.2.0", note = "use `send_parcel(&Parcel::new(value))`")]
    pub fn send_once(&self, value: T) -> Event<Result<(), Closed>> {
        self.send_parcel(&Parcel::new(value))
    }
}

impl<T: Send + 'static> Receiver<T> {
    /// The former name of [`recv`](Receiver::recv).
    #[deprecated(since = "0.2.0", note = "renamed to `recv`")]
    pub fn receive(&self) -> Event<Result<T, Closed>> {
        self.recv()
    }
}

impl<T: Send + 'static> Mailbox<T> {
    /// The former name of [`recv`](Mailbox::recv).
    #[deprecated(since = "0.2.0", note = "renamed to `recv`")]
    pub fn receive(&self) -> Event<Result<T, Closed>> {
        self.recv()
    }
}

impl<T: Send + 'static> MulticastPort<T> {
    /// The former name of [`recv`](MulticastPort::recv).
    #[deprecated(since = "0.2.0", note = "renamed to `recv`")]
    pub fn receive(&self) -> Event<Result<T, Closed>> {
        self.recv()
    }
}
