//! `Text`: an immutable string that is cheap to create, clone and share.

mod characters;
#[cfg(test)]
mod model;
mod sync;
mod used_bytes;

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

use self::characters::Characters;

/// An immutable UTF-8 string. Up to 15 bytes, as in most names and keys, are stored inline without allocation; cloning
/// a longer string increments a reference count.
#[derive(Clone)]
pub struct Text(Characters);

impl Text {
    /// Returns the text as a string slice.
    #[inline]
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Returns an empty text with room for this many bytes.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Text(Characters::with_capacity(bytes))
    }

    /// Creates the text of these parts, one after the other, with one allocation of its length.
    #[must_use]
    pub fn concatenated<'a>(parts: impl Iterator<Item = &'a str> + Clone) -> Self {
        Text(Characters::concatenated(parts))
    }

    /// Returns the two words of a text of up to 15 bytes, which are the same for equal texts and for no others; `None` for a
    /// longer text.
    #[inline]
    pub(crate) fn words(&self) -> Option<[u64; 2]> {
        self.0.words()
    }

    /// Adds characters at the end, in amortised constant time, also if others hold the text: they do not see what is added.
    /// Of several texts that grow from the same one, the first to do so keeps its characters where they are; the others are
    /// copied.
    #[inline]
    pub fn push(&mut self, characters: &str) {
        self.0.push(characters);
    }

    /// Returns the bytes of memory that adding so many bytes of characters allocates, unless the text has to be copied
    /// because another one grew from it.
    #[must_use]
    pub fn bytes_to_push(&self, bytes: usize) -> usize {
        self.0.bytes_to_push(bytes)
    }
}

impl Default for Text {
    fn default() -> Self {
        Text::with_capacity(0)
    }
}

impl PartialEq for Text {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Text {}

impl PartialOrd for Text {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Text {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.order(&other.0)
    }
}

impl Hash for Text {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl Deref for Text {
    type Target = str;
    #[inline]
    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl Borrow<str> for Text {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<[u8]> for Text {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl From<&str> for Text {
    #[inline]
    fn from(text: &str) -> Self {
        Text(Characters::new(text))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Text(Characters::new(&text))
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}
