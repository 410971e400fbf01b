//! Backoff while another thread finishes a short step.

/// Exponential backoff, for conditions that another thread establishes within a few instructions or a few time slices.
#[derive(Default)]
pub(crate) struct Backoff {
    step: u32,
}

/// Last step at which a thread spins (2^step pauses); later steps yield the core.
///
/// The awaited condition comes within a few hundred nanoseconds or after one time slice. Of six settings that
/// `benches/events` compared on two loaded cores, longer spinning and more yielding each cost up to half of the
/// throughput of a rendezvous: a yielded core may come back only after another thread's whole time slice, while a woken
/// thread is scheduled first.
const SPIN_STEPS: u32 = 3;

/// Number of steps after which parking is cheaper.
const YIELD_STEPS: u32 = 5;

impl Backoff {
    /// Waits one step, longer than the one before.
    pub(crate) fn pause(&mut self) {
        if cfg!(loom) || self.step > SPIN_STEPS {
            yield_now();
        } else {
            (0..1u32 << self.step).for_each(|_| std::hint::spin_loop());
        }
        self.step += 1;
    }

    /// Returns true if it is time to park instead.
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
