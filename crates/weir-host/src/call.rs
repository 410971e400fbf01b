//! Calling convention of host functions: argument locations and answers.
//!
//! Arguments are not gathered: a call refers to slots of its frame, constants of its program and the table of shared
//! values, so that a call moves only what the function takes by value.
//!
//! Protocol of an adaptor (the code that `#[weir::function]` generates). The order satisfies Rust's borrow rules:
//! 1. take everything that is taken by value ([`Call::take`]); scalars are copied and stay in their slots;
//! 2. locate everything that is passed by `&mut`: a shared value is locked, a single argument stays in its slot,
//!    several are each taken out of their slots ([`Call::take_unique`]);
//! 3. borrow the rest ([`Call::borrow`], [`Call::shared`]);
//! 4. call the function, and put back what step 2 took ([`Call::restore`]), even if the function fails or panics;
//! 5. answer: if the call names a slot for the result, the value may be written there directly instead of being moved
//!    through the adaptor's return value.
//!
//! An argument passed by `&mut` must not be passed as another argument by `&` or `&mut`; the adaptor refuses this.
//!
//! An asynchronous call has to own its arguments while it waits: it takes everything in steps 1 and 2, shared values as
//! owned guards, and returns what step 2 took in [`Settled::restored`]. If it panics, it settles with a fault for the
//! same reason; the engine catches panics only of calls that return immediately.

use std::any::{Any, TypeId};
use std::future::Future;
use std::num::NonZeroU64;
use std::pin::Pin;
use std::sync::Arc;

use crate::{Failure, HostType, Outcome, SeenCommits, Shared, Text, Value};

/// Location of an argument of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Argument {
    /// A slot of the frame.
    Slot {
        /// The slot's index.
        index: u32,
        /// `true` if nothing uses the slot afterwards, so that its value may be moved out.
        last: bool,
    },
    /// A constant of the program.
    Constant(u32),
    /// An entry of the table of shared values.
    Shared(u32),
}

/// Completion of a call that waited or blocked.
#[derive(Debug)]
pub struct Settled {
    /// The call's answer.
    pub outcome: Outcome,
    /// Values passed by `&mut` that are not shared, with the index of their argument, to be put back.
    pub restored: Vec<(usize, Value)>,
}

/// Future of a call that waits. Dropping it cancels the call.
pub type Pending = Pin<Box<dyn Future<Output = Settled> + Send>>;

/// A blocking call, to be run on a thread that may block.
pub type BlockingJob = Box<dyn FnOnce() -> Settled + Send>;

