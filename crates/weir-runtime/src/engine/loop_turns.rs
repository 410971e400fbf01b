//! Turns of the flows that compute on an event loop: at most one slice of them between two polls of I/O.
//!
//! 1. While no flow waits for a turn, the flows that run between two polls of I/O share one slice
//!    ([`run_shared`]). Once it is spent, each of them yields at the end of its quantum.
//! 2. A flow that yields waits for its [`Turn`], in a queue with several levels ([`MultilevelQueue`]).
//! 3. The *dispatcher*, a task of the event loop, runs only after I/O has been polled and all tasks that were ready then
//!    have been woken: `yield_now` of tokio's current-thread runtime defers it until then. It gives a slice to the first
//!    flow of the queue. Flows that begin meanwhile get a quantum each.
//! 4. The dispatcher ends when no flow waits for a turn.
//!
//! A flow that waits for its turn may also be polled because something else woke its task. It then does nothing: it is in
//! one queue, and what woke it is polled when its turn comes.
//!
//! All state belongs to one thread.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use tokio::task::{spawn_local, yield_now};

use crate::overload::{FlowDelays, FlowTurns, MultilevelQueue, PassedQueues};
use crate::platform::Platform;
use crate::units::{SliceLength, Units};

thread_local! {
    static TURNS: LoopTurns = const {
        LoopTurns {
            waiting: RefCell::new(MultilevelQueue::new()),
            delays: FlowDelays::new(),
            quanta_spent: Cell::new(0),
            dispatches: Cell::new(false),
        }
    };
}

/// The turns of one event loop.
struct LoopTurns {
    /// The flows that wait for a turn.
    waiting: RefCell<MultilevelQueue<Rc<TurnState>>>,
    delays: FlowDelays,
    /// The quanta of the shared slice that are spent.
    quanta_spent: Cell<u32>,
    /// True while the dispatcher runs.
    dispatches: Cell<bool>,
}

/// The place of a flow in the queue. Dropping it leaves the queue.
pub(super) struct Turn {
    state: Rc<TurnState>,
    level: Option<usize>,
    is_taken: Cell<bool>,
}

