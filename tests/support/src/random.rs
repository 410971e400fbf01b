//! Random numbers that are the same on every machine.

/// A random number generator (Marsaglia, "Xorshift RNGs", 2003).
pub struct Random(u64);

impl Random {
    /// Creates a generator with this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        // The state must not be 0.
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns a number below `limit`.
    ///
    /// # Panics
    /// Panics if `limit` is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }

    /// Returns one of the items.
    ///
    /// # Panics
    /// Panics if there are none.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u64) as usize]
    }
}