/// The adaptor of a function that returns immediately.
pub type ImmediateCode = dyn Fn(&mut Call<'_>) -> Outcome + Send + Sync;

/// The adaptor of a function that may wait; takes what the call needs out of the frame. Returns the outcome of a call that need not
/// wait instead, such as a fault.
pub type WaitingCode = dyn Fn(&mut Call<'_>) -> Result<Pending, Outcome> + Send + Sync;

/// The adaptor of a function that blocks its thread; takes what the call needs out of the frame.
pub type BlockingCode = dyn Fn(&mut Call<'_>) -> Result<BlockingJob, Box<Failure>> + Send + Sync;

/// The typed entry point of a function whose parameters and result are scalars: it returns immediately, takes the words of
/// its arguments, and returns the word of its result. A word is an integer, the bits of a float, or 0 or 1.
pub type WordCode = fn(&[u64]) -> Result<u64, Box<Failure>>;

/// The code of a host function, behind its adaptor.
#[derive(Clone)]
pub enum FunctionCode {
    /// Returns immediately.
    Immediate(Arc<ImmediateCode>),
    /// May wait, but never blocks its thread.
    Waiting(Arc<WaitingCode>),
    /// Blocks its thread.
    Blocking(Arc<BlockingCode>),
}

/// Values that the embedder provides to the functions of its libraries, one for each Rust type; for example the root
/// directory of `files`.
#[derive(Clone, Default)]
pub struct Environment {
    /// A few values, for which a linear search is faster than hashing.
    values: Vec<(TypeId, Arc<dyn Any + Send + Sync>)>,
    closing: Vec<Arc<dyn Closing>>,
    placed: Option<Arc<dyn PlacedCalls>>,
    commits: Option<Arc<dyn DurableCommits>>,
    step_ends: Option<Arc<dyn StepEnds>>,
    starting: Option<Arc<dyn Starting>>,
}

/// A value of the environment that has to be closed when the program ends, such as a buffer with unwritten data.
pub trait Closing: Any + Send + Sync {
    /// Completes everything that is pending. Called when no flow is left; functions may still be called if another
    /// program uses the same environment.
    ///
    /// # Errors
    /// Fails if data is lost.
    fn close(&self) -> Result<(), Failure>;
}

/// A value of the environment whose functions may *place* calls: they return before it is known whether a call has failed.
///
/// The calls of a flow are placed in a group, such as a transaction. The failure of one ends the flow, as if it had been there at
/// once: so a later function of the group fails with it, and a flow that ends with another failure asks for it
/// ([`SeenCommits::place`](crate::SeenCommits::place)).
pub trait PlacedCalls: Any + Send + Sync {
    /// Returns the failure of the first call of a group that has failed, when all are answered, if one has. No call of the group
    /// follows.
    fn failed(&self, group: i64) -> Pin<Box<dyn Future<Output = Option<Failure>> + Send>>;
}

/// A value of the environment whose functions make commits that others see before they are durable.
pub trait DurableCommits: Any + Send + Sync {
    /// Waits until these commits are durable, and those before; `None` if they are. The wait fails if nobody knows whether they are.
    fn settled(&self, commits: SeenCommits) -> Option<Settling>;
}

/// A wait until commits are durable.
pub type Settling = Pin<Box<dyn Future<Output = Result<(), Failure>> + Send>>;

/// A value of the environment in which an atomic step may leave something unfinished, such as a transaction, if it fails or is given up.
/// All steps that may do that hold one of its constraints.
pub trait StepEnds: Any + Send + Sync {
    /// Returns the end of the steps that hold the constraint with this name; `None` if it is none of the value.
    fn of(&self, constraint: &str) -> Option<Arc<dyn StepEnd>>;
}

/// The end of the steps that hold one constraint of [`StepEnds`]. One step at a time holds it.
pub trait StepEnd: Send + Sync {
    /// Takes back what the step has left unfinished. Called at the end of each step, however it ends, before it releases the
    /// constraint. Must not block the thread for long.
    fn take_back_unfinished(&self);

    /// Returns true if the step, which restores shared values, has completed what it has begun. Called once at the end of each such step,
    /// however it ends, before [`StepEnd::take_back_unfinished`].
    fn has_completed(&self) -> bool;
}

/// A value of the environment whose functions prepare changes when shared values are created: they take effect together when all are
/// there, such as those of the tables of a database.
pub trait Starting: Any + Send + Sync {
    /// Checks the tables with these descriptions, all of the program, if a change of the start is not taken back when the start fails. Called
    /// before a shared value is created.
    ///
    /// # Errors
    /// Fails if the start would, as far as that is known. Names the table that is the reason.
    fn check_start(&self, tables: &[Value]) -> Result<(), (Text, Failure)>;

    /// Makes the changes that were prepared.
    ///
    /// # Errors
    /// Fails if one cannot be made: then none is. Names the table of that one.
    fn complete_start(&self) -> Result<(), (Text, Failure)>;
}

impl Environment {
    /// Adds a value, which replaces an earlier one of the same type.
    pub fn insert<T: Send + Sync + 'static>(&mut self, value: T) {
        self.put(Arc::new(value));
    }

    /// Adds a value that is closed when the program ends.
    pub fn insert_closing<T: Closing>(&mut self, value: T) {
        let value = Arc::new(value);
        self.put(Arc::clone(&value));
        self.closing.push(value);
    }

    /// Adds a value that is closed when the program ends, whose functions may place calls, make commits and prepare changes of a start,
    /// and in which steps may leave something unfinished.
    pub fn insert_placing<T: Closing + PlacedCalls + DurableCommits + StepEnds + Starting>(&mut self, value: T) {
        let value = Arc::new(value);
        self.put(Arc::clone(&value));
        self.placed = Some(Arc::clone(&value) as Arc<dyn PlacedCalls>);
        self.commits = Some(Arc::clone(&value) as Arc<dyn DurableCommits>);
        self.step_ends = Some(Arc::clone(&value) as Arc<dyn StepEnds>);
        self.starting = Some(Arc::clone(&value) as Arc<dyn Starting>);
        self.closing.push(value);
    }

    /// Checks the tables with these descriptions before the shared values are created.
    ///
    /// # Errors
    /// Fails if the start would. Names the table that is the reason.
    pub fn check_start(&self, tables: &[Value]) -> Result<(), (Text, Failure)> {
        self.starting.as_ref().map_or(Ok(()), |starting| starting.check_start(tables))
    }

    /// Makes the changes that the creation of the shared values has prepared.
    ///
    /// # Errors
    /// Fails if one cannot be made: then none is. Names the table of that one.
    pub fn complete_start(&self) -> Result<(), (Text, Failure)> {
        self.starting.as_ref().map_or(Ok(()), |starting| starting.complete_start())
    }

    /// Returns the failure of the first placed call of a group that has failed, if one has.
    #[must_use]
    pub fn failed_placed_call(&self, group: i64) -> Option<Pin<Box<dyn Future<Output = Option<Failure>> + Send>>> {
        self.placed.as_ref().map(|placed| placed.failed(group))
    }

    /// Waits until these commits are durable, and those before; `None` if they are.
    #[must_use]
    pub fn settled(&self, commits: SeenCommits) -> Option<Settling> {
        self.commits.as_ref()?.settled(commits)
    }

    /// Returns the value in which steps may leave something unfinished, if there is one.
    #[must_use]
    pub fn step_ends(&self) -> Option<&Arc<dyn StepEnds>> {
        self.step_ends.as_ref()
    }

    fn put<T: Send + Sync + 'static>(&mut self, value: Arc<T>) {
        self.values.retain(|(ty, _)| *ty != TypeId::of::<T>());
        self.values.push((TypeId::of::<T>(), value));
    }

    /// Closes all values that have to be closed, even if some fail.
    ///
    /// # Errors
    /// Fails with the first failure.
    pub fn close(&self) -> Result<(), Failure> {
        let failures = self.closing.iter().filter_map(|closing| closing.close().err());
        failures.reduce(|first, _| first).map_or(Ok(()), Err)
    }

    /// Returns the value of this type.
    #[must_use]
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        Arc::clone(self.shared::<T>()?).downcast().ok()
    }

    /// Returns the value of this type in place.
    #[must_use]
    pub fn find<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.shared::<T>()?.downcast_ref()
    }

    fn shared<T: 'static>(&self) -> Option<&Arc<dyn Any + Send + Sync>> {
        self.values.iter().find(|(ty, _)| *ty == TypeId::of::<T>()).map(|(_, value)| value)
    }
}

