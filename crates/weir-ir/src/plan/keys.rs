//! The keys of a plan, one row each. Parsing, printing, checking, `weir plan` and the reference follow from the rows.
//!
//! To add a key, add a field to [`Plan`] or [`Section`] and a row to [`PLAN_KEYS`] or [`SECTION_KEYS`] in this file, and
//! use the field where the runtime needs it.

use std::ops::RangeInclusive;
use std::time::Duration;

use weir_host::{Text, Value};

use super::parallelism::Parallelism;
use super::pattern::NodePattern;
use super::problem::Located;

/// Maximum number of threads in a plan; guards against typing errors.
const THREADS_MAX: usize = 1_024;
/// Maximum number of sections in a plan. Each has a queue and threads, and its patterns are compared with every node.
pub(super) const SECTIONS_MAX: usize = 1_024;
/// Maximum length of a queue in a plan.
const QUEUE_LENGTH_MAX: usize = 1 << 20;
/// Maximum number of flows in progress.
pub const FLOWS_MAX: usize = 1 << 20;
/// Minimum memory of a flow. Chosen by judgement: with less, a flow that answers a request may fail, whatever it does.
const MEMORY_PER_FLOW_MIN: u64 = 64 << 10;
/// Maximum number of sessions in a plan.
const SESSIONS_MAX: usize = 100_000_000;
/// Maximum idle time of a session in a plan.
const SESSION_IDLE_TIMEOUT_MAX: Duration = Duration::from_hours(24 * 365);

/// Minimum number of connections to a database, which every engine needs: one that writes, one that waits for the disk, and one that
/// reads.
const TABLE_CONNECTIONS_MIN: usize = 3;
/// Maximum number of connections to a database in a plan.
const TABLE_CONNECTIONS_MAX: usize = 10_000;

/// Maximum of `drain_timeout`. Chosen by judgement: supervisors kill programs that take longer.
const DRAIN_TIMEOUT_MAX: Duration = Duration::from_hours(24);

/// Key of the array of sections in a plan.
pub(super) const SECTION: &str = "section";

/// A plan. The runtime chooses everything that the plan leaves out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Engine of the sections that name none.
    pub engine: Option<Located<Text>>,
    /// Number of threads of the engine.
    pub threads: Option<Located<usize>>,
    /// Maximum number of flows in progress.
    pub flows_max: Option<Located<usize>>,
    /// Maximum number of flows that wait before each section.
    pub queue_length_max: Option<Located<usize>>,
    /// Maximum number of sessions whose value is kept, for each shared value that is `per session`.
    pub sessions_max: Option<Located<usize>>,
    /// Idle time after which the value of a session is dropped.
    pub session_idle_timeout: Option<Located<Duration>>,
    /// Time that a program has, once it is told to stop, to complete the flows in progress.
    pub drain_timeout: Option<Located<Duration>>,
    /// Maximum number of bytes of memory that a flow may hold.
    pub memory_per_flow: Option<Located<u64>>,
    /// Number of cores that compute for one flow.
    pub parallel: Option<Located<Parallelism>>,
    /// Hosts that the program may reach; all if there is no such list.
    pub hosts: Option<Located<Vec<Text>>>,
    /// Address of the PostgreSQL database of the stored tables.
    pub tables: Option<Located<Text>>,
    /// Maximum number of connections to each PostgreSQL database that has tables of the program.
    pub table_connections: Option<Located<usize>>,
    /// Sections, in the order of the file.
    pub sections: Vec<Section>,
}

/// A section of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// Name.
    pub name: Located<Text>,
    /// Patterns that name its nodes.
    pub nodes: Vec<Located<NodePattern>>,
    /// Engine.
    pub engine: Option<Located<Text>>,
    /// Number of threads.
    pub threads: Option<Located<usize>>,
    /// Maximum number of flows that wait before the section.
    pub queue_length_max: Option<Located<usize>>,
    /// Number of replicas that run in parallel.
    pub replicas: Option<Located<usize>>,
    /// Reason, for readers of the plan.
    pub reason: Option<Located<Text>>,
}

