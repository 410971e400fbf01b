//! Times in calendars and time zones, against dates that are known.
#![allow(clippy::unwrap_used, reason = "a test fails where it is surprised")]

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use weir::{HostType, Value};
use weir_library::time::{date, format, of_date, parse, parse_as, shift, start_of_day};

const BERLIN: &str = "Europe/Berlin";

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn shown(time: SystemTime, zone: &str) -> String {
    format(time, "%Y-%m-%d %H:%M:%S %z", zone).unwrap()
}

#[test]
fn the_least_and_the_greatest_time_are_read() {
    for (text, nanoseconds) in
        [("1677-09-21T00:12:43.145224192Z", i64::MIN), ("2262-04-11T23:47:16.854775807Z", i64::MAX)]
    {
        assert_eq!(parse(text).and_then(SystemTime::into_value), Ok(Value::Time(nanoseconds)), "{text}");
        assert_eq!(Value::Time(nanoseconds).to_string(), text);
    }
    for text in ["1677-09-21T00:12:43.145224191Z", "2262-04-11T23:47:16.854775808Z"] {
        assert!(parse(text).and_then(SystemTime::into_value).is_err(), "{text}");
    }
}

#[test]
fn times_with_an_offset_are_read() {
    for text in ["2026-11-22T20:15:00Z", "2026-11-22 21:15:00+01:00", "2026-11-22T20:15:00.000Z"] {
        assert_eq!(seconds(parse(text).unwrap()), 1_795_378_500, "{text}");
    }
    for text in
        ["2026-11-22T20:15:00", "2026-13-01T00:00:00Z", "tomorrow", "", "1500-01-01T00:00:00Z", "2300-01-01T00:00:00Z"]
    {
        assert!(parse(text).is_err(), "{text}");
    }
    // Other forms of ISO 8601, and additions to it.
    for text in [
        "20261122T201500Z",
        "2026-11-22T20:15Z",
        "2026-11-22T20:15:00,5Z",
        "2026-11-22T20:15:00.Z",
        "2026-11-22T20:15:00+0100",
        "2026-11-22T20:15:00+01",
        "2026-11-22T20:15:00Z[UTC]",
        "2026-11-22T20:15:00+01:00[Asia/Tokyo]",
        "+002026-11-22T20:15:00Z",
        "2026-W47-7T20:15:00Z",
        " 2026-11-22T20:15:00Z",
        "2026-11-22T20:15:00Ä",
    ] {
        assert!(parse(text).is_err(), "{text}");
    }
    for text in ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "2262-04-11T23:47:16.854775808Z"] {
        assert_eq!(parse(text).unwrap_err().message.as_str(), "a `Time` is between the years 1677 and 2262", "{text}");
    }
    let failure = parse("tomorrow").unwrap_err();
    assert!(failure.message.starts_with("\"tomorrow\" is not such a time: "), "{failure}");
}

