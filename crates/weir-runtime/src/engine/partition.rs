//! Partitioning (section mapping): divides the flows of a program into sections, and each flow into segments.
//!
//! A *section* is a set of nodes that a plan or an engine keeps together, with a queue before it. A *segment* is a run of
//! neighbouring nodes of one flow that belong to the same section: a flow passes its segments in the order of its nodes,
//! and may come to one section several times. [`map_sections`] gives the section of each node.
//!
//! A section with replicas has a port for each, and flows take turns at them by their sequence numbers. A section that
//! holds a private state has one port only.

use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use indexmap::IndexMap;
use weir_host::{FunctionCode, Text};
use weir_ir::graph::{Graph, Node, NodeId};
use weir_ir::plan::{self, Granularity, Located, REST, SectionKey, is_stateless, map_sections};
use weir_scheduler::{PortId, ThreadControl};

use super::vector_code::VectorCode;
use super::{Drive, PlannedProgram, ThreadingModel, engine};
use crate::instance::{BlockingPlacement, EntryLoops};
use crate::step::{Action, Body, PreparedStep};

/// The capacity of a section's queue if neither the section nor the plan sets one. Capacities of 128 to 256 did better
/// than larger ones when the sections were first measured; a longer queue holds more frames that have left the cache.
pub(crate) const QUEUE_DEFAULT: usize = 256;

/// Replicas of a stateless section for each thread that may serve it. Chosen by judgement, not by measurement: with one
/// replica for each thread, a long flow would delay all flows that share its port; each further replica costs a queue.
const REPLICAS_PER_THREAD: usize = 4;

/// A section of a program under a plan, as its engine runs it.
#[derive(Debug)]
pub struct EngineSection {
    /// The name: the plan's, that of the section's first call, or `rest`.
    pub name: String,
    /// The index of the section in the plan; `None` for a section that the engine made.
    pub planned: Option<usize>,
    /// The name of the engine that runs the section.
    pub engine: &'static str,
    /// The capacity of the queue before the section, or before each of its replicas.
    pub queue: usize,
    /// The number of replicas, which work side by side on different flows.
    pub replicas: usize,
    /// The first node that has a private state, which limits the section to one replica.
    pub state: Option<Text>,
    /// The calls and repeated bodies of the section, in the order of the text, each with the name of its flow.
    pub nodes: Vec<(Text, Text)>,
    /// The section's ports; empty until all sections are known.
    pub(super) ports: Range<usize>,
    /// True if a function of the section blocks the thread that runs the section.
    pub(super) blocks: bool,
    /// The threading model of the section.
    pub(super) threading: ThreadingModel,
    /// The maximum number of threads that the plan allows.
    threads: usize,
}

/// The place where flows run that are in a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SectionPlace {
    /// The index of the section.
    pub section: usize,
    /// The first port of the section.
    port: usize,
    /// The number of ports of the section.
    replicas: usize,
    /// The threads on which functions of the section run that block their thread.
    pub blocking: BlockingPlacement,
}

/// A run of neighbouring steps of a flow that belong to one section.
pub(super) struct Segment {
    /// The first step after the segment.
    pub until: usize,
    /// The calls with which the segment begins, if they may be made together with those of other flows.
    pub vector: Option<Arc<VectorCode>>,
    /// The place of its section.
    pub place: SectionPlace,
    /// True if a function of the segment may wait, which needs an event loop.
    pub calls_out: bool,
    /// True if a flow may have to wait in the segment, for a function, a lock or its ticket, or if it may move to other
    /// sections within.
    pub waits: bool,
}

/// The segments of each flow, by entry and route; no routes of entries whose flows stay on their event loops.
pub(super) type FlowSegments = Vec<Vec<Vec<Segment>>>;

/// A program divided into sections, and its flows into segments.
pub(super) struct Partition {
    pub sections: Vec<EngineSection>,
    pub segments: FlowSegments,
    /// The place of each section of the plan; `None` for one to which no flow comes.
    pub planned: Vec<Option<SectionPlace>>,
}

impl SectionPlace {
    /// Returns the place of a section whose ports are not known yet.
    fn of(section: usize, blocking: BlockingPlacement) -> SectionPlace {
        SectionPlace { section, port: 0, replicas: 0, blocking }
    }

    /// Returns the port that the flow of this sequence number passes.
    pub(super) fn port_of(&self, sequence: u64) -> PortId {
        let replicas = self.replicas as u64;
        // A division takes longer than everything else at a hop. The remainder by a number of ports fits a `usize`.
        let replica = if replicas.is_power_of_two() { sequence & (replicas - 1) } else { sequence % replicas };
        PortId(self.port + replica as usize)
    }
}

