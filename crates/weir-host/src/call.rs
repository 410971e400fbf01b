//! One call of a host function: where its arguments lie, and how it answers.
//!
//! Arguments are not gathered: a call points into the slots of its frame, the constants of its program and the table of
//! shared values, so that a fused call moves only what the function takes by value.
//!
//! Protocol of an adaptor (what `#[weir::function]` writes), in this order, so that Rust's borrows agree:
//! 1. take by value all that is taken by value ([`Call::take`]); scalars are copied, and stay where they are;
//! 2. find what is passed by `&mut`: a shared value behind its lock, a single one in its slot, of several each taken out
//!    of its slot ([`Call::take_unique`]);
//! 3. borrow the rest ([`Call::borrow`], [`Call::shared`]);
//! 4. call the function; put back what step 2 took ([`Call::restore`]), also when the function failed or panicked;
//! 5. answer: where the call names a slot for that, the value may go straight there, and is then not moved through what
//!    the adaptor returns.
//!
//! What is passed by `&mut` must not also be another argument taken by `&` or `&mut`; the adaptor refuses it.
//!
//! An asynchronous call has to own what it waits with: it takes everything in steps 1 and 2, shared values as owned
//! guards, and gives back what step 2 took in [`Settled::restored`]. Where it panics, it settles with a fault, for the
//! same reason; the engine catches only the panics of calls that return at once.

use std::any::{Any, TypeId};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::{Failure, HostType, Outcome, Shared, Value};

/// Where one argument of a call lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Argument {
    /// In the frame's slot; `last` where nobody uses it afterwards, so that it may be moved out.
    Slot {
        /// The slot's index.
        index: u32,
        /// Whether this is the last use.
        last: bool,
    },
    /// Among the program's constants.
    Constant(u32),
    /// In the table of shared values.
    Shared(u32),
}

/// What a call that waited answers.
#[derive(Debug)]
pub struct Settled {
    /// The answer.
    pub outcome: Outcome,
    /// What was passed by `&mut` and is not shared, by the index of its argument: to be put back.
    pub restored: Vec<(usize, Value)>,
}

/// A call that waits. Dropping it gives the call up.
pub type Pending = Pin<Box<dyn Future<Output = Settled> + Send>>;

/// A call that holds its thread, ready to be run on one that may be held.
pub type BlockingJob = Box<dyn FnOnce() -> Settled + Send>;

/// The adaptor of a function that returns at once.
pub type ImmediateCode = dyn Fn(&mut Call<'_>) -> Outcome + Send + Sync;

/// The adaptor of a function that may wait: it takes what the call needs out of the frame.
pub type WaitingCode = dyn Fn(&mut Call<'_>) -> Result<Pending, Box<Failure>> + Send + Sync;

/// The adaptor of a function that holds its thread: it takes what the call needs out of the frame.
pub type BlockingCode = dyn Fn(&mut Call<'_>) -> Result<BlockingJob, Box<Failure>> + Send + Sync;

/// The body of a host function, behind its adaptor.
#[derive(Clone)]
pub enum Code {
    /// Returns at once.
    Immediate(Arc<ImmediateCode>),
    /// May wait; never holds its thread.
    Waiting(Arc<WaitingCode>),
    /// Holds its thread while it works.
    Blocking(Arc<BlockingCode>),
}

/// Values that the embedder gives to the functions of its libraries, one for each Rust type: the root of `files`, say.
#[derive(Clone, Default)]
pub struct Environment {
    /// A handful, so that looking through them is quicker than any hash.
    values: Vec<(TypeId, Arc<dyn Any + Send + Sync>)>,
    closing: Vec<Arc<dyn Closing>>,
}

/// A value of the environment that holds something back until the program is through: a buffer that is not written yet.
pub trait Closing: Any + Send + Sync {
    /// Brings everything to its place. Called when no flow is left; calls of functions may still come when another
    /// program uses the same environment.
    ///
    /// # Errors
    /// Fails where something is lost.
    fn close(&self) -> Result<(), Failure>;
}

impl Environment {
    /// Adds a value, in the place of an earlier one of its type.
    pub fn insert<T: Send + Sync + 'static>(&mut self, value: T) {
        self.put(Arc::new(value));
    }

    /// Adds a value that is closed when the program is through.
    pub fn insert_closing<T: Closing>(&mut self, value: T) {
        let value = Arc::new(value);
        self.put(Arc::clone(&value));
        self.closing.push(value);
    }

    fn put<T: Send + Sync + 'static>(&mut self, value: Arc<T>) {
        self.values.retain(|(ty, _)| *ty != TypeId::of::<T>());
        self.values.push((TypeId::of::<T>(), value));
    }

    /// Closes what is to be closed, all of it.
    ///
    /// # Errors
    /// Fails with the first failure.
    pub fn close(&self) -> Result<(), Failure> {
        let failures = self.closing.iter().filter_map(|closing| closing.close().err());
        failures.reduce(|first, _| first).map_or(Ok(()), Err)
    }

    /// The value of this type.
    #[must_use]
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let (_, value) = self.values.iter().find(|(ty, _)| *ty == TypeId::of::<T>())?;
        Arc::clone(value).downcast().ok()
    }
}

