//! Cuts: the steps in bodies before which a flow moves to another section, because a plan names nodes there.
//!
//! The flow's own body is divided into segments by `engine/partition.rs`. A body in it is *cut* if a node of it belongs to
//! another section than the node around it. In such a flow these steps get a section, in which they run:
//!
//! * a node that the plan assigns to a section;
//! * a node that it does not name and that works: the section of the node around it;
//! * of several neighbours in one section that are reached together, the first one only.
//!
//! Other nodes, and calls that wait without a thread, run wherever the flow is. So does a call in a `for` that belongs to
//! another section: the threads of that section run it, while the flow stays and goes on with other rounds
//! (`Preparation::section_of_call`).

use weir_ir::graph::{Graph, Node};
use weir_ir::plan::Plan;

use crate::flow_section::NodeSection;
use crate::step::{Action, Body, CutStep};

/// The plan's sections for the nodes of one flow.
#[derive(Clone, Copy)]
pub(super) struct Cuts<'a> {
    pub plan: &'a Plan,
    pub flow: &'a str,
}

impl Cuts<'_> {
    /// Notes the sections of steps, unless no body of the flow is cut.
    pub(super) fn mark(self, graph: &Graph, body: &mut Body) {
        let is_cut = graph.nodes.iter().any(|node| {
            let own = self.planned(node);
            node.bodies().iter().any(|inner| self.leaves(inner, (own, own)))
        });
        if is_cut {
            self.mark_body(graph, body, None);
        }
    }

    fn planned(self, node: &Node) -> Option<usize> {
        self.plan.section_of_node(self.flow, node)
    }

    /// Returns true if a node of a body belongs to another section than `home`. Nodes without a name in the plan belong to
    /// the section `around` them.
    fn leaves(self, graph: &Graph, (around, home): (Option<usize>, Option<usize>)) -> bool {
        graph.nodes.iter().any(|node| {
            let own = self.planned(node).or(around);
            own != home || node.bodies().iter().any(|inner| self.leaves(inner, (own, home)))
        })
    }

    /// Notes the sections of the steps of a body; `around` are the sections of the node around it, and of the node of the
    /// flow's own body; `None` for that body itself.
    fn mark_body(self, graph: &Graph, body: &mut Body, around: Option<(Option<usize>, Option<usize>)>) {
        // No step of this body has run, so that the flow may be anywhere; its own body begins where it belongs.
        let mut last = around.is_none().then_some((NodeSection::OUTER, None));
        let mut cuts = vec![None; graph.nodes.len()];
        for ((step, node), cut) in body.steps.iter_mut().zip(&graph.nodes).zip(&mut cuts) {
            let named = self.planned(node);
            let (own, home) = around.map_or((named, named), |(around, home)| (named.or(around), home));
            if node.bodies().iter().any(|inner| self.leaves(inner, (own, own))) {
                self.mark_bodies(node, &mut step.action, (own, home));
                last = None;
                continue;
            }
            if matches!(&step.action, Action::Call(call) if call.section.is_some()) {
                continue;
            }
            if !(named.is_some() && around.is_some() || node.works() && !step.calls_out()) {
                continue;
            }
            let section = match own {
                Some(index) if own != home => NodeSection::planned(index).unwrap_or(NodeSection::OUTER),
                _ => NodeSection::OUTER,
            };
            if last.is_none_or(|(before, arm)| before != section || arm.is_some() && arm != node.control) {
                *cut = Some(section);
                last = Some((section, node.control));
            }
        }
        body.cuts = cuts.into();
    }

    fn mark_bodies(self, node: &Node, action: &mut Action, around: (Option<usize>, Option<usize>)) {
        match action {
            Action::Repeat(repeat) => {
                repeat.body.gathered_call = None;
                self.mark_body(&node.bodies()[0], &mut repeat.body, Some(around));
            }
            Action::Timed(timed) => {
                for ((body, _), graph) in timed.bodies.iter_mut().zip(node.bodies()) {
                    self.mark_body(graph, body, Some(around));
                }
            }
            _ => {}
        }
    }
}

/// Lets the steps with sections move their flows. Regions have been formed: none contains such a step behind its first.
pub(super) fn insert(body: &mut Body) {
    for (step, cut) in body.steps.iter_mut().zip(&body.cuts) {
        each_body(&mut step.action, insert);
        if let Some(section) = *cut {
            let action = std::mem::replace(&mut step.action, Action::Nothing);
            step.action = Action::Cut(Box::new(CutStep { section, action }));
        }
    }
}

fn each_body(action: &mut Action, mut change: impl FnMut(&mut Body)) {
    match action {
        Action::Repeat(repeat) => change(&mut repeat.body),
        Action::Timed(timed) => timed.bodies.iter_mut().for_each(|(body, _)| change(body)),
        _ => {}
    }
}
