//! Mailboxes: asynchronous to send, synchronous to receive, built from events alone (§4.1, "Mailboxes and Multicast").

use crate::asynchronous::{AsyncEvent, a_send};
use crate::channel::{Channel, Closed};
use crate::event::Event;

/// A buffered channel made of a rendezvous channel and asynchronous sends.
///
/// A bounded mailbox adds a second channel of *credits*: a send takes one, a receive gives it back.
#[derive(Clone, Debug)]
pub struct Mailbox<T> {
    letters: Channel<T>,
    credits: Option<Channel<()>>,
}

impl<T: Send + 'static> Mailbox<T> {
    /// A mailbox that takes any number of letters.
    pub fn unbounded() -> Self {
        Mailbox { letters: Channel::rendezvous(), credits: None }
    }

    /// A mailbox in which a sender waits while `capacity` letters lie there. With 0 every send waits for ever.
    pub fn bounded(capacity: usize) -> Self {
        let credits = Channel::rendezvous();
        (0..capacity).for_each(|_| credits.send_and_go(()));
        Mailbox { letters: Channel::rendezvous(), credits: Some(credits) }
    }

    /// An event that puts a clone of `letter` into the mailbox; it waits only for room.
    ///
    /// Cancellation safe: a synchronisation that does not take effect puts nothing in.
    pub fn send(&self, letter: T) -> Event<Result<(), Closed>>
    where
        T: Clone + Sync,
    {
        let letters = self.letters.clone();
        match &self.credits {
            None => crate::event::always(()).wrap(move |()| post(&letters, letter.clone())),
            Some(credits) => credits.receive().wrap(move |credit| credit.and_then(|()| post(&letters, letter.clone()))),
        }
    }

    /// Puts a letter in at once, whatever the bound, without a credit.
    pub fn post(&self, letter: T) -> Result<(), Closed> {
        post(&self.letters, letter)
    }

    /// The asynchronous event of putting a letter in, for post-consumption actions: they run when it is received.
    pub fn a_send(&self, letter: T) -> AsyncEvent<(), Result<(), Closed>>
    where
        T: Clone + Sync,
    {
        a_send(&self.letters, letter)
    }

    /// An event that receives the oldest letter; `Closed` once the mailbox is closed and empty.
    ///
    /// Cancellation safe: a synchronisation that does not take effect leaves the letter where it is.
    pub fn receive(&self) -> Event<Result<T, Closed>> {
        match self.credits.clone() {
            None => self.letters.receive(),
            Some(credits) => self.letters.receive().wrap(move |letter| letter.inspect(|_| credits.send_and_go(()))),
        }
    }

    /// Returns the number of letters in the mailbox.
    pub fn len(&self) -> usize {
        self.letters.len()
    }

    /// Returns true if the mailbox is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Closes it: what lies there can still be received, nothing can be put in.
    pub fn close(&self) {
        self.letters.close();
        self.credits.iter().for_each(Channel::close);
    }
}

fn post<T: Send + 'static>(letters: &Channel<T>, letter: T) -> Result<(), Closed> {
    if letters.is_closed() {
        return Err(Closed);
    }
    letters.send_and_go(letter);
    Ok(())
}
