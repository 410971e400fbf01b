//! Numbers and durations in human-readable form.

use std::time::Duration;

/// Formats a number as `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Formats a duration in seconds, minutes or hours.
pub(crate) fn rounded(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// Formats a rate per second; small rates have one decimal.
#[cfg(feature = "tools")]
pub(crate) fn rate(per_second: f64) -> String {
    match per_second {
        none if none <= 0.0 => "0".to_owned(),
        small if small < 9.95 => format!("{small:.1}"),
        large => grouped(large.round() as u64),
    }
}

/// Formats a short duration in the best unit, with at most three digits.
#[cfg(feature = "tools")]
pub(crate) fn short_time(ns: u64) -> String {
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "µs")];
    // Smaller values would not round up to one of this unit.
    let unit = units.into_iter().find(|(size, _)| ns as f64 >= size * 0.9995);
    let Some((size, name)) = unit else { return format!("{ns} ns") };
    match ns as f64 / size {
        few if few < 9.95 => format!("{few:.1} {name}"),
        many => format!("{many:.0} {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_time_has_the_unit_that_fits_it() {
        let cases = [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1.0 µs"),
            (12_345, "12 µs"),
            (999_600, "1.0 ms"),
            (1_500_000, "1.5 ms"),
            (250_000_000, "250 ms"),
            (90_000_000_000, "90 s"),
        ];
        cases.into_iter().for_each(|(ns, words)| assert_eq!(short_time(ns), words));
    }

    #[test]
    fn a_rate_has_a_decimal_where_it_is_small() {
        let cases = [(0.0, "0"), (0.44, "0.4"), (9.99, "10"), (12_345.6, "12,346")];
        cases.into_iter().for_each(|(per_second, words)| assert_eq!(rate(per_second), words));
    }
}
