//! Plan checker: compares a plan with a program and the available engines.

use std::collections::BTreeSet;
use std::ops::Range;

use weir_host::{Resource, Text};

use super::former::names_former_site;
use super::keys::{KeyCheck, PLAN_KEYS, Plan, PlanKey, SECTION_KEYS, Section};
use super::pattern::NodePattern;
use super::problem::{Located, PlanProblem};
use crate::graph::{Node, Program};

/// Facts about an engine that the check of a plan needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineFact<'a> {
    /// Name.
    pub name: &'a str,
    /// True if the engine runs sections separately; otherwise each flow is one section.
    pub has_sections: bool,
}

/// Returns true if replicas of this node may run in parallel on different flows: neither the node nor its body has
/// private state.
#[must_use]
pub fn is_stateless(node: &Node) -> bool {
    !node.uses.iter().any(|used| matches!(used.resource, Resource::State(_)))
}

/// Returns everything that does not fit. No section may have the name `rest`.
pub(super) fn problems<'a>(
    plan: &'a Plan,
    program: &'a Program,
    engines: &'a [EngineFact<'a>],
    rest: &'a str,
) -> Vec<PlanProblem> {
    let mut checker =
        PlanChecker { plan, program, engines, rest, names: BTreeSet::from([rest.to_owned()]), problems: Vec::new() };
    checker.keys(PLAN_KEYS, plan);
    plan.sections.iter().for_each(|section| checker.keys(SECTION_KEYS, section));
    checker.engines_of_sections();
    checker.doubly_named();
    checker.problems
}

/// State of the check: the plan, its surroundings, and the problems found so far.
struct PlanChecker<'a> {
    plan: &'a Plan,
    program: &'a Program,
    engines: &'a [EngineFact<'a>],
    /// The name of the section of all other nodes.
    rest: &'a str,
    /// Names of sections that are taken.
    names: BTreeSet<String>,
    problems: Vec<PlanProblem>,
}

impl<'a> PlanChecker<'a> {
    fn report(&mut self, at: &Range<usize>, message: String, help: Option<String>) {
        self.problems.push(PlanProblem::error(at.clone(), message, help));
    }

    /// Checks the values of all keys of a table.
    fn keys<T>(&mut self, keys: &[PlanKey<T>], table: &T) {
        for key in keys {
            match &key.check {
                KeyCheck::Fits => {}
                KeyCheck::Engine(get) => self.engine(get(table)),
                KeyCheck::SectionName(get) => self.section_name(get(table)),
                KeyCheck::Nodes(get) => get(table).nodes.iter().for_each(|pattern| self.names_something(pattern)),
                KeyCheck::Replicas(get) => self.replicas(get(table)),
            }
        }
    }

