//! Where a program is cut: which node of which flow is in which section, and what a section has.
//!
//! 1. What a pattern of the plan names is in that pattern's section.
//! 2. What does not work (primitives, switches), and what waits without a thread, goes with the section before it, if every
//!    flow that comes to it has been there, and otherwise with what follows.
//! 3. The rest is cut as the engine's [`Granularity`] says: not at all, around calls with a private state, or before each call.

use std::iter::successors;
use std::ops::{Range, RangeInclusive};

use indexmap::IndexMap;
use weir_host::{Code, Text};
use weir_ir::graph::{Control, Graph, Node, NodeKind};
use weir_ir::plan::{self, Located, REST, is_stateless};
use weir_scheduler::ThreadControl;

use super::{Drive, Granularity, PlannedProgram, ThreadingModel, engine};
use crate::step::{Action, PreparedStep};

/// How many flows wait before a section where the plan says nothing: 128 to 256 do better than more.
const QUEUE_DEFAULT: usize = 256;

/// How many copies of a section without state there are for each thread that may come by.
const COPIES_FOR_EACH_THREAD: usize = 4;

/// A section of a program under a plan, as its engine makes it.
#[derive(Debug)]
pub struct EngineSection {
    /// Its name: the plan's, that of its first call, or `rest`.
    pub name: String,
    /// Which of the plan's sections it is; `None` for one that the engine cut.
    pub planned: Option<usize>,
    /// Its engine.
    pub engine: &'static str,
    /// How many flows may wait before it, or before each of its replicas.
    pub queue: usize,
    /// How many copies of it work side by side on different flows.
    pub replicas: usize,
    /// The first node that has a private state, because of which there is one copy only.
    pub state: Option<Text>,
    /// Its calls and repeated bodies, in the order of the text, each with its flow.
    pub nodes: Vec<(Text, Text)>,
    /// Whether some function of it holds its thread.
    pub(super) blocks: bool,
    /// How threads serve it.
    pub(super) threading: ThreadingModel,
    /// How many of them there may be by the plan.
    threads: usize,
}

/// Up to where a flow is in a section.
pub(super) struct UnplacedSegment {
    /// The first node after it.
    pub until: usize,
    /// The section, by its index.
    pub section: usize,
    /// Whether a function of it may wait, which needs an event loop.
    pub calls_out: bool,
    /// Whether a flow may have to wait in it, for whatever.
    pub waits: bool,
}

/// The cuts of each flow, by entry and route.
pub(super) type UnplacedSegments = Vec<Vec<Vec<UnplacedSegment>>>;

/// UnplacedSegments a program; `rest` is for what the plan names no engine for. Sections are numbered as flows come to them.
pub(super) fn partition(rest: ThreadingModel, planned: &PlannedProgram<'_>) -> (Vec<EngineSection>, UnplacedSegments) {
    let mut partitioner = Partitioner { rest, planned, sections: IndexMap::new() };
    let mut segments = UnplacedSegments::new();
    for (entry, value) in planned.program.entries.iter().enumerate() {
        let routes = value.flows.iter().enumerate();
        segments
            .push(routes.map(|(route, flow)| partitioner.segments((entry, route), &flow.name, &flow.body)).collect());
    }
    let mut sections: Vec<EngineSection> = partitioner.sections.into_values().collect();
    sections.iter_mut().for_each(EngineSection::finish);
    (sections, segments)
}

/// Which section a node is in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum SectionKey {
    /// One of the plan, by its index.
    Named(usize),
    /// What no pattern names.
    Rest,
    /// One call that no pattern names, by entry, route and node.
    Call(usize, usize, usize),
    /// Calls without state that no pattern names, by entry, route and the first node.
    Stateless(usize, usize, usize),
}

struct Partitioner<'a> {
    rest: ThreadingModel,
    planned: &'a PlannedProgram<'a>,
    sections: IndexMap<SectionKey, EngineSection>,
}

/// A flow that is being cut.
struct FlowWalk<'a> {
    /// Its entry and route.
    place: (usize, usize),
    name: &'a Text,
    body: &'a Graph,
    steps: &'a [PreparedStep],
    segments: Vec<UnplacedSegment>,
    /// Of the nodes of the last cut, the one in the fewest arms, and the last.
    passed: [usize; 2],
}

