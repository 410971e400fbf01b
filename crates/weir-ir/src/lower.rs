//! From the expression IR to the graph: control flow becomes data, resources become edges.
//!
//! Every `let` becomes a node, in the order of evaluation, so that the list of nodes is a topological order by
//! construction. `OrderTracker` computes what the nodes must wait for beyond their inputs:
//!
//! 1. *Resources.* A writer waits for every earlier access since the last writer, a reader for the last writer
//!    (ARCHITECTURE, "Semantics", rule 2). A call of a barrier, such as `time.sleep`, writes the resource of its module, and
//!    every other call of its flow that accesses any resource reads that one. A frame's own value that some call takes by `&mut`, or that can only be
//!    moved, counts as a resource; moving it away is writing it.
//! 2. *Reads of shared values.* A reader of a shared value waits for every earlier reader that is immediate: otherwise it
//!    could read first, and see an older value, while the earlier one waits for its inputs. Readers that may wait
//!    themselves hold up no others, because their waits shall overlap; neither do iterations hold up each other.
//! 3. *Ends.* A node that writes a resource waits for every earlier node that may end the flow. In the body of a `within`
//!    or `race`, which may be given up while it waits, a node that may wait counts as one. A node that reads something outside
//!    the program, or may take long, waits for every earlier `return`, and passes failures.
//! 4. *Atomic steps.* An `acquire` waits for every earlier node that may wait itself, so that no flow holds a
//!    constraint while it waits for something outside the step: without this, two flows that overlap independent steps
//!    could wait for each other. Calls within the step wait for the `acquire`, the `release` for all that is within.
//!
//! Constraints that an enclosing step holds already are not taken again, and one that an inner step or call needs as a
//! writer is a writer from its first acquisition on (Flux §3.1.1).

mod listing;
mod order;
mod steps;
mod uses;

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;
use weir_host::{Library, Mode, Passing, Resource, Text, Type, Value};

use crate::expr::{self, Arm, Atom, Block, Let, Op, Var, Variable};
use crate::graph::{Control, Graph, NodeId, NodeKind, Operand, SwitchArm};
use crate::move_only::TypeDefinitions;
use crate::prim::Prim;
use crate::program::{Entry, Flow, Program, SharedValue};
use crate::{graph, lower::order::OrderTracker};
use uses::body_uses;
pub(crate) use uses::{barriers, call_uses, changed_variables, needs};

/// Lowers a program: replaces every block by its graph.
///
/// # Panics
/// Panics on a program that the verifier refuses, such as one that calls a function that is not in the library.
#[must_use]
pub fn lower(program: &expr::Program, library: &Library) -> graph::Program {
    let definitions = TypeDefinitions { program: &program.types, library };
    let shared = program.shared.iter().map(|shared| SharedValue {
        name: shared.name.clone(),
        ty: shared.ty.clone(),
        per_session: shared.per_session,
        init: lower_block(&shared.init, &[], definitions),
    });
    let entries = program.entries.iter().map(|entry| lower_entry(entry, definitions));
    Program {
        types: program.types.clone(),
        inlined_calls: program.inlined_calls.clone(),
        shared: shared.collect(),
        entries: entries.collect(),
    }
}

fn lower_entry(entry: &Entry<Block>, definitions: TypeDefinitions<'_>) -> Entry<Graph> {
    let flows = entry.flows.iter().map(|flow| Flow {
        name: flow.name.clone(),
        route: flow.route.clone(),
        parameters: flow.parameters.clone(),
        result: flow.result.clone(),
        body: lower_block(&flow.body, &flow.parameters, definitions),
        former_sites: flow.former_sites.clone(),
    });
    Entry {
        name: entry.name.clone(),
        source: entry.source.clone(),
        arguments: lower_block(&entry.arguments, &[], definitions),
        ordered: entry.ordered,
        flows: flows.collect(),
    }
}

/// Lowers one outermost block.
fn lower_block(block: &Block, parameters: &[Variable], definitions: TypeDefinitions<'_>) -> Graph {
    let changed = changed_variables(block, definitions.library);
    let barriers = barriers(block, definitions.library);
    let mut builder = GraphBuilder::new(definitions, (&changed, &barriers), parameters);
    builder.graph.result = builder.block(block);
    builder.graph
}

/// Builder of one graph, which appends its nodes in the order of evaluation.
struct GraphBuilder<'a> {
    definitions: TypeDefinitions<'a>,
    /// The variables that any call takes by `&mut`.
    changed: &'a BTreeSet<Var>,
    /// The resources that order every call of the flow.
    barriers: &'a BTreeSet<Resource>,
    graph: Graph,
    /// The operand that each variable stands for.
    variables: BTreeMap<Var, Operand>,
    /// The type of each variable.
    types: BTreeMap<Var, Type>,
    /// The arm that contains the operation being lowered.
    control: Option<Control>,
    /// The atomic step that contains the operation being lowered.
    within: Option<NodeId>,
    /// The resources that enclosing steps hold, including steps of enclosing graphs.
    held: BTreeMap<Resource, Mode>,
    order: OrderTracker,
    names: BTreeMap<Text, u32>,
    /// The index of each constant of the graph.
    constant_indices: IndexMap<Value, usize>,
    /// `true` in a body that may be given up while it waits, and in the bodies in it.
    may_be_given_up: bool,
}

