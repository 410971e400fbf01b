//! Private state: the Rust value behind `self`, one for each call site.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::adaptor::borrow_argument;
use super::panic::panicked;
use crate::call::named;
use crate::{Borrowable, Call, Failure, FailureKind, HostType, HostValue, Outcome, Shared, Unique, Value};

/// The state of a call site, wrapped as a value so that a [`Shared`] can hold it; programs never see it.
struct CallSiteState<T>(T);

impl<T: Send + Sync + 'static> HostValue for CallSiteState<T> {
    fn type_name(&self) -> &'static str {
        std::any::type_name::<T>()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }

    fn into_any_box(self: Box<Self>) -> Box<dyn Any + Send + Sync> {
        self
    }
}

/// Takes an argument of the state's constructor by value.
///
/// # Errors
/// Fails if its conversion does; the message names the parameter.
pub fn constructor_argument<T: HostType>(
    arguments: &[Value],
    index: usize,
    parameter: &str,
) -> Result<T, Box<Failure>> {
    T::from_value(arguments.get(index).cloned().unwrap_or(Value::Absent)).map_err(|failure| named(parameter, failure))
}

/// Borrows an argument of the state's constructor.
///
/// # Errors
/// Fails if its conversion does; the message names the parameter.
pub fn constructor_argument_ref<'a, T: Borrowable + ?Sized>(
    arguments: &'a [Value],
    index: usize,
    parameter: &str,
) -> Result<T::Ref<'a>, Box<Failure>> {
    borrow_argument::<T>(arguments.get(index).unwrap_or(&Value::Absent), parameter)
}

/// Makes the state of a new call site. A panic of the constructor becomes a failure.
///
/// # Errors
/// Fails if `make` does.
pub fn make_state<T: Send + Sync + 'static>(
    make: impl FnOnce() -> Result<T, Box<Failure>>,
) -> Result<Value, Box<Failure>> {
    let made = catch_unwind(AssertUnwindSafe(make)).unwrap_or_else(|panic| Err(panicked(&*panic)));
    made.map(|state| Value::Unique(Unique::new(Box::new(CallSiteState(state)))))
}

/// Converts the outcome of a constructor that failed into its failure.
#[must_use]
pub fn constructor_failure(outcome: Outcome) -> Box<Failure> {
    match outcome.returned() {
        Err(failure) | Ok(Err(Value::Failure(failure))) => failure,
        Ok(Err(error) | Ok(error)) => Box::new(Failure::function(error.to_string())),
    }
}

/// Borrows the state for `&self`.
///
/// # Errors
/// Fails if the engine passed the state of another function.
#[inline]
pub fn state_ref<T: 'static>(state: &Value) -> Result<&T, Box<Failure>> {
    let Value::Unique(unique) = state else { return Err(wrong_state::<T>()) };
    let state = unique.get().and_then(|value| value.as_any().downcast_ref::<CallSiteState<T>>());
    state.map(|state| &state.0).ok_or_else(wrong_state::<T>)
}

/// Borrows the state for `&mut self`.
///
/// # Errors
/// Fails if the engine passed the state of another function.
#[inline]
pub fn state_mut<T: 'static>(state: &mut Value) -> Result<&mut T, Box<Failure>> {
    let Value::Unique(unique) = state else { return Err(wrong_state::<T>()) };
    let state = unique.get_mut().and_then(|value| value.as_any_mut().downcast_mut::<CallSiteState<T>>());
    state.map(|state| &mut state.0).ok_or_else(wrong_state::<T>)
}

impl<'a> Call<'a> {
    /// Returns the state of the call site.
    ///
    /// # Errors
    /// Fails if the engine passed none to a stateful function.
    #[inline]
    pub fn site_state(&self) -> Result<&'a Shared, Box<Failure>> {
        self.state.ok_or_else(|| Box::new(Failure::new(FailureKind::Function, "the call site has no state")))
    }
}

#[cold]
fn wrong_state<T>() -> Box<Failure> {
    let name = std::any::type_name::<T>();
    Box::new(Failure::new(FailureKind::Function, format!("the state of the call site is not a `{name}`")))
}