impl Partitioner<'_> {
    fn segments(&mut self, place: (usize, usize), name: &Text, body: &Graph) -> Vec<UnplacedSegment> {
        let steps = &self.planned.instance.entries[place.0].flows[place.1].0.body.steps;
        let mut route = FlowWalk { place, name, body, steps, segments: Vec::new(), passed: [0; 2] };
        let mut from = 0;
        for (index, node) in body.nodes.iter().enumerate() {
            let works = !calls_out(&steps[index]) && works(node);
            let is_named = self.planned.plan.section_of(name, &node.name).is_some();
            if is_named || works || route.goes_with_what_precedes(node) {
                let key = self.key(&route, index, works);
                self.put(&mut route, key, from..index + 1);
                from = index + 1;
            }
        }
        if from < body.nodes.len() {
            let key = self.key(&route, from, false);
            self.put(&mut route, key, from..body.nodes.len());
        }
        route.segments
    }

    /// Puts neighbouring nodes into the section of this key.
    fn put(&mut self, route: &mut FlowWalk<'_>, key: SectionKey, nodes: Range<usize>) {
        for index in nodes {
            let (node, step) = (&route.body.nodes[index], &route.steps[index]);
            let section = self.enter(key.clone(), route.name, node, step);
            let calls_out = calls_out(step);
            let waits = calls_out || step.bit != 0;
            match route.segments.last_mut().filter(|segment| segment.section == section) {
                Some(segment) => {
                    segment.until = index + 1;
                    segment.calls_out |= calls_out;
                    segment.waits |= waits;
                }
                None => {
                    route.segments.push(UnplacedSegment { until: index + 1, section, calls_out, waits });
                    route.passed = [index; 2];
                }
            }
            route.pass(index);
        }
    }

    /// What waits needs no thread, and overlaps with what else waits in its section.
    fn key(&self, flow: &FlowWalk<'_>, index: usize, works: bool) -> SectionKey {
        let ((entry, route), node) = (flow.place, &flow.body.nodes[index]);
        let before =
            flow.segments.last().and_then(|segment| self.sections.get_index(segment.section)).map(|(key, _)| key);
        match (self.planned.plan.section_of(flow.name, &node.name), before) {
            (Some(section), _) => SectionKey::Named(section),
            (None, Some(before)) if !works => before.clone(),
            (None, _) if self.rest.granularity == Granularity::Whole => SectionKey::Rest,
            (None, _) if self.rest.granularity == Granularity::Calls || !is_stateless(node) => {
                SectionKey::Call(entry, route, index)
            }
            (None, Some(before @ SectionKey::Stateless(..))) => before.clone(),
            (None, _) => SectionKey::Stateless(entry, route, index),
        }
    }

    /// Adds a node to its section, whose index it yields.
    fn enter(&mut self, key: SectionKey, flow: &Text, node: &Node, step: &PreparedStep) -> usize {
        let is_cut = matches!(key, SectionKey::Call(..) | SectionKey::Stateless(..));
        let index = self.sections.get_index_of(&key).unwrap_or_else(|| {
            let section = self.section(&key, flow, node);
            self.sections.insert_full(key, section).0
        });
        let has_one_flow = self.has_one_flow();
        let section = &mut self.sections[index];
        section.blocks |= blocks(step);
        if !is_stateless(node) {
            section.state.get_or_insert_with(|| node.name.clone());
        }
        if works(node) {
            section.nodes.push((flow.clone(), node.name.clone()));
            if is_cut {
                section.name_after_its_calls(has_one_flow);
            }
        }
        index
    }

    /// Whether the name of a node says which one it is.
    fn has_one_flow(&self) -> bool {
        self.planned.program.entries.iter().map(|entry| entry.flows.len()).sum::<usize>() == 1
    }

    /// A section that has no node yet but this one, which it is called after where nothing else has a name for it.
    fn section(&self, key: &SectionKey, flow: &str, node: &Node) -> EngineSection {
        let plan = self.planned.plan;
        let planned = if let SectionKey::Named(index) = key { Some(*index) } else { None };
        let named = planned.and_then(|index| plan.sections.get(index));
        let engine = named.and_then(|section| threading_of(section.engine.as_ref()?));
        let (engine, threading) = engine.unwrap_or((self.planned.engine, self.rest));
        let own = value(named.and_then(|section| section.threads.as_ref()));
        let queue = named.and_then(|section| section.queue.as_ref()).or(plan.queue.as_ref());
        EngineSection {
            name: name(named, key, flow, node, self.has_one_flow()),
            planned,
            engine,
            queue: value(queue).unwrap_or(QUEUE_DEFAULT),
            // As the plan says; 0 where it says nothing, until the section is finished.
            replicas: value(named.and_then(|section| section.replicas.as_ref())).unwrap_or(0),
            state: None,
            nodes: Vec::new(),
            blocks: false,
            threading,
            threads: own.or(value(plan.threads.as_ref())).unwrap_or(self.planned.threads).max(1),
        }
    }
}