    /// Returns all nodes of the program, those in bodies included, with the names of their flows.
    fn nodes(&self) -> impl Iterator<Item = (&'a str, &'a Node)> + use<'a> {
        let flows = self.program.entries.iter().flat_map(|entry| &entry.flows);
        flows.flat_map(|flow| {
            let mut nodes = Vec::new();
            flow.body.each_node(&mut |node| nodes.push((flow.name.as_str(), node)));
            nodes
        })
    }

    /// Reports an engine that does not exist.
    fn engine(&mut self, engine: Option<&Located<Text>>) {
        let Some(engine) = engine else { return };
        let names = || self.engines.iter().map(|fact| fact.name);
        if names().any(|name| name == engine.value.as_str()) {
            return;
        }
        let all = names().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let near = closest(&engine.value, names()).map(|near| format!("did you mean `{near}`?"));
        let help = near.unwrap_or_else(|| format!("the engines are {all}"));
        self.report(&engine.at, format!("unknown engine `{}`", engine.value), Some(help));
    }

    /// Reports a name that another section has.
    fn section_name(&mut self, section: &Section) {
        let name = section.name.value.as_str();
        if !self.names.insert(name.to_owned()) {
            let message = match name == self.rest {
                true => format!("`{name}` is the section of all nodes that the plan does not name"),
                false => format!("duplicate section `{name}`"),
            };
            self.report(&section.name.at, message, Some("choose another name".into()));
        }
    }

    /// Reports engines without sections in a plan with sections. If it is the engine of the plan, it runs each flow as a whole,
    /// whatever engines the sections name.
    fn engines_of_sections(&mut self) {
        let plan = self.plan;
        let of_plan = plan.engine.iter().filter(|_| !plan.sections.is_empty());
        for engine in of_plan.chain(plan.sections.iter().filter_map(|section| section.engine.as_ref())) {
            if self.engines.iter().any(|fact| fact.name == engine.value.as_str() && !fact.has_sections) {
                let with = self.engines.iter().filter(|fact| fact.has_sections);
                let with = with.map(|fact| format!("`{}`", fact.name)).collect::<Vec<_>>().join(", ");
                let message = format!("engine `{}` has no sections", engine.value);
                self.report(&engine.at, message, Some(format!("the engines with sections are {with}")));
            }
        }
    }

    /// Reports a pattern that matches no node.
    fn names_something(&mut self, pattern: &Located<NodePattern>) {
        let mut flows = self.program.entries.iter().flat_map(|entry| &entry.flows);
        if self.nodes().any(|(flow, node)| pattern.value.names(flow, &node.name))
            || flows.any(|flow| names_former_site(&pattern.value, flow))
        {
            return;
        }
        let name = pattern.value.as_str();
        // The name of a call inside a `fn` is prefixed by the name of the `fn`.
        let within = self.nodes().find(|(_, node)| node.name.rsplit('/').next() == Some(name));
        let near = within.map(|(_, node)| node.name.as_str());
        let near = near.or_else(|| closest(name, self.nodes().map(|(_, node)| node.name.as_str())));
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => "run `weir plan` without a plan to list the nodes".into(),
        };
        self.report(&pattern.at, format!("no node matches `{name}`"), Some(help));
    }

    /// Reports replicas of a section with private state.
    fn replicas(&mut self, section: &Section) {
        let Some(replicas) = section.replicas.as_ref().filter(|replicas| replicas.value > 1) else { return };
        let names = |flow: &str, node: &Node| section.nodes.iter().any(|given| given.value.names(flow, &node.name));
        let mut own = self.nodes().filter(|(flow, node)| names(flow, node));
        let stateful = own.find(|(_, node)| !is_stateless(node));
        if let Some((_, node)) = stateful {
            let message =
                format!("section `{}` cannot have replicas: `{}` has private state", section.name.value, node.name);
            let help = "remove `replicas`, or move the node to a section of its own".to_owned();
            self.report(&replicas.at, message, Some(help));
        }
    }

    /// Reports nodes that two sections name. Such a node belongs to the first section, which is rarely intended.
    fn doubly_named(&mut self) {
        for (index, section) in self.plan.sections.iter().enumerate() {
            for pattern in &section.nodes {
                let mut named = self.nodes().filter(|(flow, node)| pattern.value.names(flow, &node.name));
                let taken = named.find_map(|(flow, node)| {
                    let first = self.plan.section_of(flow, &node.name)?;
                    (first < index).then_some((first, &node.name))
                });
                if let Some((first, node)) = taken {
                    let owner = &self.plan.sections[first].name.value;
                    let message = format!("`{node}` already belongs to section `{owner}`");
                    self.report(&pattern.at, message, None);
                }
            }
        }
    }
}

/// Returns the word most similar to `word`, if one is similar enough.
pub(super) fn closest<'a>(word: &str, words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let close_enough = word.chars().count().max(3) / 3;
    let scored = words.map(|other| (distance(word, other), other));
    scored.filter(|(distance, _)| *distance <= close_enough).min_by_key(|(distance, _)| *distance).map(|(_, word)| word)
}

/// Returns the Levenshtein distance of two words.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, letter) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], index + 1);
        for (column, against) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *against);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}
