//! Templates: parses the HTML of an `html"…"` literal, and finds the context of each interpolation.
//!
//! The context decides how a value is escaped. The parser follows the tokenizer of the HTML standard (section 13.2.5) where
//! a template is well formed, and reports everything else: a browser would repair it, and then an interpolation could stand
//! in another context than the one that is seen here. A template is complete: it ends outside of all tags, and every element
//! that needs an end tag has one. So a template that is inserted into another one cannot change the contexts there.
//!
//! Contextual escaping follows Samuel, Saxena and Song, "Context-sensitive auto-sanitization in web templating languages
//! using type qualifiers" (CCS 2011).

mod attributes;
mod checks;
mod elements;
mod script;
mod tags;
mod url;

use weir_syntax::ast::{TextLiteral, TextPart};

use elements::{RawText, has_optional_end, is_closed_by, is_void};
pub(crate) use script::ScriptLanguage;
use script::ScriptScanner;
use tags::StartTag;

use crate::lang_items::HTML;
use crate::types::Ty;

/// The place of an interpolation in the HTML around it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum HoleContext {
    /// Between tags: text, or the value of another template.
    Markup,
    /// Between tags in SVG or MathML, which browsers parse by other rules: text, or a template that is written there.
    ForeignMarkup,
    /// In an element that contains only text, such as a `title`.
    PlainText,
    /// In a quoted attribute.
    Attribute,
    /// The whole value of an attribute that is on or off, such as `checked`.
    Flag {
        /// The name of the attribute.
        name: String,
        /// The length of ` name="` before the interpolation.
        before: usize,
    },
    /// The beginning of a URL.
    Url,
    /// A part of a URL whose beginning is known.
    UrlPart,
    /// All that is between two slashes in the path of a URL, or behind the last one.
    UrlSegment {
        /// True if no slash follows.
        is_last: bool,
    },
    /// A value in a script.
    Script(ScriptLanguage),
}

/// The place of a fault in a template.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FaultPlace {
    /// The interpolation with this index.
    Hole(usize),
    /// The text that begins with this `<`, counted from 0.
    Tag { number: usize, length: usize },
    /// The template, behind its other faults.
    Whole,
}

/// A fault in a template.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TemplateFault {
    pub(crate) place: FaultPlace,
    pub(crate) message: String,
    pub(crate) label: &'static str,
    pub(crate) hint: String,
}

/// The contexts of the interpolations of a template in order, and its faults.
pub(crate) struct ParsedTemplate {
    pub(crate) holes: Vec<HoleContext>,
    pub(crate) faults: Vec<TemplateFault>,
}

/// Returns true if values of the type are inserted between tags as they are.
pub(crate) fn is_markup(ty: &Ty) -> bool {
    match ty {
        Ty::List(part) | Ty::Option(part) => **part == Ty::named(HTML),
        ty => *ty == Ty::named(HTML),
    }
}

/// The remedy for an end tag without a start tag.
const CLOSES_NOTHING: &str = "remove it, or add the start tag";
/// Maximum number of faults of a template that are reported; more are counted.
const FAULTS_MAX: usize = 10;
/// Maximum number of elements around another one. Browsers flatten what is nested deeper than 512.
const DEPTH_MAX: usize = 200;

/// Parses the HTML of a template. `in_foreign` is true for one that is written inside of SVG or MathML of another one.
pub(crate) fn parse_template(text: &TextLiteral, in_foreign: bool) -> ParsedTemplate {
    let mut symbols = Vec::new();
    let mut hole_count = 0;
    for part in &text.parts {
        match part {
            TextPart::Literal { value, .. } => symbols.extend(value.chars().map(TemplateChar::Char)),
            TextPart::Expr(_) => {
                symbols.push(TemplateChar::Hole);
                hole_count += 1;
            }
        }
    }
    let mut parser = TemplateParser { symbols, in_foreign, ..TemplateParser::default() };
    parser.template();
    parser.stray_noscript_ends();
    parser.count_more_faults();
    parser.holes.resize(hole_count, HoleContext::PlainText);
    ParsedTemplate { holes: parser.holes, faults: parser.faults }
}

/// A character of a template, or an interpolation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TemplateChar {
    Char(char),
    Hole,
}

/// An element whose end tag has not been seen.
struct OpenElement {
    name: String,
    start: usize,
    /// True for `svg`, `math`, and all that is in them.
    is_foreign: bool,
}

