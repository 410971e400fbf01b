//! Wake-up batching: the event loop and the threads of sections wake each other once for many flows.
//!
//! A wake-up from another thread is a system call, and if threads outnumber processors also a thread switch. Therefore
//! neither side wakes the other for each flow; a *dispatcher* task on the event loop does it for both:
//!
//! 1. A thread defers the wakers of tasks whose answers are available ([`WakeupBatcher::defer_wakes`]). The first one
//!    deferred since the dispatcher last ran wakes the dispatcher, which calls all of them on the event loop itself.
//! 2. The event loop defers the ports that have work for threads that could not run now anyway
//!    ([`WakeupBatcher::defer_port`]), and the dispatcher schedules them after everything else that was ready has run.
//!
//! All state is behind one mutex. The dispatcher registers its waker in the same critical section in which it takes the
//! deferred wake-ups: a later deferral finds the waker, and wakes the dispatcher again.

use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use weir_scheduler::PortId;

/// Wake-ups and ports that wait for the dispatcher.
#[derive(Default)]
pub(super) struct WakeupBatcher(Mutex<PendingWakeups>);

#[derive(Default)]
struct PendingWakeups {
    deferred_wakes: Vec<Waker>,
    deferred_ports: Vec<PortId>,
    /// The dispatcher's waker; `None` once it was woken, until it runs again.
    dispatcher: Option<Waker>,
    /// Set once a dispatcher was spawned.
    has_dispatcher: bool,
}

impl WakeupBatcher {
    /// Spawns the dispatcher on the calling event loop, unless there is one; it schedules ports by calling `hand`.
    pub(super) fn spawn_dispatcher(self: &Arc<Self>, hand: impl Fn(PortId) + Clone + 'static) {
        if mem::replace(&mut self.0.lock().has_dispatcher, true) {
            return;
        }
        let wakeups = Arc::clone(self);
        let dispatcher = std::future::poll_fn(move |context| wakeups.poll(context, &hand));
        // The task ends with the event loop.
        drop(tokio::task::spawn_local(dispatcher));
    }

    /// Defers these wakers to the dispatcher.
    pub(super) fn defer_wakes(&self, deferred_wakes: impl IntoIterator<Item = Waker>) {
        self.add(|pending| pending.deferred_wakes.extend(deferred_wakes));
    }

    /// Defers scheduling this port to the dispatcher.
    pub(super) fn defer_port(&self, port: PortId) {
        self.add(|pending| pending.deferred_ports.push(port));
    }

    fn add(&self, add: impl FnOnce(&mut PendingWakeups)) {
        let mut pending = self.0.lock();
        add(&mut pending);
        let dispatcher = pending.dispatcher.take();
        drop(pending);
        dispatcher.into_iter().for_each(Waker::wake);
    }

    fn poll(&self, context: &mut Context<'_>, hand: &impl Fn(PortId)) -> Poll<()> {
        let mut pending = self.0.lock();
        pending.dispatcher = Some(context.waker().clone());
        let (deferred_wakes, deferred_ports) =
            (mem::take(&mut pending.deferred_wakes), mem::take(&mut pending.deferred_ports));
        drop(pending);
        deferred_wakes.into_iter().for_each(Waker::wake);
        deferred_ports.into_iter().for_each(hand);
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use test_support::CountingWaker;
    use tokio::runtime::LocalRuntime;
    use tokio::task::yield_now;

    use super::*;

    /// Runs a test on an event loop with a dispatcher that records the ports it schedules.
    fn on_loop(test: impl AsyncFnOnce(&Arc<WakeupBatcher>, &Mutex<Vec<usize>>)) {
        let runtime = LocalRuntime::new().unwrap();
        runtime.block_on(async {
            let (wakeups, handed) = (Arc::<WakeupBatcher>::default(), Arc::<Mutex<Vec<usize>>>::default());
            for _ in 0..2 {
                let handed = Arc::clone(&handed);
                wakeups.spawn_dispatcher(move |PortId(port)| handed.lock().push(port));
            }
            test(&wakeups, &handed).await;
        });
    }

    #[test]
    fn all_who_were_posted_are_woken_whoever_posted_them() {
        on_loop(async |wakeups, _| {
            let woken = Arc::<CountingWaker>::default();
            for posts in 1..=3 {
                let (wakeups, waker) = (Arc::clone(wakeups), Waker::from(Arc::clone(&woken)));
                thread::spawn(move || wakeups.defer_wakes(vec![waker; posts])).join().unwrap();
                dispatcher_runs().await;
            }
            assert_eq!(woken.count(), 1 + 2 + 3);
        });
    }

    #[test]
    fn ports_are_handed_over_once_when_what_was_ready_has_had_its_turn() {
        on_loop(async |wakeups, handed| {
            dispatcher_runs().await;
            wakeups.defer_port(PortId(4));
            wakeups.defer_port(PortId(2));
            assert!(handed.lock().is_empty());
            dispatcher_runs().await;
            assert_eq!(*handed.lock(), [4, 2]);
        });
    }

    /// Lets the dispatcher run, once the wake-up from another thread has arrived.
    async fn dispatcher_runs() {
        for _ in 0..3 {
            yield_now().await;
        }
    }
}
