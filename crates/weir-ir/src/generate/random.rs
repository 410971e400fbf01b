//! Pseudo-random numbers, reproducible from a seed: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).

/// A pseudo-random number generator.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Returns a generator with this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// Returns the next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`, which is at least 1.
    pub fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).expect("a count fits 64 bits");
        usize::try_from(self.number() % end).expect("it is below a usize")
    }

    /// Returns true with this probability in percent.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Returns one of the items, which must not be empty.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}
