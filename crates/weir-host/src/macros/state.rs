//! State: the Rust value behind `self`, one for each call site.

use std::any::Any;
use std::sync::Arc;

use crate::{Call, Failure, FailureKind, HostValue, Shared, Unique, Value};

/// Holds the state of a call site. It is a value only to lie behind a [`Shared`]; no program sees it.
struct State<T>(T);

impl<T: Send + Sync + 'static> HostValue for State<T> {
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

/// The state of a new call site.
#[must_use]
pub fn make_state<T: Send + Sync + 'static>(state: T) -> Value {
    Value::Unique(Unique::new(Box::new(State(state))))
}

/// The state behind `&self`.
///
/// # Errors
/// Fails where the engine gave the state of another function.
#[inline]
pub fn state_ref<T: 'static>(state: &Value) -> Result<&T, Box<Failure>> {
    let Value::Unique(unique) = state else { return Err(foreign::<T>()) };
    let state = unique.get().and_then(|value| value.as_any().downcast_ref::<State<T>>());
    state.map(|state| &state.0).ok_or_else(foreign::<T>)
}

/// The state behind `&mut self`.
///
/// # Errors
/// Fails where the engine gave the state of another function.
#[inline]
pub fn state_mut<T: 'static>(state: &mut Value) -> Result<&mut T, Box<Failure>> {
    let Value::Unique(unique) = state else { return Err(foreign::<T>()) };
    let state = unique.get_mut().and_then(|value| value.as_any_mut().downcast_mut::<State<T>>());
    state.map(|state| &mut state.0).ok_or_else(foreign::<T>)
}

impl<'a> Call<'a> {
    /// The state of the call site.
    ///
    /// # Errors
    /// Fails where the engine gave none to a stateful function.
    #[inline]
    pub fn site_state(&self) -> Result<&'a Shared, Box<Failure>> {
        self.state.ok_or_else(|| Box::new(Failure::new(FailureKind::Function, "the call site has no state")))
    }
}

#[cold]
fn foreign<T>() -> Box<Failure> {
    let name = std::any::type_name::<T>();
    Box::new(Failure::new(FailureKind::Function, format!("the state of the call site is not a `{name}`")))
}
