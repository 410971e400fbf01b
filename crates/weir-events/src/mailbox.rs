//! Mailboxes: asynchronous to send, synchronous to receive, built from events alone (§4.1, "Mailboxes and Multicast").

use crate::asynchronous::{AsyncEvent, a_send};
use crate::channel::{Channel, Closed, SendError};
use crate::event::{Event, always};

/// A buffered channel made of a rendezvous channel and asynchronous sends.
///
/// A bounded mailbox adds a second channel of *credits*: a send takes one, and receiving its letter gives it back.
/// Letters that were put in without regard to the bound, by [`post`](Mailbox::post) or [`a_send`](Mailbox::a_send),
/// hold no credit.
#[derive(Clone, Debug)]
pub struct Mailbox<T> {
    letters: Channel<Letter<T>>,
    credits: Option<Channel<()>>,
}

#[derive(Clone)]
struct Letter<T> {
    value: T,
    credit: Credit,
}

/// The credit of a letter in a bounded mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Credit {
    /// The letter holds a credit, which is returned when the letter is received.
    Held,
    /// The letter was put in without regard to the bound.
    None,
}

impl<T: Send + 'static> Mailbox<T> {
    /// Creates a mailbox that takes any number of letters.
    pub fn unbounded() -> Self {
        Mailbox { letters: Channel::rendezvous(), credits: None }
    }

    /// Creates a mailbox in which a sender waits while it holds `capacity` sent letters. With 0 every send waits forever.
    pub fn bounded(capacity: usize) -> Self {
        let credits = Channel::rendezvous();
        (0..capacity).for_each(|_| _ = credits.post(()));
        Mailbox { letters: Channel::rendezvous(), credits: Some(credits) }
    }

    /// Returns an event that puts a clone of `letter` into the mailbox; it waits only for room.
    ///
    /// Cancellation safe: a synchronisation that does not take effect puts nothing in.
    pub fn send(&self, letter: T) -> Event<Result<(), Closed>>
    where
        T: Clone + Sync,
    {
        let letters = self.letters.clone();
        let put = move |credit| letters.post(Letter { value: letter.clone(), credit }).map_err(|_| Closed);
        match &self.credits {
            None => always(()).wrap(move |()| put(Credit::None)),
            Some(credits) => credits.recv().wrap(move |credit| credit.and_then(|()| put(Credit::Held))),
        }
    }

    /// Puts a letter in at once, even beyond the bound.
    ///
    /// # Errors
    /// If the mailbox is closed; the error returns the letter.
    pub fn post(&self, letter: T) -> Result<(), SendError<T>> {
        let letter = Letter { value: letter, credit: Credit::None };
        self.letters.post(letter).map_err(|SendError(letter)| SendError(letter.value))
    }

    /// Returns the asynchronous event of putting a letter in, even beyond the bound; its post-consumption actions run
    /// when the letter is received.
    pub fn a_send(&self, letter: T) -> AsyncEvent<(), Result<(), Closed>>
    where
        T: Clone + Sync,
    {
        a_send(&self.letters, Letter { value: letter, credit: Credit::None })
    }

    /// Returns an event that receives the oldest letter, or `Closed` once the mailbox is closed and empty.
    ///
    /// Cancellation safe: a synchronisation that does not take effect leaves the letter where it is.
    pub fn recv(&self) -> Event<Result<T, Closed>> {
        let credits = self.credits.clone();
        self.letters.recv().wrap(move |letter| {
            let Letter { value, credit } = letter?;
            if let (Credit::Held, Some(credits)) = (credit, &credits) {
                // A closed mailbox needs no credits.
                _ = credits.post(());
            }
            Ok(value)
        })
    }

    /// Returns the number of letters in the mailbox.
    pub fn len(&self) -> usize {
        self.letters.len()
    }

    /// Returns true if the mailbox is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Closes the mailbox: its letters can still be received, but none can be put in.
    pub fn close(&self) {
        self.letters.close();
        self.credits.iter().for_each(Channel::close);
    }
}
