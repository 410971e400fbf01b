//! URLs (the URL Standard of WHATWG): their parts, references, and percent-encodings.

use percent_encoding::percent_decode_str;
use weir::Failure;

use crate::units;

weir::library! {
    /// URLs: their parts, references, and percent-encodings. `client.encode` encodes a part of a URL.
    pub(crate) url: parse, join, decode
}

/// Number of characters of a text that a message shows.
const SHOWN_MAX: usize = 80;

/// The parts of a URL. Path, query and fragment are percent-encoded, as in the URL.
#[derive(Clone, Debug, PartialEq, Eq, weir::Type)]
#[weir(name = "url.Url")]
pub struct Url {
    /// The scheme in lower case, such as `https`.
    pub scheme: String,
    /// The user before the host; empty if there is none.
    pub user: String,
    /// The host in lower case, in ASCII; `None` for a URL such as `mailto:ada@example.org`.
    pub host: Option<String>,
    /// The port, if it is not the one of the scheme.
    pub port: Option<i64>,
    /// The path, which begins with `/` if there is a host.
    pub path: String,
    /// The text behind `?`, which `html.form` decodes.
    pub query: Option<String>,
    /// The text behind `#`.
    pub fragment: Option<String>,
}

/// Divides an absolute URL into its parts. `.` and `..` in its path are resolved.
///
/// # Errors
/// Fails if the text is not an absolute URL.
#[weir::function(pure, units = units::to_transform(text))]
pub fn parse(text: &str) -> Result<Url, Failure> {
    let url = url::Url::parse(text).map_err(|error| refused(text, error))?;
    Ok(Url {
        scheme: url.scheme().to_owned(),
        user: url.username().to_owned(),
        host: url.host_str().map(str::to_owned),
        port: url.port().map(i64::from),
        path: url.path().to_owned(),
        query: url.query().map(str::to_owned),
        fragment: url.fragment().map(str::to_owned),
    })
}

/// Returns the URL to which a reference on a page leads: `https://a.example/b/d` for `../d` on `https://a.example/b/c/e`. The
/// reference may be a URL of another host.
///
/// # Errors
/// Fails if `base` is not an absolute URL, or if the reference is no URL.
#[weir::function(pure, units = units::to_transform(base) + units::to_transform(reference))]
pub fn join(base: &str, reference: &str) -> Result<String, Failure> {
    let base = url::Url::parse(base).map_err(|error| refused(base, error))?;
    Ok(base.join(reference).map_err(|error| refused(reference, error))?.into())
}

/// Decodes percent-encodings: `a b` for `a%20b`. A `%` without two hexadecimal digits remains, and so does a `+`; in a query,
/// `html.form` decodes it to a blank.
///
/// # Errors
/// Fails if the decoded bytes are not UTF-8.
#[weir::function(pure, room = 2 * text.len(), units = units::to_transform(text))]
pub fn decode(text: &str) -> Result<String, Failure> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map(Into::into).map_err(|_| Failure::function(format!("{} is not UTF-8 in percent-encoding", shown(text))))
}

fn refused(text: &str, reason: impl std::fmt::Display) -> Failure {
    Failure::function(format!("{} is not a URL: {reason}", shown(text)))
}

/// Returns the beginning of a text in quotation marks.
fn shown(text: &str) -> String {
    format!("{:?}", text.chars().take(SHOWN_MAX).collect::<String>())
}
