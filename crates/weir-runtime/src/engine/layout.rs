//! Where a program is cut: the sections of a plan, the ports before them, and the crews that serve these.
//!
//! A flow passes its sections in the order of its nodes, as *stretches*: each is a run of neighbouring nodes of one
//! section. A section with replicas has a port for each, and flows take turns at them; so each section that holds a
//! private state has one only.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use weir_host::Code;
use weir_ir::graph::{Graph, Kind, Node};
use weir_ir::plan::{Given, REST, Section, is_stateless};
use weir_scheduler::{Crew, PortId, Ports};

use super::{Drive, Grain, Setup, Threading, engine};
use crate::step::{Action, Step};

/// How many flows wait before a section where the plan says nothing: 128 to 256 do better than more.
const QUEUE_DEFAULT: usize = 256;

/// How many copies of a section without state there are for each thread that may come by.
const COPIES_FOR_EACH_THREAD: usize = 4;

/// A program, cut.
pub(super) struct Layout {
    /// The ports.
    pub ports: Vec<Ports>,
    /// The crews.
    pub crews: Vec<Crew>,
    /// The stretches of each flow, by entry and route.
    pub stretches: Vec<Vec<Vec<Stretch>>>,
    /// The sections.
    pub sections: Vec<Placed>,
}

/// A section and its ports.
pub(super) struct Placed {
    /// Its name.
    pub name: Arc<str>,
    /// Its engine.
    pub engine: &'static str,
    /// Its ports.
    pub ports: Range<usize>,
    /// How many flows have passed it while somebody watched.
    pub passed: AtomicU64,
}

/// A run of neighbouring steps of one section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    /// The first step after it.
    pub until: usize,
    /// The first port of the section.
    pub port: usize,
    /// How many ports it has.
    pub replicas: usize,
    /// The section, by its index in the layout.
    pub section: usize,
    /// Whether a function of it may wait, which needs an event loop.
    pub calls_out: bool,
    /// Whether a flow may have to wait in it, for whatever.
    pub waits: bool,
}

impl Stretch {
    /// The port at which a flow of this number takes its turn.
    pub(super) fn port_of(&self, sequence: u64) -> PortId {
        let replicas = self.replicas as u64;
        // A division takes longer than all else at a hop. What is left of one by a number of ports fits such a number.
        let replica = if replicas.is_power_of_two() { sequence & (replicas - 1) } else { sequence % replicas };
        PortId(self.port + replica as usize)
    }
}

/// Which section a node is in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    /// One of the plan, by its index.
    Named(usize),
    /// What no pattern names.
    Rest,
    /// One call that no pattern names, by entry, route and node.
    Call(usize, usize, usize),
    /// Calls without state that no pattern names, by entry, route and the first node.
    Stateless(usize, usize, usize),
}

/// What is known of a section while the program is cut.
struct Known {
    name: String,
    /// How many calls and repeated bodies it has, where it is called after them.
    calls: usize,
    threads: usize,
    queue: usize,
    replicas: Option<usize>,
    engine: &'static str,
    threading: Threading,
    stateless: bool,
    /// Whether some function of it holds its thread.
    blocks: bool,
}

/// Cuts the program as the plan says; `rest` is the engine of what the plan names no engine for.
pub(super) fn layout(rest: Threading, setup: &Setup<'_>) -> Layout {
    let cutter = Cutter { rest, setup };
    let mut known: BTreeMap<Key, Known> = BTreeMap::new();
    // Sections are numbered as flows come to them, because a port waits for room only in a later one.
    let mut order: Vec<Key> = Vec::new();
    let flows = cutter.flows(|key, flow, node, blocks| {
        let section = known.entry(key.clone()).or_insert_with(|| {
            order.push(key.clone());
            cutter.known(key, flow, node)
        });
        section.stateless &= is_stateless(node);
        section.name_after(key, node);
        section.blocks |= blocks;
    });
    let mut layout = Layout { ports: Vec::new(), crews: Vec::new(), stretches: Vec::new(), sections: Vec::new() };
    let places = layout.place(&order, &known);
    setup.steering.apply(&mut layout.crews);
    layout.stretches = flows
        .into_iter()
        .map(|routes| {
            routes
                .into_iter()
                .map(|cuts| cuts.into_iter().map(|cut| cut.placed(&places, &layout.sections)).collect())
                .collect()
        })
        .collect();
    layout
}