#[derive(Default)]
struct TurnState {
    /// True once the flow may go on, or has left the queue.
    is_over: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Turn {
    /// Puts a flow that has yielded into the queue of this event loop.
    pub(super) fn wait(turns: &mut FlowTurns, platform: &dyn Platform) -> Turn {
        let level = turns.level();
        let state = Rc::<TurnState>::default();
        TURNS.with(|of_loop| {
            of_loop.waiting.borrow_mut().push(level, Rc::clone(&state));
            of_loop.delays.enter(0, turns, platform);
            of_loop.dispatch();
        });
        Turn { state, level, is_taken: Cell::new(false) }
    }

    /// Notes that the flow is about to use its turn.
    pub(super) fn take(&self, platform: &dyn Platform) {
        self.is_taken.set(true);
        TURNS.with(|of_loop| of_loop.delays.leave_level(self.level, platform));
    }

    /// Returns true if it is the flow's turn; otherwise registers the task to be woken when it is.
    pub(super) fn poll(&self, context: &Context<'_>) -> Poll<()> {
        if self.state.is_over.get() {
            return Poll::Ready(());
        }
        let mut waker = self.state.waker.borrow_mut();
        match &mut *waker {
            Some(waker) => waker.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        Poll::Pending
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.state.is_over.set(true);
        if !self.is_taken.get() {
            // At the end of the thread there is nothing left to count.
            _ = TURNS.try_with(|of_loop| of_loop.delays.abandon_level(self.level));
        }
    }
}

/// Returns true if flows of such a route wait too long for their turns on this event loop.
#[inline]
pub(super) fn are_turns_overloaded(queues: &PassedQueues, platform: &dyn Platform) -> bool {
    of_loop(|of_loop| of_loop.delays.is_overloaded(queues, platform))
}

/// Runs a flow that begins or has waited, and counts the quanta that it spends of the slice that all flows share.
#[inline]
pub(super) fn run_shared<R>(length: SliceLength, run: impl FnOnce(&Units) -> R) -> R {
    of_loop(|turns| {
        let quanta = if turns.dispatches.get() { 1 } else { length.quanta.saturating_sub(turns.quanta_spent.get()) };
        let units = Units::quanta(length, quanta);
        let result = run(&units);
        let spent = units.quanta_spent();
        if spent > 0 {
            turns.spend(spent, length);
        }
        result
    })
}

/// Gives access to the turns of this event loop. Inlined, which `LocalKey::with` is only if the whole program is optimised at
/// link time.
#[inline(always)]
fn of_loop<R>(access: impl FnOnce(&LoopTurns) -> R) -> R {
    TURNS.try_with(access).expect("no flow runs on a thread that has ended")
}

impl LoopTurns {
    #[cold]
    fn spend(&self, quanta: u32, length: SliceLength) {
        self.quanta_spent.set(self.quanta_spent.get().saturating_add(quanta));
        if self.quanta_spent.get() >= length.quanta {
            // The dispatcher begins a new slice when I/O has been polled.
            self.dispatch();
        }
    }

    /// Starts the dispatcher, unless it runs.
    fn dispatch(&self) {
        if !self.dispatches.replace(true) {
            // The task ends with the event loop.
            drop(spawn_local(dispatch()));
        }
    }

    /// Begins a new slice, and gives it to the first flow that waits. Returns false if no flow waits.
    fn next_turn(&self) -> bool {
        self.quanta_spent.set(0);
        loop {
            let Some(first) = self.waiting.borrow_mut().pop() else {
                self.dispatches.set(false);
                return false;
            };
            if first.is_over.replace(true) {
                continue;
            }
            let waker = first.waker.borrow_mut().take();
            waker.into_iter().for_each(Waker::wake);
            return true;
        }
    }
}

async fn dispatch() {
    loop {
        yield_now().await;
        if !TURNS.with(LoopTurns::next_turn) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::runtime::LocalRuntime;

    use super::*;
    use crate::platform::ScriptedPlatform;
    use crate::units::Spent;

    const LENGTH: SliceLength = SliceLength { quantum: 10, quanta: 4 };

    /// Computes for this many units on an event loop, and notes in which poll of I/O it did so. I/O is polled whenever a
    /// task that yields to the runtime runs again.
    async fn compute(units: u32, name: usize, notes: &RefCell<Vec<(usize, u32)>>) {
        let (mut left, mut turn) = (units, None::<Turn>);
        poll_fn(|context| {
            if let Some(waits) = &turn
                && waits.poll(context).is_pending()
            {
                return Poll::Pending;
            }
            let has_turn = turn.take().is_some();
            let mut ran = 0;
            let mut run = |units: &Units| {
                while left > 0 {
                    (left, ran) = (left - 1, ran + 1);
                    if units.spend(1) == Spent::Yield {
                        break;
                    }
                }
            };
            if has_turn {
                run(&Units::slice(LENGTH))
            } else {
                run_shared(LENGTH, run)
            }
            notes.borrow_mut().push((name, ran));
            if left == 0 {
                return Poll::Ready(());
            }
            turn = Some(Turn::wait(&mut FlowTurns::default(), &ScriptedPlatform::new(0)));
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    #[test]
    fn flows_that_compute_have_a_slice_in_turn() {
        LocalRuntime::new().unwrap().block_on(async {
            let notes = Rc::<RefCell<Vec<(usize, u32)>>>::default();
            let tasks: Vec<_> = (0..3)
                .map(|name| {
                    let notes = Rc::clone(&notes);
                    spawn_local(async move { compute(100, name, &notes).await })
                })
                .collect();
            for task in tasks {
                task.await.unwrap();
            }
            // The first spends the shared slice, the others a quantum each; then they take turns.
            let first = [(0, 40), (1, 10), (2, 10)];
            let turns = [(0, 40), (1, 40), (2, 40), (0, 20), (1, 40), (2, 40), (1, 10), (2, 10)];
            assert_eq!(*notes.borrow(), [&first[..], &turns[..]].concat());
            yield_now().await;
            yield_now().await;
            assert!(!TURNS.with(|turns| turns.dispatches.get()), "the dispatcher has ended");
        });
    }

    #[test]
    fn a_flow_that_leaves_the_queue_takes_no_turn() {
        let platform = ScriptedPlatform::new(0);
        LocalRuntime::new().unwrap().block_on(async {
            let wait = || Turn::wait(&mut FlowTurns::default(), &platform);
            let (one, other) = (wait(), wait());
            drop(one);
            assert!(other.poll(&Context::from_waker(Waker::noop())).is_pending());
            poll_fn(|context| other.poll(context)).await;
        });
    }
}
