//! Formatting of values for messages, tests and interpolated text.

use std::borrow::Cow;
use std::fmt;

use crate::Value;
use crate::value::elements::Element;
use crate::value::walk::PartCursor;

/// Texts inside other values are quoted; a text alone is not. Bytes show their number, host values their type.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Text(value) => f.write_str(value),
            other => nested(other, f),
        }
    }
}

/// Formats a nested value of any depth: its opening, its parts and its closing.
fn nested(value: &Value, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut open = Vec::new();
    begin(Cow::Borrowed(value), &mut open, f)?;
    while let Some(cursor) = open.last_mut() {
        if let Some(part) = cursor.advance() {
            f.write_str(before(cursor))?;
            begin(part, &mut open, f)?;
        } else {
            f.write_str(end(&cursor.value))?;
            open.pop();
        }
    }
    Ok(())
}

fn begin<'v>(value: Element<'v>, open: &mut Vec<PartCursor<'v>>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match &*value {
        Value::List(_) | Value::Map(_) => f.write_str("[")?,
        Value::Record(_) => f.write_str("(")?,
        Value::Variant(tag, Some(_)) => write!(f, "#{tag}(")?,
        plain => return without_parts(plain, f),
    }
    open.push(PartCursor::of_element(value));
    Ok(())
}

/// Returns the separator before the part that the cursor has just yielded.
fn before(cursor: &PartCursor<'_>) -> &'static str {
    match (&*cursor.value, cursor.yielded % 2) {
        _ if cursor.yielded == 1 => "",
        (Value::Map(_), 0) => ": ",
        _ => ", ",
    }
}

fn end(value: &Value) -> &'static str {
    match value {
        Value::List(_) => "]",
        Value::Map(map) if map.is_empty() => ":]",
        Value::Map(_) => "]",
        _ => ")",
    }
}

fn without_parts(value: &Value, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match value {
        Value::Unit => f.write_str("()"),
        Value::Bool(value) => write!(f, "{value}"),
        Value::Int(value) => write!(f, "{value}"),
        Value::Float(value) => write!(f, "{value:?}"),
        Value::Time(value) => time(*value, f),
        Value::Duration(value) => duration(*value, f),
        Value::Size(value) => size(*value, f),
        Value::Text(value) => write!(f, "{value:?}"),
        Value::Bytes(value) => write!(f, "bytes({})", value.len()),
        Value::Variant(tag, _) => write!(f, "#{tag}"),
        Value::Failure(failure) => write!(f, "failure({:?})", failure.message),
        Value::Host(value) => write!(f, "<{}>", value.type_name()),
        Value::Unique(value) => write!(f, "<{}>", value.get().map_or("moved", |value| value.type_name())),
        Value::Absent | Value::List(_) | Value::Map(_) | Value::Record(_) => f.write_str("absent"),
    }
}

/// Formats a time as in RFC 3339, in UTC, with as many fractional digits as necessary: `2026-11-21T07:45:00.5Z`.
fn time(nanos: i64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    const SECOND: i64 = 1_000_000_000;
    let (seconds, rest) = (nanos.div_euclid(SECOND), nanos.rem_euclid(SECOND));
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = date(days);
    write!(f, "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)?;
    if rest > 0 {
        write!(f, ".{}", format!("{rest:09}").trim_end_matches('0'))?;
    }
    f.write_str("Z")
}

/// Converts days since 1 January 1970 to year, month and day in the proleptic Gregorian calendar (Hinnant,
/// "chrono-Compatible Low-Level Date Algorithms"). Years are counted from 1 March, so that the leap day is the last.
fn date(days: i64) -> (i64, i64, i64) {
    const DAYS_OF_ERA: i64 = 146_097;
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(DAYS_OF_ERA), shifted.rem_euclid(DAYS_OF_ERA));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

/// Formats a duration in the largest unit that divides it.
fn duration(nanos: i64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    const UNITS: [(i64, &str); 5] =
        [(3_600_000_000_000, "h"), (60_000_000_000, "m"), (1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    match UNITS.iter().find(|(unit, _)| nanos != 0 && nanos % unit == 0) {
        Some((unit, name)) => write!(f, "{}{name}", nanos / unit),
        None => write!(f, "{nanos}ns"),
    }
}

/// Formats a size in the largest binary unit that divides it.
fn size(bytes: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    const UNITS: [(u64, &str); 4] = [(1 << 40, "tb"), (1 << 30, "gb"), (1 << 20, "mb"), (1 << 10, "kb")];
    match UNITS.iter().find(|(unit, _)| bytes != 0 && bytes.is_multiple_of(*unit)) {
        Some((unit, name)) => write!(f, "{}{name}", bytes / unit),
        None => write!(f, "{bytes}b"),
    }
}