/// One key of the table `T`, which is [`Plan`] or [`Section`].
pub(super) struct PlanKey<T: 'static> {
    /// Name of the key.
    pub(super) name: &'static str,
    /// Former names, which still work and cause a warning.
    pub(super) deprecated: &'static [&'static str],
    /// Type of the value, and the field that holds it.
    pub(super) value: KeyValue<T>,
    /// Condition for the value to fit the program and the engines.
    pub(super) check: KeyCheck<T>,
    /// Value in the example of the reference.
    pub(super) example: &'static str,
    /// Meaning of the key, for the reference.
    pub(super) meaning: &'static str,
}

/// The type of a key's value, with the field that holds it.
pub(super) enum KeyValue<T> {
    /// Text.
    Text(FieldAccess<T, Text>),
    /// A whole number in this range.
    Number(FieldAccess<T, usize>, RangeInclusive<usize>),
    /// A duration up to this maximum.
    Duration(FieldAccess<T, Duration>, RangeInclusive<Duration>),
    /// A size in bytes, from this minimum on.
    Size(FieldAccess<T, u64>, u64),
    /// A required text, set when the table is created.
    Required(fn(&T) -> &Located<Text>),
    /// A number of cores up to this maximum, `"auto"` or `"off"`.
    Parallelism(FieldAccess<T, Parallelism>, usize),
    /// A list of hosts.
    Hosts(FieldAccess<T, Vec<Text>>),
    /// A list of patterns of node names that is not empty.
    Patterns(fn(&T) -> &[Located<NodePattern>], fn(&mut T, Vec<Located<NodePattern>>)),
}

/// The condition for a value to fit the program and the engines.
pub(super) enum KeyCheck<T> {
    /// Every value fits.
    Fits,
    /// The engine must exist.
    Engine(fn(&T) -> Option<&Located<Text>>),
    /// The name must be unique.
    SectionName(fn(&T) -> &Section),
    /// Every pattern must match a node.
    Nodes(fn(&T) -> &Section),
    /// Only a section without private state can have replicas.
    Replicas(fn(&T) -> &Section),
}

/// Access to an optional field of `T`.
pub(super) struct FieldAccess<T, V> {
    /// Returns the value.
    pub(super) get: fn(&T) -> Option<&Located<V>>,
    /// Sets the value.
    pub(super) set: fn(&mut T, Located<V>),
}

/// Access to the field of this name.
macro_rules! field {
    ($name:ident) => {
        FieldAccess { get: |table| table.$name.as_ref(), set: |table, value| table.$name = Some(value) }
    };
}

