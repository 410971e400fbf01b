//! Elements of HTML that are parsed in a way of their own.

/// The kinds of elements that contain no markup.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RawText {
    /// Text with character references.
    Text,
    /// A program or data.
    Script,
    /// Anything else, such as a style sheet.
    Other,
}

/// Returns the kind of an element that contains no markup.
pub(super) fn raw_text_of(name: &str) -> Option<RawText> {
    match name {
        "title" | "textarea" => Some(RawText::Text),
        "script" => Some(RawText::Script),
        "style" | "xmp" | "iframe" | "noembed" | "noframes" | "plaintext" => Some(RawText::Other),
        _ => None,
    }
}

/// Returns true for an element without content and end tag.
pub(super) fn is_void(name: &str) -> bool {
    matches!(
        name,
        "area"
            | "base"
            | "br"
            | "col"
            | "embed"
            | "hr"
            | "img"
            | "input"
            | "link"
            | "meta"
            | "param"
            | "source"
            | "track"
            | "wbr"
    )
}

/// Returns true for an element whose end tag may be left out.
pub(super) fn has_optional_end(name: &str) -> bool {
    matches!(
        name,
        "html"
            | "head"
            | "body"
            | "li"
            | "dt"
            | "dd"
            | "p"
            | "rt"
            | "rp"
            | "optgroup"
            | "option"
            | "colgroup"
            | "caption"
            | "thead"
            | "tbody"
            | "tfoot"
            | "tr"
            | "td"
            | "th"
    )
}
