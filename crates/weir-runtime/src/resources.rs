//! Resources that flows share: shared values, their constraints, and the private states of call sites.
//!
//! A resource has a lock only if some flow changes it: reads need no order. A read by itself does not take that of a value which has
//! snapshots. An atomic step per session holds the lock of its session, and each of its calls holds the lock of the whole resource
//! while it runs. If each session has a value of its own, there is no whole resource to lock.

use std::collections::BTreeMap;
use std::sync::Arc;

use indexmap::IndexMap;
use weir_host::{Environment, IssuedIds, Mode, Resource, Shared, Text, Value};
use weir_ir::graph::{Graph, Program};

use crate::batching::{FlowsInBatches, Gatherer};
use crate::lock::{FairRwLock, SessionLimits, SessionRetention, SessionTable};
use crate::platform::Platform;
use crate::ticket_gate::TicketGate;

/// The locks of one resource.
#[derive(Default)]
pub(crate) struct ResourceLocks {
    /// The lock of the whole resource, held for the duration of a call or an atomic step.
    pub whole: Arc<FairRwLock>,
    /// The sessions in use, and those whose values are retained.
    pub sessions: Arc<SessionTable>,
    /// Set if atomic steps hold the resource per session. Calls then lock the whole resource last, because they wait
    /// for nothing while they hold it.
    pub session_scoped: bool,
}

/// The resources of a running program.
#[derive(Default)]
pub(crate) struct Resources {
    /// The shared values, in the order of the program.
    pub shared: Vec<Shared>,
    /// The index of each shared value, by name.
    pub shared_index: IndexMap<Text, u32>,
    /// For each shared value that is declared `per session`, its sessions.
    pub own: Vec<Option<Arc<SessionTable>>>,
    /// The locks of the resources that need one.
    pub locks: BTreeMap<Resource, ResourceLocks>,
    /// The private states of call sites.
    pub states: Vec<Shared>,
    /// The ticket gates of call sites that must follow the order of a source.
    pub ticket_gates: Vec<TicketGate>,
    /// The gatherers of the batched functions that the program calls, by their paths; of one that borrows shared values there is one
    /// for these values.
    pub gatherers: IndexMap<Text, Arc<Gatherer>>,
    /// The flows at rest that have calls in batches.
    pub in_batches: FlowsInBatches,
}

impl Resources {
    /// Returns the resources of a program; its shared values are not created yet.
    pub(crate) fn of(
        program: &Program,
        environment: &Environment,
        limits: SessionLimits,
        platform: &Arc<dyn Platform>,
    ) -> Resources {
        let mut resources = Resources { locks: locks_of(program), ..Resources::default() };
        for (resource, locks) in &mut resources.locks {
            if let Resource::Constraint(name) = resource
                && let Some(step_end) = environment.step_ends().and_then(|ends| ends.of(name))
            {
                locks.whole = Arc::new(FairRwLock::ending(step_end));
            }
        }
        for (shared, index) in program.shared.iter().zip(0..) {
            resources.shared_index.insert(shared.name.clone(), index);
            resources.shared.push(Shared::new(Value::Absent));
            let sessions = shared.per_session.then(|| {
                let keeping =
                    SessionRetention { limits, platform: Arc::clone(platform), issued: environment.get::<IssuedIds>() };
                Arc::new(SessionTable::keeping(keeping))
            });
            if let Some(sessions) = &sessions {
                let locks = resources.locks.entry(Resource::Shared(shared.name.clone())).or_default();
                locks.sessions = Arc::clone(sessions);
            }
            resources.own.push(sessions);
        }
        resources
    }

    /// Returns the sessions of a shared value that is declared `per session`.
    pub(crate) fn own(&self, index: u32) -> Option<&Arc<SessionTable>> {
        self.own.get(index as usize)?.as_ref()
    }

    /// Adds the state of a call site, and returns its index.
    pub(crate) fn add_state(&mut self, state: Value) -> usize {
        self.states.push(Shared::new(state));
        self.states.len() - 1
    }

    /// Adds a ticket gate, and returns its index.
    pub(crate) fn add_ticket_gate(&mut self) -> usize {
        self.ticket_gates.push(TicketGate::default());
        self.ticket_gates.len() - 1
    }
}

/// Returns a lock for each resource that some flow changes.
fn locks_of(program: &Program) -> BTreeMap<Resource, ResourceLocks> {
    let mut locks = BTreeMap::new();
    for flow in program.entries.iter().flat_map(|entry| &entry.flows) {
        collect(&flow.body, &mut locks);
    }
    for resource in program.session_scoped() {
        locks.entry(resource).and_modify(|locks| locks.session_scoped = true);
    }
    locks
}

fn collect(graph: &Graph, locks: &mut BTreeMap<Resource, ResourceLocks>) {
    let mut note = |resource: &Resource, mode| {
        if mode == Mode::Write && matches!(resource, Resource::Shared(_) | Resource::Constraint(_)) {
            locks.entry(resource.clone()).or_default();
        }
    };
    graph.each_node(&mut |node| {
        node.uses.iter().for_each(|used| note(&used.resource, used.mode));
        node.kind.constraints().iter().for_each(|constraint| note(&constraint.resource, constraint.mode));
    });
}
