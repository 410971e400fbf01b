//! Implicit threads, which run post-consumption actions (§4, "an implicit thread of control").
//!
//! An action may block for as long as it likes, so each runs on a thread of its own. The first action starts the first
//! thread; an idle thread stays for a moment, ready for the next action.

mod threads;

mod post_consumption;

pub(crate) use post_consumption::{ActionContext, PostConsumption};
pub(crate) use threads::run;
pub use threads::{ACTION_THREADS_MAX, action_panics, action_threads};
