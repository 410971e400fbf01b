//! Events of time: `after` a duration, `at` an instant.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::event::node::{Node, Shape, Stake};
use crate::event::placing::Placing;
use crate::event::settlement::Settlement;
use crate::event::{Event, choose_biased};

/// An event that takes effect `delay` after its synchronisation began (CML's `timeOutEvt`).
///
/// A choice that is won by another branch before leaves no timer behind.
pub fn after(delay: Duration) -> Event<()> {
    Event::of(Timer::After(delay))
}

/// An event that takes effect at `instant` and ever after (CML's `atTimeEvt`).
pub fn at(instant: Instant) -> Event<()> {
    Event::of(Timer::At(instant))
}

impl<T: 'static> Event<T> {
    /// This event, or `None` when it has not taken effect within `limit` of the beginning of its synchronisation.
    ///
    /// If it and the limit can take effect at the same time, the event is taken. Nothing of the event is left behind
    /// when the limit wins.
    pub fn within(&self, limit: Duration) -> Event<Option<T>> {
        choose_biased([self.wrap(Some), after(limit).wrap(|()| None)])
    }
}

enum Timer {
    After(Duration),
    At(Instant),
}

impl Timer {
    /// `None`: so far away that it never comes.
    fn instant(&self) -> Option<Instant> {
        match self {
            Timer::After(delay) => Instant::now().checked_add(*delay),
            Timer::At(instant) => Some(*instant),
        }
    }

    fn is_over(&self) -> bool {
        match self {
            Timer::After(delay) => delay.is_zero(),
            Timer::At(instant) => *instant <= Instant::now(),
        }
    }
}

impl Node<()> for Timer {
    fn shape(&self) -> Shape {
        Shape::LEAF
    }

    fn attempt(&self, _: usize, settlement: &mut Settlement) -> Option<()> {
        self.is_over().then(|| settlement.settle())
    }

    fn place(&self, _: usize, placing: &mut Placing<'_>) -> Option<Arc<dyn Stake>> {
        if let Some(instant) = self.instant() {
            placing.ring_at(instant);
        }
        None
    }

    fn redeem(&self, _: usize, _: Option<Arc<dyn Stake>>) {}
}