impl<'a> GraphBuilder<'a> {
    fn new(
        definitions: TypeDefinitions<'a>,
        (changed, barriers): (&'a BTreeSet<Var>, &'a BTreeSet<Resource>),
        parameters: &[Variable],
    ) -> Self {
        let variables = parameters.iter().zip(0..).map(|(variable, index)| (variable.var, Operand::Parameter(index)));
        GraphBuilder {
            definitions,
            changed,
            barriers,
            graph: Graph {
                parameters: parameters.iter().map(|variable| variable.ty.clone()).collect(),
                ..Graph::default()
            },
            variables: variables.collect(),
            types: parameters.iter().map(|variable| (variable.var, variable.ty.clone())).collect(),
            control: None,
            within: None,
            held: BTreeMap::new(),
            order: OrderTracker::default(),
            names: BTreeMap::new(),
            constant_indices: IndexMap::new(),
            may_be_given_up: false,
        }
    }

    /// Appends the nodes of a block and returns its result, [`Operand::Never`] if it never yields.
    fn block(&mut self, block: &Block) -> Operand {
        for binding in &block.lets {
            let source = self.binding(binding);
            if binding.bound.ty == Type::Never {
                return Operand::Never;
            }
            self.define(&binding.bound, source);
        }
        self.atom(&block.result)
    }

    fn define(&mut self, variable: &Variable, source: Operand) {
        self.variables.insert(variable.var, source);
        self.types.insert(variable.var, variable.ty.clone());
    }

    fn binding(&mut self, binding: &Let) -> Operand {
        match &binding.op {
            Op::Prim(prim, operands) => self.prim(*prim, operands, binding),
            Op::Call(call) => self.call(call, binding),
            Op::Switch { subject, arms } => self.switch(subject, arms, binding),
            Op::Map { list, element, body } => self.map(list, element, body, binding),
            Op::Fold { list, init, state, element, body, exit } => {
                let parameters: Vec<&Variable> = state.iter().chain([element]).collect();
                let (graph, captures) = self.body(body, &parameters);
                let kind = NodeKind::Fold { body: Box::new(graph), states: count(state), exit: *exit };
                let own: Vec<&Atom> = [list].into_iter().chain(init).collect();
                self.with_body(kind, &own, captures, binding)
            }
            Op::Loop { init, state, body, at_most } => {
                let (graph, captures) = self.body(body, &state.iter().collect::<Vec<_>>());
                let kind = NodeKind::Loop { body: Box::new(graph), states: count(state), at_most: *at_most };
                self.with_body(kind, &init.iter().collect::<Vec<_>>(), captures, binding)
            }
            Op::Atomic { constraints, restores, session, cancellable, body } => {
                self.atomic((constraints, restores, *cancellable), session.as_ref(), body, binding)
            }
            Op::Within { limit, body } => {
                let (graph, captures) = self.body_to_give_up(body);
                self.with_body(NodeKind::Within { body: Box::new(graph) }, &[limit], captures, binding)
            }
            Op::Race { bodies } => {
                let (bodies, captures): (Vec<_>, Vec<_>) = bodies.iter().map(|body| self.body_to_give_up(body)).unzip();
                self.with_body(NodeKind::Race { bodies }, &[], captures.concat(), binding)
            }
            Op::Transaction { is_last, body } => {
                let (graph, captures) = self.body(body, &[is_last]);
                self.with_body(NodeKind::Transaction { body: Box::new(graph) }, &[], captures, binding)
            }
            Op::Catch { .. } => unreachable!("only tests catch failures, and they run as expressions"),
            Op::Return(answer) => self.end(NodeKind::Return, answer, binding),
            Op::Fail(failure) => self.end(NodeKind::Fail, failure, binding),
        }
    }

    fn prim(&mut self, prim: Prim, operands: &[Atom], binding: &Let) -> Operand {
        let node = self.draft(NodeKind::Prim(prim), prim.name(), operands, binding);
        if prim.passes_on() {
            operands.iter().for_each(|operand| self.moves(operand));
        }
        self.list(node)
    }

    fn call(&mut self, call: &expr::Call, binding: &Let) -> Operand {
        let function = self.definitions.library.function(&call.function).expect("the verifier has seen the function");
        let kind = NodeKind::Call {
            function: call.function.clone(),
            keeps_failure: call.keeps_failure,
            may_end: function.signature.effects.may_end && !call.keeps_failure && self.held.is_empty(),
        };
        let mut node = self.draft(kind, &call.site, &call.arguments, binding);
        node.uses = call_uses(&function.signature, call, self.barriers);
        for usage in &mut node.uses {
            usage.held = self.held.get(&usage.resource).is_some_and(|mode| *mode >= usage.mode);
        }
        for (argument, parameter) in call.arguments.iter().zip(&function.signature.parameters) {
            match parameter.passing {
                Passing::Change => self.alone(argument),
                Passing::Value | Passing::Typed | Passing::Named => self.moves(argument),
                Passing::Borrow | Passing::Start | Passing::TypeOf(_) => {}
            }
        }
        self.list(node)
    }

