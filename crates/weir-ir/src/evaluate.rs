//! The reference evaluator: runs the expression IR from top to bottom, and thereby defines the semantics of a program.
//!
//! Every pass and every engine is tested against it, so it is small and obvious before all else: one flow at a time,
//! one operation after the other, one table of variables. It blocks on functions that wait, and an atomic step waits
//! for nothing, because no other flow runs.
//!
//! It runs programs that [`crate::verify`] has accepted; on others it may panic.

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;
use weir_host::{Failure, FailureKind, Library, PropagationSite, Resource, Shared, Text, Type, Value};

use crate::expr::{Arm, ArmTest, Atom, Block, Constraint, Let, LoopExit, Op, Origin, Program, Var, Variable};
use crate::move_only::TypeDefinitions;
use crate::prim::{self, Prim};

mod call;
mod race;
mod time_limits;
mod wait;
mod work;

use time_limits::TimeLimits;
use work::WorkLeft;

/// Executes the flows of one program, one after the other.
pub struct Evaluator<'p> {
    program: &'p Program,
    library: &'p Library,
    /// The shared values, in the order of the program; of a session-scoped value, that of the latest session.
    shared: Vec<Shared>,
    /// The values of sessions, by the index of the shared value and the session.
    sessions: IndexMap<(usize, Value), Shared>,
    /// The private states of the call sites that were reached, by entry, flow and site.
    states: BTreeMap<(usize, usize, Text), Shared>,
    /// The types of variables so far, and whether their values may be move-only.
    move_only: IndexMap<Type, bool>,
    /// The place in the source of the operation that ended the last flow with a failure.
    failed_at: Option<Origin>,
    /// True if a failure ended a loop of a flow so far, but perhaps not the flow.
    left_by_failure: bool,
    /// The work that flows may still do.
    work: WorkLeft,
    /// The time limits around the operation that is being evaluated.
    limits: TimeLimits<'p>,
}

/// The failure of the initial value of a shared value or a private state.
#[derive(Clone, Debug, PartialEq)]
pub struct InitialFailure {
    /// The failure.
    pub failure: Failure,
    /// The place in the source of the operation that failed, if it is one of the program's text.
    pub failed_at: Option<Origin>,
}

impl From<InitialFailure> for Failure {
    fn from(initial: InitialFailure) -> Self {
        initial.failure
    }
}

/// An early end of a flow, before the end of its body.
enum FlowEnd {
    /// With an answer.
    Return(Value),
    /// With a failure by [`Op::Fail`].
    Fail(Box<Failure>),
    /// With the failure of another operation, which [`Op::Catch`] catches.
    OperationFailed(Box<Failure>),
    /// Not the flow, but the body of the [`Op::Within`] whose limit has this number: the time is up.
    TimeUp(usize),
    /// Not the flow, but the last body of the [`Op::Race`] with this number: those before have ended first, so.
    Overtaken(usize, Box<Result<Value, FlowEnd>>),
}

impl From<Box<Failure>> for FlowEnd {
    fn from(failure: Box<Failure>) -> Self {
        FlowEnd::OperationFailed(failure)
    }
}

impl<'p> Evaluator<'p> {
    /// Creates the shared values and the private states of `program`, whose functions are those of `library`.
    ///
    /// # Errors
    /// Fails if the creation of one does.
    pub fn new(program: &'p Program, library: &'p Library) -> Result<Self, InitialFailure> {
        let flows = |entry: usize| (0..program.entries[entry].flows.len()).map(move |flow| (entry, flow));
        Evaluator::of_flows(program, library, (0..program.entries.len()).flat_map(flows))
    }

    /// The same for a single flow of an entry point, which alone may be run: a test does not pay for the states of all others.
    ///
    /// # Errors
    /// Fails if an initial value or a state of this flow does.
    ///
    /// # Panics
    /// Panics if the program has no such flow.
    pub fn of_flow(program: &'p Program, library: &'p Library, place: (usize, usize)) -> Result<Self, InitialFailure> {
        Evaluator::of_flows(program, library, std::iter::once(place))
    }

