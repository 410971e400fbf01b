//! What a thread of a crew does: take a batch from a port, work on it, carry it on.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crossbeam_utils::Backoff;

use crate::crew::{Running, Seat};
use crate::inbox::Rest;
use crate::shared::{PortId, Shared, Work};

/// How many items are worked on before a port is given back. Larger batches cost more cache than they save locking.
const BATCH: usize = 64;

/// One thread of a crew.
pub(crate) struct Worker<W: Work> {
    shared: Arc<Shared<W>>,
    crew: usize,
    seat: usize,
    batch: Vec<W::Item>,
    out: Vec<W::Item>,
    released: Vec<usize>,
}

impl<W: Work> Worker<W> {
    pub(crate) fn new(shared: Arc<Shared<W>>, crew: usize, seat: usize) -> Self {
        let batch = || Vec::with_capacity(BATCH);
        Worker { shared, crew, seat, batch: batch(), out: batch(), released: Vec::new() }
    }

    /// Works until it is told to end.
    pub(crate) fn run(mut self) {
        let shared = self.shared.clone();
        let crew = &shared.crews[self.crew];
        let seat: &Seat = &crew.seats[self.seat];
        let mut carried = None;
        let mut carried_on = 0;
        while !seat.ended.load(Ordering::Acquire) {
            // What was carried is warm, but others wait too: a ring of ports would never let go.
            if carried_on > shared.ports.len() {
                carried.take().into_iter().for_each(|port| crew.hand(port));
            }
            // What is carried is carried to its end: at the end of the list it could hold up all that leads to it.
            if carried.is_none() && seat.suspended.load(Ordering::Acquire) {
                suspend(crew, seat);
                carried_on = 0;
                continue;
            }
            carried_on = if carried.is_some() { carried_on + 1 } else { 0 };
            match carried.take().or_else(|| self.look(crew)) {
                Some(port) => carried = self.turn(&shared, seat, port),
                None => crew.idle.sleep(self.seat, || {
                    !crew.ready.is_empty()
                        || seat.suspended.load(Ordering::Acquire)
                        || seat.ended.load(Ordering::Acquire)
                }),
            }
        }
        carried.into_iter().for_each(|port| crew.hand(port));
    }

    /// Looks for a port, more and more slowly, for a few microseconds; just once where threads outnumber processors, and
    /// who looks holds up who works.
    fn look(&self, crew: &Running) -> Option<usize> {
        let backoff = Backoff::new();
        loop {
            let found = crew.ready.pop();
            if found.is_some() || backoff.is_completed() || self.shared.crowded {
                return found;
            }
            backoff.snooze();
        }
    }

    /// Works on a batch of the port; gives the port of its crew that the batch went on to, where nobody has it yet.
    fn turn(&mut self, shared: &Shared<W>, seat: &Seat, port: usize) -> Option<usize> {
        seat.turns.fetch_add(1, Ordering::Relaxed);
        shared.ports[port].inbox.take(BATCH, &mut self.batch, &mut self.released);
        self.released.drain(..).for_each(|waiting| shared.hand(waiting));
        let mut turn = Turn { carried: None, blocked: None, through: 0 };
        let mut to = None;
        let count = self.batch.len();
        let mut batch = std::mem::take(&mut self.batch);
        for item in batch.drain(..) {
            let Some((next, item)) = shared.work.run(PortId(port), item) else {
                turn.through += 1;
                continue;
            };
            if to.is_some_and(|to| to != next) {
                self.carry(shared, port, &mut to, &mut turn);
            }
            to = Some(next);
            self.out.push(item);
        }
        self.batch = batch;
        self.carry(shared, port, &mut to, &mut turn);
        shared.through(turn.through);
        seat.items.fetch_add(count as u64, Ordering::Relaxed);
        let waits = turn.blocked.is_some_and(|next: usize| shared.ports[next].inbox.wait(port));
        if !waits && shared.ports[port].inbox.rest() == Rest::More {
            shared.hand(port);
        }
        seat.turns.fetch_add(1, Ordering::Relaxed);
        turn.carried
    }

    /// Puts what has come out for one port into its inbox.
    fn carry(&mut self, shared: &Shared<W>, from: usize, to: &mut Option<PortId>, turn: &mut Turn) {
        let Some(PortId(next)) = to.take() else { return };
        let put = shared.ports[next].inbox.put(&mut self.out);
        // Waiting for an earlier port could close a circle of ports that wait for each other.
        if put.full && next > from {
            turn.blocked = Some(next);
        }
        if put.hand {
            let own = shared.ports[next].crew == self.crew;
            let other = if own { turn.carried.replace(next) } else { Some(next) };
            other.into_iter().for_each(|port| shared.hand(port));
        }
    }
}

/// What came of a batch so far.
struct Turn {
    /// The port that was handed to nobody, because this thread goes on with it.
    carried: Option<usize>,
    /// The port that is full.
    blocked: Option<usize>,
    /// How many items went no further.
    through: usize,
}

fn suspend(crew: &Running, seat: &Seat) {
    // It may have been woken for work that it does not do now.
    if !crew.ready.is_empty() {
        crew.idle.wake();
    }
    while seat.suspended.load(Ordering::Acquire) && !seat.ended.load(Ordering::Acquire) {
        std::thread::park();
    }
}