/// A call of a host function: its arguments and its environment.
pub struct Call<'a> {
    /// The slots of the frame.
    pub slots: &'a mut [Value],
    /// The program's constants.
    pub constants: &'a [Value],
    /// The program's shared values.
    pub shared: &'a [Shared],
    /// The private state of the call site.
    pub state: Option<&'a Shared>,
    /// The locations of the arguments.
    pub arguments: &'a [Argument],
    /// The slot to which a call that returns immediately may write its answer; it is empty and not one of the
    /// arguments.
    pub out: Option<u32>,
    /// The values that the embedder provides.
    pub environment: &'a Environment,
    /// The budget of a function that declares its units.
    pub units: UnitBudget,
    /// The place for a call that exceeds its budget and can begin here; `None` if it must not begin.
    pub awaited: Option<&'a mut Option<AwaitedCall>>,
}

/// A call that exceeds its units and has begun.
pub struct AwaitedCall {
    /// The rest of the call. A flow that is cancelled does not cancel it.
    pub rest: CallRest,
    /// True if the call keeps its locks until it ends; false if what it does is already ordered before what others begin
    /// from now on.
    pub keeps_locks: bool,
    /// The number of the connection on which the call is sent when it is first polled, if it only reads and what answers there answers one
    /// call after the other: a later call on the connection sees at least what this one sees.
    pub sent_on: Option<NonZeroU64>,
}

