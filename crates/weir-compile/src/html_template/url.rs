//! Interpolations in attributes whose values are URLs.

use super::HoleContext;

/// An interpolation in the value of an attribute. The character stands for nothing else in a URL.
pub(super) const HOLE: char = '\u{fffc}';

/// The remedy for a URL that is refused.
pub(super) const HINT: &str = "begin the URL with its fixed part, such as `/pages/{…}` or `https://a.example/{…}`";

/// Schemes whose URLs may contain interpolations. None of them makes the browser run the URL as code.
const SCHEMES: [&str; 5] = ["https", "http", "mailto", "tel", "sms"];

/// Returns the context of an interpolation behind this beginning of a URL.
pub(super) fn context(before: &str, of_code: bool) -> Result<HoleContext, &'static str> {
    let scheme = scheme_of(before)?;
    let before = before.trim_start();
    if of_code && !has_origin(before, scheme) {
        return Err("the origin of what this element loads cannot be an interpolation");
    }
    Ok(if before.is_empty() { HoleContext::Url } else { HoleContext::UrlPart })
}

/// Returns the scheme of a URL, if it names one. Fails if it is not one of [`SCHEMES`], or is not certain.
pub(super) fn scheme_of(url: &str) -> Result<Option<&str>, &'static str> {
    let url = url.trim_start();
    let head = url.split(['/', '\\', '?', '#']).next().unwrap_or_default();
    if head.contains('&') {
        return Err("the scheme of this URL is not certain");
    }
    let Some((scheme, _)) = head.split_once(':') else { return Ok(None) };
    let known = SCHEMES.iter().any(|known| known.eq_ignore_ascii_case(scheme));
    if known { Ok(Some(scheme)) } else { Err("a URL with this scheme cannot contain an interpolation") }
}

/// Returns true if the beginning of a URL determines the server that is asked.
fn has_origin(before: &str, scheme: Option<&str>) -> bool {
    let rest = scheme.map_or(before, |scheme| &before[scheme.len() + 1..]);
    let mut slashes = rest.chars().take_while(|c| matches!(c, '/' | '\\')).count();
    if scheme.is_none() && slashes < 2 {
        return !before.is_empty();
    }
    slashes = slashes.min(rest.len());
    let authority = &rest[slashes..];
    let host = authority.split(['/', '\\', '?', '#']).next().unwrap_or_default();
    !host.is_empty() && host.len() < authority.len() && !host.contains(HOLE)
}
