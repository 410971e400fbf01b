//! Placement: assigns ports of the scheduler, and thread pools that serve them, to the sections of a partition.
//!
//! Sections of an engine that shares its threads (`elastic`) share one thread pool; every other section has a thread
//! pool of its own.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use weir_scheduler::{PortSettings, ThreadPool};

use super::partition::{EngineSection, FlowSegments, Partition, SectionPlace, partition};
use super::{EngineSetup, ThreadingModel};
use crate::overload::FlowDelays;

/// The ports and thread pools of a program, and the segments of its flows.
pub(super) struct Placement {
    /// The settings of each port.
    pub ports: Vec<PortSettings>,
    /// The thread pools.
    pub pools: Vec<ThreadPool>,
    /// The segments of each flow, by entry and route.
    pub segments: FlowSegments,
    /// The place of each section of the plan.
    pub planned: Vec<Option<SectionPlace>>,
    /// The sections.
    pub sections: Vec<PlacedSection>,
}

/// A section while it runs: the counters and ports that are reported to the trace.
pub(super) struct PlacedSection {
    /// The name of the section.
    pub name: Arc<str>,
    /// The name of its engine.
    pub engine: &'static str,
    /// Its ports.
    pub ports: Range<usize>,
    /// The number of watched flows that have passed it.
    pub passed: AtomicU64,
    /// The delays of awaited flows in the queues of its ports.
    pub delays: FlowDelays,
}

/// Partitions a program and places its sections; `rest` is the threading model of the nodes for which the plan names no
/// engine.
pub(super) fn place(rest: ThreadingModel, setup: &EngineSetup<'_>) -> Placement {
    let Partition { sections, segments, planned } = partition(rest, &setup.planned);
    let mut placement = Placement { ports: Vec::new(), pools: Vec::new(), segments, planned, sections: Vec::new() };
    placement.place_sections(sections);
    setup.thread_counts.apply(&mut placement.pools);
    placement
}

impl Placement {
    fn place_sections(&mut self, sections: Vec<EngineSection>) {
        let mut shared_pool = None;
        for section in sections {
            let pool = if section.shares_threads() {
                *shared_pool.get_or_insert_with(|| self.add_pool(&section, section.engine, usize::MAX))
            } else {
                self.add_pool(&section, &section.name, section.replicas)
            };
            let port = PortSettings { capacity: section.queue, pool, nonblocking: !section.blocks };
            self.ports.extend(section.ports.clone().map(|_| port));
            self.sections.push(PlacedSection {
                name: section.name.as_str().into(),
                engine: section.engine,
                ports: section.ports,
                passed: AtomicU64::new(0),
                delays: FlowDelays::new(),
            });
        }
    }

    /// Adds a thread pool for `ports` ports, and returns its index.
    fn add_pool(&mut self, section: &EngineSection, name: &str, ports: usize) -> usize {
        self.pools.push(ThreadPool { name: name.to_owned(), control: section.control(ports) });
        self.pools.len() - 1
    }
}
