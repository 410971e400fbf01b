//! Steps of an adaptor: borrowing the arguments of a call.
//!
//! During a call that returns immediately, a [`ReadBorrow`] gives access to an argument taken by `&`, and a `MutSlot`
//! to one taken by `&mut`. A call that waits owns an [`OwnedBorrow`] for either. Dropping them releases locks, also
//! when the function panics.

use std::ops::Deref;
use std::sync::Arc;

use crate::call::named;
use crate::{
    Argument, BlockingJob, Borrowable, BorrowedArgumentMut, Call, Environment, Failure, FunctionCode, HostType,
    Outcome, Pending, ReadGuard, Reading, Shared, Value, WriteGuard, Writing,
};

/// Wraps the code of a function that returns immediately.
pub fn immediate(
    body: impl Fn(&mut Call<'_>) -> Result<Outcome, Box<Failure>> + Send + Sync + 'static,
) -> FunctionCode {
    FunctionCode::Immediate(Arc::new(move |call| body(call).unwrap_or_else(Outcome::Fault)))
}

/// Wraps the code of a function that may wait.
pub fn waiting(body: impl Fn(&mut Call<'_>) -> Result<Pending, Outcome> + Send + Sync + 'static) -> FunctionCode {
    FunctionCode::Waiting(Arc::new(body))
}

/// Wraps the code of a function that blocks its thread.
pub fn blocking(
    body: impl Fn(&mut Call<'_>) -> Result<BlockingJob, Box<Failure>> + Send + Sync + 'static,
) -> FunctionCode {
    FunctionCode::Blocking(Arc::new(body))
}

/// An argument borrowed for reading by a call that returns immediately.
pub enum ReadBorrow<'a> {
    /// In a slot or among the constants.
    Value(&'a Value),
    /// In a shared value, which is locked for reading.
    Shared(Reading<'a>),
}

impl Deref for ReadBorrow<'_> {
    type Target = Value;

    #[inline]
    fn deref(&self) -> &Value {
        match self {
            ReadBorrow::Value(value) => value,
            ReadBorrow::Shared(guard) => guard,
        }
    }
}

/// One of several arguments borrowed for writing by a call that returns immediately.
enum MutSlot<'a> {
    /// Taken out of its slot during the call, so that the other slots can be read.
    Taken(Value),
    /// In a shared value, which is locked for writing.
    Shared(Writing<'a>),
}

impl MutSlot<'_> {
    #[inline]
    fn value_mut(&mut self) -> &mut Value {
        match self {
            MutSlot::Taken(value) => value,
            MutSlot::Shared(guard) => guard,
        }
    }
}

impl<'a> Call<'a> {
    /// Borrows an argument for reading.
    #[inline]
    #[must_use]
    pub fn borrow_read(&self, index: usize) -> ReadBorrow<'_> {
        match self.shared(index) {
            Some(shared) => ReadBorrow::Shared(shared.read()),
            None => ReadBorrow::Value(self.borrow(index)),
        }
    }

    /// Locks an argument for reading, if it is a shared value.
    #[inline]
    #[must_use]
    pub fn lock_read(&self, index: usize) -> Option<Reading<'a>> {
        self.shared(index).map(Shared::read)
    }

    /// Borrows an argument for reading, which is locked if it is a shared value.
    #[inline]
    #[must_use]
    pub fn borrow_locked<'b>(&'b self, index: usize, locked: &'b Option<Reading<'a>>) -> &'b Value {
        locked.as_deref().unwrap_or_else(|| self.borrow(index))
    }

    #[inline]
    fn mut_slot(&mut self, index: usize) -> MutSlot<'a> {
        match self.shared(index) {
            Some(shared) => MutSlot::Shared(shared.write()),
            None => MutSlot::Taken(self.take_unique(index)),
        }
    }

    /// Borrows an argument that a call that waits takes by `&`.
    #[must_use]
    pub fn borrow_owned(&mut self, index: usize) -> OwnedBorrow {
        match self.shared(index) {
            Some(shared) => OwnedBorrow::Read(shared.read_owned()),
            // A value that cannot be cloned is moved out, and returned when the call has settled.
            None if matches!(self.borrow(index), Value::Unique(_)) => OwnedBorrow::Slot(index, self.take_unique(index)),
            None => OwnedBorrow::Value(self.value(index)),
        }
    }

    /// Borrows an argument that a call that waits takes by `&mut`.
    #[must_use]
    pub fn borrow_owned_mut(&mut self, index: usize) -> OwnedBorrow {
        match self.shared(index) {
            Some(shared) => OwnedBorrow::Write(shared.write_owned()),
            None => OwnedBorrow::Slot(index, self.take_unique(index)),
        }
    }
}

