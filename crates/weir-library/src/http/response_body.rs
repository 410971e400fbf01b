//! The body of a response: bytes, or a part of a text, which is neither copied nor allocated anew.

use bytes::{Buf, Bytes};
use weir::Text;

/// A text up to this length is sent as it is. Longer ones are rare, and bytes tell whether others hold them, too, which
/// decides what they count of the memory that connections hold.
const TEXT_BYTES_MAX: usize = 16 * 1024;

/// A body, or a piece of one.
#[derive(Clone, Debug)]
pub enum ResponseBody {
    /// Bytes.
    Bytes(Bytes),
    /// The bytes of a text from a position up to another one.
    Text(Text, u32, u32),
}

impl ResponseBody {
    /// Creates the body of a text.
    pub(crate) fn of_text(text: Text) -> ResponseBody {
        match u32::try_from(text.len()) {
            Ok(end) if text.len() <= TEXT_BYTES_MAX => ResponseBody::Text(text, 0, end),
            _ => ResponseBody::Bytes(Bytes::copy_from_slice(text.as_bytes())),
        }
    }

    /// Returns the number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.remaining()
    }

    /// Returns true if there are no bytes.
    pub(crate) fn is_empty(&self) -> bool {
        self.remaining() == 0
    }

    /// Returns true if a text or other bytes may share the memory of the body.
    pub(crate) fn is_shared(&self) -> bool {
        match self {
            ResponseBody::Bytes(bytes) => !bytes.is_unique(),
            ResponseBody::Text(..) => true,
        }
    }

    /// Removes this many bytes at the front, and returns them. There must be as many.
    pub(crate) fn take(&mut self, length: usize) -> ResponseBody {
        match self {
            ResponseBody::Bytes(bytes) => ResponseBody::Bytes(bytes.split_to(length)),
            ResponseBody::Text(text, from, end) => {
                assert!(length <= (*end - *from) as usize, "{length} bytes of {}", *end - *from);
                let first = *from;
                *from += length as u32;
                if *from == *end {
                    let all = ResponseBody::Text(std::mem::take(text), first, *end);
                    (*from, *end) = (0, 0);
                    return all;
                }
                ResponseBody::Text(text.clone(), first, *from)
            }
        }
    }

    /// Returns the body as bytes, which are copied from a text.
    pub(crate) fn into_bytes(self) -> Bytes {
        match self {
            ResponseBody::Bytes(bytes) => bytes,
            ResponseBody::Text(..) => Bytes::copy_from_slice(self.chunk()),
        }
    }
}

impl Default for ResponseBody {
    fn default() -> Self {
        ResponseBody::Bytes(Bytes::new())
    }
}

impl<B: Into<Bytes>> From<B> for ResponseBody {
    fn from(bytes: B) -> Self {
        ResponseBody::Bytes(bytes.into())
    }
}

impl AsRef<[u8]> for ResponseBody {
    fn as_ref(&self) -> &[u8] {
        self.chunk()
    }
}

impl Buf for ResponseBody {
    #[inline]
    fn remaining(&self) -> usize {
        match self {
            ResponseBody::Bytes(bytes) => bytes.len(),
            ResponseBody::Text(_, from, end) => (end - from) as usize,
        }
    }

    #[inline]
    fn chunk(&self) -> &[u8] {
        match self {
            ResponseBody::Bytes(bytes) => bytes,
            ResponseBody::Text(text, from, end) => &text.as_bytes()[*from as usize..*end as usize],
        }
    }

    #[inline]
    fn advance(&mut self, count: usize) {
        match self {
            ResponseBody::Bytes(bytes) => bytes.advance(count),
            ResponseBody::Text(_, from, end) => {
                assert!(count <= (*end - *from) as usize, "{count} bytes of {}", *end - *from);
                *from += count as u32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_sent_in_pieces_like_bytes() {
        for text in ["", "a", "some text", &"long ".repeat(10_000)] {
            for length in [1, 2, 5, 7_000] {
                let mut bodies = [ResponseBody::of_text(text.into()), ResponseBody::from(text.as_bytes().to_vec())];
                let pieces = bodies.each_mut().map(|body| {
                    let mut pieces = Vec::new();
                    while !body.is_empty() {
                        let mut piece = body.take(length.min(body.len()));
                        let mut bytes = piece.chunk()[..1].to_vec();
                        piece.advance(1);
                        bytes.extend_from_slice(piece.chunk());
                        assert_eq!(piece.remaining() + 1, bytes.len());
                        pieces.push(bytes);
                    }
                    pieces
                });
                assert_eq!(pieces[0], pieces[1]);
                assert_eq!(pieces[0].concat(), text.as_bytes());
            }
        }
        assert_eq!(ResponseBody::of_text("text".into()).into_bytes(), "text");
    }
}
