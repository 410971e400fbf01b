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

use crate::crew::Seat;
use crate::fence::number_of_thread;
use crate::guest::Guest;
use crate::hands::BATCH;
use crate::places::Alone;
use crate::shared::Shared;
use crate::turn::Way;
use crate::work::{Ahead, PortId, Work};

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

/// Who works on an item that it brings, and asks for the ports that follow.
pub struct Bringing<'a, W: Work> {
    shared: &'a Shared<W>,
    crew: usize,
    /// How many ports it was told that it may run.
    visits: u32,
}

impl<W: Work> Ahead for Bringing<'_, W> {
    #[inline]
    fn may_run(&mut self, PortId(port): PortId) -> bool {
        let may = self.shared.ports[port].is_free(self.crew);
        self.visits += u32::from(may);
        may
    }
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
    fn bring(&self, shared: &Shared<W>, items: &mut impl Iterator<Item = Item<W>>) -> Fed<Item<W>> {
        let begin = Instant::now();
        let (mut hands, chunk) = (self.hands.lock(), self.chunk());
        let mut count = 0;
        let fed = loop {
            let Some((id @ PortId(index), item)) = items.next() else { break Fed::All };
            if shared.ports[index].is_free(hands.crew) {
                hands.bring(shared, index, item);
            } else if let Err(Full(item)) = shared.submit(id, item) {
                break Fed::Full((id, item));
            }
            count += 1;
            if count == chunk {
                break Fed::More;
            }
        };
        shared.work.after_batch();
        let crew = hands.crew;
        hands.tell(&shared.crews[crew].guest);
        if count > 0 {
            self.learn(begin.elapsed() / count as u32);
        }
        fed
    }

    /// Works on one item.
    #[inline]
    fn bring_one<R>(&self, shared: &Shared<W>, crew: usize, run: impl FnOnce(&mut Bringing<'_, W>) -> Done<W, R>) -> R {
        let mut bringing = Bringing { shared, crew, visits: 1 };
        let Done { answer, left } = run(&mut bringing);
        self.brought(bringing.visits);
        if let Some((PortId(next), item)) = left {
            self.hands.lock().leave(shared, next, item);
        }
        answer
    }

    /// Has a turn at a port that this thread was handed.
    fn visit(&self, shared: &Shared<W>, seat: &Seat, port: usize) {
        let begin = Instant::now();
        let mut hands = self.hands.lock();
        let count = shared.ports[port].inbox.len().clamp(1, hands.quota);
        let carried = hands.turn(shared, seat, port, Way::Alone);
        carried.into_iter().for_each(|port| shared.hand(port));
        hands.settle(shared);
        self.learn(begin.elapsed() / count as u32);
    }
}

impl<W: Work> Shared<W> {
    /// Puts in what `items` yields; works on it, where this thread may.
    pub(crate) fn feed(&self, items: &mut impl Iterator<Item = Item<W>>) -> Result<(), Full<Item<W>>> {
        loop {
            let fed = self.bring(items).unwrap_or_else(|| self.put_batch(items));
            match fed {
                Fed::More => self.give_way(),
                Fed::All => return Ok(()),
                Fed::Full(item) => return Err(Full(item)),
            }
        }
    }

    /// Works on a batch of items, where this thread may and nobody else works.
    fn bring(&self, items: &mut impl Iterator<Item = Item<W>>) -> Option<Fed<Item<W>>> {
        let crew = self.elastic?;
        let _alone = self.alone(crew, BATCH as u32)?;
        Some(self.guests[crew].bring(self, items))
    }

    /// Works on an item that `run` has, where this thread may and nobody else works. It looks around only now and then: what
    /// it would see changes seldom, and who comes in between ends its right.
    #[inline]
    pub(crate) fn bring_one<R>(
        &self,
        PortId(port): PortId,
        run: impl FnOnce(&mut Bringing<'_, W>) -> Done<W, R>,
    ) -> Option<R> {
        let port = &self.ports[port];
        let guest = &self.guests[port.crew];
        let begin = if guest.is_to_look() { Some(self.look(port.crew)?) } else { None };
        let Some(_alone) = self.places[port.crew].alone_again(number_of_thread()) else {
            guest.look_next();
            return None;
        };
        if !port.is_free(port.crew) {
            return None;
        }
        let answer = guest.bring_one(self, port.crew, run);
        if let Some(begin) = begin {
            self.crews[port.crew].guest.tell(guest.looked(begin.elapsed()));
        }
        Some(answer)
    }

    /// The time, where this thread may work as a guest of the crew.
    #[cold]
    fn look(&self, crew: usize) -> Option<Instant> {
        (self.hosts(crew) && self.guests[crew].is_at_work(1)).then(Instant::now)
    }

    /// Has a turn at a port that this thread was handed, where it may work there, and hands over what is left.
    pub(crate) fn visit(&self, port: usize) {
        let crew = self.ports[port].crew;
        let alone = self.ports[port].is_brief().then(|| self.alone(crew, 1)).flatten();
        if alone.is_none() {
            return self.hand(port);
        }
        self.guests[crew].visit(self, &self.crews[crew].guest, port);
    }

    /// The right of this thread to work as a guest of the crew, where that takes one and nobody works. It is for so many
    /// items at most.
    fn alone(&self, crew: usize, items: u32) -> Option<Alone<'_>> {
        let alone = self.hosts(crew).then(|| self.places[crew].alone_again(number_of_thread())).flatten()?;
        self.guests[crew].is_at_work(items).then_some(alone)
    }

    /// Whether the crew takes guests, and needs one thread only.
    fn hosts(&self, crew: usize) -> bool {
        let running = &self.crews[crew];
        let hosts = running.takes_guests && running.is_alone();
        if hosts {
            self.rest.rouse();
        }
        hosts
    }

    /// Where the crew's one thread is in the way of this one, after a batch, that gets the time to work off what waits for it:
    /// else the two would go on by way of the queues for ever, however dear these are. It is in the way even of a guest, who
    /// may run only what nothing waits for.
    fn give_way(&self) {
        if self.in_flight() == 0 || !self.elastic.is_some_and(|crew| self.crews[crew].is_alone()) {
            return;
        }
        let begin = Instant::now();
        while self.in_flight() > 0 && begin.elapsed() < GIVE_WAY_MAX {
            if self.crowded { std::thread::yield_now() } else { std::hint::spin_loop() }
        }
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
