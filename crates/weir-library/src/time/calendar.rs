//! Calendars and time zones: parsing and formatting times, and their dates.
//!
//! A time zone is an IANA name, such as `Europe/Berlin`, or `UTC`. Its rules come from the machine (`/usr/share/zoneinfo`), or,
//! if the machine has none, from the copy in this program.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::civil::{Date as CivilDate, DateTime as CivilDateTime};
use jiff::fmt::strtime::{self, BrokenDownTime};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, Zoned};
use weir::{Failure, FailureKind};

use super::nanoseconds_of;
use crate::units;

/// Maximum length of a format in bytes.
const FORMAT_BYTES_MAX: usize = 4096;

/// A date and the time of a clock, in some time zone.
#[derive(Clone, Debug, PartialEq, Eq, weir::Type)]
#[weir(name = "time.Date")]
pub struct Date {
    /// The year.
    pub year: i64,
    /// The month, from 1 to 12.
    pub month: i64,
    /// The day of the month, from 1 to 31.
    pub day: i64,
    /// The hour, from 0 to 23.
    pub hour: i64,
    /// The minute, from 0 to 59.
    pub minute: i64,
    /// The second, from 0 to 59.
    pub second: i64,
    /// The nanosecond, from 0 to 999,999,999.
    pub nanosecond: i64,
    /// The day of the week, from 1 (Monday) to 7 (Sunday).
    pub weekday: i64,
    /// The day of the year, from 1 to 366.
    pub day_of_year: i64,
}

/// Parses a time with its offset from UTC, as in RFC 3339: `2026-11-22T20:15:00Z`, `2026-11-22 21:15:00.5+01:00`.
///
/// # Errors
/// Fails for any other text, and for times before 1677 or after 2262.
#[weir::function(pure, units = units::to_transform(text))]
pub fn parse(text: &str) -> Result<SystemTime, Failure> {
    if !is_rfc3339(text) {
        return Err(not_a_time(text, &"a time in RFC 3339 is written like 2026-11-22T20:15:00Z"));
    }
    if is_out_of_range(text) {
        return Err(out_of_range());
    }
    let parsed = text.parse::<Timestamp>().map_err(|error| not_a_time(text, &error))?;
    time_of(parsed)
}

/// Returns true if a text is a time in RFC 3339 that a `Time` cannot be: one before 1677 or after 2262.
pub(crate) fn is_out_of_range(text: &str) -> bool {
    let date = text.get(..10).filter(|_| is_rfc3339(text)).and_then(|date| date.parse::<CivilDate>().ok());
    date.is_some_and(|date| !(1677..=2262).contains(&date.year()))
        || text.parse::<Timestamp>().is_ok_and(|time| time_of(time).is_err())
}

/// Returns true if a text has the form of RFC 3339, of which ISO 8601 has many variants: `date-time` in its section 5.6, with
/// `T`, `t` or a space between date and time.
fn is_rfc3339(text: &str) -> bool {
    let fits = |text: &[u8], form: &[u8]| {
        text.len() == form.len()
            && text
                .iter()
                .zip(form)
                .all(|(byte, form)| if *form == b'0' { byte.is_ascii_digit() } else { byte == form })
    };
    let Some((date, rest)) = text.as_bytes().split_at_checked(10) else { return false };
    let Some((between, rest)) = rest.split_first() else { return false };
    let Some((time, rest)) = rest.split_at_checked(8) else { return false };
    let offset = match rest.strip_prefix(b".") {
        Some(fraction) => {
            let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if digits == 0 { return false } else { &fraction[digits..] }
        }
        None => rest,
    };
    let is_offset = matches!(offset, b"Z" | b"z") || fits(offset, b"+00:00") || fits(offset, b"-00:00");
    fits(date, b"0000-00-00") && matches!(between, b'T' | b't' | b' ') && fits(time, b"00:00:00") && is_offset
}