/// Partitions a program; `rest` is the threading model of the nodes for which the plan names no engine. Sections, and with
/// them ports, are numbered in the order in which flows reach them, because a port may wait for room only at a later port.
/// Flows that stay on their event loops have no segments.
pub(super) fn partition(rest: ThreadingModel, planned: &PlannedProgram<'_>) -> Partition {
    let mut partitioner = Partitioner { rest, planned, sections: IndexMap::new() };
    let mut segments = FlowSegments::new();
    for (entry, value) in planned.program.entries.iter().enumerate() {
        let stays_on_loops = planned.instance.entries[entry].loops != EntryLoops::First;
        let routes = value.flows.iter().enumerate().filter(|_| !stays_on_loops);
        let flows = routes.map(|(route, flow)| partitioner.segments((entry, route), &flow.name, &flow.body));
        segments.push(flows.collect());
    }
    let mut sections: Vec<EngineSection> = partitioner.sections.into_values().collect();
    let mut next_port = 0;
    for section in &mut sections {
        section.replicas = section.replica_count();
        section.ports = next_port..next_port + section.replicas;
        next_port = section.ports.end;
    }
    for segment in segments.iter_mut().flatten().flatten() {
        let ports = &sections[segment.place.section].ports;
        (segment.place.port, segment.place.replicas) = (ports.start, ports.len());
    }
    let place = |planned: usize| {
        let (index, section) = sections.iter().enumerate().find(|(_, section)| section.planned == Some(planned))?;
        let (port, replicas) = (section.ports.start, section.ports.len());
        Some(SectionPlace { section: index, port, replicas, blocking: section.blocking() })
    };
    let planned = (0..planned.plan.sections.len()).map(place).collect();
    Partition { sections, segments, planned }
}

/// The identity of a section while nodes are being assigned: its key, and the entry and route of a section that the
/// engine makes for one flow.
type SectionIdentity = (SectionKey, Option<(usize, usize)>);

struct Partitioner<'a> {
    rest: ThreadingModel,
    planned: &'a PlannedProgram<'a>,
    sections: IndexMap<SectionIdentity, EngineSection>,
}

impl Partitioner<'_> {
    /// Divides one flow into segments.
    fn segments(&mut self, place: (usize, usize), name: &Text, body: &Graph) -> Vec<Segment> {
        let prepared = &self.planned.instance.entries[place.0].flows[place.1].0.body;
        let (steps, is_cut) = (&prepared.steps, !prepared.cuts.is_empty());
        let waits = |id: NodeId| steps[id.0 as usize].calls_out();
        let keys = map_sections(self.planned.plan, name, body, self.rest.granularity, waits);
        let mut segments: Vec<Segment> = Vec::new();
        for (index, (key, step)) in keys.into_iter().zip(steps).enumerate() {
            let own = matches!(key, SectionKey::Call(_) | SectionKey::Stateless(_)).then_some(place);
            let section = self.add_to_section((key, own), name, &body.nodes[index], step);
            let blocking = self.sections[section].blocking();
            if is_cut {
                self.add_inner(name, &body.nodes[index], step);
            }
            let calls_out = step.calls_out() || (blocking == BlockingPlacement::Elsewhere && blocks(step));
            let waits = calls_out || step.wait_number.is_some() || is_cut;
            match segments.last_mut().filter(|segment| segment.place.section == section) {
                Some(segment) => {
                    segment.until = index + 1;
                    segment.calls_out |= calls_out;
                    segment.waits |= waits;
                }
                // The ports follow when all sections are known.
                None => segments.push(Segment {
                    until: index + 1,
                    vector: None,
                    place: SectionPlace::of(section, blocking),
                    calls_out,
                    waits,
                }),
            }
        }
        let mut first = 0;
        for segment in &mut segments {
            segment.vector = VectorCode::of(prepared, first..segment.until);
            first = segment.until;
        }
        segments
    }

    /// Adds the nodes in the bodies of a node that the plan names to their sections.
    fn add_inner(&mut self, flow: &Text, node: &Node, step: &PreparedStep) {
        let bodies: Vec<&Body> = match step.action.uncut().form() {
            Action::Repeat(repeat) => vec![&repeat.body],
            Action::Timed(timed) => timed.bodies.iter().map(|(body, _)| body).collect(),
            _ => Vec::new(),
        };
        let inner = node.bodies().iter().zip(bodies).flat_map(|(graph, body)| graph.nodes.iter().zip(&body.steps));
        for (inner, step) in inner {
            if let Some(named) = self.planned.plan.section_of_inner_node(flow, node, inner) {
                self.add_to_section((SectionKey::Named(named), None), flow, inner, step);
            }
            self.add_inner(flow, inner, step);
        }
    }

    /// Adds a node to its section, and returns the index of the section.
    fn add_to_section(&mut self, key: SectionIdentity, flow: &Text, node: &Node, step: &PreparedStep) -> usize {
        let is_made_here = key.1.is_some();
        let index = self.sections.get_index_of(&key).unwrap_or_else(|| {
            let section = self.new_section(key.0, flow, node);
            self.sections.insert_full(key, section).0
        });
        let has_one_flow = self.has_one_flow();
        let section = &mut self.sections[index];
        section.blocks |= section.blocking() == BlockingPlacement::InPlace && blocks(step);
        if !is_stateless(node) {
            section.state.get_or_insert_with(|| node.name.clone());
        }
        if node.works() {
            section.nodes.push((flow.clone(), node.name.clone()));
            if is_made_here {
                section.rename_after_calls(has_one_flow);
            }
        }
        index
    }

    /// Returns true if the name of a node identifies it without the name of its flow.
    fn has_one_flow(&self) -> bool {
        self.planned.program.entries.iter().map(|entry| entry.flows.len()).sum::<usize>() == 1
    }

    /// Returns a section without nodes. `node` will be the first, and names the section if the plan does not. The
    /// settings of the plan's section take precedence over those of the whole program.
    fn new_section(&self, key: SectionKey, flow: &str, node: &Node) -> EngineSection {
        let plan = self.planned.plan;
        let planned = if let SectionKey::Named(index) = key { Some(index) } else { None };
        let named = planned.and_then(|index| plan.sections.get(index));
        let engine = named.and_then(|section| threading_of(section.engine.as_ref()?));
        let (engine, threading) = engine.unwrap_or((self.planned.engine, self.rest));
        EngineSection {
            name: section_name(named, key, flow, node, self.has_one_flow()),
            planned,
            engine,
            queue: value(named.and_then(|section| section.queue_length_max.as_ref())).unwrap_or(self.planned.queue),
            // 0 means "not set", until `replica_count` decides.
            replicas: value(named.and_then(|section| section.replicas.as_ref())).unwrap_or(0),
            state: None,
            nodes: Vec::new(),
            ports: 0..0,
            blocks: false,
            threading,
            threads: value(named.and_then(|section| section.threads.as_ref())).unwrap_or(self.planned.threads).max(1),
        }
    }
}