    fn of_flows(
        program: &'p Program,
        library: &'p Library,
        places: impl Iterator<Item = (usize, usize)>,
    ) -> Result<Self, InitialFailure> {
        let (sessions, states, move_only) = (IndexMap::new(), BTreeMap::new(), IndexMap::new());
        let (shared, work, limits) = (Vec::new(), WorkLeft::UNBOUNDED, TimeLimits::NEVER);
        let (failed_at, left_by_failure) = (None, false);
        let mut evaluator = Evaluator {
            program,
            library,
            shared,
            sessions,
            states,
            move_only,
            failed_at,
            left_by_failure,
            work,
            limits,
        };
        match evaluator.initialise(places) {
            Ok(()) => Ok(evaluator),
            Err(failure) => Err(InitialFailure { failure: *failure, failed_at: evaluator.failed_at }),
        }
    }

    /// Creates the shared values of the program and the private states of these flows, given by entry and number.
    fn initialise(&mut self, mut places: impl Iterator<Item = (usize, usize)>) -> Result<(), Box<Failure>> {
        for shared in &self.program.shared {
            let value = if shared.per_session { Value::Absent } else { self.made(&shared.init)? };
            self.shared.push(Shared::new(value));
        }
        let program = self.program;
        places.try_for_each(|place| self.make_states(place, &program.entries[place.0].flows[place.1].body))
    }

    /// Returns the arguments of an entry point's source, in the order of its parameters.
    ///
    /// # Errors
    /// Fails if their evaluation does.
    pub fn arguments(&mut self, entry: usize) -> Result<Vec<Value>, Box<Failure>> {
        match self.flow((usize::MAX, 0), &self.program.entries[entry].arguments, &[], Vec::new())? {
            Value::Record(mut arguments) => Ok(prim::parts(&mut arguments)),
            _ => Ok(Vec::new()),
        }
    }

    /// Runs one flow of an entry point to its end, and returns its answer.
    ///
    /// # Errors
    /// Fails if the flow ends with a failure.
    ///
    /// # Panics
    /// Panics if the program has no such flow, or was not verified.
    pub fn run(&mut self, entry: usize, flow: usize, inputs: Vec<Value>) -> Result<Value, Box<Failure>> {
        self.failed_at = None;
        let body = &self.program.entries[entry].flows[flow];
        self.flow((entry, flow), &body.body, &body.parameters, inputs)
    }

    /// Bounds the work of the flows that run from now on: the number of blocks that begin, and of the bytes and parts of the
    /// values that operations make. A flow that exceeds the bound fails.
    pub fn bound_work(&mut self, work: u64) {
        self.work = WorkLeft::new(work);
    }

    /// Makes the limits of [`Op::Within`] expire when a flow has waited for as long in calls, and lets a body of an [`Op::Race`] win
    /// that does not wait for longer.
    pub fn expire_time_limits(&mut self) {
        self.limits.expire();
    }

