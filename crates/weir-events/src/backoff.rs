//! Waiting for what another thread does soon.

/// Waiting for something that another thread does within a few instructions, or a few turns of the scheduler.
#[derive(Default)]
pub(crate) struct Backoff {
    step: u32,
}

/// Up to this step a thread burns cycles (2^step pauses); above, it gives its core away.
///
/// What comes, comes within a few hundred nanoseconds or after a turn of the scheduler. Of six settings that
/// `benches/events` compared on two loaded cores, longer burning and more giving away each cost up to half of the
/// throughput of a rendezvous: a core that is given away may come back only after somebody else's whole turn, while a
/// thread that is woken goes first.
const SPIN_STEPS: u32 = 3;

/// After this many steps it is cheaper to park.
const YIELD_STEPS: u32 = 5;

impl Backoff {
    /// One more step of waiting, longer than the one before.
    pub(crate) fn pause(&mut self) {
        if cfg!(loom) || self.step > SPIN_STEPS {
            yield_now();
        } else {
            (0..1u32 << self.step).for_each(|_| std::hint::spin_loop());
        }
        self.step += 1;
    }

    /// Whether it is time to park instead.
    pub(crate) fn is_spent(&self) -> bool {
        cfg!(loom) || self.step > YIELD_STEPS
    }
}

#[cfg(not(loom))]
fn yield_now() {
    std::thread::yield_now();
}

#[cfg(loom)]
fn yield_now() {
    loom::thread::yield_now();
}
