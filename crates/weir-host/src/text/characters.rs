//! The characters of a text: inline, or at the beginning of a buffer that texts share.
//!
//! A buffer may be longer than a text in it. Adding characters to a text whose end is the end of what is used of its buffer
//! writes them behind it, whoever else holds the text, because a text reads up to its own length only. So a text grows in
//! amortised constant time beside its earlier states. (A slice of Go shares its array in the same way.)
//!
//! *Layout.* The last byte tells the two forms apart. Bytes of inline texts that no character takes are 0, so that two inline
//! texts are equal if and only if their words are.
//!
//! *Protocol.* Of a buffer, the bytes below `used` belong to texts, and the others to nobody.
//! 1. A text that grows claims the bytes behind it: it replaces `used` by its new length if `used` is its present length.
//!    That is one atomic operation, so one text at most gets them. It alone writes them, and only afterwards is it as long.
//! 2. Bytes are not written again while a text has them: a claim begins at `used`, which no text in the buffer exceeds.
//! 3. A text reads below its length: bytes that were written before the text had this length. Another thread that has the
//!    text got it by something that synchronises, as for any value. So `used` needs no ordering of its own.
//! 4. If a text is the only one in its buffer, it sets `used` without a comparison, which is faster. Texts that were longer
//!    have been dropped, and the count of references orders their reads before.

use std::cell::UnsafeCell;
use std::cmp::Ordering;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::panic::RefUnwindSafe;

use triomphe::{Arc, HeaderWithLength, ThinArc, UniqueArc};

use super::used_bytes::UsedBytes;

/// The number of bytes up to which a text lies inline.
const INLINE_MAX: usize = 15;
/// The bit of the last byte that is set in an inline text.
const INLINE: u8 = 1 << 7;
/// The number of bits below the last byte.
const TAG_SHIFT: u32 = INLINE_MAX as u32 * u8::BITS;
/// The capacity of the smallest buffer that a text gets because it grows.
const CAPACITY_MIN: usize = 32;

/// UTF-8 characters in two words.
pub(super) union Characters {
    inline: InlineCharacters,
    /// The words of an inline text.
    words: [u64; 2],
    shared: ManuallyDrop<SharedCharacters>,
}

#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct InlineCharacters {
    bytes: [u8; INLINE_MAX],
    /// The length and the bit [`INLINE`].
    tag: u8,
}

#[derive(Clone)]
#[repr(C)]
struct SharedCharacters {
    buffer: CharacterBuffer,
    /// The length in little-endian order, so that the last byte is 0.
    length: u64,
}

const _: () =
    assert!(size_of::<InlineCharacters>() == 16 && size_of::<SharedCharacters>() == 16, "both forms take two words");

/// Bytes that texts share; the header is `used`.
type CharacterBuffer = ThinArc<UsedBytes, MaybeUninit<SharedByte>>;

/// A byte of a buffer. It is written once, before a text has it.
#[repr(transparent)]
struct SharedByte(UnsafeCell<u8>);

#[expect(unsafe_code, reason = "texts of several threads share a buffer")]
// SAFETY: by the protocol, no thread reads a byte while another one writes it, and one thread at most writes it.
unsafe impl Sync for SharedByte {}

// A panic leaves no byte between two states.
impl RefUnwindSafe for SharedByte {}

