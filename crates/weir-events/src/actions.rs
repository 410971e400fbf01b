//! Implicit threads: where post-consumption actions run (§4, "an implicit thread of control").
//!
//! An action may wait as long as it likes, so each gets a thread of its own; threads are kept for a moment and used
//! again. They are made when the first action runs, not before.

mod threads;

mod post_consumption;

pub(crate) use post_consumption::{ActionContext, PostConsumption};
pub(crate) use threads::run;
pub use threads::{ACTION_THREADS_MAX, action_panics, action_threads};
