//! Functions on texts: characters, parts, and conversion from and to numbers and bytes.
//!
//! A *character* is a Unicode scalar value. Positions and lengths count characters, not bytes, so that a program cannot
//! split one; finding the n-th character takes linear time.

use std::fmt;
use std::str::Utf8Error;

use bytes::Bytes;
use unicode_segmentation::UnicodeSegmentation;
use weir::{Failure, FailureKind, Text};

use crate::int::BASES;
use crate::texts::Texts;
use crate::{Limited, room, units};

weir::library! {
    /// Functions on texts: characters, parts, and conversion from and to numbers and bytes.
    pub(crate) text: length, is_empty, trim, trim_start, trim_end, strip_prefix, strip_suffix, capitalize, reverse, count, lower, upper, contains, starts_with, ends_with, find, at, split, split_once, graphemes, words, before, after, lines, join,
        replace, repeat, pad_start, pad_end, slice, parse_int, parse_float, to_bytes, from_bytes
}

/// Maximum length in bytes of the result of [`repeat`], [`replace`] and [`join`]: 64 MiB, far above any page.
pub const TEXT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Error for a text that would be longer than [`TEXT_BYTES_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the text would be longer than {TEXT_BYTES_MAX} bytes")
    }
}

impl std::error::Error for TooLong {}

/// Error for a text that is not a number of the requested kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotANumber {
    /// The beginning of the text.
    pub text: String,
    /// The kind of number that was expected.
    pub expected: &'static str,
}

impl NotANumber {
    fn new(text: &str, expected: &'static str) -> Self {
        /// Number of characters shown in a message.
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

/// Returns the number of characters.
#[weir::function(pure, total, units = units::to_scan(text))]
pub fn length(text: &str) -> i64 {
    text.chars().count() as i64
}

/// Returns `true` if there are no characters.
#[weir::function(pure, total)]
pub fn is_empty(text: &str) -> bool {
    text.is_empty()
}

/// Returns the text without leading and trailing white space.
#[weir::function(pure, total, room = 2 * text.len(), units = units::to_copy(text))]
pub fn trim(text: &str) -> String {
    text.trim().to_owned()
}

/// Returns the text without leading white space.
#[weir::function(pure, total, room = 2 * text.len(), units = units::to_copy(text))]
pub fn trim_start(text: &str) -> String {
    text.trim_start().to_owned()
}

/// Returns the text without trailing white space.
#[weir::function(pure, total, room = 2 * text.len(), units = units::to_copy(text))]
pub fn trim_end(text: &str) -> String {
    text.trim_end().to_owned()
}

/// Returns the rest of the text behind `prefix`, or `None` if the text does not begin with it.
#[weir::function(pure, total, room = 2 * text.len(), units = units::to_copy(text))]
pub fn strip_prefix(text: &str, prefix: &str) -> Option<String> {
    text.strip_prefix(prefix).map(str::to_owned)
}

/// Returns the text before `suffix`, or `None` if the text does not end with it.
#[weir::function(pure, total, room = 2 * text.len(), units = units::to_copy(text))]
pub fn strip_suffix(text: &str, suffix: &str) -> Option<String> {
    text.strip_suffix(suffix).map(str::to_owned)
}

/// Converts the first character to upper case, by Unicode's rules; the others stay.
#[weir::function(pure, total, room = 2 * text.len() + 16, units = units::to_copy(text))]
pub fn capitalize(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next();
    first.into_iter().flat_map(char::to_uppercase).chain(characters).collect()
}

/// Returns the characters in reverse order.
#[weir::function(pure, total, room = 2 * text.len(), units = units::to_transform(text))]
pub fn reverse(text: &str) -> String {
    text.chars().rev().collect()
}

/// Returns the number of occurrences of `part`, without those that overlap earlier ones. An empty `part` occurs before each
/// character and at the end.
#[weir::function(pure, total, units = units::to_transform(text))]
pub fn count(text: &str, part: &str) -> i64 {
    text.matches(part).count() as i64
}

/// Converts the text to lower case, by Unicode's rules.
#[weir::function(pure, total, room = 3 * text.len(), units = units::to_transform(text))]
pub fn lower(text: &str) -> String {
    text.to_lowercase()
}

/// Converts the text to upper case, by Unicode's rules.
#[weir::function(pure, total, room = 3 * text.len(), units = units::to_transform(text))]
pub fn upper(text: &str) -> String {
    text.to_uppercase()
}

/// Returns `true` if the text contains `part`.
#[weir::function(pure, total, units = units::to_scan(text))]
pub fn contains(text: &str, part: &str) -> bool {
    text.contains(part)
}

/// Returns `true` if the text begins with `start`.
#[weir::function(pure, total)]
pub fn starts_with(text: &str, start: &str) -> bool {
    text.starts_with(start)
}

/// Returns `true` if the text ends with `end`.
#[weir::function(pure, total)]
pub fn ends_with(text: &str, end: &str) -> bool {
    text.ends_with(end)
}

/// Returns the position of the first occurrence of `part`, counted in characters from 0.
#[weir::function(pure, total, units = units::to_transform(text))]
pub fn find(text: &str, part: &str) -> Option<i64> {
    text.find(part).map(|at| length(&text[..at]))
}

/// Splits the text at each separator. An empty separator splits it into its characters.
#[weir::function(pure, total, room = room::of_pieces(text, |text| pieces(text, separator)), units = units::to_divide(text))]
pub fn split(text: &str, separator: &str) -> Texts {
    if separator.is_empty() {
        return text.char_indices().map(|(at, character)| &text[at..at + character.len_utf8()]).collect();
    }
    text.split(separator).collect()
}

/// Splits the text at runs of white space.
#[weir::function(pure, total, room = room::of_pieces(text, words_max), units = units::to_divide(text))]
pub fn words(text: &str) -> Texts {
    if text.is_ascii() { ascii_words(text).collect() } else { text.split_whitespace().collect() }
}

/// Returns the number of words, or a little more.
fn words_max(text: &str) -> usize {
    if !text.is_ascii() {
        return text.split_whitespace().count();
    }
    text.bytes().filter(|byte| is_white(*byte)).count() + 1
}

fn ascii_words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let begin = rest.bytes().position(|byte| !is_white(byte))?;
        let length = rest[begin..].bytes().position(is_white).unwrap_or(rest.len() - begin);
        let word = &rest[begin..begin + length];
        rest = &rest[begin + length..];
        Some(word)
    })
}

/// Returns true if an ASCII character is white space.
fn is_white(byte: u8) -> bool {
    byte == b' ' || (b'\t'..=b'\r').contains(&byte)
}

/// Returns the character at the position, counted from 0.
#[weir::function(pure, total, units = units::to_scan(text))]
pub fn at(text: &str, position: i64) -> Option<String> {
    text.chars().nth(usize::try_from(position).ok()?).map(String::from)
}

/// Returns the parts before and after the first `separator`; `None` if the text does not contain it.
#[weir::function(pure, total, units = units::to_copy(text))]
pub fn split_once(text: &str, separator: &str) -> Option<(Text, Text)> {
    text.split_once(separator).map(|(before, after)| (before.into(), after.into()))
}

/// Returns what a reader takes for characters: extended grapheme clusters of Unicode, such as `é` of two characters, a flag, or
/// an emoji with its skin colour.
#[weir::function(pure, total, room = room::of_pieces(text, |text| text.chars().count()), units = units::to_divide(text))]
pub fn graphemes(text: &str) -> Texts {
    text.graphemes(true).collect()
}

/// Returns the part of the text before the first `separator`.
#[weir::function(pure, total, units = units::to_copy(text))]
pub fn before(text: &str, separator: &str) -> Option<Text> {
    text.split_once(separator).map(|(before, _)| before.into())
}

/// Returns the part of the text after the first `separator`.
#[weir::function(pure, total, units = units::to_copy(text))]
pub fn after(text: &str, separator: &str) -> Option<Text> {
    text.split_once(separator).map(|(_, after)| after.into())
}

/// Splits the text into lines without their terminators, `\n` or `\r\n`.
#[weir::function(pure, total, room = room::of_pieces(text, |text| text.lines().count()), units = units::to_divide(text))]
pub fn lines(text: &str) -> Texts {
    text.lines().collect()
}

/// Joins all parts with the separator between them.
///
/// # Errors
/// Fails if the result would be longer than 64 MiB.
#[weir::function(pure, room = joined_length(parts, separator).min(TEXT_BYTES_MAX), units = units::to_join(parts, separator))]
pub fn join(parts: &Texts, separator: &str) -> Result<Text, TooLong> {
    let mut joined = Text::with_capacity(within_limit(joined_length(parts, separator))?);
    let mut between = "";
    parts.each(|part| {
        joined.push(between);
        joined.push(part);
        between = separator;
    });
    Ok(joined)
}

/// Replaces every occurrence of `part` by `by`.
///
/// # Errors
/// Fails if the result would be longer than 64 MiB.
#[weir::function(pure, room = 2 * replaced_length(text, part, by).min(TEXT_BYTES_MAX), units = units::to_transform(text))]
pub fn replace(text: &str, part: &str, by: &str) -> Result<String, TooLong> {
    within_limit(replaced_length(text, part, by))?;
    Ok(text.replace(part, by))
}

/// Repeats the text `times` times; the result is empty for zero and below.
///
/// # Errors
/// Fails if the result would be longer than 64 MiB.
#[weir::function(pure, room = 2 * repeated_length(text, *times).min(TEXT_BYTES_MAX), units = units::to_repeat(text, times))]
pub fn repeat(text: &str, times: i64) -> Result<String, TooLong> {
    within_limit(repeated_length(text, times))?;
    // An empty text may be repeated any number of times and stays empty.
    Ok(if text.is_empty() { String::new() } else { text.repeat(usize::try_from(times).unwrap_or(0)) })
}

/// Returns the text with the character `fill` before it, as often as makes it `length` characters long; the text itself if it is
/// as long already. In a text, `{value:>8}` does the same with blanks.
/// A text that would be longer than 64 MiB, and a `fill` that is no single character, end the flow.
#[weir::function(pure, room = 2 * padded_length(text, *length, fill).min(TEXT_BYTES_MAX), units = units::to_repeat(text, length))]
pub fn pad_start(text: &str, length: i64, #[default(" ")] fill: &str) -> Limited<String> {
    Limited(padding(text, length, fill).map(|padding| padding + text))
}

/// Returns the text with the character `fill` behind it, as often as makes it `length` characters long; the text itself if it is
/// as long already. In a text, `{value:<8}` does the same with blanks.
/// A text that would be longer than 64 MiB, and a `fill` that is no single character, end the flow.
#[weir::function(pure, room = 2 * padded_length(text, *length, fill).min(TEXT_BYTES_MAX), units = units::to_repeat(text, length))]
pub fn pad_end(text: &str, length: i64, #[default(" ")] fill: &str) -> Limited<String> {
    Limited(padding(text, length, fill).map(|padding| text.to_owned() + &padding))
}

/// Returns the characters from position `from` (inclusive) to `to` (exclusive). Positions beyond the text are clamped
/// to its ends.
#[weir::function(pure, room = 2 * text.len(), units = units::to_transform(text))]
pub fn slice(text: &str, from: i64, to: i64) -> String {
    let position = |value: i64| usize::try_from(value.max(0)).unwrap_or(usize::MAX);
    let (from, to) = (position(from), position(to));
    text.chars().skip(from).take(to.saturating_sub(from)).collect()
}

/// Parses a whole number: an optional sign and digits, within 64 bits. The digits are decimal, or those of a `base` from 2 to
/// 36: `"ff".parse_int(base: 16)` is 255.
///
/// # Errors
/// Fails for any other text, and for any text in another base.
#[weir::function(pure, total, units = units::to_transform(text))]
pub fn parse_int(text: &str, #[default(10)] base: i64) -> Result<i64, NotANumber> {
    match u32::try_from(base).ok().filter(|base| BASES.contains(base)) {
        Some(10) => text.parse().map_err(|_| NotANumber::new(text, "a whole number of 64 bits")),
        Some(base) => {
            i64::from_str_radix(text, base).map_err(|_| NotANumber::new(text, "a whole number of 64 bits in this base"))
        }
        None => Err(NotANumber::new(text, "a whole number in this base, which is not from 2 to 36")),
    }
}

/// Parses a number: decimal digits with an optional sign, fraction and exponent.
///
/// # Errors
/// Fails for any other text, such as `inf`, and for numbers beyond the largest.
#[weir::function(pure, total, units = units::to_transform(text))]
pub fn parse_float(text: &str) -> Result<f64, NotANumber> {
    text.parse().ok().filter(|value: &f64| value.is_finite()).ok_or_else(|| NotANumber::new(text, "a number"))
}

/// Returns the text's bytes in UTF-8.
#[weir::function(pure, total, room = text.len(), units = units::to_copy(text))]
pub fn to_bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

/// Decodes bytes as UTF-8 text.
///
/// # Errors
/// Fails if the bytes are not valid UTF-8; the message gives the position.
#[weir::function(pure, room = 2 * bytes.len(), units = units::to_copy(bytes))]
pub fn from_bytes(bytes: &[u8]) -> Result<String, Utf8Error> {
    std::str::from_utf8(bytes).map(str::to_owned)
}

fn pieces(text: &str, separator: &str) -> usize {
    if separator.is_empty() { text.len() } else { text.matches(separator).count() + 1 }
}

fn joined_length(parts: &Texts, separator: &str) -> usize {
    let mut length = separator.len().saturating_mul(parts.len().saturating_sub(1));
    parts.each(|part| length = length.saturating_add(part.len()));
    length
}

fn replaced_length(text: &str, part: &str, by: &str) -> usize {
    let removed = if by.len() > part.len() { text.matches(part).count() } else { 0 };
    text.len().saturating_add(removed.saturating_mul(by.len())).saturating_sub(removed * part.len())
}

/// Returns the length in bytes of a text that is padded to `length` characters.
fn padded_length(text: &str, length: i64, fill: &str) -> usize {
    let missing = usize::try_from(length).unwrap_or(0).saturating_sub(text.chars().count());
    text.len().saturating_add(missing.saturating_mul(fill.len()))
}

/// Returns what has to be added to a text.
fn padding(text: &str, length: i64, fill: &str) -> Result<String, Failure> {
    if fill.chars().nth(1).is_some() || fill.is_empty() {
        return Err(Failure::argument(format!("`fill` must be one character, not {fill:?}")));
    }
    let too_long = |error: TooLong| Failure::new(FailureKind::Limit, error.to_string());
    let padded = within_limit(padded_length(text, length, fill)).map_err(too_long)?;
    Ok(fill.repeat((padded - text.len()) / fill.len()))
}

fn repeated_length(text: &str, times: i64) -> usize {
    text.len().saturating_mul(usize::try_from(times.max(0)).unwrap_or(usize::MAX))
}

fn within_limit(length: usize) -> Result<usize, TooLong> {
    if length > TEXT_BYTES_MAX { Err(TooLong) } else { Ok(length) }
}
