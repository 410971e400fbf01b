//! The steps of an adaptor: places, homes and loans of arguments.
//!
//! A *place* is where an argument taken by `&` is read, a *home* where one taken by `&mut` is changed, during a call
//! that returns at once. A *loan* is either for a call that waits: it owns what it lends. Locks are let go as these are
//! dropped, also when the function panics.

use std::ops::Deref;
use std::sync::Arc;

use crate::call::named;
use crate::{
    Argument, BlockingJob, Borrowable, BorrowedArgumentMut, Call, Code, Environment, Failure, HostType, Outcome,
    Pending, ReadGuard, Reading, Shared, Value, WriteGuard, Writing,
};

/// The code of a function that returns at once.
pub fn immediate(body: impl Fn(&mut Call<'_>) -> Result<Outcome, Box<Failure>> + Send + Sync + 'static) -> Code {
    Code::Immediate(Arc::new(move |call| body(call).unwrap_or_else(Outcome::Fault)))
}

/// The code of a function that may wait.
pub fn waiting(body: impl Fn(&mut Call<'_>) -> Result<Pending, Box<Failure>> + Send + Sync + 'static) -> Code {
    Code::Waiting(Arc::new(body))
}

/// The code of a function that holds its thread.
pub fn blocking(body: impl Fn(&mut Call<'_>) -> Result<BlockingJob, Box<Failure>> + Send + Sync + 'static) -> Code {
    Code::Blocking(Arc::new(body))
}

/// Where an argument is read during a call that returns at once.
pub enum ReadBorrow<'a> {
    /// In a slot or among the constants.
    Value(&'a Value),
    /// In a shared value.
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

/// Where one of several arguments is changed during a call that returns at once.
enum MutSlot<'a> {
    /// Taken out of its slot for the call, so that the slots can be read.
    Taken(Value),
    /// In a shared value.
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
    /// Where the argument is read.
    #[inline]
    #[must_use]
    pub fn borrow_read(&self, index: usize) -> ReadBorrow<'_> {
        match self.shared(index) {
            Some(shared) => ReadBorrow::Shared(shared.read()),
            None => ReadBorrow::Value(self.borrow(index)),
        }
    }

    #[inline]
    fn mut_slot(&mut self, index: usize) -> MutSlot<'a> {
        match self.shared(index) {
            Some(shared) => MutSlot::Shared(shared.write()),
            None => MutSlot::Taken(self.take_unique(index)),
        }
    }

    /// Lends the argument to a call that waits and takes it by `&`.
    #[must_use]
    pub fn borrow_owned(&mut self, index: usize) -> OwnedBorrow {
        match self.shared(index) {
            Some(shared) => OwnedBorrow::Read(shared.read_owned()),
            // What cannot be cloned is taken out and comes back when the call has settled.
            None if matches!(self.borrow(index), Value::Unique(_)) => OwnedBorrow::Slot(index, self.take_unique(index)),
            None => OwnedBorrow::Value(self.value(index)),
        }
    }

    /// Lends the argument to a call that waits and takes it by `&mut`.
    #[must_use]
    pub fn borrow_owned_mut(&mut self, index: usize) -> OwnedBorrow {
        match self.shared(index) {
            Some(shared) => OwnedBorrow::Write(shared.write_owned()),
            None => OwnedBorrow::Slot(index, self.take_unique(index)),
        }
    }
}

/// Runs the body with the argument at `index` to be changed where it lies, and all others to be read.
///
/// # Errors
/// Those of the body.
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

/// The arguments of a call beside the one that is changed.
pub struct OtherArguments<'a> {
    before: &'a [Value],
    /// The slots after the home.
    after: &'a [Value],
    constants: &'a [Value],
    shared: &'a [Shared],
    arguments: &'a [Argument],
}

impl<'a> OtherArguments<'a> {
    /// Where the argument is read.
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
            // The home itself is no other argument: `distinct` has seen to it.
            None => self.before.get(index).unwrap_or(&Value::Absent),
        }
    }
}

/// The homes of a call, which are put back as this is dropped: also where the function panics.
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

/// Runs the body with several arguments to be changed, and puts them back: also where the body fails or panics.
///
/// # Errors
/// Those of the body.
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
    /// The value itself, which goes back to the argument of this index.
    Slot(usize, Value),
    /// A shared value that is read.
    Read(ReadGuard),
    /// A shared value that is changed.
    Write(WriteGuard),
}

impl OwnedBorrow {
    /// The value, to be changed.
    ///
    /// # Errors
    /// Fails where the loan was made by [`Call::lend`] of a shared value.
    pub fn value_mut(&mut self) -> Result<&mut Value, Box<Failure>> {
        match self {
            OwnedBorrow::Value(value) | OwnedBorrow::Slot(_, value) => Ok(value),
            OwnedBorrow::Write(guard) => Ok(guard),
            OwnedBorrow::Read(_) => Err(Box::new(Failure::argument("was lent to be read, not to be changed"))),
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

/// What is to be put back, by the index of its argument; all locks are let go.
pub fn restored<const COUNT: usize>(loans: [OwnedBorrow; COUNT]) -> Vec<(usize, Value)> {
    let slot = |loan| if let OwnedBorrow::Slot(index, value) = loan { Some((index, value)) } else { None };
    loans.into_iter().filter_map(slot).collect()
}

/// Borrows an argument.
///
/// # Errors
/// Fails where its conversion does; the message names the parameter.
#[inline]
pub fn borrow_argument<'a, T: Borrowable + ?Sized>(
    value: &'a Value,
    parameter: &str,
) -> Result<T::Ref<'a>, Box<Failure>> {
    T::borrow_from(value).map_err(|failure| named(parameter, failure))
}

/// Borrows an argument to be changed.
///
/// # Errors
/// Fails where its conversion does; the message names the parameter.
#[inline]
pub fn borrow_argument_mut<'a, T: HostType>(
    slot: &'a mut Value,
    parameter: &str,
) -> Result<BorrowedArgumentMut<'a, T>, Box<Failure>> {
    BorrowedArgumentMut::new(slot).map_err(|failure| named(parameter, failure))
}

/// Checks that no argument that is changed is also given as another one: Rust promises the function as much.
///
/// # Errors
/// Fails with both parameters' names.
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
                let message = format!("`{name}` is changed and must not be `{other_name}` at the same time");
                return Err(Box::new(Failure::argument(message)));
            }
        }
    }
    Ok(())
}

/// What the embedder gave for this type.
///
/// # Errors
/// Fails where it gave nothing.
pub fn environment<T: Send + Sync + 'static>(call: &Call<'_>) -> Result<Arc<T>, Box<Failure>> {
    environment_of(call.environment)
}

/// What this environment has for the type.
///
/// # Errors
/// Fails where it has nothing.
pub fn environment_of<T: Send + Sync + 'static>(environment: &Environment) -> Result<Arc<T>, Box<Failure>> {
    environment.get::<T>().ok_or_else(|| {
        let name = std::any::type_name::<T>();
        Box::new(Failure::function(format!("this program was given no `{name}` to work with")))
    })
}
