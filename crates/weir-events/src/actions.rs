//! Post-consumption actions and the threads and tasks that run them (§4, "an implicit thread of control").
//!
//! An action may wait for as long as it likes, even for another action. A closure therefore runs on an implicit thread
//! of its own: the first one starts the first thread, an idle thread stays for a moment, and only the system limits their
//! number. An action that is a future runs as a task of the executor that the program has set.

mod threads;

mod tasks;

mod post_consumption;

pub(crate) use post_consumption::{ActionContext, PostConsumption};
pub use tasks::{ActionTask, set_action_executor};
pub(crate) use threads::run;
pub use threads::{action_panics, action_threads};
