//! A one-shot signal: shutdown, cancellation, and the nacks of `with_nack`.

use std::convert::Infallible;

use crate::channel::Channel;
use crate::event::{Event, choose_biased};

/// An event that happens at most once and that any number of threads and tasks can wait for.
///
/// It is a channel on which no value is ever sent and which is closed when the signal fires, so its event can be part
/// of any choice, before and after the signal fires.
#[derive(Clone, Debug)]
pub struct Signal {
    channel: Channel<Infallible>,
}

impl Signal {
    /// Creates a signal that has not fired.
    pub fn new() -> Self {
        Signal { channel: Channel::rendezvous() }
    }

    /// Fires the signal; firing it again changes nothing. Returns true if this call fired it.
    pub fn fire(&self) -> bool {
        self.channel.core.close()
    }

    /// Returns true if the signal has fired.
    pub fn is_fired(&self) -> bool {
        self.channel.is_closed()
    }

    /// Returns an event that takes effect once the signal has fired, and ever after.
    pub fn fired(&self) -> Event<()> {
        self.channel.recv().wrap(|_| ())
    }
}

impl<T: 'static> Event<T> {
    /// Returns an event that is this one, or `None` once the signal has fired; the signal is preferred if both can take
    /// effect.
    pub fn unless(&self, signal: &Signal) -> Event<Option<T>> {
        choose_biased([signal.fired().wrap(|()| None), self.wrap(Some)])
    }
}

impl Default for Signal {
    fn default() -> Self {
        Signal::new()
    }
}
