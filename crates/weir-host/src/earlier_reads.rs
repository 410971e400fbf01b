//! Reads that a flow sends on a connection before its earlier ones are answered ([`AwaitedCall::sent_on`](crate::AwaitedCall)).
//!
//! The database executes them in the order of the text, so that none sees less than those before it. If the connection is lost, each is
//! made once more, by whatever connection there is: then a read waits until the earlier ones have been made.

use std::cell::Cell;
use std::future::poll_fn;
use std::task::Poll;

thread_local! {
    /// True while a read is polled before earlier ones of its flow are answered.
    static ARE_UNANSWERED: Cell<bool> = const { Cell::new(false) };
}

/// The reads of a flow before the one that is polled. As long as this is there, some of them are not answered.
#[must_use]
pub struct EarlierReads(());

impl EarlierReads {
    /// Says that the reads before the one that is about to be polled are not all answered. Whoever says so polls it again behind them.
    pub fn unanswered() -> EarlierReads {
        ARE_UNANSWERED.set(true);
        EarlierReads(())
    }

    /// Waits until the reads before this one are answered.
    pub async fn answered() {
        poll_fn(|_| if ARE_UNANSWERED.get() { Poll::Pending } else { Poll::Ready(()) }).await;
    }
}

impl Drop for EarlierReads {
    fn drop(&mut self) {
        ARE_UNANSWERED.set(false);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    #[test]
    fn a_read_waits_while_earlier_ones_are_not_answered() {
        let mut waiting = pin!(EarlierReads::answered());
        let mut context = Context::from_waker(Waker::noop());
        let earlier = EarlierReads::unanswered();
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        drop(earlier);
        assert!(waiting.as_mut().poll(&mut context).is_ready());
    }
}
