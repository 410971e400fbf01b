//! Verification of graphs: edges, control and types; `order` and `uses` check the rest.

use std::collections::BTreeSet;

use weir_host::{Library, Resource, Type};

use super::arms::{covers, payload_fits};
use super::blocks::canonical;
use super::operand::TypedOperand;
use super::report::{Report, Rule};
use super::types::TypeTable;
use super::view::{GraphVerifier, GraphView, HeldResources};
use super::{bodies, calls, conditions, detached, order, prims, uses};
use crate::expr::ArmTest;
use crate::graph::{Control, Graph, Node, NodeId, NodeKind, Operand, SwitchArm};
use crate::print::OperandText;
use crate::program::{NESTING_MAX, Variable};

/// Checks an outermost graph; `result` is the type that it must yield and return, if that is known.
pub(super) fn flow(
    types: &TypeTable<'_>,
    library: &Library,
    parameters: &[Variable],
    graph: &Graph,
    result: Option<&Type>,
    session_scoped: &BTreeSet<Resource>,
    report: &mut Report,
) {
    let expected: Vec<&Type> = parameters.iter().map(|parameter| &parameter.ty).collect();
    if !graph.parameters.iter().eq(expected) {
        report.add(Rule::Types, "", "the graph's parameters are not the flow's");
    }
    let (names, states) = (BTreeSet::new(), BTreeSet::new());
    let mut barriers = BTreeSet::new();
    graph.each_node(&mut |node| {
        let NodeKind::Call { function, .. } = &node.kind else { return };
        let barrier = library.function(function).filter(|function| function.signature.effects.barrier);
        barriers.extend(barrier.map(|function| Resource::World(function.signature.module.clone())));
    });
    let mut checker = GraphVerifier {
        types,
        library,
        session_scoped,
        barriers,
        answer: result,
        report,
        names,
        states,
        depth: 0,
        may_be_given_up: false,
    };
    checker.graph(graph, usize::MAX, &HeldResources::new(), result);
}