/// Runs the body with the argument at `index` mutable in place, and all others readable.
///
/// # Errors
/// Fails if the body does.
#[inline]
pub fn with_mut_slot<R>(
    call: &mut Call<'_>,
    index: usize,
    body: impl FnOnce(&OtherArguments<'_>, &mut Value) -> Result<R, Box<Failure>>,
) -> Result<R, Box<Failure>> {
    let (constants, shared, arguments) = (call.constants, call.shared, call.arguments);
    let others = |before, after| OtherArguments { before, after, constants, shared, arguments };
    match arguments[index] {
        Argument::Slot { index, .. } => {
            let (before, rest) = call.slots.split_at_mut(index as usize);
            let (slot, after) = rest.split_first_mut().ok_or_else(no_slot)?;
            body(&others(before, after), slot)
        }
        Argument::Shared(index) => body(&others(call.slots, &[]), &mut shared[index as usize].write()),
        Argument::Constant(index) => body(&others(call.slots, &[]), &mut constants[index as usize].clone()),
    }
}

#[cold]
fn no_slot() -> Box<Failure> {
    Box::new(Failure::argument("lies outside the frame"))
}

/// The arguments of a call other than the one that is mutable.
pub struct OtherArguments<'a> {
    before: &'a [Value],
    /// The slots after the mutable one.
    after: &'a [Value],
    constants: &'a [Value],
    shared: &'a [Shared],
    arguments: &'a [Argument],
}

impl<'a> OtherArguments<'a> {
    /// Borrows an argument for reading.
    #[inline]
    #[must_use]
    pub fn borrow_read(&self, index: usize) -> ReadBorrow<'a> {
        match self.arguments[index] {
            Argument::Slot { index, .. } => ReadBorrow::Value(self.slot(index as usize)),
            Argument::Constant(index) => ReadBorrow::Value(&self.constants[index as usize]),
            Argument::Shared(index) => ReadBorrow::Shared(self.shared[index as usize].read()),
        }
    }

    #[inline]
    fn slot(&self, index: usize) -> &'a Value {
        match index.checked_sub(self.before.len() + 1) {
            Some(after) => &self.after[after],
            // The mutable slot is no other argument; `distinct` has checked that.
            None => self.before.get(index).unwrap_or(&Value::Absent),
        }
    }
}

