//! A sequential interpreter of graphs: nodes in the order of their list, skipped where their control does not hold.
//!
//! It tests lowering against the evaluator without a runtime, so it heeds no `after` edges. Of constraints it heeds that a
//! step on a session makes the values of that session current. A part of a condition is evaluated when its switch runs.

mod hole;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use hole::with_hole;
use weir_host::{
    Argument, Environment, Failure, Function, FunctionCode, Library, Outcome, Passing, Resource, Settled, Shared, Value,
};
use weir_ir::evaluate::{failure_of, put_together, rounds_exceeded, taken_apart, test_holds};
use weir_ir::generate::{Case, Execution, Recording};
use weir_ir::graph::{Constraint, Graph, Node, NodeId, NodeKind, Operand, Program, SwitchArm};
use weir_ir::prim::{Prim, elements, move_or_clone, moves};

/// Makes a graph of a case and executes it.
pub(crate) fn interpret(
    case: &Case,
    seed: u64,
    lower: fn(&weir_ir::expr::Program, &Library) -> Program,
) -> (Program, Execution) {
    let recording = Recording::new(seed);
    let library = recording.library();
    let program = lower(&case.program, &library);
    let mut world = World::new(&program, &library);
    for shared in &program.shared {
        let value = if shared.per_session { Value::Absent } else { world.made(&shared.init) };
        world.shared.push(Shared::new(value));
    }
    let body = &program.entries[0].flows[0].body;
    let run = |inputs: &Vec<Value>| world.flow(body, inputs.clone()).map_err(|failure| *failure);
    let results = case.inputs.iter().map(run).collect();
    let effects = recording.effects();
    (program, Execution { results, effects })
}

struct World<'a> {
    program: &'a Program,
    library: &'a Library,
    /// The shared values; of a session-scoped value, that of the latest session.
    shared: Vec<Shared>,
    /// The values of sessions, by the index of the shared value and the session.
    sessions: BTreeMap<(usize, Value), Shared>,
    states: BTreeMap<Resource, Shared>,
}

enum End {
    Return(Value),
    Fail(Box<Failure>),
}

impl From<Box<Failure>> for End {
    fn from(failure: Box<Failure>) -> Self {
        End::Fail(failure)
    }
}

impl<'a> World<'a> {
    fn new(program: &'a Program, library: &'a Library) -> Self {
        World { program, library, shared: Vec::new(), sessions: BTreeMap::new(), states: BTreeMap::new() }
    }

    fn made(&mut self, init: &Graph) -> Value {
        self.flow(init, Vec::new()).expect("a shared value is made")
    }

    fn index_of(&self, name: &str) -> usize {
        let index = self.program.shared.iter().position(|shared| shared.name.as_str() == name);
        index.expect("the shared value is known")
    }

    /// Switches the shared values of sessions that a step holds to those of this session.
    fn begin_session(&mut self, constraints: &[Constraint], session: &Value) {
        for constraint in constraints {
            let Resource::Shared(name) = &constraint.resource else { continue };
            let index = self.index_of(name);
            let program = self.program;
            if !program.shared[index].per_session {
                continue;
            }
            let key = (index, session.clone());
            if !self.sessions.contains_key(&key) {
                let made = Shared::new(self.made(&program.shared[index].init));
                self.sessions.insert(key.clone(), made);
            }
            self.shared[index] = self.sessions[&key].clone();
        }
    }

    fn flow(&mut self, graph: &Graph, inputs: Vec<Value>) -> Result<Value, Box<Failure>> {
        let mut frame = Frame::new(graph);
        frame.slots[..inputs.len()].clone_from_slice(&inputs);
        match frame.run(self) {
            Ok(value) | Err(End::Return(value)) => Ok(value),
            Err(End::Fail(failure)) => Err(failure),
        }
    }

    fn call(
        &mut self,
        function: &Function,
        state: Option<Shared>,
        slots: &mut [Value],
        constants: &[Value],
        arguments: &[Argument],
    ) -> Outcome {
        let environment = Environment::default();
        let mut call = weir_host::Call {
            slots,
            constants,
            shared: &self.shared,
            state: state.as_ref(),
            arguments,
            out: None,
            environment: &environment,
            units: weir_host::UnitBudget::UNLIMITED,
            awaited: None,
        };
        let settled = match &function.code {
            FunctionCode::Immediate(code) => Settled { outcome: code(&mut call), restored: Vec::new() },
            FunctionCode::Waiting(code) => match code(&mut call) {
                Ok(pending) => spin(pending),
                Err(outcome) => return outcome,
            },
            FunctionCode::Blocking(code) => match code(&mut call) {
                Ok(job) => job(),
                Err(failure) => return Outcome::Fault(failure),
            },
        };
        settled.restored.into_iter().for_each(|(argument, value)| call.restore(argument, value));
        settled.outcome
    }
}

/// The slots of one run of a graph: its parameters, then the ports of its nodes.
struct Frame<'g> {
    graph: &'g Graph,
    slots: Vec<Value>,
    first_port: Vec<usize>,
    /// The arm that each switch chose.
    chosen: Vec<Option<u32>>,
    ran: Vec<bool>,
}