#[derive(Default)]
struct TemplateParser {
    symbols: Vec<TemplateChar>,
    at: usize,
    holes: Vec<HoleContext>,
    faults: Vec<TemplateFault>,
    /// The number of faults beyond [`FAULTS_MAX`].
    more_faults: usize,
    open: Vec<OpenElement>,
    /// True if the template is inserted into SVG or MathML.
    in_foreign: bool,
    /// The places of the end tags of `noscript`.
    noscript_ends: Vec<usize>,
}

impl TemplateParser {
    fn template(&mut self) {
        while let Some(symbol) = self.next() {
            match symbol {
                TemplateChar::Hole => self.hole(self.markup_context()),
                TemplateChar::Char('<') => self.markup(self.at - 1),
                TemplateChar::Char(_) => {}
            }
        }
        for element in std::mem::take(&mut self.open) {
            self.unclosed(&element);
        }
    }

    /// Parses what follows a `<`.
    fn markup(&mut self, start: usize) {
        match self.peek() {
            Some(TemplateChar::Char(letter)) if letter.is_ascii_alphabetic() => self.start_tag(start),
            Some(TemplateChar::Hole) => {
                self.next();
                self.refuse("the name of a tag cannot be an interpolation", "write the name: `<b>{…}</b>`");
            }
            _ if self.eat("!--") => self.comment(start),
            _ if self.eat("!doctype") => _ = self.until_tag_ends(start),
            Some(TemplateChar::Char('/')) if matches!(self.nth(1), Some(TemplateChar::Char(c)) if c.is_ascii_alphabetic()) =>
            {
                self.next();
                self.end_tag(start);
            }
            _ => self.fault(start, 1, "`<` does not begin a tag", "no tag", "write `&lt;` for a `<` that is shown"),
        }
    }

    fn comment(&mut self, start: usize) {
        let is_odd = self.is_at(">") || self.is_at("->");
        while !is_odd && !self.is_at("--!>") {
            if self.eat("-->") {
                return;
            }
            match self.next() {
                Some(TemplateChar::Hole) => {
                    self.refuse("a comment cannot contain an interpolation", "leave the comment out")
                }
                Some(TemplateChar::Char(_)) => {}
                None => break,
            }
        }
        self.fault(start, 4, "the comment does not end", "begins here", "end it with `-->`");
    }

    /// Reads the rest of a tag without attributes. Returns false if it does not end.
    fn until_tag_ends(&mut self, start: usize) -> bool {
        loop {
            match self.peek() {
                Some(TemplateChar::Char('>')) => {
                    self.next();
                    return true;
                }
                None | Some(TemplateChar::Char('<')) => {
                    self.fault(start, 2, "the tag does not end", "begins here", "add `>`");
                    return false;
                }
                Some(TemplateChar::Hole) => {
                    self.next();
                    self.refuse("this tag cannot contain an interpolation", "move it between tags");
                }
                Some(TemplateChar::Char(_)) => _ = self.next(),
            }
        }
    }

    fn end_tag(&mut self, start: usize) {
        let name = self.name();
        if !self.until_tag_ends(start) {
            return;
        }
        if name == "noscript" {
            self.noscript_ends.push(start);
        }
        let Some(index) = self.open.iter().rposition(|element| element.name == name) else {
            let message = format!("`</{name}>` closes no element of this template");
            let hint = if is_void(&name) { "remove it: this element has no end tag" } else { CLOSES_NOTHING };
            self.fault(start, name.chars().count() + 3, &message, "closes nothing", hint);
            return;
        };
        for element in self.open.split_off(index).into_iter().skip(1) {
            self.unclosed(&element);
        }
    }

    /// Reports an element without an end tag, if it needs one.
    fn unclosed(&mut self, element: &OpenElement) {
        let name = &element.name;
        if !has_optional_end(name) {
            let message = format!("the element `<{name}>` is not closed");
            let hint = format!("add `</{name}>`; a layout takes its content as a parameter");
            self.fault(element.start, name.len() + 1, &message, "begins here", &hint);
        }
    }

    /// Records an element that content follows, and closes those whose end tag is left out before it.
    fn push_open(&mut self, name: String, start: usize) {
        while self.open.last().is_some_and(|open| is_closed_by(&open.name, &name)) {
            self.open.pop();
        }
        if self.open.len() == DEPTH_MAX {
            let message = format!("this element is in {DEPTH_MAX} others: browsers do not nest them deeper");
            self.fault(start, name.len() + 1, &message, "begins here", "close elements where they end");
            // What follows has no meaning.
            self.at = self.symbols.len();
            self.open.clear();
            return;
        }
        let is_foreign = self.is_in_foreign() || matches!(name.as_str(), "svg" | "math");
        self.open.push(OpenElement { name, start, is_foreign });
    }

    fn is_in_foreign(&self) -> bool {
        self.open.last().map_or(self.in_foreign, |element| element.is_foreign)
    }

