//! A signal that is given once and for good: shutdown, cancellation, and the nacks of `with_nack`.

use std::convert::Infallible;

use crate::channel::Channel;
use crate::event::{Event, choose_biased};

/// Something that happens at most once and that any number of threads and tasks can wait for.
///
/// It is a channel on which nobody ever sends and that is closed when the signal is given, so its event goes into any
/// choice, before and after.
#[derive(Clone, Debug)]
pub struct Signal {
    channel: Channel<Infallible>,
}

impl Signal {
    /// A signal that was not given yet.
    pub fn new() -> Self {
        Signal { channel: Channel::rendezvous() }
    }

    /// Gives the signal; again is no different from once. Whether it was this call that gave it.
    pub fn fire(&self) -> bool {
        self.channel.core.close()
    }

    /// Whether the signal was given.
    pub fn is_fired(&self) -> bool {
        self.channel.is_closed()
    }

    /// An event that takes effect once the signal was given, and ever after.
    pub fn fired(&self) -> Event<()> {
        self.channel.receive().wrap(|_| ())
    }
}

impl<T: 'static> Event<T> {
    /// This event, or `None` once the signal was given; the signal is preferred if both can take effect.
    pub fn unless(&self, signal: &Signal) -> Event<Option<T>> {
        choose_biased([signal.fired().wrap(|()| None), self.wrap(Some)])
    }
}

impl Default for Signal {
    fn default() -> Self {
        Signal::new()
    }
}