/// One call in the making.
pub struct Call<'a> {
    /// The slots of the frame.
    pub slots: &'a mut [Value],
    /// The program's constants.
    pub constants: &'a [Value],
    /// The program's shared values.
    pub shared: &'a [Shared],
    /// The private state of the call site.
    pub state: Option<&'a Shared>,
    /// Where the arguments lie.
    pub arguments: &'a [Argument],
    /// The slot into which a call that returns at once may put its answer by itself: not one of its arguments, and cleared.
    pub out: Option<u32>,
    /// What the embedder gave.
    pub environment: &'a Environment,
}

impl<'a> Call<'a> {
    /// The value of the argument, moved out where this is its last use, else cloned.
    #[inline]
    pub fn value(&mut self, index: usize) -> Value {
        match self.arguments[index] {
            Argument::Slot { index, last: true } => self.slots[index as usize].take(),
            Argument::Slot { index, last: false } => self.slots[index as usize].clone(),
            Argument::Constant(index) => self.constants[index as usize].clone(),
            Argument::Shared(index) => self.shared[index as usize].read().clone(),
        }
    }

    /// The argument as a Rust value.
    ///
    /// # Errors
    /// Fails where the value is outside the Rust type's range; the message names the parameter.
    #[inline]
    pub fn take<T: HostType>(&mut self, index: usize, parameter: &str) -> Result<T, Box<Failure>> {
        match T::copied(self.borrow(index)) {
            Some(value) => Ok(value),
            None => self.moved(index, parameter),
        }
    }

    /// The argument as a Rust value that is no scalar.
    #[inline(never)]
    fn moved<T: HostType>(&mut self, index: usize, parameter: &str) -> Result<T, Box<Failure>> {
        T::from_value(self.value(index)).map_err(|failure| named(parameter, failure))
    }

    /// Takes an argument that is passed by `&mut` out of its slot, to be put back by [`Call::restore`].
    #[inline]
    pub fn take_unique(&mut self, index: usize) -> Value {
        match self.arguments[index] {
            Argument::Slot { index, .. } => self.slots[index as usize].take(),
            _ => self.value(index),
        }
    }

    /// Puts back what [`Call::take_unique`] took, changed.
    #[inline]
    pub fn restore(&mut self, index: usize, value: Value) {
        if let Argument::Slot { index, .. } = self.arguments[index] {
            self.slots[index as usize] = value;
        }
    }

    /// The slot for the answer; `None` where the call names none.
    #[inline]
    pub(crate) fn room(&mut self) -> Option<&mut Value> {
        Some(&mut self.slots[self.out? as usize])
    }

    /// The argument in place. A shared value is not here but at [`Call::shared`].
    #[inline]
    #[must_use]
    pub fn borrow(&self, index: usize) -> &Value {
        match self.arguments[index] {
            Argument::Slot { index, .. } => &self.slots[index as usize],
            Argument::Constant(index) => &self.constants[index as usize],
            Argument::Shared(_) => &Value::Absent,
        }
    }

    /// The shared value that the argument names, where it names one.
    #[inline]
    #[must_use]
    pub fn shared(&self, index: usize) -> Option<&'a Shared> {
        match self.arguments[index] {
            Argument::Shared(index) => Some(&self.shared[index as usize]),
            _ => None,
        }
    }
}

/// The failure of one argument, with the parameter's name before its message.
#[cold]
pub(crate) fn named(parameter: &str, failure: Failure) -> Box<Failure> {
    Box::new(Failure::new(failure.kind, format!("argument `{parameter}`: {}", failure.message)))
}
