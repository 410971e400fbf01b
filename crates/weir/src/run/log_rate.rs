//! Rate limit of the log: at most [`LINES_MAX`] lines of one place in a second, and a count of those left out.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Maximum number of lines of one place in a [`WINDOW`].
pub(super) const LINES_MAX: u32 = 10;
/// Time for which lines are counted, from the first one on.
const WINDOW: Duration = Duration::from_secs(1);

/// The lines of each place; a program has a fixed number of places.
#[derive(Default)]
pub(super) struct LogRate {
    places: BTreeMap<String, PlaceRate>,
}

struct PlaceRate {
    begun: Instant,
    written: u32,
    left_out: u64,
}

impl LogRate {
    /// Counts a line of a place. Returns the number of lines that were left out before it if it is to be written;
    /// `None` if it is left out.
    pub(super) fn admit(&mut self, place: &str, now: Instant) -> Option<u64> {
        let new = || PlaceRate { begun: now, written: 0, left_out: 0 };
        let rate = self.places.entry(place.to_owned()).or_insert_with(new);
        if now.duration_since(rate.begun) >= WINDOW {
            (rate.begun, rate.written) = (now, 0);
        }
        if rate.written == LINES_MAX {
            rate.left_out += 1;
            return None;
        }
        rate.written += 1;
        Some(std::mem::take(&mut rate.left_out))
    }

    /// Returns the places with lines that were left out and not reported yet, with their number.
    pub(super) fn left_out(self) -> impl Iterator<Item = (String, u64)> {
        self.places.into_iter().map(|(place, rate)| (place, rate.left_out)).filter(|(_, count)| *count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_a_limit_of_its_own_and_the_rest_is_counted() {
        let (mut rate, start) = (LogRate::default(), Instant::now());
        let admitted = |rate: &mut LogRate, place: &str, lines: u32, now| {
            (0..lines).filter_map(|_| rate.admit(place, now)).collect::<Vec<_>>()
        };
        assert_eq!(admitted(&mut rate, "a", 15, start), [0; LINES_MAX as usize]);
        assert_eq!(admitted(&mut rate, "b", 1, start), [0]);
        let later = start + WINDOW;
        assert_eq!(admitted(&mut rate, "a", 1, later - Duration::from_nanos(1)), Vec::<u64>::new());
        assert_eq!(admitted(&mut rate, "a", 2, later), [6, 0]);
        assert_eq!(admitted(&mut rate, "a", 12, later).len(), 8);
        assert_eq!(rate.left_out().collect::<Vec<_>>(), [("a".to_owned(), 4)]);
    }
}
