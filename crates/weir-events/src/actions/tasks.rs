//! Post-consumption actions that are tasks: futures for the program's executor.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{Thread, current, park};

use super::threads::{run, run_counting_panics};

/// A post-consumption action as a future, to be run to its end by an executor; see [`set_action_executor`].
pub struct ActionTask(Pin<Box<dyn Future<Output = ()> + Send>>);

type Spawn = Box<dyn Fn(ActionTask) + Send + Sync>;

static EXECUTOR: OnceLock<Spawn> = OnceLock::new();

/// Sets the executor of all actions of [`a_wrap_async`](crate::AsyncEvent::a_wrap_async) in this process: `spawn` is
/// called with each of them, from the thread that consumed the event, and must not block. Returns false if an executor
/// was set before; that one stays.
///
/// ```
/// # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
/// let handle = runtime.handle().clone();
/// assert!(weir_events::set_action_executor(move |action| drop(handle.spawn(action))));
/// ```
pub fn set_action_executor(spawn: impl Fn(ActionTask) + Send + Sync + 'static) -> bool {
    EXECUTOR.set(Box::new(spawn)).is_ok()
}

/// Runs an action as a task, or on an implicit thread if no executor was set.
pub(super) fn spawn(action: impl Future<Output = ()> + Send + 'static) {
    let task = ActionTask(Box::pin(action));
    match EXECUTOR.get() {
        Some(spawn) => spawn(task),
        None => run(move || block_on(task)),
    }
}

impl Future for ActionTask {
    type Output = ();

    /// Polls the action; one that panics is counted and over.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        run_counting_panics(|| self.0.as_mut().poll(context)).unwrap_or(Poll::Ready(()))
    }
}

fn block_on(task: ActionTask) {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(current())));
    let mut task = pin!(task);
    while task.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
        park();
    }
}