/// A reference to the form that the characters have.
enum CharacterForm<'c> {
    Inline(&'c InlineCharacters),
    Shared(&'c SharedCharacters),
}

/// The same for a change.
enum CharacterFormMut<'c> {
    Inline(&'c mut InlineCharacters),
    Shared(&'c mut SharedCharacters),
}

impl Clone for Characters {
    #[inline]
    fn clone(&self) -> Self {
        match self.form() {
            CharacterForm::Inline(inline) => Characters { inline: *inline },
            CharacterForm::Shared(shared) => Characters { shared: ManuallyDrop::new(shared.clone()) },
        }
    }
}

impl Drop for Characters {
    #[inline]
    #[expect(unsafe_code, reason = "a union drops nothing by itself")]
    fn drop(&mut self) {
        if !self.is_inline() {
            // SAFETY: this form is the one that the characters have, and they are not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.shared) }
        }
    }
}

impl Characters {
    /// Compares two texts byte by byte. Inline texts are compared as numbers whose first byte counts most: behind the end of the shorter
    /// one is 0, and if the longer one has the same there, the lengths, which are in the last byte, decide.
    #[inline]
    pub(super) fn order(&self, other: &Self) -> Ordering {
        match (self.inline_words(), other.inline_words()) {
            // The words one by one: arrays are compared in a loop.
            (Some([one, last]), Some([other, other_last])) => {
                let first = u64::from_be(one).cmp(&u64::from_be(other));
                first.then_with(|| u64::from_be(last).cmp(&u64::from_be(other_last)))
            }
            _ => self.as_str().cmp(other.as_str()),
        }
    }
}

impl PartialEq for Characters {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        match (self.inline_words(), other.inline_words()) {
            (Some(one), Some(other)) => one == other,
            _ => self.as_str() == other.as_str(),
        }
    }
}

impl Characters {
    /// Creates an empty text with room for this many bytes.
    pub(super) fn with_capacity(bytes: usize) -> Self {
        if bytes <= INLINE_MAX {
            return Characters::inline(0, 0);
        }
        Characters::shared(0, buffer(bytes))
    }

    #[inline]
    pub(super) fn new(text: &str) -> Self {
        if text.len() <= INLINE_MAX {
            return Characters::inline(number_of(text.as_bytes()), text.len());
        }
        Characters::copied(text, "", text.len())
    }

    /// Creates a text of several parts.
    pub(super) fn concatenated<'a>(parts: impl Iterator<Item = &'a str> + Clone) -> Self {
        let mut text = Characters::with_capacity(parts.clone().map(str::len).sum());
        parts.for_each(|part| text.push(part));
        text
    }

    /// Creates an inline text of so many bytes, which are those of a number in little-endian order.
    #[inline]
    fn inline(bytes: u128, length: usize) -> Self {
        let words = bytes | (u128::from(INLINE | length as u8) << TAG_SHIFT);
        Characters { words: [(words as u64).to_le(), ((words >> u64::BITS) as u64).to_le()] }
    }

    #[inline]
    #[expect(unsafe_code, reason = "the characters are UTF-8, and were written before the text had its length")]
    pub(super) fn as_str(&self) -> &str {
        match self.form() {
            // SAFETY: the length is at most that of the array, and its first bytes are those of `&str`s, one after the
            // other.
            CharacterForm::Inline(inline) => unsafe {
                std::str::from_utf8_unchecked(inline.bytes.get_unchecked(..inline.length()))
            },
            // SAFETY: the bytes below the length of a text are those of `&str`s, one after the other (1), and are not
            // written while the text has them (2).
            CharacterForm::Shared(shared) => unsafe {
                let bytes = shared.buffer.slice.as_ptr().cast::<u8>();
                std::str::from_utf8_unchecked(std::slice::from_raw_parts(bytes, shared.length()))
            },
        }
    }

    #[inline]
    #[expect(unsafe_code, reason = "the last byte is one of both forms")]
    fn is_inline(&self) -> bool {
        // SAFETY: all bytes of both forms are initialised.
        unsafe { self.inline.tag & INLINE != 0 }
    }

    /// Returns the words of the inline form, also of a short text that has a buffer; `None` for a longer text.
    #[inline]
    pub(super) fn words(&self) -> Option<[u64; 2]> {
        self.inline_words().or_else(|| self.words_of_shared())
    }

    fn words_of_shared(&self) -> Option<[u64; 2]> {
        let text = self.as_str();
        if text.len() <= INLINE_MAX { Characters::new(text).inline_words() } else { None }
    }

    #[inline]
    #[expect(unsafe_code, reason = "an inline text is read as words")]
    fn inline_words(&self) -> Option<[u64; 2]> {
        if !self.is_inline() {
            return None;
        }
        // SAFETY: all bytes of an inline text are initialised, and none belongs to a pointer.
        Some(unsafe { self.words })
    }

    #[inline]
    #[expect(unsafe_code, reason = "the form is known")]
    fn form(&self) -> CharacterForm<'_> {
        // SAFETY: this is the form that the characters have.
        if self.is_inline() {
            CharacterForm::Inline(unsafe { &self.inline })
        } else {
            CharacterForm::Shared(unsafe { &self.shared })
        }
    }

    #[inline]
    #[expect(unsafe_code, reason = "the form is known")]
    fn form_mut(&mut self) -> CharacterFormMut<'_> {
        match self.is_inline() {
            // SAFETY: this is the form that the characters have.
            true => CharacterFormMut::Inline(unsafe { &mut self.inline }),
            // SAFETY: as above.
            false => CharacterFormMut::Shared(unsafe { &mut self.shared }),
        }
    }

    /// Returns the number of bytes that adding as many allocates.
    pub(super) fn bytes_to_push(&self, added: usize) -> usize {
        let needed = self.as_str().len() + added;
        match self.form() {
            CharacterForm::Shared(shared) if needed <= shared.buffer.slice.len() => 0,
            _ => needed,
        }
    }

    /// Adds characters at the end.
    #[inline]
    pub(super) fn push(&mut self, added: &str) {
        match self.form_mut() {
            CharacterFormMut::Inline(inline) => {
                let (length, end) = (inline.length(), inline.length() + added.len());
                if end <= INLINE_MAX {
                    let before = inline.number();
                    *self =
                        Characters::inline(before | (number_of(added.as_bytes()) << (length as u32 * u8::BITS)), end);
                    return;
                }
            }
            CharacterFormMut::Shared(shared) => {
                let length = shared.length();
                if claim(&shared.buffer, length, added.len()) {
                    write(&shared.buffer, length, added);
                    shared.length = ((length + added.len()) as u64).to_le();
                    return;
                }
            }
        }
        self.push_copying(added);
    }

    /// Adds characters to a copy with room for more.
    #[cold]
    fn push_copying(&mut self, added: &str) {
        let text = self.as_str();
        *self = Characters::copied(text, added, (text.len() + added.len()).max(text.len() * 2).max(CAPACITY_MIN));
    }

    /// Creates a text of two parts in a buffer with this capacity.
    fn copied(first: &str, second: &str, capacity: usize) -> Self {
        let buffer = buffer(capacity);
        let length = first.len() + second.len();
        assert!(claim(&buffer, 0, length), "{length} bytes in a buffer of {capacity}");
        write(&buffer, 0, first);
        write(&buffer, first.len(), second);
        Characters::shared(length, buffer)
    }

    fn shared(length: usize, buffer: CharacterBuffer) -> Self {
        Characters { shared: ManuallyDrop::new(SharedCharacters { buffer, length: (length as u64).to_le() }) }
    }
}

