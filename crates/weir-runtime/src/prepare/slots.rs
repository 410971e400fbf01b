//! Slot allocation by liveness: assigns each value a slot in the frame, and finds the uses that may move it out.
//!
//! Steps may run out of the list's order while earlier ones wait, so a value is not dead merely because no later step
//! in the list uses it: a slot is free for a new value if every step that accesses the old one has certainly run when
//! the new one is written, or is in another arm. The same rule decides which use is the last.

use std::collections::BTreeSet;

use weir_host::Argument;
use weir_ir::graph::{Control, Graph, Node, NodeId, NodeKind, Operand};

use super::order::StepOrder;
use super::shape::{ControlShape, InputUse};
use crate::step::{NONE, Repeat};

/// The maximum number of slots that are tried before a new one is taken, so that preparation stays linear in large
/// graphs.
const CANDIDATES_MAX: usize = 64;

/// The slots of the values of a graph.
pub(super) struct SlotLayout {
    /// The number of slots.
    pub slots: u32,
    /// For each node, the slots of its ports.
    ports: Vec<Vec<u32>>,
    /// For each node and input, true if this is the last use.
    last: Vec<Vec<bool>>,
    lives: Vec<Life>,
    /// The first parameter that must outlive this run of the body.
    kept_from: usize,
}

/// The live range of one value while slots are assigned.
struct Life {
    /// The node that writes it; `None` for a parameter.
    writer: Option<usize>,
    /// Its uses.
    users: Vec<InputUse>,
    /// True if it must outlive this run of the body, like the captured values of a repeated body.
    kept: bool,
    slot: u32,
}

impl SlotLayout {
    pub(super) fn of(graph: &Graph, shape: &ControlShape, order: &StepOrder, repeat: Option<Repeat>) -> SlotLayout {
        let mut planner = Planner::new(graph, shape, order, repeat);
        planner.collect_users();
        planner.assign();
        let last = (0..graph.nodes.len()).map(|node| planner.last_uses(node)).collect();
        let slot_of = |life: &usize| planner.lives[*life].slot;
        let ports = planner.ports.iter().map(|ports| ports.iter().map(slot_of).collect()).collect();
        let (slots, kept_from) = (planner.residents.len() as u32, fresh_parameters(repeat));
        SlotLayout { slots, ports, last, lives: planner.lives, kept_from }
    }

    /// Returns the slot of a node's port.
    pub(super) fn port(&self, node: NodeId, port: u32) -> u32 {
        self.ports[node.0 as usize][port as usize]
    }

    /// Returns the location of a node's input; `shared` is the index of a shared value.
    pub(super) fn argument(&self, node: usize, input: usize, source: &Operand, shared: u32) -> Option<Argument> {
        let last = self.last[node][input];
        match source {
            Operand::Port(id, port) => Some(Argument::Slot { index: self.port(*id, *port), last }),
            Operand::Parameter(index) => Some(Argument::Slot { index: *index, last }),
            Operand::Constant(index) => Some(Argument::Constant(*index)),
            Operand::Shared(_) => Some(Argument::Shared(shared)),
            Operand::Never => None,
        }
    }

    /// Returns the slots of values that are there before a node and are used behind it, without those that outlive this run of
    /// the body.
    pub(super) fn live_across(&self, node: usize) -> Box<[u32]> {
        let crosses = |life: &&Life| {
            let is_there = life.writer.is_none_or(|writer| writer < node);
            !life.kept && life.slot != NONE && is_there && life.users.iter().any(|user| user.node > node)
        };
        // Values of different arms share slots.
        let slots: BTreeSet<u32> = self.lives.iter().filter(crosses).map(|life| life.slot).collect();
        slots.into_iter().collect()
    }

    /// Returns the location of the graph's result. Nothing comes after it but the next run of a repeated body.
    pub(super) fn result(&self, source: &Operand, shared: u32) -> Option<Argument> {
        match source {
            Operand::Port(id, port) => Some(Argument::Slot { index: self.port(*id, *port), last: true }),
            Operand::Parameter(index) => {
                Some(Argument::Slot { index: *index, last: (*index as usize) < self.kept_from })
            }
            Operand::Constant(index) => Some(Argument::Constant(*index)),
            Operand::Shared(_) => Some(Argument::Shared(shared)),
            Operand::Never => None,
        }
    }
}

/// Returns the number of parameters that are new in every run of the body; the others are captured.
fn fresh_parameters(repeat: Option<Repeat>) -> usize {
    match repeat {
        None => usize::MAX,
        Some(repeat) => repeat.fixed(),
    }
}

struct Planner<'a> {
    graph: &'a Graph,
    shape: &'a ControlShape,
    order: &'a StepOrder,
    lives: Vec<Life>,
    /// For each node, the live ranges of its ports.
    ports: Vec<Vec<usize>>,
    /// For each slot, the live ranges that were assigned to it.
    residents: Vec<Vec<usize>>,
}

impl<'a> Planner<'a> {
    fn new(graph: &'a Graph, shape: &'a ControlShape, order: &'a StepOrder, repeat: Option<Repeat>) -> Self {
        let fresh = fresh_parameters(repeat);
        let mut planner = Planner { graph, shape, order, lives: Vec::new(), ports: Vec::new(), residents: Vec::new() };
        for parameter in 0..graph.parameters.len() {
            planner.lives.push(Life {
                writer: None,
                users: Vec::new(),
                kept: parameter >= fresh,
                slot: parameter as u32,
            });
            planner.residents.push(vec![parameter]);
        }
        for (id, node) in graph.nodes() {
            let writer = shape.decided_by[id.0 as usize].unwrap_or(id).0 as usize;
            let first = planner.lives.len();
            let life = || Life { writer: Some(writer), users: Vec::new(), kept: false, slot: NONE };
            planner.lives.extend(node.outputs.iter().map(|_| life()));
            planner.ports.push((first..planner.lives.len()).collect());
        }
        planner
    }

