//! Timed events: `after` a duration, `at` an instant.

use std::time::{Duration, Instant};

use crate::event::nacks::NackSet;
use crate::event::node::{EventNode, EventShape, Registration};
use crate::event::registration::RegistrationContext;
use crate::event::{Event, choose_biased, random_below};

/// Returns an event that takes effect `delay` after its synchronisation began (CML's `timeOutEvt`).
///
/// If another branch wins before, no timer is left behind.
pub fn after(delay: Duration) -> Event<()> {
    Event::of(Timer::After(delay))
}

/// Returns an event that takes effect at `instant` and ever after (CML's `atTimeEvt`).
pub fn at(instant: Instant) -> Event<()> {
    Event::of(Timer::At(instant))
}

/// Returns an event that takes effect a random time after its synchronisation began, between half of `delay` and all of
/// it.
///
/// It is meant for retries: clients that failed together do not return together ("equal jitter"). Each synchronisation
/// draws anew, from the random numbers of its thread: [`seed_choices`](crate::seed_choices) makes it reproducible.
pub fn after_about(delay: Duration) -> Event<()> {
    Event::of(Timer::About(delay))
}

impl<T: 'static> Event<T> {
    /// Returns an event that is this one, or `None` if it has not taken effect within `limit` of the start of its
    /// synchronisation.
    ///
    /// If both can take effect at the same time, the event is taken. Nothing of the event is left behind if the limit
    /// wins.
    pub fn within(&self, limit: Duration) -> Event<Option<T>> {
        choose_biased([self.wrap(Some), after(limit).wrap(|()| None)])
    }
}

enum Timer {
    After(Duration),
    About(Duration),
    At(Instant),
}

impl Timer {
    /// Returns the instant of the timer; `None` if it is too far away to be represented.
    fn instant(&self) -> Option<Instant> {
        match self {
            Timer::About(delay) => Instant::now().checked_add(drawn(*delay)),
            Timer::After(delay) => Instant::now().checked_add(*delay),
            Timer::At(instant) => Some(*instant),
        }
    }

    fn is_over(&self) -> bool {
        match self {
            Timer::After(delay) | Timer::About(delay) => delay.is_zero(),
            Timer::At(instant) => *instant <= Instant::now(),
        }
    }
}

impl EventNode<()> for Timer {
    fn shape(&self) -> EventShape {
        EventShape::BASE_EVENT
    }

    fn attempt(&self, _: usize, nacks: &mut NackSet) -> Option<()> {
        self.is_over().then(|| nacks.fire_losers())
    }

    fn register(&self, _: usize, context: &mut RegistrationContext<'_>) -> Option<Registration> {
        if let Some(instant) = self.instant() {
            context.expire_at(instant);
        }
        None
    }

    fn complete(&self, _: usize, _: Option<Registration>) {}
}

/// Returns half of a delay plus a random part of the other half, in steps of a thousandth.
fn drawn(delay: Duration) -> Duration {
    const STEPS: u32 = 1000;
    let half = delay / 2;
    let steps = u32::try_from(random_below(STEPS as usize + 1)).unwrap_or(STEPS);
    half + half / STEPS * steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_is_drawn_between_its_half_and_its_whole_and_again_with_the_seed() {
        let delay = Duration::from_millis(800);
        let draw = || {
            crate::seed_choices(3);
            (0..200).map(|_| drawn(delay)).collect::<Vec<_>>()
        };
        let all = draw();
        assert!(all.iter().all(|drawn| (delay / 2..=delay).contains(drawn)));
        assert!(all.iter().any(|drawn| *drawn < delay * 6 / 10) && all.iter().any(|drawn| *drawn > delay * 9 / 10));
        assert_eq!(all, draw());
    }
}
