//! Where sections are: the ports before them, and the crews that serve these.
//!
//! A flow passes its sections in the order of its nodes, as *stretches*: each is a run of neighbouring nodes of one
//! section. A section with replicas has a port for each, and flows take turns at them; so each section that holds a
//! private state has one only.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use weir_scheduler::{PortId, PortSettings, ThreadPool};

use super::partition::{EngineSection, UnplacedSegment, partition};
use super::{EngineSetup, ThreadingModel};

/// A program's ports and crews.
pub(super) struct Placement {
    /// The ports.
    pub ports: Vec<PortSettings>,
    /// The crews.
    pub crews: Vec<ThreadPool>,
    /// The stretches of each flow, by entry and route.
    pub segments: Vec<Vec<Vec<Segment>>>,
    /// The sections.
    pub sections: Vec<PlacedSection>,
}

/// A section and its ports.
pub(super) struct PlacedSection {
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
pub(super) struct Segment {
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

impl Segment {
    /// The port at which a flow of this number takes its turn.
    pub(super) fn port_of(&self, sequence: u64) -> PortId {
        let replicas = self.replicas as u64;
        // A division takes longer than all else at a hop. What is left of one by a number of ports fits such a number.
        let replica = if replicas.is_power_of_two() { sequence & (replicas - 1) } else { sequence % replicas };
        PortId(self.port + replica as usize)
    }
}

/// Lays out the program as the plan says; `rest` is the engine of what the plan names no engine for.
pub(super) fn place(rest: ThreadingModel, setup: &EngineSetup<'_>) -> Placement {
    let (sections, segments) = partition(rest, &setup.planned());
    let mut placement = Placement { ports: Vec::new(), crews: Vec::new(), segments: Vec::new(), sections: Vec::new() };
    placement.place_sections(&sections);
    setup.thread_counts.apply(&mut placement.crews);
    let placed = |segments: Vec<UnplacedSegment>| {
        segments.into_iter().map(|segment| segment.placed(&placement.sections)).collect()
    };
    placement.segments = segments.into_iter().map(|routes| routes.into_iter().map(placed).collect()).collect();
    placement
}

impl UnplacedSegment {
    fn placed(self, sections: &[PlacedSection]) -> Segment {
        let UnplacedSegment { until, section, calls_out, waits } = self;
        let ports = &sections[section].ports;
        Segment { until, port: ports.start, replicas: ports.len(), section, calls_out, waits }
    }
}

impl Placement {
    /// Gives every section its ports and its crew. Sections are numbered as flows come to them, because a port waits for
    /// room only in a later one.
    fn place_sections(&mut self, sections: &[EngineSection]) {
        let mut common = None;
        for section in sections {
            let crew = if section.shares_threads() {
                *common.get_or_insert_with(|| self.add_crew(section, section.engine, usize::MAX))
            } else {
                self.add_crew(section, &section.name, section.replicas)
            };
            let first = self.ports.len();
            self.sections.push(PlacedSection {
                name: section.name.as_str().into(),
                engine: section.engine,
                ports: first..first + section.replicas,
                passed: AtomicU64::new(0),
            });
            let port = PortSettings { capacity: section.queue, pool: crew, nonblocking: !section.blocks };
            self.ports.extend((0..section.replicas).map(|_| port));
        }
    }

    fn add_crew(&mut self, section: &EngineSection, name: &str, ports: usize) -> usize {
        self.crews.push(ThreadPool { name: name.to_owned(), control: section.control(ports) });
        self.crews.len() - 1
    }
}