/// Keys of a plan, in the order in which a plan is printed.
pub(super) const PLAN_KEYS: &[PlanKey<Plan>] = &[
    PlanKey {
        name: "engine",
        deprecated: &[],
        value: KeyValue::Text(field!(engine)),
        check: KeyCheck::Engine(|plan| plan.engine.as_ref()),
        example: "\"elastic\"",
        meaning: "engine of the sections that name none",
    },
    PlanKey {
        name: "threads",
        deprecated: &[],
        value: KeyValue::Number(field!(threads), 1..=THREADS_MAX),
        check: KeyCheck::Fits,
        example: "4",
        meaning: "number of threads of each engine or section that sets none; default: the number of cores",
    },
    PlanKey {
        name: "flows_max",
        deprecated: &["flows"],
        value: KeyValue::Number(field!(flows_max), 1..=FLOWS_MAX),
        check: KeyCheck::Fits,
        example: "10000",
        meaning: "maximal number of flows in progress; a service refuses further ones, and a stream waits; beside services, at three quarters of it",
    },
    PlanKey {
        name: "queue_length_max",
        deprecated: &["queue"],
        value: KeyValue::Number(field!(queue_length_max), 1..=QUEUE_LENGTH_MAX),
        check: KeyCheck::Fits,
        example: "256",
        meaning: "maximal number of flows that wait before each section",
    },
    PlanKey {
        name: "sessions_max",
        deprecated: &["sessions"],
        value: KeyValue::Number(field!(sessions_max), 1..=SESSIONS_MAX),
        check: KeyCheck::Fits,
        example: "100000",
        meaning: "maximal number of sessions whose value is kept, for each shared value that is `per session`",
    },
    PlanKey {
        name: "session_idle_timeout",
        deprecated: &["session_idle"],
        value: KeyValue::Duration(field!(session_idle_timeout), Duration::from_nanos(1)..=SESSION_IDLE_TIMEOUT_MAX),
        check: KeyCheck::Fits,
        example: "\"30m\"",
        meaning: "idle time after which the value of a session is dropped",
    },
    PlanKey {
        name: "drain_timeout",
        deprecated: &[],
        value: KeyValue::Duration(field!(drain_timeout), Duration::ZERO..=DRAIN_TIMEOUT_MAX),
        check: KeyCheck::Fits,
        example: "\"30s\"",
        meaning: "time that a program has, once it is told to stop, to complete the flows in progress; default: 30s",
    },
    PlanKey {
        name: "memory_per_flow",
        deprecated: &[],
        value: KeyValue::Size(field!(memory_per_flow), MEMORY_PER_FLOW_MIN),
        check: KeyCheck::Fits,
        example: "\"256mb\"",
        meaning: "memory that a flow may hold; default: 256mb, or a quarter of the program's (`--memory`) if that is less",
    },
    PlanKey {
        name: "parallel",
        deprecated: &[],
        value: KeyValue::Parallelism(field!(parallel), THREADS_MAX),
        check: KeyCheck::Fits,
        example: "\"auto\"",
        meaning: "number of cores that compute for one flow while they are idle, `\"auto\"` for all of them, or `\"off\"`; \
                  default: `\"auto\"`",
    },
    PlanKey {
        name: "hosts",
        deprecated: &[],
        value: KeyValue::Hosts(field!(hosts)),
        check: KeyCheck::Fits,
        example: "[\"api.example\", \"*.cdn.example\", \"10.0.0.7\"]",
        meaning: "hosts that the program may reach; default: all",
    },
    PlanKey {
        name: "tables",
        deprecated: &[],
        value: KeyValue::Text(field!(tables)),
        check: KeyCheck::Fits,
        example: "\"postgres://shop@db.example/shop\"",
        meaning: "address of the PostgreSQL database of the stored tables; default: an SQLite database beside the program",
    },
    PlanKey {
        name: "table_connections",
        deprecated: &[],
        value: KeyValue::Number(field!(table_connections), TABLE_CONNECTIONS_MIN..=TABLE_CONNECTIONS_MAX),
        check: KeyCheck::Fits,
        example: "12",
        meaning: "maximal number of connections to each PostgreSQL database that has tables of the program; default: two (one for \
                  an existing database), two more for each event loop, and 1 to 16 for other reads",
    },
];

