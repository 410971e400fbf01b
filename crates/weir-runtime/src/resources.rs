//! What flows meet in: shared values, their constraints, and the private states of call sites.
//!
//! A resource has a lock only where somebody changes it: what is only read needs no order. One that is also held per
//! session has two: the *gate*, which a session's atomic step enters as a reader and everybody else in the call's own
//! mode, and the lock of the *call itself*, for two sessions that are inside together.

use std::collections::BTreeMap;
use std::sync::Arc;

use indexmap::IndexMap;
use weir_host::{Mode, Resource, Shared, Text, Value};
use weir_ir::graph::{Graph, Kind, Program};

use crate::lock::{Lock, Sessions};
use crate::turn::Turnstile;

/// What the program's text says of one resource.
#[derive(Clone, Copy, Debug, Default)]
struct Touched {
    written: bool,
    per_session: bool,
}

/// The locks of one resource.
#[derive(Clone)]
pub(crate) struct Locks {
    /// Taken for the length of a call or an atomic step.
    pub gate: Arc<Lock>,
    /// Taken for the length of a call, where sessions are in use.
    pub call: Option<Arc<Lock>>,
    /// The sessions in use.
    pub sessions: Arc<Sessions>,
}

/// The resources of a running program.
#[derive(Default)]
pub(crate) struct Resources {
    /// The shared values, in the order of the program.
    pub shared: Vec<Shared>,
    /// The index of each.
    pub shared_index: IndexMap<Text, u32>,
    /// The locks of those that need one.
    pub locks: BTreeMap<Resource, Locks>,
    /// The private states of call sites.
    pub states: Vec<Shared>,
    /// The gates of call sites that must see a source's order.
    pub turns: Vec<Turnstile>,
}

impl Resources {
    /// The resources of the program, whose shared values are not made yet.
    pub(crate) fn of(program: &Program) -> Resources {
        let mut resources = Resources { locks: locks_of(program), ..Resources::default() };
        for (shared, index) in program.shared.iter().zip(0..) {
            resources.shared_index.insert(shared.name.clone(), index);
            resources.shared.push(Shared::new(Value::Absent));
        }
        resources
    }

    /// Adds the state of one call site, and yields its index.
    pub(crate) fn add_state(&mut self, state: Value) -> usize {
        self.states.push(Shared::new(state));
        self.states.len() - 1
    }

    /// Adds a gate, and yields its index.
    pub(crate) fn add_turn(&mut self) -> usize {
        self.turns.push(Turnstile::default());
        self.turns.len() - 1
    }
}

fn locks_of(program: &Program) -> BTreeMap<Resource, Locks> {
    let mut touched = BTreeMap::new();
    for flow in program.entries.iter().flat_map(|entry| &entry.flows) {
        collect(&flow.body, &mut touched);
    }
    let needed = touched.into_iter().filter(|(_, touched)| touched.written);
    needed.map(|(resource, touched)| (resource, Locks::new(touched))).collect()
}

fn collect(graph: &Graph, touched: &mut BTreeMap<Resource, Touched>) {
    for node in &graph.nodes {
        for used in &node.uses {
            note(touched, &used.resource, used.mode, false);
        }
        if let Kind::Acquire { constraints } = &node.kind {
            for constraint in constraints {
                note(touched, &constraint.resource, constraint.mode, constraint.per_session);
            }
        }
        if let Some(body) = node.body() {
            collect(body, touched);
        }
    }
}

fn note(touched: &mut BTreeMap<Resource, Touched>, resource: &Resource, mode: Mode, per_session: bool) {
    if matches!(resource, Resource::Shared(_) | Resource::Constraint(_)) {
        let entry = touched.entry(resource.clone()).or_default();
        entry.written |= mode == Mode::Write;
        entry.per_session |= per_session;
    }
}

impl Locks {
    fn new(touched: Touched) -> Locks {
        let call = touched.per_session.then(Arc::default);
        Locks { gate: Arc::default(), call, sessions: Arc::default() }
    }
}
