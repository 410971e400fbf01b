//! Refuses HTML that browsers read in several ways, so that an interpolation could get into another context.

use super::elements::RawText;
use super::{FAULTS_MAX, FaultPlace, HoleContext, TemplateChar, TemplateFault, TemplateParser};

/// Maximum length of the name of a character reference.
const REFERENCE_MAX: usize = 40;

/// Elements of SVG and MathML whose content browsers parse as HTML.
const HTML_IN_FOREIGN: [&str; 7] = ["title", "desc", "mi", "mo", "mn", "ms", "mtext"];

impl TemplateParser {
    /// Records the context of the interpolation that has just been read.
    pub(super) fn hole(&mut self, context: HoleContext) {
        if self.is_in_reference() {
            let hint = "write `&amp;` for a `&`";
            return self.refuse("an interpolation cannot continue what a `&` begins", hint);
        }
        self.holes.push(context);
    }

    /// Returns true if the interpolation that has just been read could be the name of a character reference, or a part.
    fn is_in_reference(&self) -> bool {
        let before = self.symbols[..self.at - 1].iter().rev().take(REFERENCE_MAX);
        let mut others = before
            .skip_while(|symbol| matches!(symbol, TemplateChar::Char(c) if c.is_ascii_alphanumeric() || *c == '#'));
        others.next() == Some(&TemplateChar::Char('&'))
    }

    /// Returns the context of an interpolation between tags.
    pub(super) fn markup_context(&self) -> HoleContext {
        match self.open.last() {
            _ if !self.is_in_foreign() => HoleContext::Markup,
            Some(element) if HTML_IN_FOREIGN.contains(&element.name.as_str()) => HoleContext::PlainText,
            _ => HoleContext::ForeignMarkup,
        }
    }

    /// Refuses an element that leaves SVG or MathML, or contains HTML there.
    pub(super) fn element_in_foreign(&mut self, name: &str, start: usize) {
        let parent = self.open.last().map(|element| element.name.clone()).unwrap_or_default();
        let message = if HTML_IN_FOREIGN.contains(&parent.as_str()) {
            format!("`<{parent}>` contains only text in SVG and MathML")
        } else if leaves_foreign(name) {
            format!("`<{name}>` cannot stand in `<svg>` or `<math>`")
        } else {
            return;
        };
        let hint = "keep HTML out of SVG and MathML, for example in an element beside it";
        self.fault(start, name.len() + 1, &message, "begins here", hint);
    }

    /// Refuses `<!--` in a script, behind its `<`: with `<script`, it would hide the end tag.
    pub(super) fn comment_in_script(&mut self) {
        if self.is_at("!--") {
            let hint = r"write `<\\!--` in a text of the script";
            self.fault(self.at - 1, 4, "a script cannot contain `<!--`", "browsers may skip the end tag", hint);
        }
    }

    /// Refuses a tag in an element that contains only text, behind its `<`: in some places, browsers see it as a tag.
    pub(super) fn tag_in_raw_text(&mut self, element: &str, kind: RawText) {
        if matches!(self.peek(), Some(TemplateChar::Char(c)) if c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?'))
        {
            let message = format!("`<{element}>` contains no tags");
            let hint = match kind {
                RawText::Text => "write `&lt;` for a `<` that is shown",
                _ => r"remove it; in a style sheet, write `\\3c ` for a `<`",
            };
            self.fault(self.at - 1, 1, &message, "begins a tag", hint);
        }
    }

    /// Refuses `</noscript` that is no end tag here: browsers that run scripts see all of `noscript` as text, which it ends.
    pub(super) fn stray_noscript_ends(&mut self) {
        let ends = std::mem::take(&mut self.noscript_ends);
        for start in 0..self.symbols.len() {
            self.at = start;
            if self.is_at("</noscript") && ends.binary_search(&start).is_err() {
                let hint = r"write `&lt;/noscript` in HTML, and `<\\/noscript` in a script";
                self.fault(start, 10, "`</noscript` is not an end tag here", "some browsers see an end tag", hint);
            }
        }
    }

    /// Counts the faults that are not reported one by one.
    pub(super) fn count_more_faults(&mut self) {
        if self.more_faults > 0 {
            debug_assert_eq!(self.faults.len(), FAULTS_MAX, "the others have been kept");
            let message = format!("this template has {} more errors", self.more_faults);
            let (label, hint) = ("in this template", "mend the first ones: others may follow from them".to_owned());
            self.faults.push(TemplateFault { place: FaultPlace::Whole, message, label, hint });
        }
    }
}

/// Returns true for an element of HTML that ends SVG and MathML, contains HTML there, or is parsed in another way there.
fn leaves_foreign(name: &str) -> bool {
    matches!(
        name,
        "b" | "big" | "blockquote" | "body" | "br" | "center" | "code" | "dd" | "div" | "dl" | "dt" | "em" | "embed"
            | "font" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "head" | "hr" | "html" | "i" | "img" | "li" | "listing"
            | "menu" | "meta" | "nobr" | "ol" | "p" | "pre" | "ruby" | "s" | "small" | "span" | "strong" | "strike" | "sub"
            | "sup" | "table" | "tt" | "u" | "ul" | "var"
            // Elements that contain HTML.
            | "foreignobject" | "annotation-xml"
            // Elements without content or markup in HTML, and with both in SVG and MathML.
            | "area" | "base" | "col" | "input" | "link" | "param" | "source" | "track" | "wbr"
            | "script" | "style" | "textarea" | "xmp" | "iframe" | "noembed" | "noframes" | "noscript" | "plaintext"
    )
}
