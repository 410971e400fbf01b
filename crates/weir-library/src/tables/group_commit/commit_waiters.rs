//! The flows that wait until their commits are durable.
//!
//! A wake-up from another thread is a system call, and most of those that wait belong to one event loop. So if commits become durable,
//! the thread of the log wakes one flow of each thread, and that one wakes the others of its thread when it goes on, or is given up.

use std::collections::VecDeque;
use std::task::Waker;
use std::thread::ThreadId;

use parking_lot::Mutex;

/// The flows that wait.
#[derive(Debug, Default)]
pub(super) struct CommitWaiters(Mutex<WaiterQueue>);

/// The place of a flow among those that wait. Dropping it leaves the queue.
#[derive(Debug)]
pub(super) struct WaiterPlace<'w> {
    waiters: &'w CommitWaiters,
    /// The number of the flow; `None` before it waits.
    number: Option<u64>,
}

#[derive(Debug, Default)]
struct WaiterQueue {
    /// The number of the next flow.
    next: u64,
    /// The flows that were not woken, in the order of their numbers.
    waiting: VecDeque<CommitWaiter>,
    /// The flows that were woken for others of their threads, by their numbers.
    leading: Vec<(u64, Vec<Waker>)>,
}

#[derive(Debug)]
struct CommitWaiter {
    number: u64,
    /// The number of the commit for which it waits.
    commit: u64,
    thread: ThreadId,
    waker: Waker,
}

impl CommitWaiters {
    /// Returns the place of a flow that does not wait yet.
    pub(super) fn place(&self) -> WaiterPlace<'_> {
        WaiterPlace { waiters: self, number: None }
    }

    /// Wakes the flows whose commits are durable.
    pub(super) fn durable(&self, commit: u64) {
        let mut leaders = Vec::new();
        {
            let mut queue = self.0.lock();
            let WaiterQueue { waiting, leading, .. } = &mut *queue;
            let mut threads: Vec<(ThreadId, usize)> = Vec::new();
            waiting.retain_mut(|waiter| {
                if waiter.commit > commit {
                    return true;
                }
                let waker = std::mem::replace(&mut waiter.waker, Waker::noop().clone());
                match threads.iter().find(|(thread, _)| *thread == waiter.thread) {
                    Some((_, at)) => leading[*at].1.push(waker),
                    None => {
                        threads.push((waiter.thread, leading.len()));
                        leading.push((waiter.number, Vec::new()));
                        leaders.push(waker);
                    }
                }
                false
            });
        }
        leaders.into_iter().for_each(Waker::wake);
    }

    /// Wakes all flows.
    pub(super) fn wake_all(&self) {
        let waiting = std::mem::take(&mut self.0.lock().waiting);
        waiting.into_iter().for_each(|waiter| waiter.waker.wake());
    }
}

impl WaiterPlace<'_> {
    /// Has the flow be woken when this commit is durable, or if it may be lost. What it waits for may have happened before.
    pub(super) fn wait(&mut self, commit: u64, waker: &Waker) {
        let mut queue = self.waiters.0.lock();
        if let Some(at) = self.number.and_then(|number| queue.position(number)) {
            queue.waiting[at].waker.clone_from(waker);
            return;
        }
        let number = queue.next;
        queue.next += 1;
        let thread = std::thread::current().id();
        queue.waiting.push_back(CommitWaiter { number, commit, thread, waker: waker.clone() });
        if let Some(before) = self.number.replace(number) {
            let followers = queue.leave(before);
            drop(queue);
            followers.into_iter().for_each(Waker::wake);
        }
    }
}

impl Drop for WaiterPlace<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            let followers = self.waiters.0.lock().leave(number);
            followers.into_iter().for_each(Waker::wake);
        }
    }
}

impl WaiterQueue {
    fn position(&self, number: u64) -> Option<usize> {
        self.waiting.binary_search_by_key(&number, |waiter| waiter.number).ok()
    }

    /// Removes a flow, and returns those that it has to wake.
    fn leave(&mut self, number: u64) -> Vec<Waker> {
        if let Some(at) = self.position(number) {
            self.waiting.remove(at);
        }
        let led = self.leading.iter().position(|(leader, _)| *leader == number);
        led.map_or_else(Vec::new, |at| self.leading.swap_remove(at).1)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use test_support::CountingWaker;

    use super::*;

    #[test]
    fn one_flow_of_a_thread_is_woken_for_the_others_and_those_of_later_commits_are_not() {
        let (waiters, flows) = (CommitWaiters::default(), [(); 4].map(|()| Arc::<CountingWaker>::default()));
        let wakers = flows.each_ref().map(|flow| Waker::from(Arc::clone(flow)));
        let mut places = [1, 1, 2, 1].map(|commit| (commit, waiters.place()));
        for ((commit, place), waker) in places.iter_mut().zip(&wakers) {
            place.wait(*commit, waker);
            place.wait(*commit, waker);
        }
        let woken = || flows.each_ref().map(|flow| flow.count());
        waiters.durable(1);
        assert_eq!(woken(), [1, 0, 0, 0]);
        let [first, second, third, fourth] = places;
        drop(second);
        assert_eq!(woken(), [1, 0, 0, 0], "it leads nobody");
        drop(first);
        assert_eq!(woken(), [1, 1, 0, 1]);
        waiters.durable(2);
        assert_eq!(woken(), [1, 1, 1, 1]);
        drop((third, fourth));
        assert!(waiters.0.lock().leading.is_empty() && waiters.0.lock().waiting.is_empty());
    }

    #[test]
    fn each_thread_has_its_own_leader_and_one_that_waits_again_wakes_the_others() {
        let (waiters, flows) = (CommitWaiters::default(), [(); 4].map(|()| Arc::<CountingWaker>::default()));
        let wakers = flows.each_ref().map(|flow| Waker::from(Arc::clone(flow)));
        let mut places = [(); 4].map(|()| waiters.place());
        let [first, second, third, fourth] = &mut places;
        first.wait(1, &wakers[0]);
        second.wait(1, &wakers[1]);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                third.wait(1, &wakers[2]);
                fourth.wait(1, &wakers[3]);
            });
        });
        let woken = || flows.each_ref().map(|flow| flow.count());
        waiters.durable(1);
        assert_eq!(woken(), [1, 0, 1, 0]);
        first.wait(7, &wakers[0]);
        assert_eq!(woken(), [1, 1, 1, 0]);
        waiters.wake_all();
        assert_eq!(woken(), [2, 1, 1, 0], "who was woken, or has a leader, does not wait");
        drop(places);
        assert_eq!(woken(), [2, 1, 1, 1]);
    }
}