/// Returns the number of which these bytes, at most [`INLINE_MAX`], are the lowest ones in little-endian order. It is put
/// together in registers: calling `memcpy`, and reading as words what it has stored as bytes, takes several times as long.
#[inline]
fn number_of(bytes: &[u8]) -> u128 {
    let length = bytes.len();
    // The two parts may overlap: they have the same bytes there.
    let (first, last, width) = match (bytes.first_chunk(), bytes.last_chunk()) {
        (Some(first), Some(last)) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last), size_of::<u64>()),
        _ => match (bytes.first_chunk(), bytes.last_chunk()) {
            (Some(first), Some(last)) => {
                (u32::from_le_bytes(*first).into(), u32::from_le_bytes(*last).into(), size_of::<u32>())
            }
            _ => return bytes.iter().rev().fold(0, |number, byte| (number << u8::BITS) | u128::from(*byte)),
        },
    };
    u128::from(first) | (u128::from(last) << ((length - width) as u32 * u8::BITS))
}

impl InlineCharacters {
    /// Returns the number of which the characters are the bytes.
    #[inline]
    fn number(&self) -> u128 {
        number_of(&self.bytes)
    }

    #[inline]
    fn length(&self) -> usize {
        usize::from(self.tag & !INLINE)
    }
}

impl SharedCharacters {
    #[inline]
    fn length(&self) -> usize {
        u64::from_le(self.length) as usize
    }
}

fn buffer(capacity: usize) -> CharacterBuffer {
    // No allocation is so large that the highest byte of a length is not 0.
    let header = HeaderWithLength::new(UsedBytes::new(), capacity);
    Arc::into_thin(UniqueArc::from_header_and_uninit_slice(header, capacity).shareable())
}

/// Claims the bytes behind a text of this length; returns `false` if they belong to another one, or if they are too few.
#[inline]
fn claim(buffer: &CharacterBuffer, length: usize, added: usize) -> bool {
    buffer.slice.len() - length >= added && buffer.header.header.claim(length, added, buffer.with_arc(Arc::is_unique))
}

/// Writes bytes that the caller has claimed.
#[inline]
#[expect(unsafe_code, reason = "the bytes are claimed")]
fn write(buffer: &CharacterBuffer, from: usize, added: &str) {
    let place = &buffer.slice[from..from + added.len()];
    let place = UnsafeCell::raw_get(place.as_ptr().cast::<UnsafeCell<u8>>());
    // SAFETY: there are as many bytes. No other text has them or writes them (1, 2), `added` included.
    unsafe { std::ptr::copy_nonoverlapping(added.as_ptr(), place, added.len()) };
}
