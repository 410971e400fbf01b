//! Random numbers: whole numbers in a range, fractions, choices and bytes.
//!
//! A [`Randomness`] in the environment is the only generator of these functions. By default it is the operating
//! system's, so that its numbers are fit for secrets. A test or a simulation replaces it by one that follows from a
//! seed, after which nothing that it makes is secret any more; `crypto.token` and `crypto.random_bytes` never use it.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use ring::rand::{SecureRandom, SystemRandom};
use weir::{Failure, FailureKind, Value};

use crate::{Limited, units};

/// Maximum number of random bytes of one call: 1 MiB.
pub const BYTES_MAX: usize = 1024 * 1024;
/// Number of bytes that a thread takes from the operating system at once.
const BUFFER_BYTES: usize = 256;

weir::library! {
    /// Random numbers: whole numbers in a range, fractions, choices and bytes.
    pub(crate) random: int, float, bool, bytes, pick, shuffle
}

/// The generator of a program's random numbers.
#[derive(Debug, Default)]
pub struct Randomness(RandomSource);

#[derive(Debug, Default)]
enum RandomSource {
    /// The operating system's.
    #[default]
    System,
    /// The state of SplitMix64.
    Seeded(AtomicU64),
}

impl Randomness {
    /// Returns a generator whose numbers follow from the seed. They are not fit for secrets.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Randomness(RandomSource::Seeded(AtomicU64::new(seed)))
    }

    /// Fills the buffer with random bytes.
    ///
    /// # Errors
    /// Fails if the operating system has no random numbers.
    pub fn fill(&self, buffer: &mut [u8]) -> Result<(), Failure> {
        match &self.0 {
            RandomSource::System => system_bytes(buffer),
            RandomSource::Seeded(state) => {
                for part in buffer.chunks_mut(size_of::<u64>()) {
                    part.copy_from_slice(&next(state).to_le_bytes()[..part.len()]);
                }
                Ok(())
            }
        }
    }

    /// Returns 64 random bits.
    ///
    /// # Errors
    /// Fails as [`Randomness::fill`] does.
    pub fn bits(&self) -> Result<u64, Failure> {
        match &self.0 {
            RandomSource::System => buffered_bits(),
            RandomSource::Seeded(state) => Ok(next(state)),
        }
    }

    /// Returns a number below `limit`, each with the same probability (Lemire: Fast random integer generation in an
    /// interval, 2019). A limit of 0 stands for 2^64.
    fn below(&self, limit: u64) -> Result<u64, Failure> {
        if limit == 0 {
            return self.bits();
        }
        // Products whose low half is below `unfair` would make some numbers more probable than others.
        let unfair = limit.wrapping_neg() % limit;
        loop {
            let product = u128::from(self.bits()?) * u128::from(limit);
            if product as u64 >= unfair {
                return Ok((product >> 64) as u64);
            }
        }
    }
}

/// Fills the buffer with random bytes of the operating system, which are fit for secrets.
///
/// # Errors
/// Fails if the operating system has none.
pub(crate) fn system_bytes(buffer: &mut [u8]) -> Result<(), Failure> {
    let filled = SystemRandom::new().fill(buffer);
    filled.map_err(|_| Failure::function("the operating system has no random numbers"))
}

/// Random bytes of a thread that are not used yet.
struct Buffer {
    bytes: [u8; BUFFER_BYTES],
    used: usize,
}

thread_local! {
    static BUFFER: RefCell<Buffer> = const { RefCell::new(Buffer { bytes: [0; BUFFER_BYTES], used: BUFFER_BYTES }) };
}

/// Returns 64 bits of the operating system. A thread asks it for several numbers at once, because a call of it costs
/// some hundred nanoseconds; numbers are erased as they are used.
pub(crate) fn buffered_bits() -> Result<u64, Failure> {
    BUFFER.with_borrow_mut(|buffer| {
        if buffer.used == BUFFER_BYTES {
            system_bytes(&mut buffer.bytes)?;
            buffer.used = 0;
        }
        let taken = &mut buffer.bytes[buffer.used..buffer.used + size_of::<u64>()];
        let bits = u64::from_le_bytes((&*taken).try_into().expect("a slice of eight bytes"));
        taken.fill(0);
        buffer.used += size_of::<u64>();
        Ok(bits)
    })
}

