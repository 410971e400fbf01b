//! Texts of a database that cannot store NUL.
//!
//! NUL is stored as U+0001 U+0001, and U+0001 as U+0001 U+0002. Every text has one stored form, and the bytes of stored forms
//! are in the order of those of the texts, so that comparisons and orders mean the same. All other texts are stored as they are.

use std::borrow::Cow;

const ESCAPE: char = '\u{1}';

/// Returns the stored form of a text.
pub(super) fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', ESCAPE]) {
        return Cow::Borrowed(text);
    }
    let mut stored = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '\0' => stored.extend([ESCAPE, '\u{1}']),
            ESCAPE => stored.extend([ESCAPE, '\u{2}']),
            other => stored.push(other),
        }
    }
    Cow::Owned(stored)
}

/// Returns the text of a stored form; `None` if it is the form of no text.
pub(super) fn unescaped(stored: &str) -> Option<Cow<'_, str>> {
    if !stored.contains(ESCAPE) {
        return Some(Cow::Borrowed(stored));
    }
    let mut text = String::with_capacity(stored.len());
    let mut characters = stored.chars();
    while let Some(character) = characters.next() {
        match character {
            ESCAPE => text.push(match characters.next()? {
                '\u{1}' => '\0',
                '\u{2}' => ESCAPE,
                _ => return None,
            }),
            other => text.push(other),
        }
    }
    Some(Cow::Owned(text))
}

#[cfg(test)]
mod tests {
    use super::{escaped, unescaped};

    #[test]
    fn stored_forms_have_no_nul_and_the_order_of_their_texts() {
        let parts = ["", "\0", "\u{1}", "\u{2}", "a", "ä"];
        let texts: Vec<String> =
            parts.iter().flat_map(|a| parts.iter().flat_map(move |b| parts.map(|c| format!("{a}{b}{c}")))).collect();
        for one in &texts {
            let stored = escaped(one);
            assert!(!stored.contains('\0'));
            assert_eq!(unescaped(&stored).as_deref(), Some(one.as_str()));
            for other in &texts {
                assert_eq!(one.cmp(other), stored.cmp(&escaped(other)), "{one:?} and {other:?}");
            }
        }
        assert_eq!(unescaped("\u{1}x"), None);
        assert_eq!(unescaped("x\u{1}"), None);
    }
}
