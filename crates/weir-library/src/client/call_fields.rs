//! The header fields of a call.
//!
//! Its request takes them along, because a copy of a header takes as long as the routing of a small request. The few calls that
//! need them again, after a redirect or because a connection has ended, make them again.

use std::mem;

use hyper::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue,
    TE, TRAILER, TRANSFER_ENCODING, UPGRADE, USER_AGENT,
};
use indexmap::IndexMap;
use weir::{Failure, Secret, Text};

use crate::trace_context;

/// Header fields that the client sets itself.
const OWN_FIELDS: [HeaderName; 8] =
    [ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, HOST, TE, TRAILER, TRANSFER_ENCODING, UPGRADE];
/// Maximum total size of the header fields of a request, in bytes.
const FIELDS_BYTES_MAX: usize = 16 * 1024;
/// Number of fields for which there is room beside those of the program: the two that are always there, the trace, the host, and
/// the type of a body.
const FURTHER_FIELDS: usize = 6;
const AGENT: &str = concat!("weir/", env!("CARGO_PKG_VERSION"));

/// Header fields of a request, by their names.
pub type Headers = IndexMap<Text, Text>;

/// The header fields of a call.
#[derive(Clone, Debug)]
pub(super) struct CallFields {
    fields: HeaderMap,
    /// `true` if a request has taken them.
    are_taken: bool,
    /// Their origin; `None` if they were changed since, and are copied for a request.
    origin: Option<FieldsOrigin>,
}

/// The values of which the header fields of a call are made.
#[derive(Clone, Debug)]
struct FieldsOrigin {
    given: Headers,
    bearer: Option<Secret>,
    /// The type of the body, unless the program gives it.
    content_type: Option<HeaderValue>,
}

impl CallFields {
    /// Makes the header fields that a program gives, and those that each request has.
    ///
    /// # Errors
    /// Fails if one of them is not valid, or is set by the client.
    pub(super) fn new(given: Headers, bearer: Option<Secret>) -> Result<Self, Failure> {
        let origin = FieldsOrigin { given, bearer, content_type: None };
        Ok(CallFields { fields: origin.fields()?, are_taken: false, origin: Some(origin) })
    }

    /// Sets the type of the body, unless the program has set it.
    ///
    /// # Errors
    /// Fails if it is not valid in a header.
    pub(super) fn set_content_type(&mut self, media_type: &str) -> Result<(), Failure> {
        if self.get().contains_key(CONTENT_TYPE) {
            return Ok(());
        }
        let value = value("Content-Type", media_type)?;
        self.origin.iter_mut().for_each(|origin| origin.content_type = Some(value.clone()));
        self.fields.insert(CONTENT_TYPE, value);
        Ok(())
    }

    /// Adds the trace of the flow that calls, unless the program has set one.
    pub(super) fn pass_on_trace(&mut self) {
        trace_context::pass_on(&mut self.fields);
    }

    /// Returns the fields.
    pub(super) fn get(&mut self) -> &HeaderMap {
        if mem::take(&mut self.are_taken)
            && let Some(origin) = &self.origin
        {
            // They were valid before.
            self.fields = origin.fields().unwrap_or_default();
            self.pass_on_trace();
        }
        &self.fields
    }

    /// Returns the fields, which are changed for the next requests.
    pub(super) fn changed(&mut self) -> &mut HeaderMap {
        self.get();
        self.origin = None;
        &mut self.fields
    }

    /// Returns the fields for a request.
    pub(super) fn taken(&mut self) -> HeaderMap {
        self.get();
        if self.origin.is_none() {
            return self.fields.clone();
        }
        self.are_taken = true;
        mem::take(&mut self.fields)
    }
}

impl FieldsOrigin {
    /// Makes the fields.
    ///
    /// # Errors
    /// Fails if one of them is not valid, or is set by the client.
    fn fields(&self) -> Result<HeaderMap, Failure> {
        let mut fields = HeaderMap::with_capacity(self.given.len() + FURTHER_FIELDS);
        fields.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        fields.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        for (name, text) in &self.given {
            let field = HeaderName::try_from(name.as_str())
                .map_err(|_| Failure::argument(format!("{name:?} is not the name of a header field")))?;
            if OWN_FIELDS.contains(&field) {
                return Err(Failure::argument(format!("the header field `{name}` is set by the client")));
            }
            fields.insert(field, value(name, text)?);
        }
        if let Some(secret) = &self.bearer {
            fields.insert(AUTHORIZATION, bearer_value(secret)?);
        }
        let bytes: usize = fields.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
        if bytes > FIELDS_BYTES_MAX {
            return Err(Failure::argument(format!("the header fields take more than {FIELDS_BYTES_MAX} bytes")));
        }
        if let Some(content_type) = &self.content_type {
            fields.insert(CONTENT_TYPE, content_type.clone());
        }
        Ok(fields)
    }
}

fn value(name: &str, text: &str) -> Result<HeaderValue, Failure> {
    let visible = text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t'));
    let value = HeaderValue::from_str(text).ok().filter(|_| visible);
    // The value may be a credential, and is not shown.
    value.ok_or_else(|| Failure::argument(format!("the value of `{name}` may contain only visible ASCII characters")))
}

fn bearer_value(secret: &Secret) -> Result<HeaderValue, Failure> {
    let value = HeaderValue::from_bytes(&[b"Bearer ", secret.reveal()].concat());
    let mut value = value.map_err(|_| Failure::argument("the secret is not a bearer token: it is not a text"))?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(given: &[(&str, &str)], bearer: Option<&str>) -> CallFields {
        let given = given.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect();
        CallFields::new(given, bearer.map(|bearer| Secret::new(bearer.into()))).unwrap()
    }

    #[test]
    fn every_request_of_a_call_has_the_same_fields_and_an_identity_of_its_own() {
        let mut fields = fields(&[("Accept", "text/plain"), ("X-Key", "a b")], Some("secret"));
        fields.set_content_type("application/json").unwrap();
        fields.pass_on_trace();
        let mut first = fields.taken();
        assert_eq!((first.len(), &first[AUTHORIZATION]), (7, &HeaderValue::from_static("Bearer secret")));
        let parent = first.remove("traceparent").unwrap();
        for mut again in [fields.taken(), fields.get().clone(), fields.taken()] {
            assert_ne!(again.remove("traceparent").unwrap(), parent);
            assert_eq!(again, first);
        }
    }

    #[test]
    fn a_given_type_of_the_body_stays() {
        let mut fields = fields(&[("content-type", "text/csv")], None);
        fields.set_content_type("application/json").unwrap();
        assert_eq!([fields.taken(), fields.taken()].map(|taken| taken[CONTENT_TYPE].clone()), ["text/csv"; 2]);
    }

    #[test]
    fn changed_fields_stay_changed() {
        let mut fields = fields(&[("X-Key", "a")], Some("secret"));
        fields.pass_on_trace();
        drop(fields.taken());
        fields.changed().remove(AUTHORIZATION);
        for taken in [fields.taken(), fields.taken()] {
            assert_eq!((taken.len(), taken.contains_key(AUTHORIZATION)), (4, false));
        }
    }

    #[test]
    fn a_trace_that_the_program_sets_is_kept() {
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let (mut given, mut begun) = (fields(&[("traceparent", parent)], None), fields(&[], None));
        for _ in 0..2 {
            given.pass_on_trace();
            begun.pass_on_trace();
            assert_eq!(given.taken()["traceparent"], parent);
            assert_ne!(begun.taken()["traceparent"], parent);
        }
    }
}