/// The rest of a call that has begun.
pub enum CallRest {
    /// It needs no thread, such as when it waits for the answer of another process.
    Awaited(Pending),
    /// It needs a thread that may block.
    Job(BlockingJob),
}

/// The units of work of a call; a unit is about 20 ns. Only functions that declare their units ask for them.
#[derive(Clone, Copy, Debug)]
pub struct UnitBudget {
    /// The maximum number of units. A call that needs more does not begin, and returns [`Outcome::ExceedsUnits`].
    pub most: u64,
    /// The units that the call has declared.
    pub declared: u64,
}

impl UnitBudget {
    /// A budget for calls that may take as long as they need.
    pub const UNLIMITED: UnitBudget = UnitBudget { most: u64::MAX, declared: 0 };

    /// Returns a budget of this many units.
    #[inline]
    #[must_use]
    pub fn of(most: u64) -> UnitBudget {
        UnitBudget { most, declared: 0 }
    }
}

impl<'a> Call<'a> {
    /// Returns the value of an argument, moved at its last use and cloned otherwise.
    #[inline]
    pub fn value(&mut self, index: usize) -> Value {
        match self.arguments[index] {
            Argument::Slot { index, last: true } => self.slots[index as usize].take(),
            Argument::Slot { index, last: false } => self.slots[index as usize].clone(),
            Argument::Constant(index) => self.constants[index as usize].clone(),
            Argument::Shared(index) => self.shared[index as usize].read().clone(),
        }
    }

    /// Returns the value of an argument for a call that may wait with others: of a shared value, its handle.
    pub(crate) fn value_or_handle(&mut self, index: usize) -> Value {
        self.shared(index).map_or_else(|| self.value(index), |shared| shared.read().handle())
    }

    /// Takes an argument as a Rust value.
    ///
    /// # Errors
    /// Fails if the value is outside the range of the Rust type; the message names the parameter.
    #[inline]
    pub fn take<T: HostType>(&mut self, index: usize, parameter: &str) -> Result<T, Box<Failure>> {
        match T::copied(self.borrow(index)) {
            Some(value) => Ok(value),
            None => self.moved(index, parameter),
        }
    }

    /// Takes an argument that is not a scalar.
    #[inline(never)]
    fn moved<T: HostType>(&mut self, index: usize, parameter: &str) -> Result<T, Box<Failure>> {
        T::from_value(self.value(index)).map_err(|failure| named(parameter, failure))
    }

    /// Takes an argument that is passed by `&mut` out of its slot; [`Call::restore`] puts it back.
    #[inline]
    pub fn take_unique(&mut self, index: usize) -> Value {
        match self.arguments[index] {
            Argument::Slot { index, .. } => self.slots[index as usize].take(),
            _ => self.value(index),
        }
    }

    /// Puts back a value that [`Call::take_unique`] took.
    #[inline]
    pub fn restore(&mut self, index: usize, value: Value) {
        if let Argument::Slot { index, .. } = self.arguments[index] {
            self.slots[index as usize] = value;
        }
    }

    /// Returns the slot for the answer, if the call names one.
    #[inline]
    pub(crate) fn room(&mut self) -> Option<&mut Value> {
        Some(&mut self.slots[self.out? as usize])
    }

