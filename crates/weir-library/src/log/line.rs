//! Lines of the log: one for each message of `log`, and for each event that `weir run` reports.
//!
//! Messages and fields contain what clients send. So all lines are made here: no text in one can begin another line,
//! control a terminal or change the order in which characters are shown ([`escaped`]), and none can pass for a field.

use std::borrow::Cow;
use std::fmt::Write;
use std::time::SystemTime;

use serde_json::{Map, Value as Tree, json};

use super::LogLevel;

/// A line of the log.
#[derive(Clone, Debug, Default)]
pub struct LogLine {
    /// Importance of the message.
    pub level: LogLevel,
    /// The message.
    pub message: String,
    /// Values that belong to it, by name.
    pub fields: Map<String, Tree>,
    /// Identity of the distributed trace that it belongs to.
    pub trace_id: Option<String>,
}

impl LogLine {
    /// Returns the line as text for people: `2026-11-23T06:50:00.123Z INFO paid order=7`. A message that could be taken for
    /// fields is written in quotation marks, as in JSON.
    #[must_use]
    pub fn text(&self, time: Option<&str>) -> String {
        let mut line = time.map_or(String::new(), |time| format!("{time} "));
        _ = write!(line, "{} ", self.level.word().to_uppercase());
        match is_unambiguous(&self.message) {
            true => line += &self.message,
            false => line += &Tree::from(self.message.as_str()).to_string(),
        }
        for (name, value) in &self.fields {
            match value {
                Tree::String(text) if is_word(text) => _ = write!(line, " {name}={text}"),
                value => _ = write!(line, " {name}={value}"),
            }
        }
        if let Some(trace_id) = &self.trace_id {
            _ = write!(line, " trace_id={trace_id}");
        }
        escaped(&line).into_owned()
    }

    /// Returns the line as an object of JSON: `{"time":"…","level":"info","message":"paid","fields":{"order":7}}`.
    #[must_use]
    pub fn json(&self, time: &str) -> String {
        let mut line = json!({ "time": time, "level": self.level.word(), "message": self.message });
        if !self.fields.is_empty() {
            line["fields"] = Tree::Object(self.fields.clone());
        }
        if let Some(trace_id) = &self.trace_id {
            line["trace_id"] = trace_id.as_str().into();
        }
        escaped(&line.to_string()).into_owned()
    }
}

/// Returns the current time as all lines have it.
#[must_use]
pub fn now() -> String {
    let now = jiff::Timestamp::try_from(SystemTime::now()).unwrap_or_default();
    format!("{now:.3}")
}

/// Returns the text with escape sequences, which are also those of JSON, for control characters, for characters that end a
/// line, and for those that change the direction of writing.
#[must_use]
pub fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(needs_escape) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for char in text.chars() {
        match char {
            '\n' => escaped += "\\n",
            '\r' => escaped += "\\r",
            '\t' => escaped += "\\t",
            char if needs_escape(char) => _ = write!(escaped, "\\u{:04x}", u32::from(char)),
            char => escaped.push(char),
        }
    }
    Cow::Owned(escaped)
}

/// Returns `true` for the characters that [`escaped`] replaces; all have at most four hexadecimal digits.
fn needs_escape(char: char) -> bool {
    let changes_direction = matches!(char,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    char.is_control() || changes_direction || matches!(char, '\u{2028}' | '\u{2029}')
}

/// Returns `true` for a message that needs no quotation marks: it cannot be taken for fields or for a quoted message.
fn is_unambiguous(message: &str) -> bool {
    !message.contains(|char| needs_escape(char) || matches!(char, '"' | '=' | '\\'))
}

/// Returns `true` for the text of a field that needs no quotation marks.
fn is_word(text: &str) -> bool {
    !text.is_empty() && is_unambiguous(text) && !text.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(message: &str, fields: &Tree) -> LogLine {
        let fields = fields.as_object().unwrap().clone();
        LogLine { level: LogLevel::Warn, message: message.to_owned(), fields, trace_id: None }
    }

    #[test]
    fn a_line_stays_one_line() {
        let fields = json!({"order": 7, "by": "ada", "note": "a b\nINFO forged", "list": [1, "x"], "none": null});
        let line = line("paid\nERROR forged", &fields);
        assert_eq!(
            line.text(Some("T")),
            "T WARN \"paid\\nERROR forged\" order=7 by=ada note=\"a b\\nINFO forged\" list=[1,\"x\"] none=null"
        );
        assert_eq!(
            line.json("T"),
            "{\"time\":\"T\",\"level\":\"warn\",\"message\":\"paid\\nERROR forged\",\"fields\":{\"order\":7,\
             \"by\":\"ada\",\"note\":\"a b\\nINFO forged\",\"list\":[1,\"x\"],\"none\":null}}"
        );
        assert_eq!(LogLine::default().text(None), "INFO ");
    }

    #[test]
    fn no_text_controls_a_terminal_or_the_direction_of_writing() {
        let text = "a\u{1b}[2J\u{7f}\u{85}\u{9b}\u{2028}\u{2029}\u{202e}\u{2066}\u{200f}\u{61c}é😀";
        let expected = "a\\u001b[2J\\u007f\\u0085\\u009b\\u2028\\u2029\\u202e\\u2066\\u200f\\u061cé😀";
        let line = line(text, &json!({ "field": text, "list": [text] }));
        assert_eq!(line.text(None), format!("WARN \"{expected}\" field=\"{expected}\" list=[\"{expected}\"]"));
        let json = line.json("T");
        assert!(!json.contains(needs_escape), "{json}");
        let read: Tree = serde_json::from_str(&json).unwrap();
        assert_eq!((&read["message"], &read["fields"]["list"][0]), (&Tree::from(text), &Tree::from(text)));
    }

    #[test]
    fn a_message_cannot_pass_for_fields() {
        let said = |message| line(message, &json!({ "order": 7 })).text(None);
        assert_eq!(said("paid by ada"), "WARN paid by ada order=7");
        assert_eq!(said("paid order=9"), "WARN \"paid order=9\" order=7");
        assert_eq!(said("\"paid\" \\"), "WARN \"\\\"paid\\\" \\\\\" order=7");
        assert_eq!(line("paid", &json!({ "by": "ada order=9" })).text(None), "WARN paid by=\"ada order=9\"");
    }
}
