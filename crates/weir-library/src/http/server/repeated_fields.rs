//! Header fields that a client repeats: parsed once, and then left out of what hyper reads.
//!
//! Most clients send the same fields with each request of a connection, and to parse them takes hyper longer than all the
//! rest of a small request. The stream in front of hyper and the service behind it leave that out:
//!
//! 1. *Ask.* The framing sees that the fields of a head are those of an earlier head, byte for byte. It asks the service to
//!    remember the fields of this request, which it names by its number on the connection.
//! 2. *Remember.* The service gets the requests in the same order, and keeps a copy of the parsed fields.
//! 3. *Leave out.* As long as heads have the same fields, the framing removes them before hyper reads the head. hyper then
//!    passes on a request of HTTP/1.1 without any field. There is no other such request, because the framing refuses a head
//!    of HTTP/1.1 without a `Host`. The service adds what it remembers.
//!
//! Two blocks of fields are repeated, and the heads without fields stand in a queue with the number of their block. A head
//! without its fields comes after the request whose fields are remembered, and before the next request for which the framing asks
//! for this block, because it asks only for a head whose fields differ from those that it knew before. So each request gets its
//! own fields, also if many are in the buffers between the framing and the service.
//!
//! Fields that tell hyper something about the connection or the body stay.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ops::Deref;
use std::rc::Rc;

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Request, Version};

use crate::http::cross_site;
use crate::trace_context;

/// Header fields that requests repeat.
pub struct RepeatedHeader {
    fields: HeaderMap,
    /// True if they contain the context of a trace, which most do not.
    pub(in crate::http) has_trace: bool,
    /// True if they say from which page the request comes, which those of programs do not.
    pub(in crate::http) names_page: bool,
}

impl Deref for RepeatedHeader {
    type Target = HeaderMap;

    fn deref(&self) -> &HeaderMap {
        &self.fields
    }
}

/// The number of blocks of fields that are repeated.
pub(super) const REPEATED_BLOCKS: usize = 2;

/// The fields that a connection has agreed on.
#[derive(Default)]
pub(super) struct RepeatedFields {
    blocks: [AgreedBlock; REPEATED_BLOCKS],
    /// The block of each head without fields that the service has not got yet, in order.
    left_out: RefCell<VecDeque<usize>>,
    /// The number of requests that the service has got.
    requests: Cell<u64>,
}

/// A block of fields.
#[derive(Default)]
struct AgreedBlock {
    /// The number of the request whose fields are to be remembered; 0 for none.
    asked: Cell<u64>,
    /// The bytes of these fields, as they arrived.
    arrived: RefCell<Vec<u8>>,
    /// The number of the request whose fields are remembered; 0 for none.
    remembered: Cell<u64>,
    header: RefCell<Option<Rc<RepeatedHeader>>>,
}

impl RepeatedFields {
    /// Asks the service to remember the fields of the request with this number as a block, which have arrived as these bytes. The
    /// service has not got that request yet.
    pub(super) fn ask(&self, block: usize, request: u64, fields: &[u8]) {
        let block = &self.blocks[block];
        block.asked.set(request);
        block.arrived.replace(fields.to_vec());
    }

    /// Returns `true` if the service remembers the fields of this request as a block: then those of the head that has arrived now are left
    /// out.
    pub(super) fn leaves_out(&self, block: usize, request: u64) -> bool {
        let is_remembered = self.blocks[block].remembered.get() == request;
        if is_remembered {
            self.left_out.borrow_mut().push_back(block);
        }
        is_remembered
    }

    /// Returns the fields of the next request, if they were left out; otherwise the request has them.
    pub(super) fn of<B>(&self, request: &Request<B>) -> Option<Rc<RepeatedHeader>> {
        let number = self.requests.get() + 1;
        self.requests.set(number);
        for block in &self.blocks {
            if number == block.asked.get() {
                block.remember(number, request.headers());
            }
        }
        if request.headers().is_empty() && request.version() == Version::HTTP_11 {
            let block = self.left_out.borrow_mut().pop_front()?;
            return self.blocks[block].header.borrow().clone();
        }
        None
    }
}

impl AgreedBlock {
    /// Copies the fields, because those of the request keep the whole buffer that was read.
    #[cold]
    fn remember(&self, number: u64, fields: &HeaderMap) {
        // A mistake in counting must not give a request the fields of another one.
        if !are_parsed_from(fields, &self.arrived.take()) {
            return;
        }
        let mut copies = HeaderMap::with_capacity(fields.len());
        for (name, value) in fields {
            copies.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap_or_else(|_| value.clone()));
        }
        let (has_trace, names_page) = (trace_context::is_in(&copies), cross_site::names_page(&copies));
        self.header.replace(Some(Rc::new(RepeatedHeader { fields: copies, has_trace, names_page })));
        self.remembered.set(number);
    }
}

/// Returns `true` if these are the fields that arrived as these bytes.
fn are_parsed_from(fields: &HeaderMap, bytes: &[u8]) -> bool {
    let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).collect();
    let lines: Vec<(&[u8], &[u8])> = lines.into_iter().filter_map(name_and_value).collect();
    let is_parsed = |(name, value): &(&[u8], &[u8])| {
        let Ok(name) = HeaderName::from_bytes(name) else { return false };
        fields.get_all(name).iter().any(|parsed| parsed.as_bytes() == *value)
    };
    lines.len() == fields.len() && lines.iter().all(is_parsed)
}

fn name_and_value(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = memchr::memchr(b':', line)?;
    Some((&line[..colon], line[colon + 1..].trim_ascii()))
}
