//! Putting items in, and working on them at once where that is cheaper than any queue.
//!
//! Where an elastic crew is at level 1, its one thread is whoever has something to do: the thread that puts items in
//! works on them itself, from call to call, as long as no other does. So a graph whose work is cheaper than a queue runs
//! as if it were a function of its source. Where items turn out to hold the source up, it keeps to the queues for a
//! while, twice as long each time.
//!
//! Where there is one processor only, any crew of one thread takes such guests: its own thread could not work beside the
//! one that puts items in, and to go from one to the other and back takes longer than most items.

use std::time::{Duration, Instant};

use crate::guest::Guest;
use crate::hands::BATCH;
use crate::places::Alone;
use crate::shared::{Port, Shared};
use crate::turn::{Fusing, Way};
use crate::work::{PortId, Work};

/// How long a source that has more waits behind a batch: several times as long as queues take for a batch, and little
/// where items are so long that queues are right.
const GIVE_WAY_MAX: Duration = Duration::from_micros(50);

/// An item and the port that it begins at.
type Item<W> = (PortId, <W as Work>::Item);

/// The port has no room: the item comes back.
#[derive(Debug, PartialEq, Eq)]
pub struct Full<T>(pub T);

/// What came of the work on an item by the thread that has it.
#[derive(Debug)]
pub struct Done<W: Work, R> {
    /// The answer to who asked.
    pub answer: R,
    /// The item, where it has to go on at this port.
    pub left: Option<(PortId, W::Item)>,
}

/// How a batch of items went in.
enum Fed<T> {
    /// There are more.
    More,
    /// There are no more.
    All,
    /// There is no room for this one.
    Full(T),
}

impl<W: Work> Guest<W> {
    /// Works on items until it is time to look again.
    fn bring(&mut self, shared: &Shared<W>, items: &mut impl Iterator<Item = Item<W>>) -> Fed<Item<W>> {
        let begin = Instant::now();
        let mut count = 0;
        let fed = loop {
            let Some((id @ PortId(index), item)) = items.next() else { break Fed::All };
            if self.may_run(&shared.ports[index]) {
                self.hands.bring(shared, index, item);
            } else if let Err(Full(item)) = shared.submit(id, item) {
                break Fed::Full((id, item));
            }
            count += 1;
            if count == self.chunk {
                break Fed::More;
            }
        };
        shared.work.after_batch();
        self.hands.tell(&shared.crews[self.hands.crew].guest);
        if count > 0 {
            self.learn(begin.elapsed() / count as u32);
        }
        fed
    }

    /// Works on one item.
    fn bring_one<R>(&mut self, shared: &Shared<W>, run: impl FnOnce(&mut Fusing<'_, W>) -> Done<W, R>) -> R {
        self.untimed += 1;
        let begin = (self.untimed >= self.chunk).then(Instant::now);
        let Done { answer, left } = run(&mut self.hands.ahead(shared));
        left.into_iter().for_each(|(PortId(next), item)| self.hands.leave(shared, next, item));
        shared.work.after_batch();
        self.hands.tell(&shared.crews[self.hands.crew].guest);
        if let Some(begin) = begin {
            self.untimed = 0;
            self.learn(begin.elapsed());
        }
        answer
    }

    /// Has a turn at a port that this thread was handed.
    fn visit(&mut self, shared: &Shared<W>, port: usize) {
        let begin = Instant::now();
        let count = shared.ports[port].inbox.len().clamp(1, self.hands.quota);
        let carried = self.hands.turn(shared, &shared.crews[self.hands.crew].guest, port, Way::Alone);
        carried.into_iter().for_each(|port| shared.hand(port));
        self.hands.settle(shared);
        self.learn(begin.elapsed() / count as u32);
    }

    fn may_run(&self, port: &Port<W::Item>) -> bool {
        port.fuses_in == self.hands.crew && !port.inbox.is_listed()
    }
}

impl<W: Work> Shared<W> {
    /// Puts in what `items` yields; works on it, where this thread may.
    pub(crate) fn feed(&self, items: &mut impl Iterator<Item = Item<W>>) -> Result<(), Full<Item<W>>> {
        loop {
            let fed = self.bring(items).unwrap_or_else(|| self.put_batch_and_give_way(items));
            match fed {
                Fed::More => {}
                Fed::All => return Ok(()),
                Fed::Full(item) => return Err(Full(item)),
            }
        }
    }

