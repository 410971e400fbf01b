//! Start tags: their attributes, and the contexts of interpolations in these.

use super::attributes::{self, AttributeRule};
use super::elements::{RawText, is_void, raw_text_of};
use super::{HoleContext, TemplateChar, TemplateParser, url};

/// A start tag.
#[derive(Default)]
pub(super) struct StartTag {
    pub(super) name: String,
    /// The position of its `<`.
    pub(super) start: usize,
    /// The names of its attributes in lower case, with their values; `None` if there is an interpolation in it.
    attributes: Vec<(String, Option<String>)>,
    /// The first interpolation in `content`.
    content_hole: Option<usize>,
    closes_itself: bool,
}

impl StartTag {
    pub(super) fn attribute(&self, name: &str) -> Option<&Option<String>> {
        self.attributes.iter().find(|(found, _)| found == name).map(|(_, value)| value)
    }
}

impl TemplateParser {
    pub(super) fn start_tag(&mut self, start: usize) {
        let mut tag = StartTag { name: self.name(), start, ..StartTag::default() };
        if !self.attributes(&mut tag) {
            return;
        }
        self.meta(&tag);
        let in_foreign = self.is_in_foreign();
        if in_foreign {
            self.element_in_foreign(&tag.name, start);
        }
        match raw_text_of(&tag.name) {
            _ if is_void(&tag.name) || (in_foreign && tag.closes_itself) => {}
            Some(RawText::Script | RawText::Other) if in_foreign => self.raw_text(&tag, RawText::Other),
            Some(_) if tag.name == "plaintext" => {
                let hint = "write `<pre>`";
                self.fault(start, 10, "`<plaintext>` has no end tag", "all that follows is text", hint);
                self.raw_text(&tag, RawText::Other);
            }
            Some(kind) if !in_foreign => self.raw_text(&tag, kind),
            _ => self.push_open(tag.name, start),
        }
    }

    /// Refuses an interpolation in a `meta` element that instructs the browser.
    fn meta(&mut self, tag: &StartTag) {
        let Some(hole) = tag.content_hole.filter(|_| tag.name == "meta") else { return };
        if tag.attribute("http-equiv").is_some() {
            let message = "the instruction of a `meta` with `http-equiv` cannot contain an interpolation";
            self.refuse_at(hole, message, "answer with `http.redirect`, or with `http.with_header`");
        }
        let is_safe = match tag.attribute("name") {
            Some(Some(name)) => !name.contains('&') && !name.trim().eq_ignore_ascii_case("referrer"),
            Some(None) => false,
            None => true,
        };
        if !is_safe {
            let message =
                "the `content` of a `meta` whose `name` is `referrer` or not fixed cannot contain an interpolation";
            self.refuse_at(hole, message, "write the name or the content");
        }
    }

    /// Reads the attributes of a tag and its end. Returns false if it does not end.
    fn attributes(&mut self, tag: &mut StartTag) -> bool {
        loop {
            self.skip_space();
            match self.peek() {
                None | Some(TemplateChar::Char('<')) => {
                    let message = format!("the tag `<{}` does not end", tag.name);
                    self.fault(tag.start, tag.name.len() + 1, &message, "begins here", "add `>`");
                    return false;
                }
                Some(TemplateChar::Char('>')) => {
                    self.next();
                    return true;
                }
                Some(TemplateChar::Char('/')) => {
                    self.next();
                    tag.closes_itself = self.is_at(">");
                }
                Some(TemplateChar::Hole) => {
                    self.next();
                    let hint = "name the attribute: `class=\"{…}\"`, or `checked=\"{…}\"` with a `Bool`";
                    self.refuse("an attribute's name cannot be an interpolation", hint);
                }
                Some(TemplateChar::Char(_)) => self.attribute(tag),
            }
        }
    }

    fn attribute(&mut self, tag: &mut StartTag) {
        let start = self.at;
        let name = self.attribute_name(tag);
        if self.peek() == Some(TemplateChar::Hole) {
            return;
        }
        self.skip_space();
        if !self.eat("=") {
            tag.attributes.push((name, Some(String::new())));
            return;
        }
        self.skip_space();
        let value = match self.peek() {
            Some(TemplateChar::Char(quote @ ('"' | '\''))) => {
                self.next();
                self.quoted(tag, &name, start, quote)
            }
            _ => self.unquoted(tag, &name),
        };
        tag.attributes.push((name, value));
    }

