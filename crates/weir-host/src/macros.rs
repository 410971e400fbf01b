//! What the attributes expand to; not for use by hand.

pub use crate::call::{Call, Code, Environment, Job, Outcome, Pending, Settled};
