//! The steps of an adaptor: places, homes and loans of arguments.
//!
//! A *place* is where an argument taken by `&` is read, a *home* where one taken by `&mut` is changed, during a call
//! that returns at once. A *loan* is either for a call that waits: it owns what it lends. Locks are let go as these are
//! dropped, also when the function panics.

use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use crate::call::named;
use crate::{
    Borrowable, Call, Changing, Code, Failure, HostType, Job, Outcome, Pending, ReadGuard, Reading, Value, WriteGuard,
    Writing,
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

/// Where an argument is changed during a call that returns at once.
pub enum Home<'a> {
    /// Taken out of its slot for the call.
    Taken(Value),
    /// In a shared value.
    Shared(Writing<'a>),
}

impl Home<'_> {
    /// The value, to be changed.
    ///
    /// # Errors
    /// Never; [`Loan::value_mut`] may.
    #[inline]
    pub fn value_mut(&mut self) -> Result<&mut Value, Box<Failure>> {
        match self {
            Home::Taken(value) => Ok(value),
            Home::Shared(guard) => Ok(guard),
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

/// Runs the body with the arguments at `indices` to be changed, and puts them back: also where the body fails or
/// panics.
///
/// # Errors
/// Those of the body.
#[inline]
pub fn with_homes<const COUNT: usize>(
    call: &mut Call<'_>,
    indices: [usize; COUNT],
    body: impl FnOnce(&Call<'_>, &mut [Home<'_>; COUNT]) -> Result<Outcome, Box<Failure>>,
) -> Result<Outcome, Box<Failure>> {
    let mut homes = indices.map(|index| call.home(index));
    let ended = catch_unwind(AssertUnwindSafe(|| body(call, &mut homes)));
    for (index, home) in indices.into_iter().zip(homes) {
        if let Home::Taken(value) = home {
            call.restore(index, value);
        }
    }
    ended.unwrap_or_else(|panic| resume_unwind(panic))
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
pub fn distinct(call: &Call<'_>, changed: &[(usize, &str)], read: &[(usize, &str)]) -> Result<(), Box<Failure>> {
    let lies = |index: usize| match call.arguments[index] {
        crate::Argument::Slot { index, .. } => (0, index),
        crate::Argument::Constant(index) => (1, index),
        crate::Argument::Shared(index) => (2, index),
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
    call.environment.get::<T>().ok_or_else(|| {
        let name = std::any::type_name::<T>();
        Box::new(Failure::function(format!("this program was given no `{name}` to work with")))
    })
}