impl<'g> Frame<'g> {
    fn new(graph: &'g Graph) -> Self {
        let mut first_port = Vec::new();
        let mut count = graph.parameters.len();
        for node in &graph.nodes {
            first_port.push(count);
            count += node.outputs.len();
        }
        let nodes = graph.nodes.len();
        Frame {
            graph,
            slots: vec![Value::Absent; count],
            first_port,
            chosen: vec![None; nodes],
            ran: vec![false; nodes],
        }
    }

    fn run(&mut self, world: &mut World<'_>) -> Result<Value, End> {
        for (id, node) in self.graph.nodes() {
            if node.control.is_none_or(|control| self.chosen[control.switch.0 as usize] == Some(control.arm)) {
                if node.condition_of.is_none() {
                    self.node(world, id, node)?;
                }
                self.ran[id.0 as usize] = true;
            }
        }
        Ok(self.take(&self.graph.result))
    }

    fn slot(&self, source: &Operand) -> Option<usize> {
        match source {
            Operand::Port(node, port) => Some(self.first_port[node.0 as usize] + *port as usize),
            Operand::Parameter(index) => Some(*index as usize),
            _ => None,
        }
    }

    fn take(&mut self, source: &Operand) -> Value {
        match (self.slot(source), source) {
            (Some(slot), _) => move_or_clone(&mut self.slots[slot]),
            (None, Operand::Constant(index)) => self.graph.constants[*index as usize].clone(),
            (None, _) => Value::Absent,
        }
    }

    fn put_back(&mut self, source: &Operand, rest: Value) {
        if let Some(slot) = self.slot(source) {
            self.slots[slot] = rest;
        }
    }

    fn give(&mut self, id: NodeId, value: Value) {
        let slot = self.first_port[id.0 as usize];
        self.slots[slot] = value;
    }

    fn node(&mut self, world: &mut World<'_>, id: NodeId, node: &'g Node) -> Result<(), End> {
        let inputs = &node.inputs;
        let value = match &node.kind {
            NodeKind::Prim(prim) => self.prim(*prim, inputs)?,
            NodeKind::Call { function, keeps_failure: false, .. } => self.call(world, node, function)?,
            NodeKind::Call { function, .. } => match self.call(world, node, function) {
                Ok(value) => Value::ok(value),
                Err(End::Fail(failure)) => Value::err(Value::Failure(failure)),
                Err(end) => return Err(end),
            },
            NodeKind::Switch { arms } => return self.switch(id, node, arms),
            NodeKind::Select { switch } => self.select(*switch, inputs),
            NodeKind::Map { body } => self.map(world, body, inputs)?,
            NodeKind::Fold { body, .. } => self.fold(world, body, node.kind.states(), inputs)?,
            NodeKind::Loop { body, at_most, .. } => self.repeat(world, body, node.kind.states(), *at_most, inputs)?,
            NodeKind::Within { body } => Value::some(self.body(world, body, Vec::new(), &inputs[1..])?),
            NodeKind::Race { bodies } => {
                self.body(world, &bodies[0], Vec::new(), &inputs[..bodies[0].parameters.len()])?
            }
            NodeKind::Transaction { body } => self.body(world, body, vec![Value::Bool(false)], inputs)?,
            NodeKind::Acquire { constraints, .. } => {
                if let Some(session) = inputs.first() {
                    let session = self.take(session);
                    world.begin_session(constraints, &session);
                }
                return Ok(());
            }
            NodeKind::Release { .. } => return Ok(()),
            NodeKind::Return => return Err(End::Return(self.take(&inputs[0]))),
            NodeKind::Fail => return Err(End::Fail(failure_of(self.take(&inputs[0])))),
        };
        self.give(id, value);
        Ok(())
    }

    fn prim(&mut self, prim: Prim, inputs: &[Operand]) -> Result<Value, End> {
        let mut operands: Vec<Value> = inputs.iter().map(|input| self.take(input)).collect();
        let value = prim.apply_moving(&mut operands)?;
        if prim.detaches() {
            operands[0] = with_hole(prim, &mut operands);
        }
        inputs.iter().zip(operands).for_each(|(input, rest)| self.put_back(input, rest));
        Ok(value)
    }

    /// Evaluates the parts of a condition that the inputs of this node name.
    fn condition(&mut self, node: &'g Node) -> Result<(), End> {
        for id in node.inputs.iter().filter_map(Operand::node) {
            let part = self.graph.node(id);
            if let (Some(_), NodeKind::Prim(prim)) = (part.condition_of, &part.kind) {
                self.condition(part)?;
                let value = self.prim(*prim, &part.inputs)?;
                self.give(id, value);
            }
        }
        Ok(())
    }

