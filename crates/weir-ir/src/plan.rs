//! Plan: the architecture of a program (engines, threads, queues), in a TOML file beside it.
//!
//! ```toml
//! engine = "manual"
//! threads = 2
//!
//! [[section]]
//! name = "codec"
//! nodes = ["image.*"]
//! threads = 2
//! replicas = 2
//! why = "to_jpeg takes 97 % of the time"
//! ```
//!
//! A *section* is a part of the graph that runs without leaving its thread. Its nodes are named by *patterns*, in which
//! `*` stands for any characters; `flow: node` names a node of one flow only. A call or repeated body that no pattern
//! names belongs to the section [`REST`], or to a section of its own, depending on the engine. All other nodes belong to
//! the section of the node before them.
//!
//! Protocol: [`Plan::parse`] parses a text, [`Plan::check`] compares it with a program and the available engines. Both
//! return [`PlanProblem`]s and never fail. The runtime turns a plan into threads and queues.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use weir_host::{Resource, Text, Value};

use crate::graph::{Node, Program};

mod check;
mod former;
mod parse;
mod pattern;

pub use pattern::NodePattern;

/// Name of the section of all nodes that no pattern names.
pub const REST: &str = "rest";

/// Maximal number of threads in a plan; guards against typing errors.
pub const THREADS_MAX: usize = 1_024;

/// Maximal length of a queue in a plan.
pub const QUEUE_MAX: usize = 1 << 20;

/// Maximal number of sessions in a plan.
pub const SESSIONS_MAX: usize = 100_000_000;

/// Maximal idle time of a session in a plan.
pub const SESSION_IDLE_MAX: Duration = Duration::from_hours(24 * 365);

/// A plan. The runtime chooses everything that the plan leaves out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Engine of the sections that name none.
    pub engine: Option<Located<Text>>,
    /// Number of threads of the engine.
    pub threads: Option<Located<usize>>,
    /// Maximal number of flows in progress.
    pub flows: Option<Located<usize>>,
    /// Maximal number of flows that wait before each section.
    pub queue: Option<Located<usize>>,
    /// Maximal number of sessions whose value is kept, for each shared value that is `per session`.
    pub sessions: Option<Located<usize>>,
    /// Idle time after which the value of a session is dropped.
    pub session_idle: Option<Located<Duration>>,
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
    /// Maximal number of flows that wait before the section.
    pub queue: Option<Located<usize>>,
    /// Number of replicas that run in parallel.
    pub replicas: Option<Located<usize>>,
    /// Reason, for readers of the plan.
    pub why: Option<Text>,
}

/// A value of a plan, with its position in the text.
#[derive(Clone, Debug, PartialEq)]
pub struct Located<T> {
    /// The value.
    pub value: T,
    /// Position in the text of the plan, in bytes.
    pub at: Range<usize>,
}

/// An error in a plan, or a warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanProblem {
    /// Position in the text of the plan, in bytes.
    pub at: Range<usize>,
    /// Description of the error, in a sentence.
    pub message: String,
    /// Proposed action.
    pub help: Option<String>,
}

/// Facts about an engine that the check of a plan needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineFact<'a> {
    /// Name.
    pub name: &'a str,
    /// True if the engine runs sections separately; otherwise each flow is one section.
    pub has_sections: bool,
}

impl Plan {
    /// Parses a plan. Unreadable parts are left out and reported.
    #[must_use]
    pub fn parse(text: &str) -> (Plan, Vec<PlanProblem>) {
        parse::plan(text)
    }

    /// Returns everything in the plan that does not fit the program or the available engines.
    #[must_use]
    pub fn check(&self, program: &Program, engines: &[EngineFact<'_>]) -> Vec<PlanProblem> {
        check::problems(self, program, engines)
    }

    /// Returns the index of the section whose patterns name this node of this flow.
    #[must_use]
    pub fn section_of(&self, flow: &str, node: &str) -> Option<usize> {
        let names = |section: &Section| section.nodes.iter().any(|pattern| pattern.value.names(flow, node));
        self.sections.iter().position(names)
    }
}

/// Returns true if replicas of this node may run in parallel on different flows: neither the node nor its body has
/// private state.
#[must_use]
pub fn is_stateless(node: &Node) -> bool {
    !node.uses.iter().any(|used| matches!(used.resource, Resource::State(_)))
}

impl PlanProblem {
    /// Returns line and column of the problem in the text of the plan, both counted from 1.
    #[must_use]
    pub fn line_column(&self, text: &str) -> (usize, usize) {
        let before = text.get(..self.at.start).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
        (line, column)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        text(f, "engine", self.engine.as_ref().map(|engine| &engine.value))?;
        number(f, "threads", self.threads.as_ref())?;
        number(f, "flows", self.flows.as_ref())?;
        number(f, "queue", self.queue.as_ref())?;
        number(f, "sessions", self.sessions.as_ref())?;
        let idle = self.session_idle.as_ref().map(|idle| shown(idle.value).as_str().into());
        text(f, "session_idle", idle.as_ref())?;
        self.sections.iter().try_for_each(|section| write!(f, "\n{section}"))
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[[section]]\n")?;
        text(f, "name", Some(&self.name.value))?;
        let nodes: Vec<String> = self.nodes.iter().map(|pattern| quoted(pattern.value.as_str())).collect();
        writeln!(f, "nodes = [{}]", nodes.join(", "))?;
        text(f, "engine", self.engine.as_ref().map(|engine| &engine.value))?;
        number(f, "threads", self.threads.as_ref())?;
        number(f, "queue", self.queue.as_ref())?;
        number(f, "replicas", self.replicas.as_ref())?;
        text(f, "why", self.why.as_ref())
    }
}

fn text(f: &mut fmt::Formatter<'_>, key: &str, value: Option<&Text>) -> fmt::Result {
    value.map_or(Ok(()), |value| writeln!(f, "{key} = {}", quoted(value)))
}

/// Returns a duration as programs and plans write it.
#[must_use]
pub fn shown(duration: Duration) -> String {
    Value::Duration(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)).to_string()
}

fn number(f: &mut fmt::Formatter<'_>, key: &str, value: Option<&Located<usize>>) -> fmt::Result {
    value.map_or(Ok(()), |value| writeln!(f, "{key} = {}", value.value))
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

#[cfg(test)]
mod tests;