#[test]
fn a_format_says_how_times_are_read_and_written() {
    let time = parse_as("22.11.2026 21:15", "%d.%m.%Y %H:%M", BERLIN).unwrap();
    assert_eq!(seconds(time), 1_795_378_500);
    assert_eq!(format(time, "%a, %-d %b %Y, %H:%M %Z", BERLIN).unwrap(), "Sun, 22 Nov 2026, 21:15 CET");
    assert_eq!(shown(parse_as("2026-07-01", "%Y-%m-%d", BERLIN).unwrap(), "UTC"), "2026-06-30 22:00:00 +0000");
    let with_offset = parse_as("22/Nov/2026:21:15:00 +0100", "%d/%b/%Y:%H:%M:%S %z", "America/New_York").unwrap();
    assert_eq!(seconds(with_offset), 1_795_378_500, "the offset of the text counts");
    let with_zone = parse_as("2026-11-22 15:15 America/New_York", "%Y-%m-%d %H:%M %Q", "UTC").unwrap();
    assert_eq!(seconds(with_zone), 1_795_378_500, "the zone of the text counts");
    assert_eq!(seconds(parse_as("1795378500", "%s", BERLIN).unwrap()), 1_795_378_500);
    for (text, format) in [("22.11.2026", "%Y-%m-%d"), ("2026-11-22 :30", "%Y-%m-%d :%M"), ("11:30", "%H:%M")] {
        assert!(parse_as(text, format, "UTC").is_err(), "{text}");
    }
    assert!(format(time, "%Q%J", "UTC").is_err());
    for wrong in [format(time, "YYYY-MM-DD", "UTC").err(), parse_as("2026-07-01", "YYYY-MM-DD", "UTC").err()] {
        assert!(wrong.unwrap().message.contains("\"YYYY-MM-DD\" has no directive"));
    }
    assert_eq!(format(time, "", "UTC").unwrap(), "");
    let unlike = parse_as("22.11.2026", "%Y-%m-%d", "UTC").unwrap_err().message;
    assert!(unlike.starts_with("\"22.11.2026\" does not have the format \"%Y-%m-%d\": expected to match"), "{unlike}");
    let partly = parse_as("2026-07", "%Y-%m", "UTC").unwrap_err().message;
    assert!(partly.contains("does not have the format \"%Y-%m\": a month/day"), "{partly}");
    assert!(format(time, &"%Y".repeat(4000), "UTC").unwrap_err().message.contains("4096"));
    assert_eq!(
        format(time, "%Y", "Mars/Olympus").unwrap_err().message.as_str(),
        "there is no time zone \"Mars/Olympus\""
    );
}

#[test]
fn a_date_has_its_parts() {
    let date = date(UNIX_EPOCH + Duration::from_nanos(1_795_378_500_000_000_007), BERLIN).unwrap();
    assert_eq!((date.year, date.month, date.day, date.hour, date.minute, date.second), (2026, 11, 22, 21, 15, 0));
    assert_eq!((date.nanosecond, date.weekday, date.day_of_year), (7, 7, 326));
}

#[test]
fn clocks_that_are_put_forward_or_back_give_one_time() {
    // On 29 March 2026 at 2:00, clocks in Berlin show 3:00; on 25 October at 3:00 they show 2:00 again.
    let missing = of_date(2026, 3, 29, 2, 30, 0, BERLIN).unwrap();
    assert_eq!(shown(missing, BERLIN), "2026-03-29 03:30:00 +0200");
    let twice = of_date(2026, 10, 25, 2, 30, 0, BERLIN).unwrap();
    assert_eq!(shown(twice, BERLIN), "2026-10-25 02:30:00 +0200");
    for (year, month, day) in [(2026, 2, 29), (2026, 13, 1), (2026, 0, 1), (i64::MAX, 1, 1), (2300, 1, 1)] {
        assert!(of_date(year, month, day, 0, 0, 0, "UTC").is_err(), "{year}-{month}-{day}");
    }
}

#[test]
fn days_and_months_keep_the_time_of_day() {
    let before = of_date(2026, 3, 28, 12, 0, 0, BERLIN).unwrap();
    let after = shift(before, 0, 0, 1, BERLIN).unwrap();
    assert_eq!(seconds(after) - seconds(before), 23 * 3600, "the day has 23 hours");
    let end = of_date(2026, 1, 31, 8, 0, 0, "UTC").unwrap();
    assert_eq!(shown(shift(end, 0, 1, 0, "UTC").unwrap(), "UTC"), "2026-02-28 08:00:00 +0000");
    assert_eq!(shown(shift(end, -2, 1, -1, "UTC").unwrap(), "UTC"), "2024-02-28 08:00:00 +0000");
    assert_eq!(shown(start_of_day(before, BERLIN).unwrap(), BERLIN), "2026-03-28 00:00:00 +0100");
    for years in [i64::MAX, i64::MIN, 1000] {
        assert!(shift(end, years, 0, 0, "UTC").is_err(), "{years}");
    }
}