/// Returns the next number of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA
/// 2014).
fn next(state: &AtomicU64) -> u64 {
    const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;
    let state = state.fetch_add(GAMMA, Ordering::Relaxed).wrapping_add(GAMMA);
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Returns a whole number from `from` (inclusive) to `to` (exclusive), each with the same probability. An empty range
/// ends the flow.
#[weir::function(reads)]
pub fn int(#[environment] randomness: &Randomness, from: i64, to: i64) -> Limited<i64> {
    if from >= to {
        return Limited(Err(Failure::argument(format!("no number is from {from} to below {to}"))));
    }
    let drawn = randomness.below(to.abs_diff(from));
    Limited(drawn.map(|drawn| from.wrapping_add_unsigned(drawn)))
}

/// Returns a number from 0 (inclusive) to 1 (exclusive).
#[weir::function(reads)]
pub fn float(#[environment] randomness: &Randomness) -> Limited<f64> {
    // A `Float` has 53 bits of precision.
    Limited(randomness.bits().map(|bits| (bits >> 11) as f64 / (1_u64 << 53) as f64))
}

/// Returns `true` or `false`, with the same probability.
#[weir::function(reads)]
pub fn bool(#[environment] randomness: &Randomness) -> Limited<bool> {
    Limited(randomness.bits().map(|bits| bits >> 63 == 1))
}

/// Returns this many random bytes. A count below 0 or above 1 MiB ends the flow.
#[weir::function(reads, units = units::to_make(count))]
pub fn bytes(#[environment] randomness: &Randomness, count: i64) -> Limited<Bytes> {
    Limited(filled(count, |buffer| randomness.fill(buffer)))
}

/// Returns an element of the list, each with the same probability; `None` if the list is empty.
#[weir::function(reads)]
pub fn pick(#[environment] randomness: &Randomness, list: &[Value]) -> Limited<Option<Value>> {
    if list.is_empty() {
        return Limited(Ok(None));
    }
    Limited(randomness.below(list.len() as u64).map(|at| list.get(at as usize).cloned()))
}

/// Returns the elements in a random order, each order with the same probability (the shuffle of Fisher and Yates).
#[weir::function(reads, units = 4 * units::length(list))]
pub fn shuffle(#[environment] randomness: &Randomness, mut list: Vec<Value>) -> Limited<Vec<Value>> {
    for last in (1..list.len()).rev() {
        match randomness.below(last as u64 + 1) {
            Ok(chosen) => list.swap(chosen as usize, last),
            Err(failure) => return Limited(Err(failure)),
        }
    }
    Limited(Ok(list))
}

/// Returns `count` bytes, filled by a function.
///
/// # Errors
/// Fails if the count is negative or above the limit, and if the function fails.
pub(crate) fn filled(count: i64, fill: impl Fn(&mut [u8]) -> Result<(), Failure>) -> Result<Bytes, Failure> {
    let refused = || Failure::new(FailureKind::Limit, format!("{count} random bytes; a call gives 0 to {BYTES_MAX}"));
    let count = usize::try_from(count).ok().filter(|count| *count <= BYTES_MAX).ok_or_else(refused)?;
    let mut bytes = vec![0; count];
    fill(&mut bytes)?;
    Ok(bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_determines_the_numbers() {
        // The first numbers of SplitMix64 for the seed 1234567, from the authors' implementation.
        let seeded = Randomness::seeded(1_234_567);
        let drawn: Vec<u64> = (0..3).map(|_| seeded.bits().unwrap()).collect();
        assert_eq!(drawn, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn every_number_of_a_range_is_drawn_equally_often() {
        for randomness in [Randomness::default(), Randomness::seeded(7)] {
            let mut drawn = [0_u32; 6];
            for _ in 0..60_000 {
                drawn[(int(&randomness, -3, 3).0.unwrap() + 3) as usize] += 1;
            }
            assert!(drawn.iter().all(|count| (9_400..10_600).contains(count)), "{drawn:?}");
        }
    }
}
