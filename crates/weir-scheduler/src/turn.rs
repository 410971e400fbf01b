//! A turn: what a thread does with a port that it was handed.
//!
//! It takes a batch from the port, and takes each item through as many further ports as it may run itself, from call to
//! call and without a queue: that is what *fusing* is here. Where an item may not go on, it is kept, and goes into the
//! next port's inbox together with those behind it.
//!
//! A thread that works alone ([`Way::Alone`]) may run every port that is not listed. One that works beside others claims
//! ports, and keeps them until its batch is through, so that a claim's price is shared by the batch. How many it claims is
//! the *reach* of the port where it began, and follows what was measured: fusing pays where work is cheaper than a queue,
//! and is in the way where another thread has nothing to do because of it.
//!
//! Order: an item passes by an inbox only where that is empty and nobody runs its port, so that it overtakes nothing.

use std::task::Waker;
use std::time::{Duration, Instant};

use crate::crew::Seat;
use crate::hands::{BATCH, Hands};
use crate::inbox::Rest;
use crate::reach::Reach;
use crate::shared::{Port, Shared};
use crate::work::{Ahead, PortId, Work};

/// No item goes through more ports than this before others have their turn.
const HOPS_MAX: u64 = 4_096;
/// From how many items on a turn is worth being timed, which costs about as much as two hops through a queue.
const TIMED_MIN: usize = 16;

/// Who works alone lets others in after about this time.
const ALONE_MAX: Duration = Duration::from_millis(1);

/// How a thread may run ports beyond the one it was handed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// It has all ports of the crew to itself.
    Alone,
    /// It has to claim them, and has at most this many.
    Beside(usize),
}

/// A thread that asks for the ports that follow.
pub(crate) struct Fusing<'a, W: Work> {
    hands: &'a mut Hands<W>,
    shared: &'a Shared<W>,
    way: Way,
}

impl<W: Work> Ahead for Fusing<'_, W> {
    #[inline]
    fn may_run(&mut self, PortId(port): PortId) -> bool {
        let may = self.hands.may_run(&self.shared.ports[port], port, self.way);
        self.hands.visits += u64::from(may);
        may
    }
}

impl<W: Work> Hands<W> {
    /// Works on a batch of the port; gives the port of its crew that the batch went on to, where nobody has it yet.
    pub(crate) fn turn(&mut self, shared: &Shared<W>, seat: &Seat, port: usize, way: Way) -> Option<usize> {
        self.turn += 1;
        let was_carried = self.carried_to.take() == Some(port);
        self.first = port;
        self.held.push(port);
        if !shared.ports[port].is_brief() {
            // It may be stuck here.
            self.settle(shared);
        }
        let most = if way == Way::Alone { self.quota } else { BATCH };
        shared.ports[port].inbox.take(most, &mut self.batch, &mut self.released);
        self.release(shared);
        let mut batch = std::mem::take(&mut self.batch);
        let (count, mut ended) = (batch.len(), 0);
        let begin = self.is_timed(count, way).then(Instant::now);
        for item in batch.drain(..) {
            match self.pass(shared, port, item, way) {
                Some((next, item)) => self.keep(shared, next, item),
                None => ended += 1,
            }
            self.tell(seat);
        }
        self.batch = batch;
        shared.work.after_batch();
        self.carry(shared);
        shared.through(ended);
        if let Some(begin) = begin {
            self.learn(&shared.ports[port].reach, begin.elapsed(), count, way);
        }
        if self.give_back(shared, port) == Rest::More {
            self.go_on(shared, port, was_carried);
        }
        self.carried_to = self.carried;
        self.carried.take()
    }

    /// Lets those go on that waited for room. Where all processors have threads of the crew, a source that is woken would wait
    /// for one, and be one more thread that could run; so it is let have this one's for the moment that it needs.
    fn release(&mut self, shared: &Shared<W>) {
        self.released.ports.drain(..).for_each(|waiting| shared.hand(waiting));
        if !self.released.sources.is_empty() {
            self.released.sources.drain(..).for_each(Waker::wake);
            if shared.is_full(self.crew) {
                std::thread::yield_now();
            }
        }
    }

    /// Sees to it that the port where the turn began is looked after. Where this thread was carried there, it stays as long as
    /// it has nowhere to go: at the end of the list, the port would hold up all that leads to it for as long as these take.
    fn go_on(&mut self, shared: &Shared<W>, port: usize, was_carried: bool) {
        if was_carried && self.carried.is_none() {
            self.carried = Some(port);
        } else {
            shared.hand(port);
        }
    }

    /// Whether a turn with so many items teaches more than looking at the clock costs. Of a single item who works alone
    /// learns only that there may be more.
    fn is_timed(&self, count: usize, way: Way) -> bool {
        match way {
            Way::Alone => count > 1 || self.quota == 1,
            Way::Beside(_) => count >= TIMED_MIN,
        }
    }

