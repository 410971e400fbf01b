//! The reference evaluator: runs the expression IR from top to bottom, and thereby defines the semantics of a program.
//!
//! Every pass and every engine is tested against it, so it is small and obvious before all else: one flow at a time,
//! one operation after the other, one table of variables. It blocks on functions that wait, and an atomic step waits
//! for nothing, because no other flow runs.
//!
//! It runs programs that [`crate::verify`] has accepted; on others it may panic.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use weir_host::{Failure, Library, PropagationSite, Resource, Shared, Text, Type, Value};

use crate::expr::{Block, Constraint, Origin, Program};
use crate::move_only::TypeDefinitions;
use crate::prim;

mod call;
mod flow;
mod race;
mod rules;
mod time_limits;
mod wait;
mod work;

pub use rules::{failure_of, put_together, rounds_exceeded, taken_apart, test_holds};

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
    ///
    /// [`Op::Within`]: crate::expr::Op::Within
    /// [`Op::Race`]: crate::expr::Op::Race
    pub fn expire_time_limits(&mut self) {
        self.limits.expire();
    }

    /// Returns true if a flow has exceeded the bound of the work.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        self.work.is_exhausted()
    }

    /// Returns true if a failure has ended a loop of a flow before its list, and the flow went on ([`LoopExit::Failure`]).
    ///
    /// [`LoopExit::Failure`]: crate::program::LoopExit::Failure
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

    /// Returns the shared values of these names, each with what it is now.
    fn values_of(&self, names: &[Text]) -> Vec<(Shared, Value)> {
        let with_value = |shared: &Shared| (shared.clone(), shared.read().clone());
        names.iter().filter_map(|name| self.shared(name)).map(with_value).collect()
    }

    /// Puts back what shared values were when a step with these constraints began, unless it has completed what it has begun.
    fn restore_unless_completed(&self, kept: Vec<(Shared, Value)>, constraints: &[Constraint]) {
        if kept.is_empty() {
            return;
        }
        let Some(ends) = self.library.environment.step_ends() else { return };
        let of = |held: &Constraint| match &held.resource {
            Resource::Constraint(name) => ends.of(name),
            _ => None,
        };
        // Each notes it for one step, so all are asked.
        if constraints.iter().filter_map(of).filter(|end| end.has_completed()).count() == 0 {
            kept.into_iter().for_each(|(shared, value)| *shared.write() = value);
        }
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
}
