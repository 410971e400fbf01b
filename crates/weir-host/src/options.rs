//! Parameters that several host functions share.

use crate::macros::FunctionBuilder;
use crate::{Call, Failure};

/// A struct whose fields are parameters of host functions, each by value and with its own default.
/// `#[derive(weir::Options)]` implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not describe parameters",
    label = "`#[options]` takes a struct with `#[derive(weir::Options)]`"
)]
pub trait Options: Sized {
    /// Adds the parameters to those of a function.
    fn describe(builder: FunctionBuilder) -> FunctionBuilder;

    /// Takes the values from a call; `first` is the index of the first one among the call's arguments.
    ///
    /// # Errors
    /// Fails if a value is outside the range of its Rust type; the message names the parameter.
    fn take(call: &mut Call<'_>, first: usize) -> Result<Self, Box<Failure>>;
}
