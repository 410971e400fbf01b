//! The plan: all that is architecture and not logic, in a TOML file beside the program.
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
//! A *section* is a piece of the graph that runs without leaving its thread. Its nodes are named by *patterns*, in which
//! `*` stands for any characters; `flow: node` names a node of one flow only. A call or repeated body that no pattern
//! names belongs to the section [`REST`], or has a section of its own where the engine says so; what is neither goes with
//! the node before it.
//!
//! Protocol: [`Plan::parse`] reads a text, [`Plan::check`] compares it with a program and the engines that there are.
//! Both report [`PlanProblem`]s as data, as the compiler does, and never fail. What a plan means to threads is the runtime's.

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

/// The name of the section of what no pattern names.
pub const REST: &str = "rest";

/// The most threads that a plan may ask for, a limit against slips of the pen.
pub const THREADS_MAX: usize = 1_024;

/// The longest queue that a plan may ask for.
pub const QUEUE_MAX: usize = 1 << 20;

/// The most sessions that a plan may keep.
pub const SESSIONS_MAX: usize = 100_000_000;

/// The longest time that a plan may keep what no flow uses.
pub const SESSION_IDLE_MAX: Duration = Duration::from_hours(24 * 365);

/// A plan. What it leaves out is the runtime's to choose.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The engine of all sections that name none.
    pub engine: Option<Located<Text>>,
    /// How many threads the engine has.
    pub threads: Option<Located<usize>>,
    /// How many flows may wait at a time.
    pub flows: Option<Located<usize>>,
    /// How many flows may wait before each section.
    pub queue: Option<Located<usize>>,
    /// Of how many sessions the value is kept, for each shared value that every session has.
    pub sessions: Option<Located<usize>>,
    /// How long it is kept while no flow uses it.
    pub session_idle: Option<Located<Duration>>,
    /// The sections, in the order of the file.
    pub sections: Vec<Section>,
}

/// One section.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// Its name.
    pub name: Located<Text>,
    /// What names its nodes.
    pub nodes: Vec<Located<NodePattern>>,
    /// Its engine.
    pub engine: Option<Located<Text>>,
    /// How many threads it has.
    pub threads: Option<Located<usize>>,
    /// How many flows may wait before it.
    pub queue: Option<Located<usize>>,
    /// How many copies of it work side by side.
    pub replicas: Option<Located<usize>>,
    /// The measured reason.
    pub why: Option<Text>,
}

/// Something that a plan says, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct Located<T> {
    /// What it says.
    pub value: T,
    /// Where, in bytes of the plan's text.
    pub at: Range<usize>,
}

/// Something that is wrong with a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanProblem {
    /// Where, in bytes of the plan's text.
    pub at: Range<usize>,
    /// What is wrong, in a sentence.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

/// What a plan needs to know of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineFact<'a> {
    /// Its name.
    pub name: &'a str,
    /// Whether it runs sections by themselves; otherwise each flow is one section.
    pub has_sections: bool,
}

impl Plan {
    /// Reads a plan. What cannot be read is left out, and said.
    #[must_use]
    pub fn parse(text: &str) -> (Plan, Vec<PlanProblem>) {
        parse::plan(text)
    }

    /// What in the plan does not fit the program, or the engines that there are.
    #[must_use]
    pub fn check(&self, program: &Program, engines: &[EngineFact<'_>]) -> Vec<PlanProblem> {
        check::problems(self, program, engines)
    }

    /// The section that a node of a flow is named into, by its index.
    #[must_use]
    pub fn section_of(&self, flow: &str, node: &str) -> Option<usize> {
        let names = |section: &Section| section.nodes.iter().any(|pattern| pattern.value.names(flow, node));
        self.sections.iter().position(names)
    }
}

/// Whether copies of this node may work side by side on different flows: neither it nor its body has a private state.
#[must_use]
pub fn is_stateless(node: &Node) -> bool {
    !node.uses.iter().any(|used| matches!(used.resource, Resource::State(_)))
}

impl PlanProblem {
    /// The problem with the place that it has in the plan's text: line and column, from 1.
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

/// A duration as programs and plans write it.
#[must_use]
pub fn shown(duration: Duration) -> String {
    Value::Duration(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)).to_string()
}

fn number(f: &mut fmt::Formatter<'_>, key: &str, value: Option<&Located<usize>>) -> fmt::Result {
    value.map_or(Ok(()), |value| writeln!(f, "{key} = {}", value.value))
}

/// A basic string of TOML.
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
