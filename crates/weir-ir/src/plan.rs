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
//! reason = "to_jpeg takes 97 % of the time"
//! ```
//!
//! A *section* is a part of the graph that runs without leaving its thread. Its nodes are named by *patterns*, in which
//! `*` stands for any characters; `flow: node` names a node of one flow only. Nodes in the bodies of loops may be named, too:
//! a flow then changes its section inside the body. A body without a name whose nodes all have names belongs to the section
//! of the first of them. Any other call or body that no pattern names belongs to the section around it; in the flow's own
//! body to [`REST`], or to a section of its own, depending on the engine. All other nodes belong to the section of the node
//! before them.
//!
//! Protocol: [`Plan::parse`] parses a text, [`Plan::check`] compares it with a program and the available engines. Both
//! return [`PlanProblem`]s and never fail. The runtime turns a plan into threads and queues.

use crate::graph::Program;

mod check;
mod former;
mod keys;
mod mapping;
mod parallelism;
mod parse;
mod pattern;
mod pipelines;
mod print;
mod problem;

pub use check::{EngineFact, is_stateless};
pub use keys::{FLOWS_MAX, Plan, Section};
pub use mapping::{Granularity, SectionKey, map_sections};
pub use parallelism::Parallelism;
pub use parse::parse_size;
pub use pattern::NodePattern;
pub use pipelines::{HoldReason, HoldingLoop};
pub use print::plan_reference;
pub use problem::{Located, PlanProblem, ProblemSeverity};

/// Name of the section of all nodes that no pattern names.
pub const REST: &str = "rest";

impl Plan {
    /// Parses a plan. Unreadable parts are left out and reported, deprecated keys cause warnings.
    #[must_use]
    pub fn parse(text: &str) -> (Plan, Vec<PlanProblem>) {
        parse::plan(text)
    }

    /// Returns everything in the plan that does not fit the program or the available engines.
    #[must_use]
    pub fn check(&self, program: &Program, engines: &[EngineFact<'_>]) -> Vec<PlanProblem> {
        check::problems(self, program, engines, REST)
    }
}

#[cfg(test)]
mod tests;
