//! The executors: tasks run to their end, and what a wait costs there before there is any channel.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use tokio::runtime::Runtime;

use crate::crew::Crew;

/// A task of a case.
pub(crate) type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The executor that runs the tasks.
pub(crate) enum Executor {
    Tokio(Runtime),
    Crew(Crew),
}

impl Executor {
    /// Runs all tasks to their end.
    pub(crate) fn run(&self, tasks: Vec<Task>) {
        match self {
            Executor::Crew(crew) => crew.run(tasks),
            Executor::Tokio(runtime) => runtime.block_on(async {
                let handles: Vec<_> = tasks.into_iter().map(|task| tokio::spawn(task)).collect();
                for handle in handles {
                    handle.await.expect("no task panics");
                }
            }),
        }
    }
}

/// Two tasks that wake each other in turns and do nothing else.
pub(crate) fn wakes(executor: &Executor, wakes: usize) {
    let baton = Arc::new(Baton { turn: AtomicUsize::new(0), waiting: [Mutex::new(None), Mutex::new(None)] });
    let player = |own: usize| -> Task {
        let baton = baton.clone();
        Box::pin(async move {
            for turn in (own..wakes).step_by(2) {
                baton.wait_for(turn).await;
                baton.pass_on(turn);
            }
        })
    };
    executor.run(vec![player(0), player(1)]);
}

struct Baton {
    turn: AtomicUsize,
    waiting: [Mutex<Option<Waker>>; 2],
}

impl Baton {
    fn waiting(&self, turn: usize) -> MutexGuard<'_, Option<Waker>> {
        self.waiting[turn % 2].lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn wait_for(&self, turn: usize) {
        poll_fn(|context| {
            let mut waiting = self.waiting(turn);
            if self.turn.load(SeqCst) == turn {
                return Poll::Ready(());
            }
            *waiting = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn pass_on(&self, turn: usize) {
        let mut waiting = self.waiting(turn + 1);
        self.turn.store(turn + 1, SeqCst);
        let waker = waiting.take();
        drop(waiting);
        waker.into_iter().for_each(Waker::wake);
    }
}