/// The mutable slots of a call; dropping them puts the values back, also when the function panics.
struct MutSlots<'c, 'a, const COUNT: usize> {
    call: &'c mut Call<'a>,
    indices: [usize; COUNT],
    slots: [MutSlot<'a>; COUNT],
}

impl<const COUNT: usize> Drop for MutSlots<'_, '_, COUNT> {
    fn drop(&mut self) {
        for (index, slot) in self.indices.into_iter().zip(&mut self.slots) {
            if let MutSlot::Taken(value) = slot {
                self.call.restore(index, value.take());
            }
        }
    }
}

/// Runs the body with several mutable arguments, and puts them back even if the body fails or panics.
///
/// # Errors
/// Fails if the body does.
#[inline]
pub fn with_mut_slots<const COUNT: usize>(
    call: &mut Call<'_>,
    indices: [usize; COUNT],
    body: impl FnOnce(&Call<'_>, [&mut Value; COUNT]) -> Result<Outcome, Box<Failure>>,
) -> Result<Outcome, Box<Failure>> {
    let slots = indices.map(|index| call.mut_slot(index));
    let mut held = MutSlots { call, indices, slots };
    let MutSlots { call, slots, .. } = &mut held;
    body(call, slots.each_mut().map(MutSlot::value_mut))
}

/// An argument that a call owns while it waits.
pub enum OwnedBorrow {
    /// A clone, or the value itself at its last use.
    Value(Value),
    /// The value itself, to be returned to the argument with this index.
    Slot(usize, Value),
    /// A shared value, locked for reading.
    Read(ReadGuard),
    /// A shared value, locked for writing.
    Write(WriteGuard),
}

impl OwnedBorrow {
    /// Returns the value mutably.
    ///
    /// # Errors
    /// Fails if a shared value was borrowed by [`Call::borrow_owned`].
    pub fn value_mut(&mut self) -> Result<&mut Value, Box<Failure>> {
        match self {
            OwnedBorrow::Value(value) | OwnedBorrow::Slot(_, value) => Ok(value),
            OwnedBorrow::Write(guard) => Ok(guard),
            OwnedBorrow::Read(_) => Err(Box::new(Failure::argument("was borrowed for reading, not for writing"))),
        }
    }
}

impl Deref for OwnedBorrow {
    type Target = Value;

    fn deref(&self) -> &Value {
        match self {
            OwnedBorrow::Value(value) | OwnedBorrow::Slot(_, value) => value,
            OwnedBorrow::Read(guard) => guard,
            OwnedBorrow::Write(guard) => guard,
        }
    }
}

/// Returns the values to be put back, with the index of their argument, and releases all locks.
pub fn restored<const COUNT: usize>(loans: [OwnedBorrow; COUNT]) -> Vec<(usize, Value)> {
    let slot = |loan| if let OwnedBorrow::Slot(index, value) = loan { Some((index, value)) } else { None };
    loans.into_iter().filter_map(slot).collect()
}

/// Borrows an argument.
///
/// # Errors
/// Fails if its conversion does; the message names the parameter.
#[inline]
pub fn borrow_argument<'a, T: Borrowable + ?Sized>(
    value: &'a Value,
    parameter: &str,
) -> Result<T::Ref<'a>, Box<Failure>> {
    T::borrow_from(value).map_err(|failure| named(parameter, failure))
}

/// Takes an argument of a typed entry point.
///
/// # Errors
/// Fails if its conversion does; the message names the parameter.
#[inline]
pub fn word_argument<T: HostType>(words: &[u64], index: usize, parameter: &str) -> Result<T, Box<Failure>> {
    T::from_word(words[index]).map_err(|failure| named(parameter, failure))
}

/// Borrows an argument mutably.
///
/// # Errors
/// Fails if its conversion does; the message names the parameter.
#[inline]
pub fn borrow_argument_mut<'a, T: HostType>(
    slot: &'a mut Value,
    parameter: &str,
) -> Result<BorrowedArgumentMut<'a, T>, Box<Failure>> {
    BorrowedArgumentMut::new(slot).map_err(|failure| named(parameter, failure))
}

/// Checks that no mutable argument is also passed as another argument, which Rust's borrow rules forbid.
///
/// # Errors
/// Fails with the names of both parameters.
#[inline]
pub fn distinct(call: &Call<'_>, changed: &[(usize, &str)], read: &[(usize, &str)]) -> Result<(), Box<Failure>> {
    let lies = |index: usize| match call.arguments[index] {
        Argument::Slot { index, .. } => (0, index),
        Argument::Constant(index) => (1, index),
        Argument::Shared(index) => (2, index),
    };
    for (position, (index, name)) in changed.iter().enumerate() {
        for (other, other_name) in changed[position + 1..].iter().chain(read) {
            if lies(*index) == lies(*other) {
                let message =
                    format!("`{name}` is changed by the call and must not be passed as `{other_name}` as well");
                return Err(Box::new(Failure::argument(message)));
            }
        }
    }
    Ok(())
}

/// Returns the value of this type from the environment.
///
/// # Errors
/// Fails if there is none.
pub fn environment<T: Send + Sync + 'static>(environment: &Environment) -> Result<&T, Box<Failure>> {
    environment.find::<T>().ok_or_else(not_provided::<T>)
}

/// Returns the value of this type from the environment, for a call that does not end at once.
///
/// # Errors
/// Fails if there is none.
pub fn environment_owned<T: Send + Sync + 'static>(environment: &Environment) -> Result<Arc<T>, Box<Failure>> {
    environment.get::<T>().ok_or_else(not_provided::<T>)
}

#[cold]
fn not_provided<T>() -> Box<Failure> {
    let name = std::any::type_name::<T>();
    Box::new(Failure::function(format!("the environment of this program has no `{name}`")))
}