    fn end(&mut self, kind: NodeKind, operand: &Atom, binding: &Let) -> Operand {
        let name = kind.word();
        let mut node = self.draft(kind, name, std::slice::from_ref(operand), binding);
        node.outputs.clear();
        self.moves(operand);
        self.list(node);
        Operand::Never
    }

    fn switch(&mut self, subject: &Atom, arms: &[Arm], binding: &Let) -> Operand {
        let tests = arms.iter().map(|arm| SwitchArm { test: arm.test.clone(), payload: count(&arm.payload) });
        let kind = NodeKind::Switch { arms: tests.collect() };
        let mut node = self.draft(kind, "switch", std::slice::from_ref(subject), binding);
        node.outputs = arms.iter().flat_map(|arm| &arm.payload).map(|field| field.ty.clone()).collect();
        if !node.outputs.is_empty() {
            self.moves(subject);
        }
        let Operand::Port(switch, _) = self.list(node) else { unreachable!("a listed node has a port") };
        let results: Vec<Operand> = arms.iter().zip(0..).map(|(arm, index)| self.arm(switch, index, arm)).collect();
        match binding.bound.ty {
            Type::Unit => self.constant(Value::Unit),
            Type::Never => Operand::Never,
            _ => {
                let mut node = self.draft(NodeKind::Select { switch }, "select", &[], binding);
                node.inputs = results;
                let moves = self.definitions.is_move_only(&binding.bound.ty);
                for (input, arm) in node.inputs.iter().zip(arms) {
                    if moves {
                        self.order.touch(input, Mode::Write);
                    } else if arm.body.result.variable().is_some_and(|var| self.changed.contains(&var)) {
                        self.order.touch(input, Mode::Read);
                    }
                }
                self.list(node)
            }
        }
    }

    fn arm(&mut self, switch: NodeId, index: u32, arm: &Arm) -> Operand {
        let first = self.graph.node(switch).first_port(index);
        for (field, port) in arm.payload.iter().zip(first..) {
            self.define(field, Operand::Port(switch, port));
        }
        let outside = self.control.replace(Control { switch, arm: index });
        let result = self.block(&arm.body);
        self.control = outside;
        result
    }

    fn map(&mut self, list: &Atom, element: &Variable, body: &Block, binding: &Let) -> Operand {
        let (graph, captures) = self.body(body, &[element]);
        self.with_body(NodeKind::Map { body: Box::new(graph) }, &[list], captures, binding)
    }

    /// Lowers a body that may be given up while it waits.
    fn body_to_give_up(&mut self, block: &Block) -> (Graph, Vec<Atom>) {
        let outside = std::mem::replace(&mut self.may_be_given_up, true);
        let lowered = self.body(block, &[]);
        self.may_be_given_up = outside;
        lowered
    }

    /// Lowers a body; returns its graph and the variables that it captures, which are its last parameters.
    fn body(&mut self, block: &Block, parameters: &[&Variable]) -> (Graph, Vec<Atom>) {
        let own = parameters.iter().map(|variable| (*variable).clone());
        let captured = block.free_variables(parameters).into_iter().map(|var| {
            let ty = self.types.get(&var).expect("the verifier has seen the definition").clone();
            Variable { var, name: Text::default(), ty }
        });
        let captured: Vec<Variable> = captured.collect();
        let all: Vec<Variable> = own.chain(captured.iter().cloned()).collect();
        let mut builder = GraphBuilder::new(self.definitions, (self.changed, self.barriers), &all);
        builder.held.clone_from(&self.held);
        builder.names = std::mem::take(&mut self.names);
        builder.may_be_given_up = self.may_be_given_up;
        builder.order = OrderTracker::new(self.may_be_given_up);
        builder.graph.result = builder.block(block);
        self.names = builder.names;
        (builder.graph, captured.iter().map(|variable| Atom::Var(variable.var)).collect())
    }

    fn with_body(&mut self, kind: NodeKind, first: &[&Atom], captures: Vec<Atom>, binding: &Let) -> Operand {
        let (own, captures) = (first.iter().map(|atom| (*atom).clone()), captures.into_iter());
        let operands: Vec<Atom> = own.chain(captures).collect();
        let name = kind.word();
        let mut node = self.draft(kind, name, &operands, binding);
        node.uses = body_uses(node.bodies());
        for operand in &operands {
            self.moves(operand);
            if operand.variable().is_some_and(|var| self.changed.contains(&var)) {
                self.alone(operand);
            }
        }
        self.list(node)
    }
}

fn count(variables: &[Variable]) -> u32 {
    u32::try_from(variables.len()).expect("a program has fewer than 2^32 variables")
}