    /// Chooses the first arm whose test holds, and gives the parts of the payload to its ports.
    fn switch(&mut self, id: NodeId, node: &'g Node, arms: &[SwitchArm]) -> Result<(), End> {
        self.condition(node)?;
        let mut subject = self.take(&node.inputs[0]);
        let arm = arms.iter().position(|arm| test_holds(&arm.test, &subject)).expect("an arm holds");
        let arm_index = u32::try_from(arm).expect("few arms");
        self.chosen[id.0 as usize] = Some(arm_index);
        for index in 0..arms[arm].payload {
            let part = Prim::Payload(index).apply_moving(std::slice::from_mut(&mut subject))?;
            let port = self.first_port[id.0 as usize] + (node.first_port(arm_index) + index) as usize;
            self.slots[port] = part;
        }
        self.put_back(&node.inputs[0], subject);
        Ok(())
    }

    fn select(&mut self, switch: NodeId, inputs: &[Operand]) -> Value {
        assert!(self.ran[switch.0 as usize], "a select runs only where its switch has run");
        let arm = self.chosen[switch.0 as usize].expect("the switch has chosen");
        self.take(&inputs[arm as usize])
    }

    fn map(&mut self, world: &mut World<'_>, body: &Graph, inputs: &[Operand]) -> Result<Value, End> {
        let mut mapped = Vec::new();
        for element in self.list(&inputs[0]) {
            mapped.push(self.body(world, body, vec![element], &inputs[1..])?);
        }
        Ok(Value::list(mapped))
    }

    fn fold(&mut self, world: &mut World<'_>, body: &Graph, states: usize, inputs: &[Operand]) -> Result<Value, End> {
        let list = self.list(&inputs[0]);
        let mut folded: Vec<Value> = inputs[1..=states].iter().map(|input| self.take(input)).collect();
        for element in list {
            folded.push(element);
            let next = self.body(world, body, folded, &inputs[states + 1..])?;
            folded = if states == 1 { vec![next] } else { taken_apart(next) };
        }
        Ok(put_together(folded))
    }

    fn repeat(
        &mut self,
        world: &mut World<'_>,
        body: &Graph,
        states: usize,
        at_most: u64,
        inputs: &[Operand],
    ) -> Result<Value, End> {
        let mut state: Vec<Value> = inputs[..states].iter().map(|input| self.take(input)).collect();
        for _ in 0..at_most {
            state = taken_apart(self.body(world, body, state, &inputs[states..])?);
            if state.pop() == Some(Value::Bool(true)) {
                return Ok(put_together(state));
            }
        }
        Err(End::Fail(rounds_exceeded(at_most)))
    }

    fn list(&mut self, source: &Operand) -> Vec<Value> {
        match self.take(source) {
            Value::List(mut list) => elements(&mut list),
            other => panic!("{other:?} is no list"),
        }
    }

    /// Runs a body once. What it captures comes back, changed or moved out.
    fn body(
        &mut self,
        world: &mut World<'_>,
        body: &Graph,
        own: Vec<Value>,
        captured: &[Operand],
    ) -> Result<Value, End> {
        let mut frame = Frame::new(body);
        let first = own.len();
        for (slot, value) in own.into_iter().enumerate() {
            frame.slots[slot] = value;
        }
        for (index, source) in captured.iter().enumerate() {
            frame.slots[first + index] = self.take(source);
        }
        let result = frame.run(world)?;
        for (index, source) in captured.iter().enumerate() {
            let rest = frame.slots[first + index].take();
            self.put_back(source, rest);
        }
        Ok(result)
    }

    fn call(&mut self, world: &mut World<'_>, node: &Node, path: &str) -> Result<Value, End> {
        let library = world.library;
        let function = library.function(path).expect("the function is known");
        let arguments: Vec<Argument> = node
            .inputs
            .iter()
            .zip(&function.signature.parameters)
            .map(|(input, parameter)| match (self.slot(input), input) {
                (Some(slot), _) => {
                    let last = parameter.passing == Passing::Value && moves(&self.slots[slot]);
                    Argument::Slot { index: u32::try_from(slot).expect("few slots"), last }
                }
                (None, Operand::Constant(index)) => Argument::Constant(*index),
                (None, Operand::Shared(name)) => {
                    Argument::Shared(u32::try_from(world.index_of(name)).expect("few shared values"))
                }
                (None, other) => panic!("a call of {other:?}"),
            })
            .collect();
        let state = node.uses.iter().find(|usage| matches!(usage.resource, Resource::State(_))).map(|usage| {
            let make = function.signature.state.as_ref().expect("it has a state").make;
            world
                .states
                .entry(usage.resource.clone())
                .or_insert_with(|| Shared::new(make(&[]).expect("it is made of nothing")))
                .clone()
        });
        let outcome = world.call(function, state, &mut self.slots, &self.graph.constants, &arguments);
        match outcome.returned().map_err(End::Fail)? {
            Ok(value) if function.signature.failure.is_some() => Ok(Value::ok(value)),
            Ok(value) => Ok(value),
            Err(error) => Ok(Value::err(error)),
        }
    }
}

struct NoWake;

impl Wake for NoWake {
    fn wake(self: Arc<Self>) {}
}

/// Polls until it is ready; the recording library's functions only ever yield.
fn spin(mut pending: weir_host::Pending) -> Settled {
    let waker = Waker::from(Arc::new(NoWake));
    loop {
        if let Poll::Ready(settled) = pending.as_mut().poll(&mut Context::from_waker(&waker)) {
            return settled;
        }
    }
}
