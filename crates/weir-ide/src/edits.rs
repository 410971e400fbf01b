//! Edits: applies them, and computes the edit between two texts.

use weir_syntax::{Edit, Span};

use crate::document::{Document, SOURCE};

/// Applies all edits. Skips an edit that overlaps an earlier one or lies outside the text.
#[must_use]
pub fn apply(text: &str, edits: &[Edit]) -> String {
    let mut edits: Vec<&Edit> = edits.iter().collect();
    edits.sort_by_key(|edit| (edit.span.start, edit.span.end));
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for edit in edits {
        let (Some(before), Some(_)) = (text.get(done..edit.span.start as usize), text.get(edit.span.range())) else {
            continue;
        };
        out.push_str(before);
        out.push_str(&edit.replacement);
        done = edit.span.end as usize;
    }
    out.push_str(text.get(done..).unwrap_or_default());
    out
}

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

    #[test]
    fn the_difference_of_two_texts_turns_one_into_the_other() {
        for (old, new) in [("", "a"), ("a", ""), ("abc", "axc"), ("aa", "aaa"), ("äöü", "äü"), ("x y", "x  y")] {
            assert_eq!(apply(old, &[difference(old, new)]), new, "{old:?} to {new:?}");
        }
    }

    #[test]
    fn edits_that_overlap_are_left_out() {
        let edit = |start, end, text: &str| Edit { span: Span::new(SOURCE, start, end), replacement: text.to_owned() };
        assert_eq!(apply("abcd", &[edit(2, 4, "Z"), edit(0, 1, "X"), edit(3, 4, "Y"), edit(9, 10, "W")]), "XbZ");
    }
}
