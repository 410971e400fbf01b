//! Texts: their characters, their parts, and numbers in them.
//!
//! A *character* is a Unicode scalar value. Positions and lengths count characters and not bytes, so a program cannot
//! cut one in two; finding the n-th takes a walk through the text.

use std::fmt;
use std::str::Utf8Error;

use bytes::Bytes;
use weir::Text;

weir::library! {
    /// Texts: their characters, their parts, and numbers in them.
    pub(crate) text: length, is_empty, trim, lower, upper, contains, starts_with, ends_with, find, split, words, before, after, lines, join,
        replace, repeat, slice, parse_int, parse_float, to_bytes, from_bytes
}

/// The most bytes that [`repeat`], [`replace`] and [`join`] make: 64 MiB, far above any page.
pub const TEXT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A text that would be above [`TEXT_BYTES_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the text would be longer than {TEXT_BYTES_MAX} bytes")
    }
}

impl std::error::Error for TooLong {}

/// A text that is not a number of the kind that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotANumber {
    /// The start of the text.
    pub text: String,
    /// What was expected of it.
    pub expected: &'static str,
}

impl NotANumber {
    fn new(text: &str, expected: &'static str) -> Self {
        /// What a message shows of a text.
        const SHOWN_MAX: usize = 40;
        NotANumber { text: text.chars().take(SHOWN_MAX).collect(), expected }
    }
}

impl fmt::Display for NotANumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not {}", self.text, self.expected)
    }
}

impl std::error::Error for NotANumber {}

/// How many characters there are.
#[weir::function(pure, total)]
pub fn length(text: &str) -> i64 {
    text.chars().count() as i64
}

/// Whether there are no characters.
#[weir::function(pure, total)]
pub fn is_empty(text: &str) -> bool {
    text.is_empty()
}

/// The text without white space at its start and end.
#[weir::function(pure, total)]
pub fn trim(text: &str) -> String {
    text.trim().to_owned()
}

/// The text in lower case, by Unicode's rules.
#[weir::function(pure, total)]
pub fn lower(text: &str) -> String {
    text.to_lowercase()
}

/// The text in upper case, by Unicode's rules.
#[weir::function(pure, total)]
pub fn upper(text: &str) -> String {
    text.to_uppercase()
}

/// Whether `part` occurs in it.
#[weir::function(pure, total)]
pub fn contains(text: &str, part: &str) -> bool {
    text.contains(part)
}

/// Whether it begins with `start`.
#[weir::function(pure, total)]
pub fn starts_with(text: &str, start: &str) -> bool {
    text.starts_with(start)
}

/// Whether it ends with `end`.
#[weir::function(pure, total)]
pub fn ends_with(text: &str, end: &str) -> bool {
    text.ends_with(end)
}

/// The position of the first `part`, counted in characters from 0.
#[weir::function(pure, total)]
pub fn find(text: &str, part: &str) -> Option<i64> {
    text.find(part).map(|at| length(&text[..at]))
}

/// What stands between the separators. Without a separator to split at, the characters one by one.
#[weir::function(pure, total)]
pub fn split(text: &str, separator: &str) -> Vec<String> {
    if separator.is_empty() {
        return text.chars().map(String::from).collect();
    }
    text.split(separator).map(str::to_owned).collect()
}

/// What stands between white space, however much of it there is.
#[weir::function(pure, total)]
pub fn words(text: &str) -> Vec<Text> {
    text.split_whitespace().map(Text::from).collect()
}

/// What stands before the first `separator`.
#[weir::function(pure, total)]
pub fn before(text: &str, separator: &str) -> Option<Text> {
    text.split_once(separator).map(|(before, _)| before.into())
}

/// What stands behind the first `separator`.
#[weir::function(pure, total)]
pub fn after(text: &str, separator: &str) -> Option<Text> {
    text.split_once(separator).map(|(_, after)| after.into())
}

/// The lines, without their ends; an end is `\n` or `\r\n`.
#[weir::function(pure, total)]
pub fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

/// All parts in one text, with the separator between them.
///
/// # Errors
/// [`TooLong`] above [`TEXT_BYTES_MAX`].
#[weir::function(pure)]
pub fn join(parts: &[Text], separator: &str) -> Result<String, TooLong> {
    let separators = separator.len().saturating_mul(parts.len().saturating_sub(1));
    let length = parts.iter().fold(separators, |length, part| length.saturating_add(part.len()));
    let mut joined = String::with_capacity(within_limit(length)?);
    for (index, part) in parts.iter().enumerate() {
        joined.push_str(if index == 0 { "" } else { separator });
        joined.push_str(part);
    }
    Ok(joined)
}

/// The text with every `part` replaced by `by`.
///
/// # Errors
/// [`TooLong`] above [`TEXT_BYTES_MAX`].
#[weir::function(pure)]
pub fn replace(text: &str, part: &str, by: &str) -> Result<String, TooLong> {
    let removed = text.matches(part).count();
    let length = text.len().saturating_add(removed.saturating_mul(by.len())).saturating_sub(removed * part.len());
    within_limit(length)?;
    Ok(text.replace(part, by))
}

/// The text `times` times; none for zero and below.
///
/// # Errors
/// [`TooLong`] above [`TEXT_BYTES_MAX`].
#[weir::function(pure)]
pub fn repeat(text: &str, times: i64) -> Result<String, TooLong> {
    let times = usize::try_from(times.max(0)).map_err(|_| TooLong)?;
    within_limit(text.len().saturating_mul(times))?;
    // An empty text may be repeated any number of times, and stays empty.
    Ok(if text.is_empty() { String::new() } else { text.repeat(times) })
}

/// The characters from position `from` up to and without `to`; positions beyond the text are its ends.
#[weir::function(pure)]
pub fn slice(text: &str, from: i64, to: i64) -> String {
    let position = |value: i64| usize::try_from(value.max(0)).unwrap_or(usize::MAX);
    let (from, to) = (position(from), position(to));
    text.chars().skip(from).take(to.saturating_sub(from)).collect()
}

/// The text as a whole number: an optional sign and decimal digits, within 64 bits.
///
/// # Errors
/// [`NotANumber`] for everything else.
#[weir::function(pure, total)]
pub fn parse_int(text: &str) -> Result<i64, NotANumber> {
    text.parse().map_err(|_| NotANumber::new(text, "a whole number of 64 bits"))
}

/// The text as a number: decimal digits with an optional sign, fraction and exponent.
///
/// # Errors
/// [`NotANumber`] for everything else, such as `inf`, and for numbers beyond the largest.
#[weir::function(pure, total)]
pub fn parse_float(text: &str) -> Result<f64, NotANumber> {
    text.parse().ok().filter(|value: &f64| value.is_finite()).ok_or_else(|| NotANumber::new(text, "a number"))
}

/// The text's bytes in UTF-8.
#[weir::function(pure, total)]
pub fn to_bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

/// The text that the bytes are in UTF-8.
///
/// # Errors
/// Fails where they are not, with the place.
#[weir::function(pure)]
pub fn from_bytes(bytes: &[u8]) -> Result<String, Utf8Error> {
    std::str::from_utf8(bytes).map(str::to_owned)
}

fn within_limit(length: usize) -> Result<usize, TooLong> {
    if length > TEXT_BYTES_MAX { Err(TooLong) } else { Ok(length) }
}