/// Parses a time that is written in this format: `%Y-%m-%d %H:%M` and the like, as in `strptime`. Without an offset or
/// a zone in the text, it is a time of the time zone; without a time of day, the beginning of the day.
///
/// # Errors
/// Fails if the text does not have the format, if that has no directive, if the zone is unknown, and for times before 1677 or after 2262.
#[weir::function(pure, units = units::to_transform(text))]
pub fn parse_as(text: &str, format: &str, #[default("UTC")] zone: &str) -> Result<SystemTime, Failure> {
    format_fits(format)?;
    let unlike = |error: &dyn std::fmt::Display| {
        Failure::function(format!("{:?} does not have the format {format:?}: {}", shown(text), reason(error)))
    };
    let parsed = strtime::parse(format, text).map_err(|error| unlike(&error))?;
    if parsed.offset().is_some() || parsed.timestamp().is_some() {
        return time_of(parsed.to_timestamp().map_err(|error| unlike(&error))?);
    }
    let is_date = parsed.hour().is_none() && parsed.minute().is_none() && parsed.second().is_none();
    let civil = match is_date {
        true => parsed.to_date().map(|date| date.at(0, 0, 0, 0)),
        false => parsed.to_datetime(),
    };
    in_zone(civil.map_err(|error| unlike(&error))?, parsed.iana_time_zone().unwrap_or(zone))
}

/// Formats a time in a time zone: `%Y-%m-%d %H:%M:%S` and the like, as in `strftime`.
///
/// # Errors
/// Fails if the format has an unknown directive or none, or the zone is unknown.
#[weir::function(pure)]
pub fn format(time: SystemTime, format: &str, #[default("UTC")] zone: &str) -> Result<String, Failure> {
    format_fits(format)?;
    let zoned = zoned(time, zone)?;
    BrokenDownTime::from(&zoned)
        .to_string(format)
        .map_err(|error| Failure::argument(format!("cannot format a time as {format:?}: {}", reason(&error))))
}

/// Returns the date and the time of the clock in a time zone.
///
/// # Errors
/// Fails if the zone is unknown.
#[weir::function(pure)]
pub fn date(time: SystemTime, #[default("UTC")] zone: &str) -> Result<Date, Failure> {
    let zoned = zoned(time, zone)?;
    Ok(Date {
        year: zoned.year().into(),
        month: zoned.month().into(),
        day: zoned.day().into(),
        hour: zoned.hour().into(),
        minute: zoned.minute().into(),
        second: zoned.second().into(),
        nanosecond: zoned.subsec_nanosecond().into(),
        weekday: zoned.weekday().to_monday_one_offset().into(),
        day_of_year: zoned.day_of_year().into(),
    })
}

/// Returns the time at which the clocks of a time zone show this date. Where they are put forward and the date does not exist,
/// it is the time as long behind the change; where they are put back and it exists twice, it is the first.
///
/// # Errors
/// Fails if there is no such date, if the zone is unknown, and for times before 1677 or after 2262.
#[weir::function(pure)]
pub fn of_date(
    year: i64,
    month: i64,
    day: i64,
    #[default(0)] hour: i64,
    #[default(0)] minute: i64,
    #[default(0)] second: i64,
    #[default("UTC")] zone: &str,
) -> Result<SystemTime, Failure> {
    let no_date =
        || Failure::argument(format!("there is no date {year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}"));
    let small = |value: i64| i8::try_from(value).map_err(|_| no_date());
    let year = i16::try_from(year).map_err(|_| no_date())?;
    let (month, day, hour, minute, second) = (small(month)?, small(day)?, small(hour)?, small(minute)?, small(second)?);
    let civil = CivilDateTime::new(year, month, day, hour, minute, second, 0).map_err(|_| no_date())?;
    in_zone(civil, zone)
}

