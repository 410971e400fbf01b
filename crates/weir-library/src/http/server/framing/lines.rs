//! The rules for single lines of a request: its target, the values of fields, and extensions of chunks.

use super::FramingError;

/// Returns `true` for a field from which hyper derives something about the connection or the body; `first` is its first
/// letter in lower case.
#[inline]
pub(super) fn concerns_hyper(first: u8, line: &[u8]) -> bool {
    let is = |name: &[u8]| value_of(line, name).is_some();
    match first {
        // hyper keeps the connection in any case, unless a field says otherwise.
        b'c' => match value_of(line, b"connection:") {
            Some(value) => !value.eq_ignore_ascii_case(b"keep-alive"),
            // A request without the field has no body either.
            None => value_of(line, b"content-length:").is_some_and(|length| length != b"0"),
        },
        b'e' => is(b"expect:"),
        b't' => is(b"te:") || is(b"trailer:") || is(b"transfer-encoding:"),
        b'u' => is(b"upgrade:"),
        _ => false,
    }
}

/// Accepts the extensions of a chunk: nothing, or `;` and more without control characters (RFC 9112 §7.1.1). Blanks may
/// precede the `;`, but not the end of the line: some servers count them as a part of the size.
pub(super) fn chunk_extensions(extensions: &[u8]) -> Result<(), FramingError> {
    let first = extensions.iter().find(|byte| !matches!(byte, b' ' | b'\t'));
    let begins = extensions.is_empty() || first == Some(&b';');
    if begins && !extensions.iter().any(|byte| is_control(*byte)) { Ok(()) } else { Err(FramingError) }
}

/// Accepts the target of a request that is no path: a URL of this scheme without user information (RFC 9110 §4.2.4 and
/// §7.4); `*` for `OPTIONS`; and the authority for `CONNECT`.
pub(super) fn request_target(method: &[u8], target: &[u8]) -> Result<(), FramingError> {
    let accepted = match target.first() {
        Some(b'*') => target == b"*" && method == b"OPTIONS",
        _ if method == b"CONNECT" => true,
        _ => match target.split_at_checked(b"http://".len()) {
            Some((scheme, rest)) => {
                let authority = rest.split(|byte| matches!(byte, b'/' | b'?')).next().unwrap_or_default();
                scheme.eq_ignore_ascii_case(b"http://") && !authority.is_empty() && !authority.contains(&b'@')
            }
            None => false,
        },
    };
    if accepted { Ok(()) } else { Err(FramingError) }
}

pub(super) fn is_control(byte: u8) -> bool {
    byte.is_ascii_control() && byte != b'\t'
}

/// Returns the value of the field `name`, which the caller passes in lower case and with its colon.
pub(super) fn value_of<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (start, value) = line.split_at_checked(name.len())?;
    start.eq_ignore_ascii_case(name).then(|| value.trim_ascii())
}