    /// Learns from a turn with so many items.
    fn learn(&mut self, reach: &Reach, took: Duration, count: usize, way: Way) {
        match way {
            Way::Alone if took > ALONE_MAX => self.quota = (self.quota / 2).max(1),
            Way::Alone => self.quota = (self.quota * 2).min(BATCH),
            Way::Beside(most) => reach.adapt(took / count.max(1) as u32, self.held.len() >= most),
        }
    }

    /// Takes an item that is in no inbox through the graph, on a thread that works alone.
    #[inline]
    pub(crate) fn bring(&mut self, shared: &Shared<W>, port: usize, item: W::Item) {
        if let Some((next, item)) = self.pass(shared, port, item, Way::Alone) {
            self.leave(shared, next, item);
        }
    }

    /// Leaves an item that is in no inbox to the threads of the crew.
    pub(crate) fn leave(&mut self, shared: &Shared<W>, port: usize, item: W::Item) {
        shared.begun(1);
        self.keep(shared, port, item);
        self.carry(shared);
        self.blocked = None;
        self.carried.take().into_iter().for_each(|port| shared.hand(port));
        self.settle(shared);
    }

    /// Takes an item through the port, and on through all that this thread may run. Yields it where it has to wait.
    #[inline]
    fn pass(&mut self, shared: &Shared<W>, mut port: usize, mut item: W::Item, way: Way) -> Option<(usize, W::Item)> {
        let mut visits = 0;
        let left = loop {
            visits += 1;
            let ahead = &mut Fusing { hands: self, shared, way };
            let Some((PortId(next), on)) = shared.work.run(PortId(port), item, ahead) else { break None };
            (port, item) = (next, on);
            if visits == HOPS_MAX || !self.may_run(&shared.ports[port], port, way) {
                break Some((port, item));
            }
        };
        self.visits += visits;
        left
    }

    #[inline]
    fn may_run(&mut self, port: &Port<W::Item>, index: usize, way: Way) -> bool {
        match way {
            Way::Alone => port.is_free(self.crew),
            Way::Beside(_) if port.fuses_in != self.crew => false,
            Way::Beside(reach) => self.has_claimed(index) || (self.held.len() < reach && self.claim(port, index)),
        }
    }

    /// Keeps an item for the next port's inbox.
    fn keep(&mut self, shared: &Shared<W>, port: usize, item: W::Item) {
        if self.to.is_some_and(|to| to != port) {
            self.carry(shared);
        }
        self.to = Some(port);
        self.out.push(item);
    }

    #[inline]
    fn has_claimed(&self, port: usize) -> bool {
        self.claims.get(port) == Some(&self.turn)
    }

    /// What is kept for a port comes before what could go on to it now, and goes into its inbox first.
    fn claim(&mut self, port: &Port<W::Item>, index: usize) -> bool {
        let claimed = self.to != Some(index) && port.inbox.claim();
        if claimed {
            if self.claims.len() <= index {
                self.claims.resize(index + 1, 0);
            }
            self.claims[index] = self.turn;
            self.held.push(index);
        }
        claimed
    }

    /// Puts what has come out for one port into its inbox.
    fn carry(&mut self, shared: &Shared<W>) {
        let Some(next) = self.to.take() else { return };
        let put = shared.ports[next].inbox.put(&mut self.out);
        if put.full {
            self.blocked = Some(next);
        }
        if put.hand {
            let own = shared.ports[next].crew == self.crew;
            match if own { self.carried.replace(next) } else { Some(next) } {
                Some(other) if shared.crowded && shared.ports[self.first].is_brief() => self.owed.push(other),
                other => other.into_iter().for_each(|port| shared.hand(port)),
            }
        }
        if put.full {
            self.settle(shared);
        }
    }

    /// Hands over the ports that are still to be handed. Where threads outnumber processors, who was woken early would
    /// find little to do and hold up who woke it.
    pub(crate) fn settle(&mut self, shared: &Shared<W>) {
        self.owed.drain(..).for_each(|port| shared.hand(port));
    }

    /// Gives back the ports of this turn, and yields what is left at the one where it began; that waits where what came out
    /// of it found no room.
    fn give_back(&mut self, shared: &Shared<W>, first: usize) -> Rest {
        // Waiting for an earlier port could close a circle of ports that wait for each other.
        let blocked = self.blocked.take().filter(|next| *next > first);
        let waits = blocked.is_some_and(|next| shared.ports[next].inbox.wait(first));
        let left = if waits { Rest::Empty } else { shared.ports[first].inbox.rest() };
        for port in self.held.drain(..).skip(1) {
            if shared.ports[port].inbox.rest() == Rest::More {
                shared.hand(port);
            }
        }
        left
    }

    /// Tells what it has done to those who steer.
    #[inline]
    pub(crate) fn tell(&mut self, seat: &Seat) {
        seat.tell(std::mem::take(&mut self.visits));
    }
}
