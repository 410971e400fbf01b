//! HTML: the values of templates, escaping, and decoding submitted forms.

mod contexts;
mod markup;
mod multipart;

use std::borrow::Cow;

use indexmap::IndexMap;
use percent_encoding::percent_decode_str;
use weir::{Failure, FailureKind, Text, TypeArgument, Value};

use crate::input::{NamedTypes, shortened};
use crate::named_texts::{NamedTextSource, NamedTexts};
use crate::units;

pub use contexts::{json_in_script, url, url_part, url_segment, value_in_script};
pub use markup::{Html, join, to_text, unescaped};
pub use multipart::{FormPart, multipart};
pub(crate) use multipart::{boundary, form_parts};

/// Maximum number of fields in a form.
pub const FIELDS_MAX: usize = 1_000;

/// Builds the module `html`.
pub(crate) fn html() -> weir::Module {
    functions::html()
}

mod functions {
    //! The module's functions, in a submodule because `library!` generates a function named like the module.

    weir::library! {
        /// HTML: the values of templates (`html"<p>{text}</p>"`), escaping, and decoding submitted forms.
        pub(crate) html: super::escape, super::form, super::decode_form, super::multipart::multipart, super::markup::join, super::markup::to_text,
            super::markup::unescaped, super::contexts::url, super::contexts::url_part,
            super::contexts::url_segment, super::contexts::json_in_script, super::contexts::value_in_script
    }
}

/// Escapes a text for use in an element or in a quoted attribute, as in a feed. Templates escape by themselves: in a
/// template, a text that has been escaped before is escaped twice.
#[weir::function(pure, room = 2 * text.len(), units = units::to_transform(text))]
pub fn escape(text: &Text) -> Text {
    let added: usize = text.bytes().map(|byte| usize::from(ADDED[usize::from(byte)])).sum();
    if added == 0 {
        return text.clone();
    }
    let length = text.len() + added;
    let mut escaped = Text::with_capacity(length);
    let mut rest = text.as_str();
    // Each character that is escaped is one byte, so that what lies before and behind it is a text.
    while let Some(at) = rest.bytes().position(is_special) {
        if at > 0 {
            escaped.push(&rest[..at]);
        }
        escaped.push(escape_of(rest.as_bytes()[at]));
        rest = &rest[at + 1..];
    }
    escaped.push(rest);
    escaped
}

/// The bytes by which the escape of a character is longer: 0 for all but the special ones, which may end an element or
/// attribute, or begin an escape.
const ADDED: [u8; 256] = {
    let mut added = [0; 256];
    let (characters, mut index) = (b"&<>\"'", 0);
    while index < characters.len() {
        added[characters[index] as usize] = escape_of(characters[index]).len() as u8 - 1;
        index += 1;
    }
    added
};

#[inline]
fn is_special(byte: u8) -> bool {
    ADDED[usize::from(byte)] != 0
}

/// Returns the escape of a special character.
#[inline]
const fn escape_of(byte: u8) -> &'static str {
    match byte {
        b'&' => "&amp;",
        b'<' => "&lt;",
        b'>' => "&gt;",
        b'"' => "&quot;",
        _ => "&#39;",
    }
}

/// Decodes the fields of a form, as a browser sends them in the body of a `post`: `name=Ada&city=Bern`. If a name
/// occurs several times, the last value counts.
///
/// # Errors
/// Fails if there are more than 1,000 fields, or one is not UTF-8.
#[weir::function(pure, room = 2 * body.len(), units = units::to_transform(body))]
pub fn form(body: &str) -> Result<IndexMap<String, String>, Failure> {
    Ok(form_texts(body)?.into_iter().collect())
}

/// Reads the fields of a form as a value of the type that the place of the call expects: `let order: Order =
/// html.decode_form(body)?`. A field of the record takes the form's field of its name: a list takes all fields of the name, of
/// which other types take the last; a `Bool` is true for a checkbox that is checked and false for a missing field, and an
/// `Option` is `None` if the field is missing or empty.
///
/// # Errors
/// Fails as `form` does, and if a field is missing or is not of its type; the message names it:
/// `` `price` in the form: expected a number, found "abc" ``.
#[weir::function(pure, room = 2 * body.len(), units = 4 * units::to_transform(body))]
pub fn decode_form(body: &str, of: TypeArgument<'a'>) -> Result<Value, Failure> {
    let fields = form_texts(body)?;
    let texts: Vec<_> = fields.into_iter().map(|(name, text)| (name.into(), text.into())).collect();
    let named = NamedTexts { texts: &texts, files: None, from: NamedTextSource::Form, place: " in the form" };
    Ok(named.decode(&of.0.ty, NamedTypes(&of.0.definitions))?)
}

/// Returns the decoded names and values of a form.
pub(crate) fn form_texts(body: &str) -> Result<Vec<(String, String)>, Failure> {
    let mut fields = Vec::new();
    for pair in body.split('&').filter(|pair| !pair.is_empty()) {
        if fields.len() == FIELDS_MAX {
            return Err(Failure::new(FailureKind::Limit, format!("the form has more than {FIELDS_MAX} fields")));
        }
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = decoded(name)?;
        let not_utf8 = |_| Failure::function(format!("`{}` in the form is not UTF-8", shortened(&name)));
        let value = decoded(value).map_err(not_utf8)?;
        fields.push((name, value));
    }
    Ok(fields)
}

fn decoded(part: &str) -> Result<String, Failure> {
    let blanks = part.replace('+', " ");
    let text = percent_decode_str(&blanks).decode_utf8().map(Cow::into_owned);
    text.map_err(|_| Failure::function(format!("`{}` in the form is not UTF-8", shortened(part))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_text_cannot_end_an_element_or_an_attribute() {
        let escaped = escape(&"<b a='1' c=\"2\">&é</b>".into());
        assert_eq!(escaped.as_str(), "&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp;é&lt;/b&gt;");
        assert_eq!(escape(&"é 1".into()).as_str(), "é 1");
    }

    #[test]
    fn a_form_is_read_as_browsers_write_it() {
        let fields = form("name=Ada+L&says=1%2B1%3D2%26%0D%0A&empty=&alone&&name=Eve").unwrap();
        let fields: Vec<_> = fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(fields, [("name", "Eve"), ("says", "1+1=2&\r\n"), ("empty", ""), ("alone", "")]);
    }

    #[test]
    fn a_form_that_is_not_utf_8_or_too_long_is_refused() {
        assert_eq!(form("a=%ff").unwrap_err().message.as_str(), "`a` in the form is not UTF-8");
        assert_eq!(form("%ff=a").unwrap_err().message.as_str(), "`%ff` in the form is not UTF-8");
        assert!(form(&"a&".repeat(FIELDS_MAX)).is_ok());
        for long in ["%FF".repeat(9_000), format!("a={}", "%FF".repeat(9_000)), format!("{}=%FF", "a".repeat(9_000))] {
            assert!(form(&long).unwrap_err().message.len() < 200, "{}", form(&long).unwrap_err().message);
        }
        assert_eq!(form(&"a&".repeat(FIELDS_MAX + 1)).unwrap_err().kind, FailureKind::Limit);
    }
}