/// A stretch whose section has no port yet.
struct Cut {
    until: usize,
    key: Key,
    calls_out: bool,
    waits: bool,
}

impl Cut {
    fn placed(self, places: &BTreeMap<Key, usize>, sections: &[Placed]) -> Stretch {
        let section = places[&self.key];
        let ports = &sections[section].ports;
        let (port, replicas, calls_out, waits) = (ports.start, ports.len(), self.calls_out, self.waits);
        Stretch { until: self.until, port, replicas, section, calls_out, waits }
    }
}

struct Cutter<'a> {
    rest: Threading,
    setup: &'a Setup<'a>,
}

impl Cutter<'_> {
    /// The cuts of all flows; `see` sees each node with its section and its flow, and whether it holds its thread.
    fn flows(&self, mut see: impl FnMut(&Key, &str, &Node, bool)) -> Vec<Vec<Vec<Cut>>> {
        let entries = self.setup.program.entries.iter().enumerate();
        let entries = entries.map(|(entry, value)| {
            let routes = value.flows.iter().enumerate();
            routes.map(|(route, flow)| self.cuts((entry, route), &flow.name, &flow.body, &mut see)).collect()
        });
        entries.collect()
    }

    fn cuts(
        &self,
        place: (usize, usize),
        flow: &str,
        body: &Graph,
        see: &mut impl FnMut(&Key, &str, &Node, bool),
    ) -> Vec<Cut> {
        let steps = &self.setup.live.entries[place.0].flows[place.1].0.body.steps;
        let mut cuts: Vec<Cut> = Vec::new();
        for (index, node) in body.nodes.iter().enumerate() {
            let calls_out = calls_out(&steps[index]);
            let waits = calls_out || steps[index].bit != 0;
            let works = !calls_out && works(node);
            let key = self.key((place, index), flow, node, works, cuts.last().map(|cut| &cut.key));
            see(&key, flow, node, blocks(&steps[index]));
            match cuts.last_mut().filter(|cut| cut.key == key) {
                Some(cut) => {
                    cut.until = index + 1;
                    cut.calls_out |= calls_out;
                    cut.waits |= waits;
                }
                None => cuts.push(Cut { until: index + 1, key, calls_out, waits }),
            }
        }
        cuts
    }

    /// What waits needs no thread, and overlaps with what else waits in its section.
    fn key(
        &self,
        ((entry, route), index): ((usize, usize), usize),
        flow: &str,
        node: &Node,
        works: bool,
        before: Option<&Key>,
    ) -> Key {
        match (self.setup.plan.section_of(flow, &node.name), before) {
            (Some(section), _) => Key::Named(section),
            (None, Some(before)) if !works => before.clone(),
            (None, _) if self.rest.grain == Grain::Whole => Key::Rest,
            (None, _) if self.rest.grain == Grain::Calls || !is_stateless(node) => Key::Call(entry, route, index),
            (None, Some(before @ Key::Stateless(..))) => before.clone(),
            (None, _) => Key::Stateless(entry, route, index),
        }
    }

    /// Whether the name of a node says which one it is.
    fn has_one_flow(&self) -> bool {
        self.setup.program.entries.iter().map(|entry| entry.flows.len()).sum::<usize>() == 1
    }

    fn known(&self, key: &Key, flow: &str, node: &Node) -> Known {
        let plan = self.setup.plan;
        let named: Option<&Section> = match key {
            Key::Named(index) => plan.sections.get(*index),
            _ => None,
        };
        let engine = named.and_then(|section| threading_of(section.engine.as_ref()?));
        let (engine, threading) = engine.unwrap_or((self.setup.engine, self.rest));
        let own = value(named.and_then(|section| section.threads.as_ref()));
        let shared = value(plan.threads.as_ref()).unwrap_or(self.setup.threads);
        let queue = named.and_then(|section| section.queue.as_ref()).or(plan.queue.as_ref());
        Known {
            name: match (named, key) {
                (Some(section), _) => section.name.value.to_string(),
                (None, Key::Call(..) | Key::Stateless(..)) if self.has_one_flow() => node.name.to_string(),
                (None, Key::Call(..) | Key::Stateless(..)) => format!("{flow}: {}", node.name),
                (None, _) => REST.to_owned(),
            },
            calls: 0,
            threads: own.unwrap_or(shared).max(1),
            queue: value(queue).unwrap_or(QUEUE_DEFAULT),
            replicas: value(named.and_then(|section| section.replicas.as_ref())),
            engine,
            threading,
            stateless: true,
            blocks: false,
        }
    }
}

