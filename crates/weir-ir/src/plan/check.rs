//! Plan checker: compares a plan with a program and the available engines.

use std::collections::BTreeMap;

use weir_host::Text;

use super::former::names_former_site;
use super::{EngineFact, Located, NodePattern, Plan, PlanProblem, Section, is_stateless};
use crate::graph::{Node, Program};

/// Returns everything that does not fit.
pub(super) fn problems(plan: &Plan, program: &Program, engines: &[EngineFact<'_>]) -> Vec<PlanProblem> {
    let mut checker = PlanChecker { plan, program, engines, problems: Vec::new() };
    checker.engine(plan.engine.as_ref());
    checker.names();
    for section in &plan.sections {
        checker.engine(section.engine.as_ref());
        checker.has_sections(section);
        section.nodes.iter().for_each(|pattern| checker.names_something(pattern));
        checker.replicas(section);
    }
    checker.doubly_named();
    checker.problems
}

struct PlanChecker<'a> {
    plan: &'a Plan,
    program: &'a Program,
    engines: &'a [EngineFact<'a>],
    problems: Vec<PlanProblem>,
}

impl<'a> PlanChecker<'a> {
    fn report(&mut self, at: &std::ops::Range<usize>, message: String, help: Option<String>) {
        self.problems.push(PlanProblem { at: at.clone(), message, help });
    }

    /// Returns all nodes of the program, with the names of their flows.
    fn nodes(&self) -> impl Iterator<Item = (&'a str, &'a Node)> + use<'a> {
        let flows = self.program.entries.iter().flat_map(|entry| &entry.flows);
        flows.flat_map(|flow| flow.body.nodes.iter().map(|node| (flow.name.as_str(), node)))
    }

    fn engine(&mut self, engine: Option<&Located<Text>>) {
        let Some(engine) = engine else { return };
        let names = || self.engines.iter().map(|fact| fact.name);
        if names().any(|name| name == engine.value.as_str()) {
            return;
        }
        let all = names().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let near = closest(&engine.value, names()).map(|near| format!("did you mean `{near}`?"));
        let help = near.unwrap_or_else(|| format!("there are {all}"));
        self.report(&engine.at, format!("there is no engine `{}`", engine.value), Some(help));
    }

    fn has_sections(&mut self, section: &Section) {
        let engine = section.engine.as_ref().or(self.plan.engine.as_ref());
        let Some(engine) = engine else { return };
        let whole = self.engines.iter().find(|fact| fact.name == engine.value.as_str() && !fact.has_sections);
        if whole.is_some() {
            let with = self.engines.iter().filter(|fact| fact.has_sections);
            let with = with.map(|fact| format!("`{}`", fact.name)).collect::<Vec<_>>().join(", ");
            let message = format!("`{}` runs each flow as one, and has no sections", engine.value);
            self.report(&section.name.at, message, Some(format!("sections are for {with}")));
        }
    }

    fn names(&mut self) {
        let mut seen: BTreeMap<&str, ()> = BTreeMap::new();
        for section in &self.plan.sections {
            let name = section.name.value.as_str();
            if name == super::REST || seen.insert(name, ()).is_some() {
                let message = format!("there is a section `{name}` already");
                self.report(&section.name.at, message, Some("give it another name".into()));
            }
        }
    }

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
            None => "`weir plan` shows the names of all nodes where there is no plan".into(),
        };
        self.report(&pattern.at, format!("no node is called `{}`", pattern.value.as_str()), Some(help));
    }

    fn replicas(&mut self, section: &Section) {
        let Some(replicas) = section.replicas.as_ref().filter(|replicas| replicas.value > 1) else { return };
        let names = |flow: &str, node: &Node| section.nodes.iter().any(|given| given.value.names(flow, &node.name));
        let mut own = self.nodes().filter(|(flow, node)| names(flow, node));
        let stateful = own.find(|(_, node)| !is_stateless(node));
        if let Some((_, node)) = stateful {
            let message =
                format!("`{}` has a state, so that the section `{}` works alone", node.name, section.name.value);
            let help = "leave `replicas` out, or put the node into a section of its own".to_owned();
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
                    let message = format!("`{node}` belongs to the section `{owner}` already");
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
