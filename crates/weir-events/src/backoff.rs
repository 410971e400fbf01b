//! Backoff while another thread finishes a short step.

/// Exponential backoff, for conditions that another thread establishes within a few instructions or a few time slices.
#[derive(Default)]
pub(crate) struct Backoff {
    step: u32,
}

/// Last step at which a thread spins (2^step pauses); later steps yield the core.
const SPIN_STEPS: u32 = 3;

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
}

#[cfg(not(loom))]
fn yield_now() {
    std::thread::yield_now();
}

#[cfg(loom)]
fn yield_now() {
    loom::thread::yield_now();
}
