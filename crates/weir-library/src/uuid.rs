//! UUIDs (RFC 9562): random ones, and ones that are ordered by time.

use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use uuid::{Builder, Uuid};
use weir::Failure;

use crate::Limited;
use crate::random::Randomness;

weir::library! {
    /// UUIDs (RFC 9562): random ones, and ones that are ordered by time.
    pub(crate) uuid: v4, v7, parse
}

/// Number of random bits in a UUID of version 7.
const RANDOM_BITS: u32 = 74;
/// Number of random bits behind the variant.
const LOW_BITS: u32 = 62;

/// The last UUID of version 7, as its time in milliseconds and its 74 random bits; the next one is greater.
#[derive(Debug, Default)]
pub struct LastUuid(Mutex<(u64, u128)>);

/// Returns a random UUID (version 4): 122 random bits.
#[weir::function(reads)]
pub fn v4(#[environment] randomness: &Randomness) -> Limited<String> {
    let mut bytes = [0; 16];
    Limited(randomness.fill(&mut bytes).map(|()| shown(Builder::from_random_bytes(bytes).into_uuid())))
}

/// Returns a UUID that begins with the time (version 7): of two, the one made later sorts behind, which suits keys of
/// databases. It discloses the time at which it was made.
#[weir::function(reads)]
pub fn v7(#[environment] randomness: &Randomness, #[environment] last: &LastUuid) -> Limited<String> {
    let mut bytes = [0; 16];
    Limited(randomness.fill(&mut bytes).map(|()| shown(last.next(milliseconds(), u128::from_be_bytes(bytes)))))
}

/// Returns a UUID in its usual form, in lower case with hyphens. Accepts forms without hyphens, in braces, and with
/// `urn:uuid:`.
///
/// # Errors
/// Fails if the text is not a UUID.
#[weir::function(pure)]
pub fn parse(text: &str) -> Result<String, Failure> {
    match Uuid::try_parse(text) {
        Ok(uuid) => Ok(shown(uuid)),
        Err(error) => Err(Failure::function(format!("not a UUID: {error}"))),
    }
}

fn shown(uuid: Uuid) -> String {
    uuid.hyphenated().to_string()
}

/// Returns the milliseconds since 1970.
fn milliseconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

impl LastUuid {
    /// Returns a UUID greater than the last one: of the time with these random bits, or, if it is not later, the last
    /// one with its random bits incremented (RFC 9562, section 6.2, method 2).
    fn next(&self, milliseconds: u64, random: u128) -> Uuid {
        // The highest bit of a fresh draw is 0, so that the bits can be incremented.
        let fresh = (milliseconds, random & ((1 << (RANDOM_BITS - 1)) - 1));
        let mut last = self.0.lock();
        *last = if fresh.0 > last.0 { fresh } else { incremented(*last) };
        of_version_7(*last)
    }
}

fn incremented((milliseconds, random): (u64, u128)) -> (u64, u128) {
    let next = random + 1;
    if next >> RANDOM_BITS == 0 { (milliseconds, next) } else { (milliseconds + 1, 0) }
}

fn of_version_7((milliseconds, random): (u64, u128)) -> Uuid {
    const VERSION: u128 = 7 << 76;
    const VARIANT: u128 = 2 << LOW_BITS;
    let time = u128::from(milliseconds & ((1 << 48) - 1)) << 80;
    let high = (random >> LOW_BITS) << 64;
    Uuid::from_u128(time | VERSION | high | VARIANT | (random & ((1 << LOW_BITS) - 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_rfc_is_made() {
        // RFC 9562, appendix A.6: rand_a is 0xCC3, rand_b is 0x18C4DC0C0C07398F.
        let random = (0xcc3 << LOW_BITS) | 0x18c4_dc0c_0c07_398f;
        let uuid = of_version_7((0x017f_22e2_79b0, random));
        assert_eq!(shown(uuid), "017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
    }

    #[test]
    fn each_uuid_is_greater_than_the_one_before_even_if_the_clock_goes_back() {
        let last = LastUuid::default();
        let times = [5, 5, 5, 4, 1, 6, 6];
        let made: Vec<Uuid> = times.iter().map(|time| last.next(*time, u128::MAX)).collect();
        assert!(made.is_sorted_by(|a, b| a < b), "{made:?}");
        assert!(made.iter().all(|uuid| uuid.get_version_num() == 7 && uuid.get_variant() == uuid::Variant::RFC4122));
    }

    #[test]
    fn random_bits_that_are_used_up_continue_in_the_next_millisecond() {
        assert_eq!(incremented((5, (1 << RANDOM_BITS) - 1)), (6, 0));
        assert_eq!(incremented((5, 7)), (5, 8));
    }
}