    fn life_of(&self, source: &Operand) -> Option<usize> {
        match source {
            Operand::Port(id, port) => self.ports[id.0 as usize].get(*port as usize).copied(),
            Operand::Parameter(index) => Some(*index as usize),
            _ => None,
        }
    }

    fn collect_users(&mut self) {
        for (id, node) in self.graph.nodes() {
            for (input, source) in node.inputs.iter().enumerate() {
                if let Some(life) = self.life_of(source) {
                    self.lives[life]
                        .users
                        .push(InputUse { node: self.shape.toucher(id), arm: selected_arm(node, input) });
                }
            }
        }
        if let Some(life) = self.life_of(&self.graph.result) {
            self.lives[life].users.push(InputUse { node: self.graph.nodes.len(), arm: None });
        }
    }

    /// Assigns every port a slot, in the order in which nodes write.
    fn assign(&mut self) {
        for node in 0..self.ports.len() {
            let written = self.shape.decides[node].map_or(node, |switch| switch.0 as usize);
            if self.shape.decided_by[node].is_some() || self.shape.is_made_by_its_user(node) {
                continue;
            }
            for life in self.ports[written].clone() {
                let slot = self.free_slot(node);
                self.replace_residents(slot, life, node);
                self.lives[life].slot = slot as u32;
            }
        }
    }

    fn free_slot(&mut self, writer: usize) -> usize {
        let recent = (0..self.residents.len()).rev().take(CANDIDATES_MAX);
        let found = recent.into_iter().find(|slot| self.is_free(*slot, writer));
        found.unwrap_or_else(|| {
            self.residents.push(Vec::new());
            self.residents.len() - 1
        })
    }

    /// Puts a value into a free slot. Values that are certainly dead by then, and that are in the way of no writer for which the
    /// new one is not, are forgotten: the slots of a long body would otherwise remember everything that was ever in them, and be
    /// searched for each further value.
    fn replace_residents(&mut self, slot: usize, life: usize, writer: usize) {
        let mut residents = std::mem::take(&mut self.residents[slot]);
        residents.retain(|resident| !self.is_superseded(&self.lives[*resident], writer));
        residents.push(life);
        self.residents[slot] = residents;
    }

    /// Returns true if any later writer for which the value of `writer` is out of the way has an older value out of its way, too.
    ///
    /// Each use of the older value has happened before the write, and so before all that comes after the write. A later writer
    /// may also be in other arms than `writer`. Then it is in other arms than the use, too, if these arms are around both; and
    /// otherwise it comes after the outermost switch around `writer` alone, before which the use must have happened.
    fn is_superseded(&self, older: &Life, writer: usize) -> bool {
        let arms = &self.shape.chains[writer];
        let mut touchers = older.users.iter().map(|user| user.node).chain(older.writer);
        !older.kept
            && touchers.all(|toucher| {
                let around = self.shape.chains.get(toucher).map_or(&[][..], Vec::as_slice);
                let common = arms.iter().zip(around).take_while(|(arm, other)| arm == other).count();
                let own = arms.get(common);
                self.order.before(toucher, writer)
                    && own.is_none_or(|arm| self.order.before(toucher, arm.switch.0 as usize))
            })
    }

    fn is_free(&self, slot: usize, writer: usize) -> bool {
        // The latest uses come first, because they are the ones in the way: a value may have a use in every statement.
        self.residents[slot].iter().rev().all(|life| {
            let life = &self.lives[*life];
            let writes = life.writer.map(|node| InputUse { node, arm: None });
            let mut touchers = life.users.iter().rev().copied().chain(writes);
            !life.kept && touchers.all(|toucher| self.out_of_the_way(toucher, InputUse { node: writer, arm: None }))
        })
    }

    /// Returns true if `toucher` never touches a slot after the use has happened.
    fn out_of_the_way(&self, toucher: InputUse, of: InputUse) -> bool {
        if toucher.node >= self.graph.nodes.len() {
            return false;
        }
        self.order.before(toucher.node, of.node) || self.shape.exclusive(toucher, of)
    }

    fn last_uses(&self, index: usize) -> Vec<bool> {
        let node = &self.graph.nodes[index];
        let select = matches!(node.kind, NodeKind::Select { .. });
        let is_last = |(input, source): (usize, &Operand)| {
            self.life_of(source).is_some_and(|life| {
                let life = &self.lives[life];
                let of = InputUse { node: index, arm: selected_arm(node, input) };
                let others = life.users.iter().rev().filter(|user| user.node != index);
                let once = || select || life.users.iter().filter(|user| user.node == index).count() == 1;
                // The latest uses come first, as above, and the count comes last.
                !life.kept && others.into_iter().all(|user| self.out_of_the_way(*user, of)) && once()
            })
        };
        node.inputs.iter().enumerate().map(is_last).collect()
    }
}

/// Returns the arm in which a select uses this input.
fn selected_arm(node: &Node, input: usize) -> Option<Control> {
    match node.kind {
        NodeKind::Select { switch } => Some(Control { switch, arm: input as u32 }),
        _ => None,
    }
}