fn section_name(named: Option<&plan::Section>, key: SectionKey, flow: &str, node: &Node, has_one_flow: bool) -> String {
    match (named, key) {
        (Some(section), _) => section.name.value.to_string(),
        (None, SectionKey::Call(..) | SectionKey::Stateless(..)) if has_one_flow => node.name.to_string(),
        (None, SectionKey::Call(..) | SectionKey::Stateless(..)) => format!("{flow}: {}", node.name),
        (None, _) => REST.to_owned(),
    }
}

impl EngineSection {
    /// Names a section that no plan names after its first call, with an ellipsis if it has more.
    fn rename_after_calls(&mut self, has_one_flow: bool) {
        match &*self.nodes {
            [(_, node)] if has_one_flow => self.name = node.to_string(),
            [(flow, node)] => self.name = format!("{flow}: {node}"),
            [_, _] => self.name.push_str(" …"),
            _ => {}
        }
    }

    /// Returns the number of replicas: the plan's if it sets one, and otherwise enough for all threads that may serve a
    /// section without state.
    fn replica_count(&self) -> usize {
        match self.replicas {
            _ if self.state.is_some() => 1,
            0 if self.threading.granularity == Granularity::Calls => 1,
            0 if self.threading.shares_threads => self.threads * REPLICAS_PER_THREAD,
            0 => self.threads,
            replicas => replicas,
        }
    }

    /// Returns the control of the thread pool that serves this section and `ports` ports in all, each of which occupies
    /// at most one thread.
    pub(super) fn control(&self, ports: usize) -> ThreadControl {
        (self.threading.control)(self.threads.min(ports), self.queue)
    }

    /// Returns true if calls or repeated bodies of this flow are in the section.
    #[must_use]
    pub fn holds_nodes_of(&self, flow: &str) -> bool {
        self.nodes.iter().any(|(of, _)| of.as_str() == flow)
    }

    /// Returns true if the threads of this section serve all sections of the same engine.
    #[must_use]
    pub fn shares_threads(&self) -> bool {
        self.threading.shares_threads
    }

    /// Returns the threads on which functions run that block their thread. One that blocked a thread that serves all
    /// sections would keep it from them, and its time would say nothing about the best number of such threads.
    fn blocking(&self) -> BlockingPlacement {
        if self.shares_threads() { BlockingPlacement::Elsewhere } else { BlockingPlacement::InPlace }
    }

    /// Returns the minimum and the maximum number of threads that serve the section.
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

/// Returns true if a step calls a function that blocks its thread.
fn blocks(step: &PreparedStep) -> bool {
    step.has(&|action| matches!(action, Action::Call(call) if matches!(call.code, FunctionCode::Blocking(_))))
}
