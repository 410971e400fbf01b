//! Plan printer: a plan as TOML, and the tables of its keys for the reference.

use std::fmt;

use super::keys::{KeyValue, PLAN_KEYS, Plan, PlanKey, SECTION, SECTION_KEYS, Section, longest};

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_keys(f, PLAN_KEYS, self)?;
        self.sections.iter().try_for_each(|section| write!(f, "\n{section}"))
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "[[{SECTION}]]")?;
        write_keys(f, SECTION_KEYS, self)
    }
}

impl Plan {
    /// Returns the settings of the whole program except the engine, as pairs of key and value.
    #[must_use]
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        let rows = PLAN_KEYS.iter().filter(|key| key.name != "engine");
        rows.filter_map(|key| Some((key.name, key.toml(self)?))).collect()
    }
}

/// Returns the section of the reference on the keys of a plan, as Markdown.
#[must_use]
pub fn plan_reference() -> String {
    let example = [example(PLAN_KEYS), format!("\n[[{SECTION}]]\n"), example(SECTION_KEYS)].concat();
    let (plan, section) = (rows(PLAN_KEYS), rows(SECTION_KEYS));
    format!(
        "```toml\n{example}```\n\n| key | value | meaning |\n|---|---|---|\n{plan}\n\
         Keys of a `[[{SECTION}]]`:\n\n| key | value | meaning |\n|---|---|---|\n{section}"
    )
}

fn write_keys<T>(f: &mut fmt::Formatter<'_>, keys: &[PlanKey<T>], table: &T) -> fmt::Result {
    let values = keys.iter().filter_map(|key| Some((key.name, key.toml(table)?)));
    values.into_iter().try_for_each(|(name, value)| writeln!(f, "{name} = {value}"))
}

fn example<T>(keys: &[PlanKey<T>]) -> String {
    keys.iter().map(|key| format!("{} = {}\n", key.name, key.example)).collect()
}

fn rows<T>(keys: &[PlanKey<T>]) -> String {
    let row = |key: &PlanKey<T>| {
        let value = match &key.value {
            KeyValue::Text(_) | KeyValue::Required(_) => "text".to_owned(),
            KeyValue::Number(_, range) => format!("{} to {}", range.start(), range.end()),
            KeyValue::Duration(_, range) => format!("duration up to {}", longest(*range.end())),
            KeyValue::Size(..) => "size".to_owned(),
            KeyValue::Parallelism(_, max) => format!("`\"auto\"`, `\"off\"`, or 1 to {max}"),
            KeyValue::Hosts(_) => "list of names, `*.` and a name, or addresses".to_owned(),
            KeyValue::Patterns(..) => "list of patterns".to_owned(),
        };
        format!("| `{}` | {value} | {} |\n", key.name, key.meaning)
    };
    keys.iter().map(row).collect()
}