    /// Returns true if a flow has exceeded the bound of the work.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        self.work.is_exhausted()
    }

    /// Returns true if a failure has ended a loop of a flow before its list, and the flow went on ([`LoopExit::Failure`]).
    #[must_use]
    pub fn has_left_loop_by_failure(&self) -> bool {
        self.left_by_failure
    }

    /// Returns the place in the source of the operation that ended the last flow with a failure.
    #[must_use]
    pub fn failed_at(&self) -> Option<Origin> {
        self.failed_at
    }

    /// Returns the tuple of a failure that an operation at `origin` catches and of its position in the inlined call that the
    /// body stands for. The calls between the two are added to the backtrace of the failure, if it has none.
    fn caught(&mut self, mut failure: Failure, origin: Origin) -> Value {
        let around = |origin| self.program.inlined_calls_around(origin);
        let outside: Vec<_> = around(origin).map(|(id, _)| id).collect();
        let mut failed_at = self.failed_at.take().unwrap_or_default();
        let inside: Vec<_> = around(failed_at).take_while(|(id, _)| !outside.contains(id)).collect();
        let mut failed = Text::default();
        if let ([], Some((_, passed))) = (failure.backtrace(), inside.split_last()) {
            for (_, call) in passed {
                let function = call.function.clone();
                failure.propagated(PropagationSite { failed, function, position: failed_at.start });
                (failed, failed_at) = (call.function.clone(), call.called_at);
            }
        }
        let parts = [Value::Failure(Box::new(failure)), Value::Int(failed_at.start.into())];
        Value::Record(parts.into_iter().collect())
    }

    /// Returns true if values of the type may be move-only.
    fn is_move_only(&mut self, ty: &Type) -> bool {
        if let Some(known) = self.move_only.get(ty) {
            return *known;
        }
        let definitions = TypeDefinitions { program: &self.program.types, library: self.library };
        let found = definitions.is_move_only(ty);
        self.move_only.insert(ty.clone(), found);
        found
    }

    /// Returns the shared value of this name.
    #[must_use]
    pub fn shared(&self, name: &str) -> Option<&Shared> {
        let index = self.program.shared.iter().position(|shared| shared.name.as_str() == name)?;
        self.shared.get(index)
    }

    /// Evaluates the body that computes a shared value.
    fn made(&mut self, init: &'p Block) -> Result<Value, Box<Failure>> {
        self.flow((usize::MAX, 0), init, &[], Vec::new())
    }

    /// Switches the session-scoped shared values to those of this session, and creates those that do not exist yet.
    ///
    /// The evaluator never frees a session's values. Freeing one that no flow uses is another outcome that `per
    /// session` allows.
    fn begin_session(&mut self, constraints: &[Constraint], session: &Value) -> Result<(), Box<Failure>> {
        let program = self.program;
        for (index, shared) in program.shared.iter().enumerate().filter(|(_, shared)| shared.per_session) {
            if constraints.iter().any(|held| held.resource == Resource::Shared(shared.name.clone())) {
                let key = (index, session.clone());
                if !self.sessions.contains_key(&key) {
                    let made = Shared::new(self.made(&shared.init)?);
                    self.sessions.insert(key.clone(), made);
                }
                self.shared[index] = self.sessions[&key].clone();
            }
        }
        Ok(())
    }

    fn flow(
        &mut self,
        place: (usize, usize),
        body: &'p Block,
        parameters: &[Variable],
        inputs: Vec<Value>,
    ) -> Result<Value, Box<Failure>> {
        let mut flow =
            FlowEvaluation { evaluator: self, place, variables: BTreeMap::new(), move_only: BTreeSet::new() };
        for (parameter, input) in parameters.iter().zip(inputs) {
            flow.bind(parameter, input);
        }
        let hidden = flow.evaluator.limits.hide();
        let end = flow.block(body);
        self.limits.show(hidden);
        match end {
            Ok(value) | Err(FlowEnd::Return(value)) => Ok(value),
            Err(FlowEnd::Fail(failure) | FlowEnd::OperationFailed(failure)) => Err(failure),
            Err(FlowEnd::TimeUp(_) | FlowEnd::Overtaken(..)) => {
                unreachable!("the limits and races outside of the flow are hidden")
            }
        }
    }
}

/// The evaluation of one flow.
struct FlowEvaluation<'e, 'p> {
    evaluator: &'e mut Evaluator<'p>,
    /// The entry and the flow, by which states are found.
    place: (usize, usize),
    variables: BTreeMap<Var, Value>,
    /// The variables whose values may be move-only, by their types: looking for a move-only value in every value would
    /// take quadratic time for one that grows.
    move_only: BTreeSet<Var>,
}

