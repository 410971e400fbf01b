//! What a thread of a crew does: take a port that has work, have a turn at it, carry on what came out.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::crew::{Running, Seat};
use crate::hands::Hands;
use crate::places::Alone;
use crate::shared::Shared;
use crate::turn::Way;
use crate::work::Work;

/// How often a thread looks for work before it sleeps.
const LOOKS_MAX: usize = 104;
/// How often it does so before it lets others have the processor in between: about the microseconds that a thread takes to
/// be woken.
const LOOKS_AT_WORK: usize = 100;

/// One thread of a crew.
pub(crate) struct Worker<W: Work> {
    shared: Arc<Shared<W>>,
    seat: usize,
    hands: Hands<W>,
    /// Whether it is counted among those who work beside each other.
    joined: bool,
}

impl<W: Work> Worker<W> {
    pub(crate) fn new(shared: Arc<Shared<W>>, crew: usize, seat: usize) -> Self {
        Worker { shared, seat, hands: Hands::new(crew), joined: false }
    }

    /// Works until it is told to end.
    pub(crate) fn run(mut self) {
        let shared = self.shared.clone();
        let crew = &shared.crews[self.hands.crew];
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
                self.hands.settle(&shared);
                self.leave();
                suspend(crew, seat);
                carried_on = 0;
                continue;
            }
            carried_on = if carried.is_some() { carried_on + 1 } else { 0 };
            match carried.take().or_else(|| self.look(crew)) {
                Some(port) => {
                    shared.rest.rouse();
                    carried = self.turn(&shared, crew, seat, port);
                }
                None => self.sleep(crew, seat),
            }
        }
        self.hands.settle(&shared);
        self.leave();
        carried.into_iter().for_each(|port| crew.hand(port));
    }

    /// Looks for a port for a few microseconds, without a pause that would be longer than a hop takes. Where threads
    /// outnumber processors, who looks holds up who works, and lets that come first.
    fn look(&self, crew: &Running) -> Option<usize> {
        if self.shared.crowded {
            return crew.ready.pop().or_else(|| {
                std::thread::yield_now();
                crew.ready.pop()
            });
        }
        for looks in 0..LOOKS_MAX {
            if let Some(found) = crew.ready.pop() {
                return Some(found);
            }
            if looks < LOOKS_AT_WORK { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
        None
    }

    fn turn(&mut self, shared: &Shared<W>, crew: &Running, seat: &Seat, port: usize) -> Option<usize> {
        let turns = seat.turns.load(Ordering::Relaxed);
        seat.turns.store(turns + 1, Ordering::Relaxed);
        let carried = if crew.is_solo && shared.ports[port].is_brief() {
            self.hands.turn(shared, seat, port, Way::Alone)
        } else if let Some(_alone) = self.alone(shared, crew, port) {
            self.hands.turn(shared, seat, port, Way::Alone)
        } else {
            self.turn_beside(shared, crew, seat, port)
        };
        seat.turns.store(turns + 2, Ordering::Relaxed);
        carried
    }

    /// The right to work alone, where the crew has one thread. Nobody could take it from a thread that is stuck, so that
    /// it is for ports whose work is brief.
    fn alone<'a>(&mut self, shared: &'a Shared<W>, crew: &Running, port: usize) -> Option<Alone<'a>> {
        if !crew.is_alone() || !shared.ports[port].is_brief() {
            return None;
        }
        self.leave();
        shared.places[self.hands.crew].alone()
    }

    fn turn_beside(&mut self, shared: &Shared<W>, crew: &Running, seat: &Seat, port: usize) -> Option<usize> {
        if !std::mem::replace(&mut self.joined, true) {
            shared.places[self.hands.crew].join();
        }
        let reach = &shared.ports[port].reach;
        let way = Way::Beside(if shared.ports[port].is_brief() { reach.get() } else { 1 });
        let carried = self.hands.turn(shared, seat, port, way);
        if crew.idle.has_sleepers() && !crew.ready.is_empty() {
            reach.shrink();
        }
        carried
    }

    fn sleep(&mut self, crew: &Running, seat: &Seat) {
        self.hands.settle(&self.shared);
        self.leave();
        crew.idle.sleep(self.seat, || {
            !crew.ready.is_empty() || seat.suspended.load(Ordering::Acquire) || seat.ended.load(Ordering::Acquire)
        });
    }

    fn leave(&mut self) {
        if std::mem::replace(&mut self.joined, false) {
            self.shared.places[self.hands.crew].leave();
        }
    }
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
