//! Applies edits to a text.

use weir_syntax::Edit;

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

#[cfg(test)]
mod tests {
    use weir_syntax::{SourceId, Span};

    use super::*;

    #[test]
    fn edits_that_overlap_are_left_out() {
        let edit =
            |start, end, text: &str| Edit { span: Span::new(SourceId(0), start, end), replacement: text.to_owned() };
        assert_eq!(apply("abcd", &[edit(2, 4, "Z"), edit(0, 1, "X"), edit(3, 4, "Y"), edit(9, 10, "W")]), "XbZ");
    }
}
