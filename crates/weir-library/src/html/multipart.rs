//! Forms with files: `multipart/form-data` (RFC 7578).

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use futures_core::Stream;
use multer::Multipart;
use weir::{Failure, FailureKind};

use super::FIELDS_MAX;
use crate::units;

/// A part of a form with files.
#[derive(Clone, Debug, PartialEq, Eq, weir::Type)]
#[weir(name = "html.Part")]
pub struct FormPart {
    /// The name of the form's field.
    pub name: String,
    /// The name of the file on the visitor's machine; none for a field without a file. It is a text from outside: do not use
    /// it as a path.
    pub file_name: Option<String>,
    /// The media type that the browser states.
    pub media_type: Option<String>,
    /// The content.
    pub content: Bytes,
}

/// Decodes the parts of a form with files, as a browser sends it for
/// `<form method="post" enctype="multipart/form-data">`. `content_type` is the header field of that name:
/// `post "/" (header content_type: Text, body form: Bytes)`. The length of a form is limited by `body_bytes_max`.
///
/// # Errors
/// Fails if the form is not of this type or is malformed, or if it has more than 1,000 parts.
#[weir::function(pure, units = units::to_transform(form))]
pub fn multipart(form: Bytes, content_type: &str) -> Result<Vec<FormPart>, Failure> {
    form_parts(form, boundary(content_type)?)
}

/// Returns the text that separates the parts of a form with this media type.
pub(crate) fn boundary(content_type: &str) -> Result<String, Failure> {
    let no_form = |_| Failure::argument("the form is not `multipart/form-data` with a boundary");
    multer::parse_boundary(content_type).map_err(no_form)
}

/// Decodes the parts of a form that this text separates.
pub(crate) fn form_parts(form: Bytes, boundary: String) -> Result<Vec<FormPart>, Failure> {
    let mut decoding = pin!(parts(Multipart::new(WholeBody(Some(form)), boundary)));
    // All of the form is there, so that nothing has to be waited for.
    match decoding.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(parts) => parts,
        Poll::Pending => Err(Failure::argument("the form is incomplete")),
    }
}

async fn parts(mut form: Multipart<'_>) -> Result<Vec<FormPart>, Failure> {
    let malformed = |error: multer::Error| Failure::argument(format!("the form is malformed: {error}"));
    let mut parts = Vec::new();
    while let Some(field) = form.next_field().await.map_err(malformed)? {
        if parts.len() == FIELDS_MAX {
            return Err(Failure::new(FailureKind::Limit, format!("the form has more than {FIELDS_MAX} parts")));
        }
        parts.push(FormPart {
            name: field.name().unwrap_or_default().to_owned(),
            file_name: field.file_name().map(str::to_owned),
            media_type: field.content_type().map(ToString::to_string),
            content: field.bytes().await.map_err(malformed)?,
        });
    }
    Ok(parts)
}

/// A body that has been read as a whole.
struct WholeBody(Option<Bytes>);

impl Stream for WholeBody {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.take().map(Ok))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPE: &str = "multipart/form-data; boundary=XX";

    fn decode(form: &str) -> Result<Vec<FormPart>, Failure> {
        multipart(Bytes::from(form.replace('\n', "\r\n")), TYPE)
    }

    #[test]
    fn fields_and_files_are_decoded() {
        let form = "--XX\nContent-Disposition: form-data; name=\"title\"\n\nSunset\n--XX\nContent-Disposition: form-data; \
                    name=\"file\"; filename=\"../a.png\"\nContent-Type: image/png\n\n--X\n\0\n--XX--\n";
        let parts = decode(form).unwrap();
        assert_eq!((&*parts[0].name, &parts[0].file_name, &parts[0].content[..]), ("title", &None, &b"Sunset"[..]));
        assert_eq!((&*parts[1].name, parts[1].file_name.as_deref()), ("file", Some("../a.png")));
        assert_eq!((parts[1].media_type.as_deref(), &parts[1].content[..]), (Some("image/png"), &b"--X\r\n\0"[..]));
        assert_eq!(decode("--XX--\n").unwrap(), []);
    }

    #[test]
    fn malformed_forms_are_refused() {
        for form in ["", "--XX", "--XX\nContent-Disposition: form-data; name=\"a\"\n\nb", "--XX\n\nb\n--XX--", "x"] {
            assert!(decode(form).is_err(), "{form:?}");
        }
        for content_type in ["", "text/plain", "multipart/form-data", "multipart/form-data; boundary="] {
            assert!(multipart(Bytes::new(), content_type).is_err(), "{content_type}");
        }
        let part = "--XX\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nb\r\n";
        let many = part.repeat(FIELDS_MAX + 1) + "--XX--";
        assert_eq!(multipart(many.into(), TYPE).unwrap_err().kind, FailureKind::Limit);
    }

    /// Damaged forms give a failure or parts, and never a panic.
    #[test]
    fn damaged_forms_are_decoded_or_refused() {
        let form = "--XX\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a\"\r\n\r\nab\r\n--XX--\r\n";
        for at in 0..form.len() {
            for byte in [b'\0', b'-', b'\r', b'"', b';', 0xff] {
                let mut damaged = form.as_bytes().to_vec();
                damaged[at] = byte;
                let _ = multipart(damaged.clone().into(), TYPE);
                damaged.truncate(at);
                let _ = multipart(damaged.into(), TYPE);
            }
        }
    }
}
