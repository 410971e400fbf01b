//! The fields of the last valid head without a body, with which those of the next head are compared as a whole.

use std::rc::Rc;

use crate::http::server::repeated_fields::RepeatedFields;

/// Field blocks longer than this are examined each time.
const KNOWN_BYTES_MAX: usize = 1024;

/// Fields that need not be examined again.
pub(super) struct KnownFields {
    /// The fields, including the empty line; empty if none are known.
    bytes: Vec<u8>,
    /// True if hyper has to read them each time.
    concern_hyper: bool,
    /// The number of the head for which the service was asked to remember them; 0 if it was not asked yet.
    asked: u64,
    repeated: Rc<RepeatedFields>,
}

impl KnownFields {
    /// No fields; the service will be asked to remember them by `repeated`.
    pub(super) fn new(repeated: Rc<RepeatedFields>) -> Self {
        KnownFields { bytes: Vec::new(), concern_hyper: false, asked: 0, repeated }
    }

    /// Returns the number of bytes, including the empty line.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns `true` if the next bytes are the known fields.
    pub(super) fn begin(&self, bytes: &[u8]) -> bool {
        !self.bytes.is_empty() && bytes.starts_with(&self.bytes)
    }

    /// Replaces the fields, unless there are none or too many.
    pub(super) fn replace(&mut self, fields: &[u8], concern_hyper: bool) {
        if (1..=KNOWN_BYTES_MAX).contains(&fields.len()) {
            self.bytes.clear();
            self.bytes.extend_from_slice(fields);
            (self.concern_hyper, self.asked) = (concern_hyper, 0);
        }
    }

    /// Returns `true` if the service remembers the fields, which the head with this number repeats. At the first repetition,
    /// asks the service to do so.
    pub(super) fn are_remembered(&mut self, head: u64) -> bool {
        if self.concern_hyper {
            return false;
        }
        if self.asked == 0 {
            self.asked = head;
            self.repeated.ask(head, &self.bytes);
        }
        self.repeated.are_of(self.asked)
    }
}