    /// Reads the text of an element that contains no markup, and its end tag.
    fn raw_text(&mut self, tag: &StartTag, kind: RawText) {
        let mut script = (kind == RawText::Script).then(|| ScriptScanner::new(tag.attribute("type")));
        while let Some(symbol) = self.next() {
            match (symbol, &mut script) {
                (TemplateChar::Char('<'), _) if self.eat_end_tag(&tag.name) => return,
                (TemplateChar::Char('<'), Some(script)) => {
                    script.character('<');
                    self.comment_in_script();
                }
                (TemplateChar::Char('<'), None) => self.tag_in_raw_text(&tag.name, kind),
                (TemplateChar::Char(c), Some(script)) => script.character(c),
                (TemplateChar::Char(_), None) => {}
                (TemplateChar::Hole, Some(script)) => match script.hole() {
                    Ok(language) => self.holes.push(HoleContext::Script(language)),
                    Err(message) => self.refuse(message, script::HINT),
                },
                (TemplateChar::Hole, None) if kind == RawText::Text => self.hole(HoleContext::PlainText),
                (TemplateChar::Hole, None) => {
                    let message = format!("`<{}>` cannot contain an interpolation", tag.name);
                    self.refuse(&message, "choose between classes: `class=\"{…}\"`");
                }
            }
        }
        self.unclosed(&OpenElement { name: tag.name.clone(), start: tag.start, is_foreign: false });
    }

    /// Reads the end tag of this element, after its `<`, if it follows.
    fn eat_end_tag(&mut self, name: &str) -> bool {
        let start = self.at;
        let ends = self.eat("/") && self.eat(name);
        if ends && matches!(self.peek(), Some(TemplateChar::Char(c)) if c == '>' || c == '/' || c.is_ascii_whitespace())
        {
            self.until_tag_ends(start - 1);
            return true;
        }
        self.at = start;
        false
    }

    /// Reads the name of an element, in lower case.
    fn name(&mut self) -> String {
        let mut name = String::new();
        while let Some(TemplateChar::Char(c)) = self.peek() {
            if c.is_ascii_whitespace() || matches!(c, '/' | '>' | '<') {
                break;
            }
            name.push(c.to_ascii_lowercase());
            self.next();
        }
        if self.peek() == Some(TemplateChar::Hole) {
            self.next();
            self.refuse("the name of a tag cannot contain an interpolation", "write the name: `<h1>{…}</h1>`");
        }
        name
    }

    fn fault(&mut self, start: usize, length: usize, message: &str, label: &'static str, hint: &str) {
        if self.faults.len() == FAULTS_MAX {
            self.more_faults += 1;
            return;
        }
        let number = self.symbols[..start].iter().filter(|symbol| **symbol == TemplateChar::Char('<')).count();
        self.report(FaultPlace::Tag { number, length }, message, label, hint);
    }

    /// Reports the interpolation that has just been read.
    fn refuse(&mut self, message: &str, hint: &str) {
        self.refuse_at(self.holes.len(), message, hint);
        self.holes.push(HoleContext::PlainText);
    }

    fn refuse_at(&mut self, hole: usize, message: &str, hint: &str) {
        self.report(FaultPlace::Hole(hole), message, "cannot be made safe here", hint);
    }

    /// Keeps the first fault of each place, because later ones mostly follow from it.
    fn report(&mut self, place: FaultPlace, message: &str, label: &'static str, hint: &str) {
        if self.faults.len() == FAULTS_MAX {
            self.more_faults += 1;
        } else if self.faults.iter().all(|fault| fault.place != place) {
            self.faults.push(TemplateFault { place, message: message.to_owned(), label, hint: hint.to_owned() });
        }
    }

    fn next(&mut self) -> Option<TemplateChar> {
        let symbol = self.peek()?;
        self.at += 1;
        Some(symbol)
    }

    fn peek(&self) -> Option<TemplateChar> {
        self.nth(0)
    }

    fn nth(&self, ahead: usize) -> Option<TemplateChar> {
        self.symbols.get(self.at + ahead).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(TemplateChar::Char(c)) if c.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    /// Returns true if this text follows, in upper or lower case.
    fn is_at(&self, text: &str) -> bool {
        text.chars().zip(0..).all(|(wanted, ahead)| {
            matches!(self.nth(ahead), Some(TemplateChar::Char(found)) if found.eq_ignore_ascii_case(&wanted))
        })
    }

    fn eat(&mut self, text: &str) -> bool {
        let is_there = self.is_at(text);
        self.at += if is_there { text.len() } else { 0 };
        is_there
    }
}
