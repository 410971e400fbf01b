//! Plan parser: TOML to a plan.

use std::ops::Range;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};
use weir_host::Text;

use super::check::closest;
use super::{Located, NodePattern, Plan, PlanProblem, QUEUE_MAX, SESSION_IDLE_MAX, SESSIONS_MAX, Section, THREADS_MAX};

/// The keys of a plan.
const PLAN_KEYS: &[&str] = &["engine", "threads", "flows", "queue", "sessions", "session_idle", "section"];
/// The keys of a section.
const SECTION_KEYS: &[&str] = &["name", "nodes", "engine", "threads", "queue", "replicas", "why"];

/// Parses a plan, and reports everything unreadable.
pub(super) fn plan(text: &str) -> (Plan, Vec<PlanProblem>) {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut reader = PlanReader { problems: errors.iter().map(|error| syntax(error, text)).collect() };
    if !reader.problems.is_empty() {
        // A text that is not TOML may have been misread, so nothing of it is used.
        return (Plan::default(), reader.problems);
    }
    let table = table.get_ref();
    reader.unknown_keys(table, PLAN_KEYS, "a plan");
    let plan = Plan {
        engine: reader.text(table, "engine"),
        threads: reader.number(table, "threads", THREADS_MAX),
        flows: reader.number(table, "flows", QUEUE_MAX),
        queue: reader.number(table, "queue", QUEUE_MAX),
        sessions: reader.number(table, "sessions", SESSIONS_MAX),
        session_idle: reader.duration(table, "session_idle", SESSION_IDLE_MAX),
        sections: reader.sections(table),
    };
    (plan, reader.problems)
}

fn syntax(error: &toml::de::Error, text: &str) -> PlanProblem {
    let at = error.span().unwrap_or(text.len()..text.len());
    PlanProblem { at, message: format!("this is not TOML: {}", error.message()), help: None }
}

struct PlanReader {
    problems: Vec<PlanProblem>,
}

impl PlanReader {
    fn report(&mut self, at: Range<usize>, message: String, help: Option<String>) {
        self.problems.push(PlanProblem { at, message, help });
    }

    fn unknown_keys(&mut self, table: &DeTable<'_>, known: &[&str], what: &str) {
        for key in table.keys().filter(|key| !known.contains(&&**key.get_ref())) {
            let help = closest(key.get_ref(), known.iter().copied()).map(|near| format!("did you mean `{near}`?"));
            let help = help.unwrap_or_else(|| format!("{what} has {}", listed(known)));
            self.report(key.span(), format!("{what} has no `{}`", key.get_ref()), Some(help));
        }
    }

    fn expected(&mut self, value: &Spanned<DeValue<'_>>, key: &str, what: &str) {
        let found = value.get_ref().type_str();
        self.report(value.span(), format!("`{key}` is {what}, and not of the type {found}"), None);
    }

    fn text(&mut self, table: &DeTable<'_>, key: &str) -> Option<Located<Text>> {
        let value = table.get(key)?;
        match value.get_ref().as_str() {
            Some(text) => Some(Located { value: text.into(), at: value.span() }),
            None => {
                self.expected(value, key, "a text");
                None
            }
        }
    }

    fn number(&mut self, table: &DeTable<'_>, key: &str, most: usize) -> Option<Located<usize>> {
        let value = table.get(key)?;
        let Some(integer) = value.get_ref().as_integer() else {
            self.expected(value, key, "a whole number");
            return None;
        };
        let number = usize::from_str_radix(integer.as_str(), integer.radix()).unwrap_or(usize::MAX);
        if number == 0 || number > most {
            self.report(value.span(), format!("`{key}` is from 1 to {most}"), None);
            return None;
        }
        Some(Located { value: number, at: value.span() })
    }

    fn duration(&mut self, table: &DeTable<'_>, key: &str, most: Duration) -> Option<Located<Duration>> {
        let given = self.text(table, key)?;
        match duration(given.value.as_str()).filter(|duration| *duration <= most) {
            Some(value) => Some(Located { value, at: given.at }),
            None => {
                let days = most.as_secs() / (24 * 60 * 60);
                let message = format!("`{key}` is a time of at most {days} days");
                self.report(given.at, message, Some("write it as \"90s\", \"30m\" or \"2h\"".into()));
                None
            }
        }
    }

    fn sections(&mut self, table: &DeTable<'_>) -> Vec<Section> {
        let Some(value) = table.get("section") else { return Vec::new() };
        let Some(array) = value.get_ref().as_array() else {
            self.expected(value, "section", "an array of tables, each headed `[[section]]`");
            return Vec::new();
        };
        array.iter().filter_map(|section| self.section(section)).collect()
    }

    fn section(&mut self, value: &Spanned<DeValue<'_>>) -> Option<Section> {
        let Some(table) = value.get_ref().as_table() else {
            self.expected(value, "section", "a table");
            return None;
        };
        self.unknown_keys(table, SECTION_KEYS, "a section");
        let Some(name) = self.text(table, "name").filter(|name| !name.value.trim().is_empty()) else {
            self.report(value.span(), "this section has no name".into(), Some("add `name = \"…\"`".into()));
            return None;
        };
        Some(Section {
            nodes: self.patterns(table, &name),
            name,
            engine: self.text(table, "engine"),
            threads: self.number(table, "threads", THREADS_MAX),
            queue: self.number(table, "queue", QUEUE_MAX),
            replicas: self.number(table, "replicas", THREADS_MAX),
            why: self.text(table, "why").map(|why| why.value),
        })
    }

    fn patterns(&mut self, table: &DeTable<'_>, name: &Located<Text>) -> Vec<Located<NodePattern>> {
        let nodes = table.get("nodes");
        let empty = DeArray::new();
        let array = nodes.and_then(|nodes| nodes.get_ref().as_array()).unwrap_or(&empty);
        if array.is_empty() {
            let help = "name them by patterns, as in `nodes = [\"image.*\"]`".to_owned();
            let at = nodes.map_or(name.at.clone(), Spanned::span);
            self.report(at, format!("the section `{}` names no nodes", name.value), Some(help));
        }
        let mut patterns = Vec::new();
        for node in array.iter() {
            match node.get_ref().as_str() {
                Some(text) => patterns.push(Located { value: NodePattern::new(text), at: node.span() }),
                None => self.expected(node, "nodes", "a list of patterns"),
            }
        }
        patterns
    }
}

/// Parses a whole number and a unit, as in `30m`.
fn duration(text: &str) -> Option<Duration> {
    let unit_at = text.find(|sign: char| !sign.is_ascii_digit())?;
    let (number, unit) = text.split_at(unit_at);
    let (_, seconds) = DURATION_UNITS.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*seconds).map(Duration::from_secs)
}

/// Units of durations in a plan, in seconds.
const DURATION_UNITS: &[(&str, u64)] = &[("s", 1), ("m", 60), ("h", 60 * 60), ("d", 24 * 60 * 60)];

fn listed(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}
