//! Plan parser: TOML to a plan.

use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use weir_host::{ReachableHosts, Value, ends_in_number};

use super::check::closest;
use super::keys::{KeyValue, PLAN_KEYS, Plan, PlanKey, SECTION, SECTION_KEYS, SECTIONS_MAX, Section, longest};
use super::parallelism::Parallelism;
use super::pattern::NodePattern;
use super::problem::{Located, PlanProblem, ProblemSeverity};

/// Seconds of a day.
const DAY_SECONDS: u64 = 24 * 60 * 60;

/// Units of durations in a plan, in seconds.
const SIZE_UNITS: &[(&str, u64)] = &[("b", 1), ("kb", 1 << 10), ("mb", 1 << 20), ("gb", 1 << 30), ("tb", 1 << 40)];
/// The forms of sizes and durations.
const SIZES: &str = "write it as \"64mb\" or \"2gb\"";
const DURATIONS: &str = "write whole seconds, minutes, hours or days: \"90s\", \"30m\", \"2h\" or \"1d\"";
const DURATION_UNITS: &[(&str, u64)] = &[("s", 1), ("m", 60), ("h", 60 * 60), ("d", DAY_SECONDS)];

/// Parses a plan, and reports everything unreadable.
pub(super) fn plan(text: &str) -> (Plan, Vec<PlanProblem>) {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut reader = PlanReader { problems: errors.iter().map(|error| syntax(error, text)).collect() };
    let mut plan = Plan::default();
    // A text that is not TOML may have been misread, so nothing of it is used.
    if reader.problems.is_empty() {
        let table = table.get_ref();
        reader.unknown_keys(table, PLAN_KEYS, &[SECTION], "a plan");
        reader.keys(table, PLAN_KEYS, &mut plan);
        plan.sections = reader.sections(table);
    }
    (plan, reader.problems)
}

fn syntax(error: &toml::de::Error, text: &str) -> PlanProblem {
    let at = error.span().unwrap_or(text.len()..text.len());
    let message = format!("invalid TOML: {}", error.message());
    PlanProblem::error(at, message, None)
}

struct PlanReader {
    problems: Vec<PlanProblem>,
}

