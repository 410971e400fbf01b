//! What the attributes expand to; not for use by hand.
//!
//! The adaptors that `#[weir::function]` writes are short: they name the steps of the protocol in [`crate::Call`]'s
//! file, and the steps are here.

mod adaptor;
mod answer;
mod definition;
mod describe;
mod opaque;
mod panic;
mod state;

pub use adaptor::{
    Loan, Place, blocking, change, distinct, environment, environment_of, hold, immediate, restored, waiting,
    with_home, with_homes,
};
pub use answer::{FailsDisplayed, FailsTyped, FailsWithError, Fallible, Tag, answer, answer_to};
pub use definition::{define, field, mismatched, variant, with_function};
pub use describe::Described;
pub use opaque::{
    shared_from_value, shared_in_place, shared_in_place_mut, unique_from_value, unique_in_place, unique_in_place_mut,
};
pub use panic::{caught, caught_later};
pub use state::{make_state, start, start_from, state_mut, state_ref, unmade};

pub use crate::Outcome;
pub use crate::batch::{Calls, PendingBatch, batch};
pub use crate::call::{Call, Code, Environment, Job, Pending, Settled};
pub use crate::convert::{Borrowable, Changing, HostType, Parts};