impl Layout {
    /// Gives every section its ports and its crew; yields their indices.
    fn place(&mut self, order: &[Key], known: &BTreeMap<Key, Known>) -> BTreeMap<Key, usize> {
        let mut places = BTreeMap::new();
        let mut common = None;
        for key in order {
            let section = &known[key];
            let replicas = section.replicas();
            let crew = if section.threading.shares_threads {
                *common.get_or_insert_with(|| self.add_crew(section, "elastic", usize::MAX))
            } else {
                self.add_crew(section, &section.name, replicas)
            };
            let first = self.ports.len();
            places.insert(key.clone(), self.sections.len());
            self.sections.push(Placed {
                name: section.name.as_str().into(),
                engine: section.engine,
                ports: first..first + replicas,
                passed: AtomicU64::new(0),
            });
            self.ports.extend((0..replicas).map(|_| Ports { capacity: section.queue, crew, brief: !section.blocks }));
        }
        places
    }

    /// A crew; more threads than ports would have nothing to do.
    fn add_crew(&mut self, section: &Known, name: &str, ports: usize) -> usize {
        let control = (section.threading.control)(section.threads.min(ports), section.queue);
        self.crews.push(Crew { name: name.to_owned(), control });
        self.crews.len() - 1
    }
}

impl Known {
    /// A section that no plan names is called after its first call, and says whether there are more.
    fn name_after(&mut self, key: &Key, node: &Node) {
        if !works(node) || !matches!(key, Key::Call(..) | Key::Stateless(..)) {
            return;
        }
        self.calls += 1;
        match self.calls {
            1 => {
                let flow = self.name.rsplit_once(": ").map(|(flow, _)| format!("{flow}: ")).unwrap_or_default();
                self.name = format!("{flow}{}", node.name);
            }
            2 => self.name.push_str(" …"),
            _ => {}
        }
    }

    /// How many copies work side by side. Where the plan says nothing, a section without state has enough for all threads
    /// that it might use.
    fn replicas(&self) -> usize {
        match self.replicas {
            _ if !self.stateless => 1,
            Some(replicas) => replicas,
            None if self.threading.grain == Grain::Calls => 1,
            // More copies than threads, so that a long flow holds up few others.
            None if self.threading.shares_threads => self.threads * COPIES_FOR_EACH_THREAD,
            None => self.threads,
        }
    }
}

fn value(given: Option<&Given<usize>>) -> Option<usize> {
    given.map(|given| given.value)
}

fn threading_of(name: &Given<weir_host::Text>) -> Option<(&'static str, Threading)> {
    let row = engine(&name.value)?;
    match row.drive {
        Drive::Sections(threading) => Some((row.name, threading)),
        Drive::Flows(_) => None,
    }
}

/// Whether a node is more than plumbing.
fn works(node: &Node) -> bool {
    matches!(node.kind, Kind::Call { .. }) || !node.bodies().is_empty()
}

/// Whether a step may have to wait for an event loop.
fn calls_out(step: &Step) -> bool {
    step.has(&|action| match action {
        Action::Call(call) => matches!(call.code, Code::Waiting(_)),
        Action::Timed(timed) => timed.limit.is_some(),
        _ => false,
    })
}

/// Whether a step calls a function that holds its thread.
fn blocks(step: &Step) -> bool {
    step.has(&|action| matches!(action, Action::Call(call) if matches!(call.code, Code::Blocking(_))))
}