/// A value of a table, with the key under which it was found.
type KeyedValue<'t, 'v> = (&'static str, &'t Spanned<DeValue<'v>>);

impl PlanReader {
    fn error(&mut self, at: Range<usize>, message: String, help: Option<String>) {
        self.problems.push(PlanProblem::error(at, message, help));
    }

    fn unknown_keys<T>(&mut self, table: &DeTable<'_>, keys: &[PlanKey<T>], tables: &[&'static str], owner: &str) {
        let current: Vec<&str> = keys.iter().map(|key| key.name).chain(tables.iter().copied()).collect();
        let is_known = |name: &str| current.contains(&name) || keys.iter().any(|key| key.deprecated.contains(&name));
        for key in table.keys().filter(|key| !is_known(key.get_ref())) {
            let help = closest(key.get_ref(), current.iter().copied()).map(|near| format!("did you mean `{near}`?"));
            let help = help.unwrap_or_else(|| format!("the keys of {owner} are {}", listed(&current)));
            self.error(key.span(), format!("unknown key `{}` in {owner}", key.get_ref()), Some(help));
        }
    }

    /// Parses the values of all keys into `target`.
    fn keys<T>(&mut self, table: &DeTable<'_>, keys: &[PlanKey<T>], target: &mut T) {
        for key in keys {
            let Some(entry) = self.entry(table, key) else { continue };
            match &key.value {
                KeyValue::Text(field) => self.text(entry).into_iter().for_each(|text| (field.set)(target, text)),
                KeyValue::Number(field, range) => {
                    self.number(entry, range).into_iter().for_each(|number| (field.set)(target, number));
                }
                KeyValue::Duration(field, range) => {
                    self.duration(entry, range).into_iter().for_each(|duration| (field.set)(target, duration));
                }
                KeyValue::Size(field, min) => {
                    self.size(entry, *min).into_iter().for_each(|size| (field.set)(target, size))
                }
                KeyValue::Parallelism(field, max) => {
                    self.parallelism(entry, *max).into_iter().for_each(|found| (field.set)(target, found));
                }
                KeyValue::Hosts(field) => self.hosts(entry).into_iter().for_each(|hosts| (field.set)(target, hosts)),
                KeyValue::Patterns(_, set) => set(target, self.patterns(entry)),
                KeyValue::Required(_) => {}
            }
        }
    }

    /// Returns the value of a key under its current name or a deprecated one, which causes a warning.
    fn entry<'t, 'v, T>(&mut self, table: &'t DeTable<'v>, key: &PlanKey<T>) -> Option<KeyedValue<'t, 'v>> {
        let mut found: Option<KeyedValue<'t, 'v>> = table.get(key.name).map(|value| (key.name, value));
        for deprecated in key.deprecated {
            let Some((written, value)) = table.get_key_value(*deprecated) else { continue };
            let at = written.span();
            if found.is_some() {
                let message = format!("`{deprecated}` is the former name of `{}`, which is set too", key.name);
                self.error(at, message, Some(format!("remove `{deprecated}`")));
                continue;
            }
            let message = format!("the key `{deprecated}` is deprecated");
            let help = Some(format!("rename it to `{}`", key.name));
            self.problems.push(PlanProblem { severity: ProblemSeverity::Warning, at, message, help });
            found = Some((deprecated, value));
        }
        found
    }

    /// Adds help to the last problem.
    fn help(&mut self, help: &str) {
        self.problems.last_mut().into_iter().for_each(|last| last.help = Some(help.to_owned()));
    }

    fn expected(&mut self, (key, value): KeyedValue<'_, '_>, what: &str) {
        let found = value.get_ref().type_str();
        self.error(value.span(), format!("`{key}` must be {what}, found {found}"), None);
    }

    fn text(&mut self, entry: KeyedValue<'_, '_>) -> Option<Located<weir_host::Text>> {
        let Some(text) = entry.1.get_ref().as_str() else {
            self.expected(entry, "a text");
            return None;
        };
        // Texts of plans are printed, and must not control the terminal.
        if text.chars().any(|sign| sign.is_control() && sign != '\n') {
            self.error(entry.1.span(), format!("`{}` must not contain control characters", entry.0), None);
            return None;
        }
        Some(Located { value: text.into(), at: entry.1.span() })
    }

    fn number(&mut self, entry: KeyedValue<'_, '_>, range: &RangeInclusive<usize>) -> Option<Located<usize>> {
        let (key, value) = entry;
        let Some(integer) = value.get_ref().as_integer() else {
            self.expected(entry, "a whole number");
            return None;
        };
        let number = usize::from_str_radix(integer.as_str(), integer.radix()).unwrap_or(usize::MAX);
        if !range.contains(&number) {
            let message = format!("`{key}` must be from {} to {}", range.start(), range.end());
            self.error(value.span(), message, None);
            return None;
        }
        Some(Located { value: number, at: value.span() })
    }

    fn duration(&mut self, entry: KeyedValue<'_, '_>, range: &RangeInclusive<Duration>) -> Option<Located<Duration>> {
        let Some(text) = entry.1.get_ref().as_str() else {
            self.expected(entry, "a duration");
            self.help(DURATIONS);
            return None;
        };
        let text = Located { value: text, at: entry.1.span() };
        let Some(value) = duration(text.value).filter(|duration| range.contains(duration)) else {
            let positive = if range.start().is_zero() { "" } else { "longer than zero and " };
            let message = format!("`{}` must be a duration {positive}of at most {}", entry.0, longest(*range.end()));
            self.error(text.at, message, Some(DURATIONS.into()));
            return None;
        };
        Some(Located { value, at: text.at })
    }

    fn size(&mut self, entry: KeyedValue<'_, '_>, min: u64) -> Option<Located<u64>> {
        let Some(text) = entry.1.get_ref().as_str() else {
            self.expected(entry, "a size");
            self.help(SIZES);
            return None;
        };
        let text = Located { value: text, at: entry.1.span() };
        let Some(value) = parse_size(text.value).filter(|bytes| *bytes >= min) else {
            let message = format!("`{}` must be a size of at least {}", entry.0, Value::Size(min));
            self.error(text.at, message, Some(SIZES.into()));
            return None;
        };
        Some(Located { value, at: text.at })
    }

    fn parallelism(&mut self, entry: KeyedValue<'_, '_>, max: usize) -> Option<Located<Parallelism>> {
        let at = entry.1.span();
        let value = match entry.1.get_ref().as_str() {
            Some("auto") => Parallelism::Auto,
            Some("off") => Parallelism::Off,
            None if entry.1.get_ref().as_integer().is_some() => {
                Parallelism::AtMost(self.number(entry, &(1..=max))?.value)
            }
            _ => {
                let message = format!("`{}` must be \"auto\", \"off\", or a number of cores from 1 to {max}", entry.0);
                self.error(at, message, None);
                return None;
            }
        };
        Some(Located { value, at })
    }

    fn hosts(&mut self, entry: KeyedValue<'_, '_>) -> Option<Located<Vec<weir_host::Text>>> {
        let Some(array) = entry.1.get_ref().as_array() else {
            self.expected(entry, "a list of hosts");
            return None;
        };
        let mut hosts = Vec::new();
        for host in array.iter() {
            match host.get_ref().as_str() {
                Some(text) if ReachableHosts::only([text]).is_ok() => hosts.push(text.into()),
                Some(text) => {
                    let help = match ends_in_number(text) {
                        true => "a host that ends in a number is an address: write all four parts, as in \"10.0.0.7\"",
                        false => "write a name such as \"api.example\" or \"*.cdn.example\", or an address",
                    };
                    self.error(host.span(), format!("`{text}` is not a host"), Some(help.to_owned()));
                }
                None => self.expected((entry.0, host), "a list of hosts"),
            }
        }
        Some(Located { value: hosts, at: entry.1.span() })
    }

    fn patterns(&mut self, entry: KeyedValue<'_, '_>) -> Vec<Located<NodePattern>> {
        let Some(array) = entry.1.get_ref().as_array() else {
            self.expected(entry, "a list of patterns");
            return Vec::new();
        };
        let mut patterns = Vec::new();
        for node in array.iter() {
            match node.get_ref().as_str() {
                Some(text) => patterns.push(Located { value: NodePattern::new(text), at: node.span() }),
                None => self.expected((entry.0, node), "a list of patterns"),
            }
        }
        patterns
    }

    fn sections(&mut self, table: &DeTable<'_>) -> Vec<Section> {
        let Some(value) = table.get(SECTION) else { return Vec::new() };
        let Some(array) = value.get_ref().as_array() else {
            self.expected((SECTION, value), "an array of tables, each headed `[[section]]`");
            return Vec::new();
        };
        if let Some(beyond) = array.get(SECTIONS_MAX) {
            let help = "one section can have several nodes, as in `nodes = [\"image.*\", \"files.read\"]`".to_owned();
            let message = format!("a plan has at most {SECTIONS_MAX} sections, and this one has {}", array.len());
            self.error(beyond.span(), message, Some(help));
            return Vec::new();
        }
        array.iter().filter_map(|section| self.section(section)).collect()
    }

    fn section(&mut self, value: &Spanned<DeValue<'_>>) -> Option<Section> {
        let Some(table) = value.get_ref().as_table() else {
            self.expected((SECTION, value), "a table");
            return None;
        };
        self.unknown_keys(table, SECTION_KEYS, &[], "a section");
        let name = match table.get("name") {
            Some(name) => Some(self.text(("name", name))?),
            None => None,
        };
        let Some(name) = name.filter(|name| !name.value.trim().is_empty()) else {
            self.error(value.span(), "section without a name".into(), Some("add `name = \"…\"`".into()));
            return None;
        };
        let mut section = Section::new(name);
        self.keys(table, SECTION_KEYS, &mut section);
        if section.nodes.is_empty() {
            let help = "list patterns of node names, as in `nodes = [\"image.*\"]`".to_owned();
            let at = table.get("nodes").map_or(section.name.at.clone(), Spanned::span);
            self.error(at, format!("section `{}` has no nodes", section.name.value), Some(help));
        }
        Some(section)
    }
}

/// Parses a whole number and a unit, as in `30m`.
fn duration(text: &str) -> Option<Duration> {
    let unit_at = text.find(|sign: char| !sign.is_ascii_digit())?;
    let (number, unit) = text.split_at(unit_at);
    let (_, seconds) = DURATION_UNITS.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*seconds).map(Duration::from_secs)
}

/// Parses a size in bytes as in programs: a whole number and a unit, as in `64mb`.
#[must_use]
pub fn parse_size(text: &str) -> Option<u64> {
    let unit_at = text.find(|sign: char| !sign.is_ascii_digit())?;
    let (number, unit) = text.split_at(unit_at);
    let (_, bytes) = SIZE_UNITS.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*bytes)
}

fn listed(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}
