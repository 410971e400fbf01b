//! The header fields of a request while it is answered.

use hyper::header::HeaderMap;

/// The header fields of a request.
pub(crate) struct RequestFields<'r> {
    /// The fields that came with the request. The response reuses the allocation.
    pub(crate) parsed: &'r mut HeaderMap,
    /// The fields of an earlier request that this one repeats; `parsed` is empty then.
    pub(crate) repeated: Option<&'r HeaderMap>,
}

impl<'r> RequestFields<'r> {
    /// Returns fields that all came with the request.
    pub(crate) fn of(parsed: &'r mut HeaderMap) -> Self {
        RequestFields { parsed, repeated: None }
    }

    /// Returns the fields.
    pub(crate) fn get(&self) -> &HeaderMap {
        self.repeated.unwrap_or(self.parsed)
    }
}
