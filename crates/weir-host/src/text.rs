//! `Text`: an immutable string that is cheap to create, clone and share.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;

use ecow::EcoString;

/// An immutable UTF-8 string. Up to 15 bytes, as in most names and keys, are stored inline without allocation; cloning
/// a longer string increments a reference count.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text(EcoString);

/// The length in bytes from which a text that must grow is copied at once.
const LONG: usize = 1 << 12;

impl Text {
    /// Returns the text as a string slice.
    #[inline]
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns an empty text with room for this many bytes.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Text(EcoString::with_capacity(bytes))
    }

    /// Adds characters at the end, in amortised constant time if the text is not shared; otherwise it is copied first.
    #[inline]
    pub fn push(&mut self, characters: &str) {
        if self.0.len() >= LONG && self.0.capacity() - self.0.len() < characters.len() {
            return self.push_to_copy(characters);
        }
        self.0.push_str(characters);
    }

    /// Adds characters to a copy with more room. `EcoString` copies shared characters one by one when it grows, which takes
    /// ten times as long.
    #[cold]
    fn push_to_copy(&mut self, characters: &str) {
        let needed = self.0.len() + characters.len();
        let mut grown = EcoString::with_capacity(needed.max(2 * self.0.capacity()));
        grown.push_str(&self.0);
        grown.push_str(characters);
        self.0 = grown;
    }
}

impl Deref for Text {
    type Target = str;
    #[inline]
    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Text {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl AsRef<[u8]> for Text {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl From<&str> for Text {
    #[inline]
    fn from(text: &str) -> Self {
        Text(EcoString::from(text))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Text(EcoString::from(text))
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}