impl<'p> FlowEvaluation<'_, 'p> {
    fn bind(&mut self, variable: &Variable, value: Value) {
        if self.evaluator.is_move_only(&variable.ty) {
            self.move_only.insert(variable.var);
        }
        self.variables.insert(variable.var, value);
    }

    fn block(&mut self, block: &'p Block) -> Result<Value, FlowEnd> {
        if !self.evaluator.work.begin_block() {
            return Err(work_exceeded());
        }
        for binding in &block.lets {
            self.binding(binding)?;
        }
        Ok(self.value(&block.result))
    }

    fn binding(&mut self, binding: &'p Let) -> Result<(), FlowEnd> {
        let value = self.op(&binding.op, binding.origin);
        if let Err(FlowEnd::Fail(_) | FlowEnd::OperationFailed(_)) = &value {
            // The innermost operation is the first to see its failure.
            self.evaluator.failed_at.get_or_insert(binding.origin);
        }
        let value = value?;
        if let Some(limit) = self.evaluator.limits.expired() {
            return Err(FlowEnd::TimeUp(limit));
        }
        if !self.evaluator.work.make(&value) {
            return Err(work_exceeded());
        }
        self.bind(&binding.bound, value);
        Ok(())
    }

    /// Returns the operand's value: a clone, or the value itself if it is move-only, which is then moved out.
    fn value(&mut self, atom: &Atom) -> Value {
        match atom {
            Atom::Var(var) => match self.variables.get_mut(var) {
                Some(value) if self.move_only.contains(var) => prim::move_or_clone(value),
                Some(value) => value.clone(),
                None => Value::Absent,
            },
            Atom::Value(value) => value.clone(),
            Atom::Shared(name) => self.evaluator.shared(name).map_or(Value::Absent, |shared| shared.read().clone()),
        }
    }

    fn op(&mut self, op: &'p Op, origin: Origin) -> Result<Value, FlowEnd> {
        match op {
            Op::Prim(prim, operands) => self.prim(*prim, operands),
            Op::Call(call) => self.call(call),
            Op::Switch { subject, arms } => self.switch(subject, arms),
            Op::Map { list, element, body } => self.map(list, element, body),
            Op::Fold { list, init, state, element, body, exit } => {
                let value = self.fold(list, init, (state, element), body)?;
                let failed = matches!(exit, LoopExit::Failure(_)) && matches!(value, Value::Variant(Value::ERR, _));
                self.evaluator.left_by_failure |= failed;
                Ok(value)
            }
            Op::Loop { init, state, body, at_most } => self.repeat(init, state, body, *at_most),
            Op::Atomic { constraints, session, body, .. } => {
                if let Some(session) = session {
                    let session = self.value(session);
                    self.evaluator.begin_session(constraints, &session)?;
                }
                let hidden = self.evaluator.limits.hide();
                let value = self.block(body);
                self.evaluator.limits.show(hidden);
                value
            }
            Op::Within { limit, body } => self.within(limit, body),
            Op::Race { bodies } => self.race(bodies),
            Op::Catch { body } => match self.block(body) {
                Ok(value) => Ok(Value::ok(value)),
                Err(FlowEnd::OperationFailed(failure)) => Ok(Value::err(self.evaluator.caught(*failure, origin))),
                Err(end) => Err(end),
            },
            Op::Return(answer) => Err(FlowEnd::Return(self.value(answer))),
            Op::Fail(failure) => Err(FlowEnd::Fail(failure_of(self.value(failure)))),
        }
    }

    /// Returns true if the operand may be move-only.
    fn is_moved(&self, atom: &Atom) -> bool {
        matches!(atom, Atom::Var(var) if self.move_only.contains(var))
    }

    /// Puts back the rest of an operand after it was read or taken apart.
    fn give_back(&mut self, atom: &Atom, rest: Value) {
        if let Atom::Var(var) = atom {
            self.variables.insert(*var, rest);
        }
    }

    fn prim(&mut self, prim: Prim, atoms: &[Atom]) -> Result<Value, FlowEnd> {
        let mut operands: Vec<Value> = atoms.iter().map(|atom| self.value(atom)).collect();
        if !atoms.iter().any(|atom| self.is_moved(atom)) {
            return Ok(prim.apply(&operands.iter().collect::<Vec<_>>())?);
        }
        let value = prim.apply_moving(&mut operands)?;
        for (atom, rest) in atoms.iter().zip(operands) {
            self.give_back(atom, rest);
        }
        Ok(value)
    }

    fn switch(&mut self, subject: &Atom, arms: &'p [Arm]) -> Result<Value, FlowEnd> {
        let mut tested = self.value(subject);
        let chosen =
            arms.iter().find(|arm| test_holds(&arm.test, &tested)).expect("the verifier has seen an arm for it");
        for (variable, index) in chosen.payload.iter().zip(0..) {
            let part = match self.is_moved(subject) {
                true => Prim::Payload(index).apply_moving(std::slice::from_mut(&mut tested))?,
                false => Prim::Payload(index).apply(&[&tested])?,
            };
            self.bind(variable, part);
        }
        self.give_back(subject, tested);
        self.block(&chosen.body)
    }

    fn elements(&mut self, list: &Atom) -> Vec<Value> {
        match self.value(list) {
            Value::List(mut elements) => prim::elements(&mut elements),
            other => panic!("the verifier let {other:?} pass for a list"),
        }
    }

    fn map(&mut self, list: &Atom, element: &Variable, body: &'p Block) -> Result<Value, FlowEnd> {
        let mut mapped = Vec::new();
        for value in self.elements(list) {
            self.bind(element, value);
            mapped.push(self.block(body)?);
        }
        Ok(Value::list(mapped))
    }

    fn fold(
        &mut self,
        list: &Atom,
        init: &[Atom],
        (state, element): (&[Variable], &Variable),
        body: &'p Block,
    ) -> Result<Value, FlowEnd> {
        let mut values: Vec<Value> = init.iter().map(|atom| self.value(atom)).collect();
        for value in self.elements(list) {
            self.bind_all(state, values);
            self.bind(element, value);
            let next = self.block(body)?;
            values = if state.len() == 1 { vec![next] } else { taken_apart(next) };
        }
        Ok(put_together(values))
    }

    fn repeat(&mut self, init: &[Atom], state: &[Variable], body: &'p Block, at_most: u64) -> Result<Value, FlowEnd> {
        let mut values: Vec<Value> = init.iter().map(|atom| self.value(atom)).collect();
        for _ in 0..at_most {
            self.bind_all(state, values);
            values = taken_apart(self.block(body)?);
            if values.pop() == Some(Value::Bool(true)) {
                return Ok(put_together(values));
            }
        }
        Err(FlowEnd::OperationFailed(rounds_exceeded(at_most)))
    }

    fn bind_all(&mut self, variables: &[Variable], values: Vec<Value>) {
        variables.iter().zip(values).for_each(|(variable, value)| self.bind(variable, value));
    }
}

