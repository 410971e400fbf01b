//! The fields of earlier valid heads without a body, with which those of the next head are compared as a whole.
//!
//! Two blocks of fields are known: the last one that hyper need not read again, and the last one that it has to read each time, such
//! as that of a `POST` without a body, which says `Content-Length: 0`. So a client that sends both in turns repeats both.

use std::rc::Rc;

use crate::http::server::repeated_fields::RepeatedFields;

/// Field blocks longer than this are examined each time.
const KNOWN_BYTES_MAX: usize = 1024;

/// Fields that need not be examined again.
pub(super) struct KnownFields {
    /// The fields that hyper need not read, including the empty line; empty if none are known.
    bytes: Vec<u8>,
    /// The fields that hyper has to read each time.
    for_hyper: Vec<u8>,
    /// The number of the head for which the service was asked to remember `bytes`; 0 if it was not asked yet.
    asked: u64,
    repeated: Rc<RepeatedFields>,
}

/// Known fields that a head begins with.
#[derive(Clone, Copy)]
pub(super) struct KnownBlock {
    /// The number of bytes, including the empty line.
    pub(super) length: usize,
    /// True if hyper has to read them.
    pub(super) concerns_hyper: bool,
}

impl KnownFields {
    /// No fields; the service will be asked to remember them by `repeated`.
    pub(super) fn new(repeated: Rc<RepeatedFields>) -> Self {
        KnownFields { bytes: Vec::new(), for_hyper: Vec::new(), asked: 0, repeated }
    }

    /// Returns the known fields that are the next bytes.
    #[inline]
    pub(super) fn at(&self, bytes: &[u8]) -> Option<KnownBlock> {
        let begins = |known: &[u8]| !known.is_empty() && bytes.starts_with(known);
        if begins(&self.bytes) {
            return Some(KnownBlock { length: self.bytes.len(), concerns_hyper: false });
        }
        begins(&self.for_hyper).then_some(KnownBlock { length: self.for_hyper.len(), concerns_hyper: true })
    }

    /// Replaces the fields that concern hyper, or those that do not, unless there are none or too many.
    pub(super) fn replace(&mut self, fields: &[u8], concern_hyper: bool) {
        if !(1..=KNOWN_BYTES_MAX).contains(&fields.len()) {
            return;
        }
        let known = if concern_hyper { &mut self.for_hyper } else { &mut self.bytes };
        known.clear();
        known.extend_from_slice(fields);
        if !concern_hyper {
            self.asked = 0;
        }
    }

    /// Returns `true` if the service remembers the fields that hyper need not read, which the head with this number repeats. At the
    /// first repetition, asks the service to do so.
    pub(super) fn are_remembered(&mut self, head: u64) -> bool {
        if self.asked == 0 {
            self.asked = head;
            self.repeated.ask(head, &self.bytes);
        }
        self.repeated.are_of(self.asked)
    }
}