/// Returns the time so many years, months and days later, or earlier if they are negative, at which the clocks of the time zone
/// show the same time of day. A day that the month does not have becomes its last one.
///
/// # Errors
/// Fails if the zone is unknown, and for times before 1677 or after 2262.
#[weir::function(pure)]
pub fn shift(
    time: SystemTime,
    #[default(0)] years: i64,
    #[default(0)] months: i64,
    #[default(0)] days: i64,
    #[default("UTC")] zone: &str,
) -> Result<SystemTime, Failure> {
    let months = years.checked_mul(12).and_then(|of_years| of_years.checked_add(months)).ok_or_else(out_of_range)?;
    let months = Span::new().try_months(months).map_err(|_| out_of_range())?;
    let days = Span::new().try_days(days).map_err(|_| out_of_range())?;
    let later = zoned(time, zone)?.checked_add(months).and_then(|later| later.checked_add(days));
    let later = later.map_err(|_| out_of_range())?;
    time_of(later.timestamp())
}

/// Returns the beginning of the day in a time zone.
///
/// # Errors
/// Fails if the zone is unknown, and for times before 1677 or after 2262.
#[weir::function(pure)]
pub fn start_of_day(time: SystemTime, #[default("UTC")] zone: &str) -> Result<SystemTime, Failure> {
    let begin = zoned(time, zone)?.start_of_day().map_err(|_| out_of_range())?;
    time_of(begin.timestamp())
}

fn format_fits(format: &str) -> Result<(), Failure> {
    match format.len() {
        length if length > FORMAT_BYTES_MAX => {
            Err(Failure::new(FailureKind::Limit, format!("a format is longer than {FORMAT_BYTES_MAX} bytes")))
        }
        0 => Ok(()),
        // `YYYY-MM-DD` would be a text like any other.
        _ if !format.contains('%') => Err(Failure::argument(format!(
            "the format {format:?} has no directive: write `%Y-%m-%d %H:%M:%S` or parts of it"
        ))),
        _ => Ok(()),
    }
}

/// Returns the reason that an error gives, without the names of the library's functions.
fn reason(error: &dyn std::fmt::Display) -> String {
    let text = error.to_string();
    let prefixes = ["strptime parsing failed: ", "strftime formatting failed: "];
    prefixes.iter().find_map(|prefix| text.strip_prefix(prefix)).unwrap_or(&text).to_owned()
}

/// Returns the beginning of a text, for a message.
fn shown(text: &str) -> String {
    /// Number of characters shown in a message.
    const SHOWN_MAX: usize = 40;
    text.chars().take(SHOWN_MAX).collect()
}

fn not_a_time(text: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::function(format!("{:?} is not such a time: {error}", shown(text)))
}

fn zone_of(zone: &str) -> Result<TimeZone, Failure> {
    TimeZone::get(zone).map_err(|_| Failure::argument(format!("there is no time zone {zone:?}")))
}

fn zoned(time: SystemTime, zone: &str) -> Result<Zoned, Failure> {
    let timestamp = Timestamp::from_nanosecond(nanoseconds_of(time).into()).map_err(|_| out_of_range())?;
    Ok(timestamp.to_zoned(zone_of(zone)?))
}

fn in_zone(civil: CivilDateTime, zone: &str) -> Result<SystemTime, Failure> {
    let zoned = civil.to_zoned(zone_of(zone)?).map_err(|_| out_of_range())?;
    time_of(zoned.timestamp())
}

/// Converts a time; a `Time` counts nanoseconds in 64 bits.
fn time_of(timestamp: Timestamp) -> Result<SystemTime, Failure> {
    let nanoseconds = i64::try_from(timestamp.as_nanosecond()).map_err(|_| out_of_range())?;
    let distance = Duration::from_nanos(nanoseconds.unsigned_abs());
    let time = if nanoseconds < 0 { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) };
    time.ok_or_else(out_of_range)
}

fn out_of_range() -> Failure {
    Failure::argument("a `Time` is between the years 1677 and 2262")
}
