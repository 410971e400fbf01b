//! Escaping for the contexts of a template in which characters are not all that matters: URLs and scripts.
//!
//! The compiler decides the context of each interpolation and calls these functions; see `html_template` in `weir-compile`.

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use weir::{Failure, Text, Typed};

use super::escape;
use crate::Limited;
use crate::client::RESERVED;
use crate::json::encode::written;
use crate::units;

/// Schemes of URLs that a page may name. A browser runs none of them as code.
const SCHEMES: [&str; 5] = ["https", "http", "mailto", "tel", "sms"];
/// The URL in place of one whose scheme is not permitted: it leads nowhere.
const REFUSED: &str = "about:invalid";
/// The segment in place of one that browsers would resolve.
const REFUSED_SEGMENT: &str = "about%3Ainvalid";
/// Characters that no URL contains, and that browsers would ignore or repair.
const NOT_IN_URL: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>').add(b'\\').add(b'^').add(b'`');

/// Returns a URL for an attribute such as `href`. A URL whose scheme is not `https`, `http`, `mailto`, `tel` or `sms`, such as
/// `javascript:`, becomes `about:invalid`. Templates call it for an interpolation that begins a URL.
#[weir::function(pure, room = 3 * url.len(), units = units::to_transform(url))]
pub fn url(url: &str) -> Text {
    let url = url.trim();
    let head = url.split(['/', '\\', '?', '#']).next().unwrap_or_default();
    let is_permitted = match head.split_once(':') {
        Some((scheme, _)) => SCHEMES.iter().any(|known| known.eq_ignore_ascii_case(scheme)),
        None => true,
    };
    if !is_permitted {
        return REFUSED.into();
    }
    escape(&utf8_percent_encode(url, NOT_IN_URL).to_string().into())
}

/// Returns a part of a URL, in which every character that means something in URLs is percent-encoded. Templates call it for
/// an interpolation behind the beginning of a URL.
#[weir::function(pure, room = 3 * part.len(), units = units::to_transform(part))]
pub fn url_part(part: &str) -> Text {
    utf8_percent_encode(part, RESERVED).to_string().into()
}

/// Returns a segment of a path: all that is between two slashes, or behind the last one. A segment that browsers resolve,
/// `.` or `..`, becomes `about%3Ainvalid`; so does an empty one before another: `//` would begin the name of a server.
/// Templates call it.
#[weir::function(pure, room = 3 * segment.len(), units = units::to_transform(segment))]
pub fn url_segment(segment: &str, is_last: bool) -> Text {
    match segment {
        "" if is_last => Text::default(),
        "" | "." | ".." => REFUSED_SEGMENT.into(),
        segment => url_part(segment),
    }
}

/// Returns a value as JSON for a `script` that contains data. Templates call it.
#[weir::function(pure, units = 2 * units::to_read(value))]
pub fn json_in_script(value: Typed<'a'>) -> Limited<Text> {
    Limited(json(&value).map(|json| without_markup(&json)))
}

/// Returns a value as an expression of JavaScript. Templates call it.
#[weir::function(pure, units = 2 * units::to_read(value))]
pub fn value_in_script(value: Typed<'a'>) -> Limited<Text> {
    Limited(json(&value).map(|json| {
        // An object with the member `__proto__` means something else in a script than in JSON.
        let has_objects = matches!(json.as_bytes().first(), Some(b'{' | b'['));
        let expression = if has_objects { format!("JSON.parse({})", serde_json::Value::from(json)) } else { json };
        without_markup(&expression)
    }))
}

fn json(value: &Typed<'a'>) -> Result<String, Failure> {
    let json = written(&value.value, &value.of)?;
    String::from_utf8(json).map_err(|_| Failure::function("the JSON is not UTF-8"))
}

/// Escapes the characters that could end a script. In JSON, they stand only inside of texts.
fn without_markup(json: &str) -> Text {
    let mut escaped = Text::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        let (before, from) = rest.split_at(at);
        let found = from.chars().next().unwrap_or_default();
        escaped.push(before);
        escaped.push(&format!("\\u{:04x}", u32::from(found)));
        rest = &from[found.len_utf8()..];
    }
    escaped.push(rest);
    escaped
}