    /// Borrows an argument in place. For a shared value use [`Call::shared`] instead.
    #[inline]
    #[must_use]
    pub fn borrow(&self, index: usize) -> &Value {
        match self.arguments[index] {
            Argument::Slot { index, .. } => &self.slots[index as usize],
            Argument::Constant(index) => &self.constants[index as usize],
            Argument::Shared(_) => &Value::Absent,
        }
    }

    /// Returns the shared value to which an argument refers, if it refers to one.
    #[inline]
    #[must_use]
    pub fn shared(&self, index: usize) -> Option<&'a Shared> {
        match self.arguments[index] {
            Argument::Shared(index) => Some(&self.shared[index as usize]),
            _ => None,
        }
    }
}

impl Call<'_> {
    /// Declares the units of the call; returns false if it must not begin here.
    #[inline]
    pub fn declare_units(&mut self, units: u64) -> bool {
        self.units.declared = units;
        units <= self.units.most
    }

    /// Takes the arguments, so that another thread can execute the call; `None` if one of them is move-only. Arguments at
    /// their last use are moved, so that their release is the other thread's work too.
    #[must_use]
    pub fn detach(&mut self) -> Option<DetachedCall> {
        let is_unique = |index| matches!(self.borrow(index), Value::Unique(_));
        if (0..self.arguments.len()).any(is_unique) {
            return None;
        }
        let mut detached = DetachedCall {
            slots: Vec::new(),
            shared: Vec::new(),
            state: self.state.cloned(),
            arguments: Vec::new(),
            environment: self.environment.clone(),
        };
        for index in 0..self.arguments.len() {
            let argument = match self.shared(index) {
                Some(shared) => {
                    detached.shared.push(shared.clone());
                    Argument::Shared(detached.shared.len() as u32 - 1)
                }
                None => {
                    detached.slots.push(self.value(index));
                    Argument::Slot { index: detached.slots.len() as u32 - 1, last: true }
                }
            };
            detached.arguments.push(argument);
        }
        Some(detached)
    }
}

/// A call that owns its arguments, and may take as long as it needs.
pub struct DetachedCall {
    slots: Vec<Value>,
    shared: Vec<Shared>,
    state: Option<Shared>,
    arguments: Vec<Argument>,
    environment: Environment,
}

impl DetachedCall {
    /// Executes the call.
    #[must_use]
    pub fn run(mut self, code: &ImmediateCode) -> Settled {
        let outcome = code(&mut self.call(UnitBudget::UNLIMITED, None));
        Settled { outcome, restored: Vec::new() }
    }

    /// Begins a call that exceeds its budget; `None` if a thread has to execute all of it. Then it has not begun.
    #[must_use]
    pub fn begin(&mut self, code: &ImmediateCode) -> Option<AwaitedCall> {
        let mut awaited = None;
        // It exceeds the smallest budget, too, so that it does nothing but leave its rest.
        let outcome = code(&mut self.call(UnitBudget::of(0), Some(&mut awaited)));
        if matches!(outcome, Outcome::ExceedsUnits) {
            return awaited;
        }
        let pending = Box::pin(std::future::ready(Settled { outcome, restored: Vec::new() }));
        Some(AwaitedCall { rest: CallRest::Awaited(pending), keeps_locks: false, sent_on: None })
    }

    fn call<'a>(&'a mut self, units: UnitBudget, awaited: Option<&'a mut Option<AwaitedCall>>) -> Call<'a> {
        Call {
            slots: &mut self.slots,
            constants: &[],
            shared: &self.shared,
            state: self.state.as_ref(),
            arguments: &self.arguments,
            out: None,
            environment: &self.environment,
            units,
            awaited,
        }
    }
}

/// Prefixes the message of an argument's failure with the name of the parameter.
#[cold]
pub(crate) fn named(parameter: &str, failure: Failure) -> Box<Failure> {
    Box::new(Failure::new(failure.kind, format!("argument `{parameter}`: {}", failure.message)))
}
