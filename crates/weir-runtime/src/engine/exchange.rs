//! What the loop and the threads of sections have for each other, carried over together.
//!
//! A wake-up from another thread is a call of the system, and where threads outnumber processors a switch of threads
//! besides. So neither side wakes the other for each flow:
//! 1. A thread *posts* whose answers are there. The first post since the loop last looked wakes the loop's *carrier*, a
//!    task, which then wakes all who were posted, on the loop itself.
//! 2. The loop notes the ports that it *owes* the threads where these could not run now anyway, and wakes the carrier,
//!    which hands them over when everything else that was ready has had its turn.

use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use weir_scheduler::PortId;

/// What is to be carried over.
#[derive(Default)]
pub(super) struct Exchange(Mutex<Due>);

#[derive(Default)]
struct Due {
    answered: Vec<Waker>,
    owed: Vec<PortId>,
    /// The carrier's waker, where it waits for one of these.
    carrier: Option<Waker>,
    /// Whether there is a carrier.
    is_carried: bool,
}

impl Exchange {
    /// Sees to it that the loop has a carrier, which hands ports over by `hand`. To be called on the loop.
    pub(super) fn carry(self: &Arc<Self>, hand: impl Fn(PortId) + Clone + 'static) {
        if mem::replace(&mut self.0.lock().is_carried, true) {
            return;
        }
        let exchange = Arc::clone(self);
        let carried = std::future::poll_fn(move |context| exchange.poll(context, &hand));
        // It ends with the loop's set of tasks.
        drop(tokio::task::spawn_local(carried));
    }

    /// Has the loop wake these.
    pub(super) fn post(&self, answered: impl IntoIterator<Item = Waker>) {
        self.add(|due| due.answered.extend(answered));
    }

    /// Has the loop hand this port over, soon.
    pub(super) fn owe(&self, port: PortId) {
        self.add(|due| due.owed.push(port));
    }

    fn add(&self, add: impl FnOnce(&mut Due)) {
        let mut due = self.0.lock();
        add(&mut due);
        let carrier = due.carrier.take();
        drop(due);
        carrier.into_iter().for_each(Waker::wake);
    }

    fn poll(&self, context: &mut Context<'_>, hand: &impl Fn(PortId)) -> Poll<()> {
        let mut due = self.0.lock();
        due.carrier = Some(context.waker().clone());
        let (answered, owed) = (mem::take(&mut due.answered), mem::take(&mut due.owed));
        drop(due);
        answered.into_iter().for_each(Waker::wake);
        owed.into_iter().for_each(hand);
        Poll::Pending
    }
}