    /// Reads the name of an attribute, in lower case.
    fn attribute_name(&mut self, tag: &StartTag) -> String {
        let mut name = String::new();
        while let Some(TemplateChar::Char(c)) = self.peek() {
            match c {
                '/' | '>' | '=' | '<' if !name.is_empty() => break,
                c if c.is_ascii_whitespace() => break,
                '"' | '\'' | '=' | '<' => {
                    let message = format!("`{c}` cannot stand in the name of an attribute of `<{}>`", tag.name);
                    self.fault(tag.start, tag.name.len() + 1, &message, "in this tag", "write `name=\"value\"`");
                    self.next();
                }
                c => {
                    name.push(c.to_ascii_lowercase());
                    self.next();
                }
            }
        }
        name
    }

    /// Reads a value without quotes; `None` if there is an interpolation in it.
    fn unquoted(&mut self, tag: &StartTag, name: &str) -> Option<String> {
        let mut value = Some(String::new());
        let first = self.at;
        loop {
            match self.peek() {
                Some(TemplateChar::Hole) => {
                    self.next();
                    let hint = format!("write `{name}=\"{{…}}\"`");
                    self.refuse("the value of an attribute needs quotes around an interpolation", &hint);
                    value = None;
                }
                Some(TemplateChar::Char(c)) if !c.is_ascii_whitespace() && c != '>' => {
                    self.next();
                    value.iter_mut().for_each(|value| value.push(c));
                }
                _ => break,
            }
        }
        let is_odd = value.as_ref().is_some_and(|value| value.contains(['"', '\'', '<', '=', '`']));
        if first == self.at || is_odd {
            let message = format!("the attribute `{name}` has no quoted value");
            let hint = format!("write `{name}=\"…\"`");
            self.fault(tag.start, tag.name.len() + 1, &message, "in this tag", &hint);
        }
        value
    }

    /// Reads a value up to its closing quote; `None` if there is an interpolation in it.
    fn quoted(&mut self, tag: &mut StartTag, name: &str, start: usize, quote: char) -> Option<String> {
        let rule = attributes::rule_of(&tag.name, name);
        let (mut value, first_hole) = (String::new(), self.holes.len());
        loop {
            match self.next() {
                Some(TemplateChar::Char(c)) if c == quote => break,
                Some(TemplateChar::Char(c)) => value.push(if c == url::HOLE { char::REPLACEMENT_CHARACTER } else { c }),
                Some(TemplateChar::Hole) => {
                    if name == "content" {
                        tag.content_hole = tag.content_hole.or(Some(self.holes.len()));
                    }
                    self.hole_in_attribute(&rule, name, &value, (start, quote));
                    value.push(url::HOLE);
                }
                None => {
                    let message = format!("the value of the attribute `{name}` does not end");
                    let hint = format!("add the closing `{quote}`");
                    self.fault(tag.start, tag.name.len() + 1, &message, "in this tag", &hint);
                    return None;
                }
            }
        }
        if first_hole == self.holes.len() {
            return Some(value);
        }
        if let AttributeRule::Url { of_code } = rule {
            for (hole, context) in (first_hole..).zip(url::contexts(&value, of_code)) {
                match context {
                    Ok(context) => self.holes[hole] = context,
                    Err((message, hint)) => self.refuse_at(hole, message, hint),
                }
            }
        }
        None
    }

    /// Determines the context of an interpolation that has been read in an attribute. `before` is the value before it.
    fn hole_in_attribute(&mut self, rule: &AttributeRule, name: &str, before: &str, place: (usize, char)) {
        match rule {
            AttributeRule::Paint if before.to_ascii_lowercase().contains("url(") => {
                self.refuse("`url(…)` in an attribute cannot contain an interpolation", "write the URL");
            }
            AttributeRule::Plain | AttributeRule::Paint => self.hole(HoleContext::Attribute),
            AttributeRule::Refused { message, hint } => self.refuse(message, hint),
            // Its context is known at the end of the URL.
            AttributeRule::Url { .. } => self.hole(HoleContext::UrlPart),
            AttributeRule::Flag => {
                let (start, quote) = place;
                if before.is_empty() && self.peek() == Some(TemplateChar::Char(quote)) {
                    let has_space =
                        matches!(self.symbols[start - 1], TemplateChar::Char(space) if space.is_ascii_whitespace());
                    let before = self.at - 1 - start + usize::from(has_space);
                    self.holes.push(HoleContext::Flag { name: name.to_owned(), before });
                } else {
                    let hint = format!("write `{name}=\"{{…}}\"` with a `Bool`");
                    self.refuse("this attribute is present or not, and has no value", &hint);
                }
            }
        }
    }
}