    /// Works on a batch of items, where this thread may and nobody else works.
    fn bring(&self, items: &mut impl Iterator<Item = Item<W>>) -> Option<Fed<Item<W>>> {
        Some(self.guest(self.elastic?, BATCH as u32)?.get().bring(self, items))
    }

    /// Works on an item that `run` has, where this thread may and nobody else works.
    pub(crate) fn bring_one<R>(&self, port: PortId, run: impl FnOnce(&mut Fusing<'_, W>) -> Done<W, R>) -> Option<R> {
        let mut alone = self.guest(self.ports[port.0].crew, 1)?;
        let guest = alone.get();
        guest.may_run(&self.ports[port.0]).then(|| guest.bring_one(self, run))
    }

    /// Has a turn at a port that this thread was handed, where it may work there, and hands over what is left.
    pub(crate) fn visit(&self, port: usize) {
        if let Some(mut alone) = self.guest(self.ports[port].crew, 1) {
            let guest = alone.get();
            if self.ports[port].fuses_in == guest.hands.crew {
                return guest.visit(self, port);
            }
        }
        self.hand(port);
    }

    /// This thread as a guest of the crew, where that takes guests, needs one thread only and nobody works. It is for so many
    /// items at most.
    fn guest(&self, crew: usize, items: u32) -> Option<Alone<'_, Guest<W>>> {
        let running = &self.crews[crew];
        if !running.takes_guests || !running.is_alone() {
            return None;
        }
        self.rest.rouse();
        let mut alone = self.places[crew].alone()?;
        alone.get().is_at_work(items).then_some(alone)
    }

    /// Puts a batch of items in. Where the crew's one thread is in the way of this one, that gets the time to work off what
    /// waits for it: else the two would go on by way of the queues for ever, however dear these are.
    fn put_batch_and_give_way(&self, items: &mut impl Iterator<Item = Item<W>>) -> Fed<Item<W>> {
        let fed = self.put_batch(items);
        if matches!(fed, Fed::More) && self.elastic.is_some_and(|crew| self.crews[crew].is_alone()) {
            let begin = Instant::now();
            while self.in_flight() > 0 && begin.elapsed() < GIVE_WAY_MAX {
                if self.crowded { std::thread::yield_now() } else { std::hint::spin_loop() }
            }
        }
        fed
    }

    /// Puts a batch of items in, and hands their ports over afterwards: who was woken early would find little to do.
    fn put_batch(&self, items: &mut impl Iterator<Item = Item<W>>) -> Fed<Item<W>> {
        self.begun(BATCH);
        let (mut count, mut hand) = (0, Vec::new());
        let fed = loop {
            let Some((id @ PortId(port), item)) = items.next() else { break Fed::All };
            match self.ports[port].inbox.offer(item) {
                Ok(put) if put.hand => hand.push(port),
                Ok(_) => {}
                Err(item) => break Fed::Full((id, item)),
            }
            count += 1;
            if count == BATCH {
                break Fed::More;
            }
        };
        hand.into_iter().for_each(|port| self.hand(port));
        self.through(BATCH - count);
        fed
    }

    /// Puts an item in at a port, where there is room.
    pub(crate) fn submit(&self, port: PortId, item: W::Item) -> Result<(), Full<W::Item>> {
        self.begun(1);
        match self.ports[port.0].inbox.offer(item) {
            Ok(put) => {
                if put.hand {
                    self.hand(port.0);
                }
                Ok(())
            }
            Err(item) => {
                self.through(1);
                Err(Full(item))
            }
        }
    }
}