/// Returns the end of a flow that has exceeded the bound of the work, which nothing catches.
fn work_exceeded() -> FlowEnd {
    FlowEnd::Fail(Box::new(Failure::new(FailureKind::Limit, "the evaluation was bounded, and exceeds its bound")))
}

/// Returns the parts of a tuple.
#[must_use]
pub fn taken_apart(tuple: Value) -> Vec<Value> {
    match tuple {
        Value::Record(mut parts) => match parts.unshared() {
            Some(parts) => parts.iter_mut().map(Value::take).collect(),
            None => parts.to_vec(),
        },
        other => panic!("the verifier let {other:?} pass for a tuple"),
    }
}

/// Returns the only state of a loop, or the tuple of its states.
#[must_use]
pub fn put_together(mut states: Vec<Value>) -> Value {
    match states.len() {
        1 => states.remove(0),
        _ => Value::Record(states.into()),
    }
}

/// Returns true if the test holds for the subject.
#[must_use]
pub fn test_holds(test: &ArmTest, subject: &Value) -> bool {
    match (test, subject) {
        (ArmTest::Tag(tag), Value::Variant(actual, _)) => tag == actual,
        (ArmTest::Tag(_), _) => false,
        (ArmTest::Value(value), subject) => value == subject,
        (ArmTest::Otherwise, _) => true,
    }
}

/// Returns the failure that [`Op::Fail`] ends a flow with: its operand, or a failure with the text of any other error.
#[must_use]
pub fn failure_of(value: Value) -> Box<Failure> {
    match value {
        Value::Failure(failure) => failure,
        other => Box::new(Failure::new(FailureKind::Program, other.to_string())),
    }
}

/// Returns the failure of a loop that was not done after its bound.
#[must_use]
pub fn rounds_exceeded(at_most: u64) -> Box<Failure> {
    Box::new(Failure::new(FailureKind::Limit, format!("the loop was not done after {at_most} rounds")))
}
