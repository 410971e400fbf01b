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

/// Returns true if a start tag ends an open element, whose end tag is left out.
pub(super) fn is_closed_by(open: &str, name: &str) -> bool {
    match open {
        "p" => matches!(name, "p" | "li" | "dt" | "dd" | "tr" | "td" | "th"),
        "li" => name == "li",
        "dt" | "dd" => matches!(name, "dt" | "dd"),
        "rt" | "rp" => matches!(name, "rt" | "rp"),
        "option" => matches!(name, "option" | "optgroup"),
        "optgroup" => name == "optgroup",
        "td" | "th" => matches!(name, "td" | "th" | "tr" | "tbody" | "tfoot"),
        "tr" => matches!(name, "tr" | "tbody" | "tfoot"),
        "caption" | "colgroup" => matches!(name, "colgroup" | "thead" | "tbody" | "tfoot" | "tr"),
        "thead" | "tbody" => matches!(name, "tbody" | "tfoot"),
        "head" => name == "body",
        _ => false,
    }
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