/// Keys of a section, in the order in which a plan is printed.
pub(super) const SECTION_KEYS: &[PlanKey<Section>] = &[
    PlanKey {
        name: "name",
        deprecated: &[],
        value: KeyValue::Required(|section| &section.name),
        check: KeyCheck::SectionName(|section| section),
        example: "\"codec\"",
        meaning: "name of the section; required, and unique in the plan",
    },
    PlanKey {
        name: "nodes",
        deprecated: &[],
        value: KeyValue::Patterns(|section| &section.nodes, |section, nodes| section.nodes = nodes),
        check: KeyCheck::Nodes(|section| section),
        example: "[\"image.*\", \"get /{name}: *scale\"]",
        meaning: "patterns of the names of its nodes; required",
    },
    PlanKey {
        name: "engine",
        deprecated: &[],
        value: KeyValue::Text(field!(engine)),
        check: KeyCheck::Engine(|section| section.engine.as_ref()),
        example: "\"manual\"",
        meaning: "engine of the section; default: that of the plan, or `manual` if it names none and `--engine` is not given",
    },
    PlanKey {
        name: "threads",
        deprecated: &[],
        value: KeyValue::Number(field!(threads), 1..=THREADS_MAX),
        check: KeyCheck::Fits,
        example: "2",
        meaning: "number of threads of the section; default: that of the plan",
    },
    PlanKey {
        name: "queue_length_max",
        deprecated: &["queue"],
        value: KeyValue::Number(field!(queue_length_max), 1..=QUEUE_LENGTH_MAX),
        check: KeyCheck::Fits,
        example: "16",
        meaning: "maximal number of flows that wait before the section; default: that of the plan",
    },
    PlanKey {
        name: "replicas",
        deprecated: &[],
        value: KeyValue::Number(field!(replicas), 1..=THREADS_MAX),
        check: KeyCheck::Replicas(|section| section),
        example: "2",
        meaning: "number of replicas that run in parallel; default: one for each thread, or one if the section has private state",
    },
    PlanKey {
        name: "reason",
        deprecated: &["why"],
        value: KeyValue::Text(field!(reason)),
        check: KeyCheck::Fits,
        example: "\"compressing takes 97 % of the time\"",
        meaning: "reason for the section, which `weir plan` shows",
    },
];

impl Plan {
    /// Returns the index of the section whose patterns name this node of this flow.
    #[must_use]
    pub fn section_of(&self, flow: &str, node: &str) -> Option<usize> {
        let names = |section: &Section| section.nodes.iter().any(|pattern| pattern.value.names(flow, node));
        self.sections.iter().position(names)
    }
}

impl Section {
    /// Creates a section that has only a name.
    pub(super) fn new(name: Located<Text>) -> Section {
        Section {
            name,
            nodes: Vec::new(),
            engine: None,
            threads: None,
            queue_length_max: None,
            replicas: None,
            reason: None,
        }
    }
}

impl<T> PlanKey<T> {
    /// Returns the value as TOML; `None` if the key is not set.
    pub(super) fn toml(&self, table: &T) -> Option<String> {
        match &self.value {
            KeyValue::Text(field) => (field.get)(table).map(|text| quoted(&text.value)),
            KeyValue::Number(field, _) => (field.get)(table).map(|number| number.value.to_string()),
            KeyValue::Duration(field, _) => (field.get)(table).map(|duration| quoted(&format_duration(duration.value))),
            KeyValue::Parallelism(field, _) => (field.get)(table).map(|located| located.value.to_string()),
            KeyValue::Size(field, _) => (field.get)(table).map(|size| quoted(&Value::Size(size.value).to_string())),
            KeyValue::Hosts(field) => (field.get)(table).map(|hosts| list(hosts.value.iter().map(Text::as_str))),
            KeyValue::Required(get) => Some(quoted(&get(table).value)),
            KeyValue::Patterns(get, _) => Some(list(get(table).iter().map(|pattern| pattern.value.as_str()))),
        }
    }
}

/// Returns a list of texts as TOML.
fn list<'t>(texts: impl Iterator<Item = &'t str>) -> String {
    let quoted: Vec<String> = texts.map(quoted).collect();
    format!("[{}]", quoted.join(", "))
}

/// Returns a duration as programs and plans write it.
fn format_duration(duration: Duration) -> String {
    Value::Duration(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)).to_string()
}

/// Returns a TOML basic string.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            control if control.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(control))),
            other => quoted.push(other),
        }
    }
    quoted + "\""
}

/// Returns the longest duration of a key as messages and the reference write it: `24 hours`, `365 days`.
pub(super) fn longest(max: Duration) -> String {
    match max.as_secs() / 3600 {
        hours @ ..48 => format!("{hours} hours"),
        hours => format!("{} days", hours / 24),
    }
}
