//! Support code for the expansions of the attributes; not for use by hand.
//!
//! The adaptors that `#[weir::function]` generates are short: they call the steps of the protocol described in
//! [`crate::Call`]'s file, which are implemented here.

mod adaptor;
mod answer;
mod definition;
mod function_builder;
mod opaque;
mod panic;
mod state;

pub use adaptor::{
    OwnedBorrow, ReadBorrow, blocking, borrow_argument, borrow_argument_mut, distinct, environment, environment_owned,
    immediate, restored, waiting, with_mut_slot, with_mut_slots, word_argument,
};
pub use answer::{ErrorTag, FailsDisplayed, FailsTyped, FailsWithError, Fallible, answer, answer_to, answer_word};
pub use definition::{define, field, mismatched, variant, with_function};
pub use function_builder::{FunctionBuilder, FunctionOptions};
pub use opaque::{
    shared_from_value, shared_in_place, shared_in_place_mut, unique_from_value, unique_in_place, unique_in_place_mut,
};
pub use panic::{catch_panic, catch_panic_async};
pub use state::{
    constructor_argument, constructor_argument_ref, constructor_failure, make_state, state_mut, state_ref,
};

pub use crate::Outcome;
pub use crate::batch::{BatchCalls, PendingBatch, batch, common_argument};
pub use crate::call::{BlockingJob, Call, Environment, FunctionCode, Pending, Settled, WordCode};
pub use crate::convert::{Borrowable, BorrowedArgumentMut, HostType, Parts};
