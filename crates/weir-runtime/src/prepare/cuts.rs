//! Cuts: the steps in bodies before which a flow moves to another section, because a plan names nodes there.
//!
//! The flow's own body is divided into segments by `engine/partition.rs`. A body in it is *cut* if a node of it belongs to
//! another section than the node around it. In such a flow these steps get a section, in which they run:
//!
//! * a node that the plan assigns to a section;
//! * a node that it does not name and that works: the section of the node around it;
//! * of several neighbours in one section that are reached together, the first one only;
//! * a `for` with a loop in its rounds that belongs to another section: the flow stays in that section for all rounds.
//!
//! Other nodes, and calls that wait without a thread, run wherever the flow is. A call in a `for` that belongs to another section
//! than the one in which the flow stays does not move the flow, either: the threads of that section run the call, while the
//! flow goes on with other rounds (`Preparation::section_of_call`).

use weir_ir::graph::{Graph, Node, NodeKind};
use weir_ir::plan::Plan;

use crate::flow_section::NodeSection;
use crate::step::{Action, Body, CutStep, CutYield, PreparedStep};

/// The plan's sections for the nodes of one flow.
#[derive(Clone, Copy)]
pub(super) struct Cuts<'a> {
    pub plan: &'a Plan,
    pub flow: &'a str,
    /// True for the nodes in the body of a `for`.
    pub in_rounds: bool,
}

/// The sections around a body.
#[derive(Clone, Copy)]
struct Around {
    /// That of the node around it.
    section: Option<usize>,
    /// That of the node of the flow's own body around it.
    first: Option<usize>,
    /// The one in which the flow stays while it runs the rounds of a `for`.
    home: Option<usize>,
}

impl Cuts<'_> {
    /// Notes the sections of steps, unless no body of the flow is cut.
    pub(super) fn mark(self, graph: &Graph, body: &mut Body) {
        let is_cut = graph.nodes.iter().any(|node| {
            let own = self.planned(node);
            node.bodies().iter().any(|inner| self.inside(node).leaves(inner, (own, own)))
        });
        if is_cut {
            self.mark_body(graph, body, None);
        }
    }

    /// Returns the section to which the plan assigns a node.
    pub(super) fn planned(self, node: &Node) -> Option<usize> {
        if self.in_rounds {
            self.plan.section_in_rounds(self.flow, node)
        } else {
            self.plan.section_of_node(self.flow, node)
        }
    }

    /// Returns the sections for the bodies of a node.
    fn inside(self, node: &Node) -> Self {
        Cuts { in_rounds: is_for(node), ..self }
    }

    /// Returns the section in which a flow stays while it runs the rounds of this `for`, which belongs to the section `own`: that
    /// of the first loop in its rounds that belongs to another one. From there the flow hands the calls of other sections on,
    /// and does not move for the loop.
    pub(super) fn home(self, node: &Node, own: Option<usize>) -> Option<usize> {
        self.plan.home_of_rounds(self.flow, node, own)
    }

    /// Returns true if a node of a body belongs to another section than `home`. Nodes without a name in the plan belong to
    /// the section `around` them.
    fn leaves(self, graph: &Graph, (around, home): (Option<usize>, Option<usize>)) -> bool {
        graph.nodes.iter().any(|node| {
            let own = self.planned(node).or(around);
            own != home || node.bodies().iter().any(|inner| self.inside(node).leaves(inner, (own, home)))
        })
    }

    /// Notes the sections of the steps of a body.
    fn mark_body(self, graph: &Graph, body: &mut Body, around: Option<Around>) {
        // No step of this body has run, so that the flow may be anywhere; its own body begins where it belongs.
        let mut last = around.is_none().then_some((NodeSection::OUTER, None));
        let mut cuts = vec![None; graph.nodes.len()];
        let handed_on = body.steps.iter().filter(|step| is_handed_on(step)).map(|step| step.awaits_orders);
        let at_home = match handed_on.reduce(|one, other| one | other) {
            None => CutYield::Never,
            Some(0) => CutYield::AtFirst,
            Some(_) => CutYield::Always,
        };
        for ((step, node), cut) in body.steps.iter_mut().zip(&graph.nodes).zip(&mut cuts) {
            let named = self.planned(node);
            let (own, first) = around.map_or((named, named), |around| (named.or(around.section), around.first));
            let yields = |section: Option<usize>| {
                let is_at_home = section.is_some() && around.is_some_and(|around| around.home == section);
                if is_at_home && !node.bodies().is_empty() { at_home } else { CutYield::Never }
            };
            if node.bodies().iter().any(|inner| self.inside(node).leaves(inner, (own, own))) {
                let home = self.home(node, own);
                self.inside(node).mark_bodies(node, &mut step.action, Around { section: own, first, home });
                let home = home.or(named.filter(|_| self.in_rounds && is_for(node)));
                *cut = home.and_then(NodeSection::planned).map(|section| (section, yields(home)));
                last = None;
                continue;
            }
            if is_handed_on(step) {
                continue;
            }
            if !(named.is_some() && around.is_some() || node.works() && !step.calls_out()) {
                continue;
            }
            let section = match own {
                Some(index) if own != first => NodeSection::planned(index).unwrap_or(NodeSection::OUTER),
                _ => NodeSection::OUTER,
            };
            if last.is_none_or(|(before, arm)| before != section || arm.is_some() && arm != node.control) {
                *cut = Some((section, yields(named)));
                last = Some((section, node.control));
            }
        }
        body.cuts = cuts.into();
    }

    fn mark_bodies(self, node: &Node, action: &mut Action, around: Around) {
        match action {
            Action::Repeat(repeat) => {
                (repeat.body.gathered_call, repeat.body.groups_iterations) = (None, false);
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

fn is_for(node: &Node) -> bool {
    matches!(node.kind, NodeKind::Map { .. })
}

/// Returns true if the threads of another section run the call of this step.
fn is_handed_on(step: &PreparedStep) -> bool {
    matches!(&step.action, Action::Call(call) if call.section.is_some())
}

/// Lets the steps with sections move their flows. Regions have been formed: none contains such a step behind its first.
pub(super) fn insert(body: &mut Body) {
    for (step, cut) in body.steps.iter_mut().zip(&body.cuts) {
        each_body(&mut step.action, insert);
        if let Some((section, yields)) = *cut {
            let action = std::mem::replace(&mut step.action, Action::Nothing);
            step.action = Action::Cut(Box::new(CutStep { section, yields, action }));
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
