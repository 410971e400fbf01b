//! The requests for syncs of a log, for which its thread waits.
//!
//! 1. A flow that has written asks for a sync ([`SyncRequests::add`]), which needs not begin at once.
//! 2. A flow that waits for the disk begins a *turn* of its event loop ([`SyncRequests::begin_turn`]), unless one is open. It lets
//!    the flows go on that are ready. Then it ends the turn, and a sync is due ([`SyncRequests::add_due`]).
//! 3. The thread makes a sync when one is due, and those turns have ended that were open when it could have begun; or after
//!    [`GATHERING_MAX`].
//!
//! If a task makes the syncs, the thread makes only those that the task could not.

use std::thread::ThreadId;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// Time after which a sync begins although the flows that have written do not wait yet, or turns have not ended.
const GATHERING_MAX: Duration = Duration::from_millis(2);

/// The requests to the thread of a log.
#[derive(Debug, Default)]
pub(super) struct SyncRequests {
    state: Mutex<RequestState>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct RequestState {
    /// True if somebody wants a sync.
    wanted: bool,
    /// True if somebody waits for it.
    is_due: bool,
    /// The open turns, with their numbers.
    turns: Vec<(ThreadId, u64)>,
    next_turn: u64,
    /// True if the thread waits until somebody wants a sync.
    is_idle: bool,
    end: bool,
    /// True while a task makes syncs, so that the thread makes none.
    has_task: bool,
    /// True if the thread makes the next sync, because a task could not.
    needs_thread: bool,
}

impl SyncRequests {
    /// Asks for a sync, for which nobody waits yet.
    pub(super) fn add(&self) {
        let mut state = self.state.lock();
        state.wanted = true;
        if std::mem::take(&mut state.is_idle) {
            drop(state);
            self.wake.notify_one();
        }
    }

    /// Asks for a sync, for which somebody waits.
    pub(super) fn add_due(&self) {
        let mut state = self.state.lock();
        (state.wanted, state.is_due, state.is_idle) = (true, true, false);
        drop(state);
        self.wake.notify_one();
    }

    /// Begins a turn of the event loop on this thread; false if one is open.
    pub(super) fn begin_turn(&self) -> bool {
        let mut state = self.state.lock();
        let thread = std::thread::current().id();
        if state.turns.iter().any(|(open, _)| *open == thread) {
            return false;
        }
        let number = state.next_turn;
        state.next_turn += 1;
        state.turns.push((thread, number));
        true
    }

    /// Ends the turn that was begun on a thread.
    pub(super) fn end_turn(&self, thread: ThreadId) {
        self.state.lock().turns.retain(|(open, _)| *open != thread);
    }

    /// Asks for a sync by a task. Returns whether one begins; otherwise a task makes it, or the thread.
    pub(super) fn begins_task(&self) -> bool {
        let mut state = self.state.lock();
        state.wanted = true;
        if state.needs_thread {
            drop(state);
            self.wake.notify_one();
            return false;
        }
        !std::mem::replace(&mut state.has_task, true)
    }

    /// Notes that a sync begins, which serves all requests before.
    pub(super) fn take(&self) {
        self.state.lock().take();
    }

    /// Ends the task if nobody wants a sync, and returns whether it has ended.
    pub(super) fn ends_task(&self) -> bool {
        let mut state = self.state.lock();
        state.has_task = state.wanted && !state.end;
        !state.has_task
    }

    /// Has the thread make the syncs of a task, unless that has ended.
    pub(super) fn needs_thread(&self) {
        let mut state = self.state.lock();
        if std::mem::take(&mut state.has_task) {
            (state.wanted, state.needs_thread) = (true, true);
            drop(state);
            self.wake.notify_one();
        }
    }

    /// Waits until a sync may begin; false at the end.
    pub(super) fn wait(&self) -> bool {
        let mut state = self.state.lock();
        // The time at which it begins at the latest, and the number of the next turn when it could have begun.
        let mut gathering = None;
        while !state.end {
            if !state.wanted || state.has_task {
                state.is_idle = true;
                self.wake.wait(&mut state);
                continue;
            }
            let (latest, next_turn) =
                *gathering.get_or_insert_with(|| (Instant::now() + GATHERING_MAX, state.next_turn));
            let are_open = state.turns.iter().any(|(_, number)| *number < next_turn);
            if state.needs_thread || (state.is_due && !are_open) || self.wake.wait_until(&mut state, latest).timed_out()
            {
                break;
            }
        }
        state.take();
        !state.end
    }

    /// Ends the thread.
    pub(super) fn end(&self) {
        self.state.lock().end = true;
        self.wake.notify_one();
    }
}

impl RequestState {
    fn take(&mut self) {
        (self.wanted, self.is_due, self.needs_thread, self.is_idle) = (false, false, false, false);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::{Receiver, channel};

    use super::*;

    /// A thread that waits for requests, and tells of each sync.
    fn thread() -> (Arc<SyncRequests>, Receiver<Instant>) {
        let (requests, (begins, begun)) = (Arc::<SyncRequests>::default(), channel());
        let shared = Arc::clone(&requests);
        std::thread::spawn(move || while shared.wait() && begins.send(Instant::now()).is_ok() {});
        (requests, begun)
    }

    #[test]
    fn a_sync_waits_for_the_turns_that_are_open_and_not_for_later_ones() {
        let requests = SyncRequests::default();
        assert!(requests.begin_turn() && !requests.begin_turn(), "one turn of a thread is open");
        requests.add_due();
        let begin = Instant::now();
        assert!(requests.wait());
        assert!(begin.elapsed() >= GATHERING_MAX, "the turn has not ended");
        requests.end_turn(std::thread::current().id());
        requests.add_due();
        assert!(requests.wait() && requests.begin_turn(), "it begins at once");
    }

    #[test]
    fn a_sync_for_which_nobody_waits_begins_after_a_moment_and_the_end_ends_the_thread() {
        let (requests, begun) = thread();
        let begin = Instant::now();
        requests.add();
        assert!(begun.recv().unwrap() - begin >= GATHERING_MAX);
        requests.add_due();
        begun.recv().unwrap();
        requests.end();
        assert!(begun.recv().is_err());
    }

    #[test]
    fn what_a_task_cannot_do_the_thread_does() {
        let (requests, begun) = thread();
        assert!(requests.begins_task() && !requests.begins_task());
        requests.take();
        requests.needs_thread();
        begun.recv().unwrap();
        requests.needs_thread();
        assert!(requests.begins_task() && !requests.ends_task() && begun.try_recv().is_err());
        requests.take();
        assert!(requests.ends_task());
        requests.end();
    }
}
