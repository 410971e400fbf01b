//! Interpolations in attributes whose values are URLs.

use super::HoleContext;

/// An interpolation in the value of an attribute. The character stands for nothing else in a URL.
pub(super) const HOLE: char = '\u{fffc}';

/// The remedy for a URL that is refused.
const HINT: &str = "begin the URL with its fixed part, such as `/pages/{…}` or `https://a.example/{…}`";

/// Schemes whose URLs may contain interpolations. None of them makes the browser run the URL as code.
const SCHEMES: [&str; 5] = ["https", "http", "mailto", "tel", "sms"];

/// The reason for refusing an interpolation, and a remedy.
type UrlFault = (&'static str, &'static str);

/// Returns the contexts of the interpolations in a URL. `of_code` is true if the page runs or shows what is loaded from it.
pub(super) fn contexts(url: &str, of_code: bool) -> Vec<Result<HoleContext, UrlFault>> {
    // Browsers skip these characters.
    let url = url.replace(['\t', '\n', '\r'], "");
    let url = url.trim_start_matches(|c| c <= ' ');
    let scheme = scheme_of(url);
    let holes = url.match_indices(HOLE);
    holes.map(|(at, _)| scheme.and_then(|scheme| context(url, at, scheme, of_code))).collect()
}

/// Returns the path of a URL, with what is before it.
fn path_of(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or_default()
}

/// Returns the scheme of a URL, if it names one. Fails if it is not one of [`SCHEMES`], or is not certain.
fn scheme_of(url: &str) -> Result<Option<&str>, UrlFault> {
    let path = path_of(url);
    // A character reference that contains `#` ends the path here, but begins in it.
    if path.replace("&amp;", "").contains('&') {
        let hint = "write the character itself, and `&amp;` for a `&`";
        return Err(("a URL with a character reference in its path cannot contain an interpolation", hint));
    }
    let head = path.split(['/', '\\']).next().unwrap_or_default();
    let Some((scheme, _)) = head.split_once(':') else { return Ok(None) };
    let known = SCHEMES.iter().any(|known| known.eq_ignore_ascii_case(scheme));
    if known { Ok(Some(scheme)) } else { Err(("a URL with this scheme cannot contain an interpolation", HINT)) }
}

/// Returns the context of the interpolation at this place of a URL.
fn context(url: &str, at: usize, scheme: Option<&str>, of_code: bool) -> Result<HoleContext, UrlFault> {
    if of_code && !has_origin(&url[..at], scheme) {
        return Err(("the origin of what this element loads cannot be an interpolation", HINT));
    }
    let path = path_of(url);
    if at == 0 {
        return Ok(HoleContext::Url);
    }
    let has_segments = scheme.is_none_or(|scheme| scheme.to_ascii_lowercase().starts_with("http"));
    if at > path.len() || !has_segments {
        return Ok(HoleContext::UrlPart);
    }
    let is_slash = |c: char| matches!(c, '/' | '\\');
    // An interpolation at the beginning may be a whole URL: the segment begins behind it.
    let begin =
        scheme.map_or(0, |scheme| scheme.len() + 1).max(if url.starts_with(HOLE) { HOLE.len_utf8() } else { 0 });
    let start = path[begin..at].rfind(is_slash).map_or(begin, |slash| begin + slash + 1);
    let end = path[at..].find(is_slash).map_or(path.len(), |slash| at + slash);
    let segment = path[start..end].to_ascii_lowercase().replace("%2e", ".");
    if segment.contains(|c| !matches!(c, HOLE | '.')) {
        Ok(HoleContext::UrlPart)
    } else if segment.chars().eq([HOLE]) {
        Ok(HoleContext::UrlSegment { is_last: end == path.len() })
    } else {
        let hint = "put a fixed character into it, such as `/{…}-{…}`, or a `/` between the interpolations";
        Err(("this segment of a path could be empty, `.` or `..`", hint))
    }
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
