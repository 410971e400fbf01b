//! Formatting: the edit that formats a text.

use weir_syntax::{Edit, Span};

use crate::document::{Document, SOURCE};

impl Document {
    /// Returns the edits that format the text: none if it is formatted or has errors, otherwise one that spares the
    /// common prefix and suffix.
    #[must_use]
    pub fn formatting(&self) -> Vec<Edit> {
        let text = self.text();
        match weir_syntax::format(text, &weir_syntax::parse(SOURCE, text)) {
            Some(formatted) if formatted != text => {
                let (start, Edit { span, replacement }) = (self.whole().start, difference(text, &formatted));
                let span = Span { start: span.start + start, end: span.end + start, ..span };
                vec![Edit { span, replacement }]
            }
            _ => Vec::new(),
        }
    }
}

/// Returns the smallest single edit that turns `old` into `new`.
fn difference(old: &str, new: &str) -> Edit {
    let same = |pair: &(char, char)| pair.0 == pair.1;
    let start: usize = old.chars().zip(new.chars()).take_while(same).map(|(character, _)| character.len_utf8()).sum();
    let (old_rest, new_rest) = (&old[start..], &new[start..]);
    let ends = old_rest.chars().rev().zip(new_rest.chars().rev());
    let end: usize = ends.take_while(same).map(|(character, _)| character.len_utf8()).sum();
    let span = Span::new(SOURCE, start as u32, (old.len() - end) as u32);
    Edit { span, replacement: new_rest[..new_rest.len() - end].to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edits::apply;

    #[test]
    fn the_difference_of_two_texts_turns_one_into_the_other() {
        for (old, new) in [("", "a"), ("a", ""), ("abc", "axc"), ("aa", "aaa"), ("äöü", "äü"), ("x y", "x  y")] {
            assert_eq!(apply(old, &[difference(old, new)]), new, "{old:?} to {new:?}");
        }
    }
}
