//! The fields of earlier valid heads without a body, with which those of the next head are compared as a whole.
//!
//! Three blocks of fields are known: the last one that hyper has to read each time, and the last two that it need not read again,
//! with and without `Content-Length: 0`. So a client that sends `GET` and `POST` without a body in turns repeats both.

use std::rc::Rc;

use crate::http::server::repeated_fields::{REPEATED_BLOCKS, RepeatedFields};

/// Field blocks longer than this are examined each time.
const KNOWN_BYTES_MAX: usize = 1024;

/// Fields that need not be examined again.
pub(super) struct KnownFields {
    /// The fields that hyper need not read.
    blocks: [RepeatedBlock; REPEATED_BLOCKS],
    /// The fields that hyper has to read each time.
    for_hyper: Vec<u8>,
    repeated: Rc<RepeatedFields>,
}

/// Fields that hyper need not read.
#[derive(Default)]
struct RepeatedBlock {
    /// The fields, including the empty line; empty if none are known.
    bytes: Vec<u8>,
    /// The number of the head for which the service was asked to remember them; 0 if it was not asked yet.
    asked: u64,
}

/// The use of fields: hyper has to read them each time, or need not read them again.
#[derive(Clone, Copy)]
pub(super) enum FieldsUse {
    ForHyper,
    /// The number of their block.
    Repeated(usize),
}

/// Known fields that a head begins with.
#[derive(Clone, Copy)]
pub(super) struct KnownBlock {
    /// The number of bytes, including the empty line.
    pub(super) length: usize,
    pub(super) used: FieldsUse,
}

impl KnownFields {
    /// No fields; the service will be asked to remember them by `repeated`.
    pub(super) fn new(repeated: Rc<RepeatedFields>) -> Self {
        KnownFields { blocks: Default::default(), for_hyper: Vec::new(), repeated }
    }

    /// Returns the known fields that are the next bytes.
    #[inline]
    pub(super) fn at(&self, bytes: &[u8]) -> Option<KnownBlock> {
        let begins = |known: &[u8]| !known.is_empty() && bytes.starts_with(known);
        for (number, block) in self.blocks.iter().enumerate() {
            if begins(&block.bytes) {
                return Some(KnownBlock { length: block.bytes.len(), used: FieldsUse::Repeated(number) });
            }
        }
        begins(&self.for_hyper).then_some(KnownBlock { length: self.for_hyper.len(), used: FieldsUse::ForHyper })
    }

    /// Replaces the fields that have this use, unless there are none or too many.
    pub(super) fn replace(&mut self, fields: &[u8], used: FieldsUse) {
        if !(1..=KNOWN_BYTES_MAX).contains(&fields.len()) {
            return;
        }
        let known = match used {
            FieldsUse::ForHyper => &mut self.for_hyper,
            FieldsUse::Repeated(number) => {
                self.blocks[number].asked = 0;
                &mut self.blocks[number].bytes
            }
        };
        known.clear();
        known.extend_from_slice(fields);
    }

    /// Leaves fields out of the head with this number if the service remembers them, and returns whether it does. At the first
    /// repetition, asks the service to do so.
    pub(super) fn leaves_out(&mut self, number: usize, head: u64) -> bool {
        let block = &mut self.blocks[number];
        if block.asked == 0 {
            block.asked = head;
            self.repeated.ask(number, head, &block.bytes);
        }
        self.repeated.leaves_out(number, block.asked)
    }
}