impl<'a> GraphVerifier<'a, '_> {
    /// Checks a graph of which so many parameters are its own, and the bodies in it. If edges or control are broken, the rest
    /// is skipped.
    fn graph(&mut self, graph: &'a Graph, own: usize, held: &HeldResources, result: Option<&Type>) {
        self.depth += 1;
        if self.depth > NESTING_MAX {
            self.report.add(Rule::Nesting, "", format!("bodies nest deeper than {NESTING_MAX}"));
        } else {
            let before = self.report.violations.len();
            let mut view = GraphView { graph, arms: Vec::new() };
            for (id, node) in graph.nodes() {
                self.shape(&mut view, id, node);
            }
            self.source(&view, None, &[], &graph.result, "the result");
            if self.report.violations.len() == before {
                self.meaning(&view, own, held, result);
            }
        }
        self.depth -= 1;
    }

    fn meaning(&mut self, view: &GraphView<'a>, own: usize, held: &HeldResources, result: Option<&Type>) {
        if let Some(ty) = result {
            let operand = view.operand(&view.graph.result, self.types);
            if let Err(what) = operand.must_be("the result", ty, self.types) {
                self.report.add(Rule::Types, "", what);
            }
        }
        for (id, node) in view.graph.nodes() {
            self.types(view, node);
            uses::check(self, view, id, node, held);
            let yields = bodies::required(node).and_then(|required| required.ok()?.body);
            for body in node.bodies() {
                let inner = uses::held_at(view, Some(id), held, self.session_scoped);
                let outside = self.may_be_given_up;
                self.may_be_given_up |= node.cancels_bodies();
                self.graph(body, node.kind.own().parameters, &inner, yields.as_ref());
                self.may_be_given_up = outside;
            }
        }
        order::check(self, view);
        detached::check(self, view, own);
        conditions::check(self, view);
    }

    /// Checks name, edges and control of one node; earlier nodes are in the view already.
    fn shape(&mut self, view: &mut GraphView<'a>, id: NodeId, node: &'a Node) {
        if !self.names.insert(&node.name) {
            self.add(Rule::Once, node, "another node has this name");
        }
        let arms = self.control(view, node);
        if node.after.windows(2).any(|pair| pair[0] >= pair[1]) || node.after.last().is_some_and(|last| *last >= id) {
            self.add(Rule::Edges, node, "comes after nodes that are not earlier, or not in ascending order");
        }
        if let NodeKind::Select { switch } = &node.kind {
            self.select(view, node, *switch, &arms);
        } else {
            for input in &node.inputs {
                self.source(view, Some(node), &arms, input, "an input");
            }
        }
        self.step(view, node, node.within, "is within");
        if let NodeKind::Release { acquire } = &node.kind {
            self.step(view, node, Some(*acquire), "ends");
        }
        view.arms.push(arms);
    }

    fn control(&mut self, view: &GraphView<'a>, node: &Node) -> Vec<Control> {
        let Some(control) = node.control else { return Vec::new() };
        let Some(outer) = view.arms.get(control.switch.0 as usize) else {
            self.add(Rule::Edges, node, "is in an arm of a later node");
            return Vec::new();
        };
        match &view.graph.node(control.switch).kind {
            NodeKind::Switch { arms } if (control.arm as usize) < arms.len() => {}
            _ => self.add(Rule::Control, node, format!("%{} has no arm {}", control.switch.0, control.arm)),
        }
        outer.iter().copied().chain([control]).collect()
    }

    /// Checks that an operand exists, and has been computed whenever these arms were chosen.
    fn source(&mut self, view: &GraphView<'a>, node: Option<&Node>, arms: &[Control], source: &Operand, what: &str) {
        let at = node.map_or("", |node| &*node.name).to_owned();
        let graph = view.graph;
        let known = match source {
            Operand::Port(from, port) => {
                let Some(chain) = view.arms.get(from.0 as usize) else {
                    return self.report.add(
                        Rule::Edges,
                        &at,
                        format!("{what} is of %{}, which is not earlier", from.0),
                    );
                };
                let from_node = graph.node(*from);
                if !arms.starts_with(chain) || !payload_is_seen(from_node, *from, *port, arms) {
                    let what = format!("{what} is of %{}, which need not have run", from.0);
                    return self.report.add(Rule::Control, &at, what);
                }
                (*port as usize) < from_node.outputs.len()
            }
            Operand::Parameter(index) => (*index as usize) < graph.parameters.len(),
            Operand::Constant(index) => (*index as usize) < graph.constants.len(),
            Operand::Shared(name) => self.types.shared.contains_key(&**name),
            Operand::Never => node.is_none_or(|node| matches!(node.kind, NodeKind::Select { .. })),
        };
        if !known {
            self.report.add(Rule::Scope, &at, format!("{what} is {}, which is not there", OperandText(source)));
        }
    }

    /// Checks that a select stands in the same arm as its switch, and that each input is visible in its arm.
    fn select(&mut self, view: &GraphView<'a>, node: &Node, switch: NodeId, arms: &[Control]) {
        let found = view.arms.get(switch.0 as usize).map(|chain| (chain, &view.graph.node(switch).kind));
        let Some((chain, NodeKind::Switch { arms: of_switch })) = found else {
            return self.add(Rule::Control, node, format!("%{} is no earlier switch", switch.0));
        };
        if chain != arms {
            self.add(Rule::Control, node, "selects of a switch that is in another arm");
        }
        if of_switch.len() != node.inputs.len() {
            let (inputs, of_switch) = (node.inputs.len(), of_switch.len());
            self.add(Rule::Control, node, format!("has {inputs} inputs, and its switch {of_switch} arms"));
        }
        for (input, arm) in node.inputs.iter().zip(0..) {
            let chain: Vec<Control> = chain.iter().copied().chain([Control { switch, arm }]).collect();
            self.source(view, Some(node), &chain, input, "an input");
        }
    }

    fn step(&mut self, view: &GraphView<'a>, node: &Node, acquire: Option<NodeId>, does: &str) {
        let Some(acquire) = acquire else { return };
        let is_seen = view.arms.get(acquire.0 as usize).is_some();
        if !is_seen || !matches!(view.graph.node(acquire).kind, NodeKind::Acquire { .. }) {
            self.add(Rule::Steps, node, format!("{does} %{}, which is no earlier acquire", acquire.0));
        }
    }

    fn types(&mut self, view: &GraphView<'a>, node: &'a Node) {
        let inputs: Vec<TypedOperand<'a>> = node.inputs.iter().map(|input| view.operand(input, self.types)).collect();
        let outputs = match &node.kind {
            NodeKind::Switch { arms } => arms.iter().map(|arm| arm.payload as usize).sum(),
            NodeKind::Acquire { .. } | NodeKind::Release { .. } | NodeKind::Return | NodeKind::Fail => 0,
            _ => 1,
        };
        if node.outputs.len() != outputs {
            return self.add(Rule::Types, node, format!("has {} outputs instead of {outputs}", node.outputs.len()));
        }
        let checked = match (&node.kind, &inputs[..]) {
            (NodeKind::Prim(prim), inputs) => prims::check(*prim, inputs, &node.outputs[0], self.types),
            (NodeKind::Call { function, keeps_failure, .. }, inputs) => match self.library.function(function) {
                Some(known) => calls::check((&known.signature, *keeps_failure), inputs, &node.outputs[0], self.types),
                None => return self.add(Rule::Known, node, format!("there is no function `{function}`")),
            },
            (NodeKind::Switch { arms }, [subject]) => return self.switch(node, arms, *subject),
            (NodeKind::Select { .. }, inputs) => {
                inputs.iter().try_for_each(|input| input.must_be("the result of an arm", &node.outputs[0], self.types))
            }
            (NodeKind::Acquire { constraints, .. }, inputs) if inputs.len() < 2 => {
                let checked = canonical(constraints, !inputs.is_empty(), self.types);
                return self.holds(Rule::Constraints, node, checked);
            }
            (NodeKind::Release { .. }, []) | (NodeKind::Fail, [_]) => Ok(()),
            (NodeKind::Return, [answer]) => {
                self.answer.map_or(Ok(()), |ty| answer.must_be("the answer", ty, self.types))
            }
            (kind, inputs) => match kind.body_types() {
                Some(_) => bodies::check(node, inputs, self.types),
                None => Err(format!("has {} inputs", inputs.len())),
            },
        };
        self.holds(Rule::Types, node, checked);
    }

    fn switch(&mut self, node: &Node, arms: &[SwitchArm], subject: TypedOperand<'_>) {
        let tests: Vec<&ArmTest> = arms.iter().map(|arm| &arm.test).collect();
        self.holds(Rule::Cover, node, covers(&tests, subject, self.types));
        for (arm, index) in arms.iter().zip(0..) {
            let first = node.first_port(index) as usize;
            let payload: Vec<&Type> = node.outputs[first..first + arm.payload as usize].iter().collect();
            self.holds(Rule::Payload, node, payload_fits(&arm.test, &payload, subject, self.types));
        }
    }
}

/// Returns true if the port is no payload, or the payload of one of these arms.
fn payload_is_seen(node: &Node, id: NodeId, port: u32, arms: &[Control]) -> bool {
    let NodeKind::Switch { arms: of_switch } = &node.kind else { return true };
    let inside = arms.iter().find(|control| control.switch == id);
    inside.is_some_and(|control| {
        let first = node.first_port(control.arm);
        let count = of_switch.get(control.arm as usize).map_or(0, |arm| arm.payload);
        (first..first + count).contains(&port)
    })
}
