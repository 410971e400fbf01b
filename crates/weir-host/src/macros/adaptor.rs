//! The steps of an adaptor: places, homes and loans of arguments.
//!
//! A *place* is where an argument taken by `&` is read, a *home* where one taken by `&mut` is changed, during a call
//! that returns at once. A *loan* is either for a call that waits: it owns what it lends. Locks are let go as these are
//! dropped, also when the function panics.

use std::ops::Deref;
use std::sync::Arc;

use crate::call::named;
use crate::{
    Argument, Borrowable, Call, Changing, Code, Environment, Failure, HostType, Job, Outcome, Pending, ReadGuard,
    Reading, Shared, Value, WriteGuard, Writing,
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
pub fn blocking(body: impl Fn(&mut Call<'_>) -> Result<Job, Box<Failure>> + Send + Sync + 'static) -> Code {
    Code::Blocking(Arc::new(body))
}

/// Where an argument is read during a call that returns at once.
pub enum Place<'a> {
    /// In a slot or among the constants.
    Value(&'a Value),
    /// In a shared value.
    Shared(Reading<'a>),
}

impl Deref for Place<'_> {
    type Target = Value;

    #[inline]
    fn deref(&self) -> &Value {
        match self {
            Place::Value(value) => value,
            Place::Shared(guard) => guard,
        }
    }
}

/// Where one of several arguments is changed during a call that returns at once.
enum Home<'a> {
    /// Taken out of its slot for the call, so that the slots can be read.
    Taken(Value),
    /// In a shared value.
    Shared(Writing<'a>),
}

impl Home<'_> {
    #[inline]
    fn value_mut(&mut self) -> &mut Value {
        match self {
            Home::Taken(value) => value,
            Home::Shared(guard) => guard,
        }
    }
}

impl<'a> Call<'a> {
    /// Where the argument is read.
    #[inline]
    #[must_use]
    pub fn place(&self, index: usize) -> Place<'_> {
        match self.shared(index) {
            Some(shared) => Place::Shared(shared.read()),
            None => Place::Value(self.borrow(index)),
        }
    }

    #[inline]
    fn home(&mut self, index: usize) -> Home<'a> {
        match self.shared(index) {
            Some(shared) => Home::Shared(shared.write()),
            None => Home::Taken(self.take_unique(index)),
        }
    }

    /// Lends the argument to a call that waits and takes it by `&`.
    #[must_use]
    pub fn lend(&mut self, index: usize) -> Loan {
        match self.shared(index) {
            Some(shared) => Loan::Read(shared.read_owned()),
            // What cannot be cloned is taken out and comes back when the call has settled.
            None if matches!(self.borrow(index), Value::Unique(_)) => Loan::Home(index, self.take_unique(index)),
            None => Loan::Value(self.value(index)),
        }
    }

    /// Lends the argument to a call that waits and takes it by `&mut`.
    #[must_use]
    pub fn lend_mut(&mut self, index: usize) -> Loan {
        match self.shared(index) {
            Some(shared) => Loan::Write(shared.write_owned()),
            None => Loan::Home(index, self.take_unique(index)),
        }
    }
}

/// Runs the body with the argument at `index` to be changed where it lies, and all others to be read.
///
/// # Errors
/// Those of the body.
#[inline]
pub fn with_home<R>(
    call: &mut Call<'_>,
    index: usize,
    body: impl FnOnce(&Others<'_>, &mut Value) -> Result<R, Box<Failure>>,
) -> Result<R, Box<Failure>> {
    let (constants, shared, arguments) = (call.constants, call.shared, call.arguments);
    let others = |before, after| Others { before, after, constants, shared, arguments };
    match arguments[index] {
        Argument::Slot { index, .. } => {
            let (before, rest) = call.slots.split_at_mut(index as usize);
            let (home, after) = rest.split_first_mut().ok_or_else(no_slot)?;
            body(&others(before, after), home)
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
pub struct Others<'a> {
    before: &'a [Value],
    /// The slots after the home.
    after: &'a [Value],
    constants: &'a [Value],
    shared: &'a [Shared],
    arguments: &'a [Argument],
}

impl<'a> Others<'a> {
    /// Where the argument is read.
    #[inline]
    #[must_use]
    pub fn place(&self, index: usize) -> Place<'a> {
        match self.arguments[index] {
            Argument::Slot { index, .. } => Place::Value(self.slot(index as usize)),
            Argument::Constant(index) => Place::Value(&self.constants[index as usize]),
            Argument::Shared(index) => Place::Shared(self.shared[index as usize].read()),
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
struct Homes<'c, 'a, const COUNT: usize> {
    call: &'c mut Call<'a>,
    indices: [usize; COUNT],
    homes: [Home<'a>; COUNT],
}

impl<const COUNT: usize> Drop for Homes<'_, '_, COUNT> {
    fn drop(&mut self) {
        for (index, home) in self.indices.into_iter().zip(&mut self.homes) {
            if let Home::Taken(value) = home {
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
pub fn with_homes<const COUNT: usize>(
    call: &mut Call<'_>,
    indices: [usize; COUNT],
    body: impl FnOnce(&Call<'_>, [&mut Value; COUNT]) -> Result<Outcome, Box<Failure>>,
) -> Result<Outcome, Box<Failure>> {
    let homes = indices.map(|index| call.home(index));
    let mut held = Homes { call, indices, homes };
    let Homes { call, homes, .. } = &mut held;
    body(call, homes.each_mut().map(Home::value_mut))
}

/// An argument that a call owns while it waits.
pub enum Loan {
    /// A clone, or the value itself at its last use.
    Value(Value),
    /// The value itself, which goes back to the argument of this index.
    Home(usize, Value),
    /// A shared value that is read.
    Read(ReadGuard),
    /// A shared value that is changed.
    Write(WriteGuard),
}

impl Loan {
    /// The value, to be changed.
    ///
    /// # Errors
    /// Fails where the loan was made by [`Call::lend`] of a shared value.
    pub fn value_mut(&mut self) -> Result<&mut Value, Box<Failure>> {
        match self {
            Loan::Value(value) | Loan::Home(_, value) => Ok(value),
            Loan::Write(guard) => Ok(guard),
            Loan::Read(_) => Err(Box::new(Failure::argument("was lent to be read, not to be changed"))),
        }
    }
}

impl Deref for Loan {
    type Target = Value;

    fn deref(&self) -> &Value {
        match self {
            Loan::Value(value) | Loan::Home(_, value) => value,
            Loan::Read(guard) => guard,
            Loan::Write(guard) => guard,
        }
    }
}

/// What is to be put back, by the index of its argument; all locks are let go.
pub fn restored<const COUNT: usize>(loans: [Loan; COUNT]) -> Vec<(usize, Value)> {
    let home = |loan| if let Loan::Home(index, value) = loan { Some((index, value)) } else { None };
    loans.into_iter().filter_map(home).collect()
}

/// Borrows an argument.
///
/// # Errors
/// Fails where its conversion does; the message names the parameter.
#[inline]
pub fn hold<'a, T: Borrowable + ?Sized>(value: &'a Value, parameter: &str) -> Result<T::Held<'a>, Box<Failure>> {
    T::hold(value).map_err(|failure| named(parameter, failure))
}

/// Borrows an argument to be changed.
///
/// # Errors
/// Fails where its conversion does; the message names the parameter.
#[inline]
pub fn change<'a, T: HostType>(home: &'a mut Value, parameter: &str) -> Result<Changing<'a, T>, Box<Failure>> {
    Changing::new(home).map_err(|failure| named(parameter, failure))
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