impl FlowWalk<'_> {
    /// Whether every flow that comes to the node has been in the last section. What a flow does in one arm of a switch does
    /// not take it into a section that it needs for another arm only.
    fn goes_with_what_precedes(&self, node: &Node) -> bool {
        if self.segments.is_empty() {
            return works(node);
        }
        self.passed.iter().any(|before| match self.body.nodes[*before].control {
            None => true,
            Some(arm) => self.arms(node).any(|around| around == arm),
        })
    }

    /// The arms that a node is in, the innermost first.
    fn arms(&self, node: &Node) -> impl Iterator<Item = Control> {
        successors(node.control, |arm| self.body.nodes[arm.switch.0 as usize].control)
    }

    fn pass(&mut self, index: usize) {
        let depth = |index: usize| self.arms(&self.body.nodes[index]).count();
        let [fewest, _] = self.passed;
        let has_fewer = self.body.nodes[fewest].control.is_some() && depth(index) < depth(fewest);
        self.passed = [if has_fewer { index } else { fewest }, index];
    }
}

fn name(named: Option<&plan::Section>, key: &SectionKey, flow: &str, node: &Node, has_one_flow: bool) -> String {
    match (named, key) {
        (Some(section), _) => section.name.value.to_string(),
        (None, SectionKey::Call(..) | SectionKey::Stateless(..)) if has_one_flow => node.name.to_string(),
        (None, SectionKey::Call(..) | SectionKey::Stateless(..)) => format!("{flow}: {}", node.name),
        (None, _) => REST.to_owned(),
    }
}

impl EngineSection {
    /// A section that no plan names is called after its first call, and says whether there are more.
    fn name_after_its_calls(&mut self, has_one_flow: bool) {
        match &*self.nodes {
            [(_, node)] if has_one_flow => self.name = node.to_string(),
            [(flow, node)] => self.name = format!("{flow}: {node}"),
            [_, _] => self.name.push_str(" …"),
            _ => {}
        }
    }

    /// How many copies work side by side. Where the plan says nothing, a section without state has enough for all threads
    /// that it might use.
    fn finish(&mut self) {
        self.replicas = match self.replicas {
            _ if self.state.is_some() => 1,
            0 if self.threading.granularity == Granularity::Calls => 1,
            // More copies than threads, so that a long flow holds up few others.
            0 if self.threading.shares_threads => self.threads * COPIES_FOR_EACH_THREAD,
            0 => self.threads,
            replicas => replicas,
        };
    }

    /// How the number of threads is found of the crew that serves it, and `ports` in all: more threads would have nothing to
    /// do.
    pub(super) fn control(&self, ports: usize) -> ThreadControl {
        (self.threading.control)(self.threads.min(ports), self.queue)
    }

    /// Whether its threads serve other sections too: all whose engine has this name.
    #[must_use]
    pub fn shares_threads(&self) -> bool {
        self.threading.shares_threads
    }

    /// How many threads serve it, at least and at most.
    #[must_use]
    pub fn threads(&self) -> RangeInclusive<usize> {
        let ports = if self.shares_threads() { usize::MAX } else { self.replicas };
        let control = self.control(ports);
        control.threads_min()..=control.threads_max()
    }
}

fn value(given: Option<&Located<usize>>) -> Option<usize> {
    given.map(|given| given.value)
}

fn threading_of(name: &Located<weir_host::Text>) -> Option<(&'static str, ThreadingModel)> {
    let row = engine(&name.value)?;
    match row.drive {
        Drive::Sections(threading) => Some((row.name, threading)),
        Drive::Flows(_) => None,
    }
}

/// Whether a node is more than plumbing.
fn works(node: &Node) -> bool {
    matches!(node.kind, NodeKind::Call { .. }) || !node.bodies().is_empty()
}

/// Whether a step may have to wait for an event loop.
fn calls_out(step: &PreparedStep) -> bool {
    step.has(&|action| match action {
        Action::Call(call) => matches!(call.code, Code::Waiting(_)),
        Action::Timed(timed) => timed.limit.is_some(),
        _ => false,
    })
}

/// Whether a step calls a function that holds its thread.
fn blocks(step: &PreparedStep) -> bool {
    step.has(&|action| matches!(action, Action::Call(call) if matches!(call.code, Code::Blocking(_))))
}
