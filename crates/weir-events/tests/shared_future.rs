//! One future as a branch of several synchronisations: no wake-up and no result is lost between them.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod common;

use common::{CountingWaker, TOO_LONG, poll_once, until};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread;
use weir_events::*;

/// A future that waits until it is woken; the poll after that blocks until the test opens the gate. Then it is ready, or
/// the next poll is, for which it was woken during this one.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<GateState>, Condvar)>);

#[derive(Default)]
struct GateState {
    is_woken: bool,
    is_inside: bool,
    is_open: bool,
    /// The poll that is let go on is too early, and the next one is ready.
    is_late: bool,
    waker: Option<Waker>,
}

impl Future for Gate {
    type Output = &'static str;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<&'static str> {
        let (state, opened) = &*self.0;
        let mut state = state.lock().unwrap();
        if !state.is_woken {
            state.waker = Some(context.waker().clone());
            return Poll::Pending;
        }
        state.is_inside = true;
        let mut state = opened.wait_while(state, |state| !state.is_open).unwrap();
        if std::mem::take(&mut state.is_late) {
            return Poll::Pending;
        }
        Poll::Ready("ready")
    }
}

impl Gate {
    fn wake(&self) {
        let mut state = self.0.0.lock().unwrap();
        state.is_woken = true;
        let waker = state.waker.take();
        drop(state);
        waker.unwrap().wake();
    }

    fn is_inside(&self) -> bool {
        self.0.0.lock().unwrap().is_inside
    }

    fn open(&self) {
        self.0.0.lock().unwrap().is_open = true;
        self.0.1.notify_all();
    }
}

#[test]
fn a_synchronisation_that_was_woken_during_anothers_poll_is_woken_again() {
    [false, true].into_iter().for_each(woken_during_a_poll);
}

fn woken_during_a_poll(is_late: bool) {
    let (gate, other) = (Gate::default(), Channel::rendezvous());
    let shared = from_future(gate.clone());
    let first = choose([shared.clone(), other.recv().wrap(|_: Result<(), Closed>| "other")]);
    let (told_first, told_second) = (CountingWaker::new(), CountingWaker::new());
    let mut first = first.synchronise();
    let mut second = shared.synchronise();
    assert!(told_first.poll(&mut first).is_pending());
    assert!(told_second.poll(&mut second).is_pending());
    gate.wake();
    let polling = thread::spawn(move || told_first.poll(&mut first));
    until(|| gate.is_inside());
    gate.0.0.lock().unwrap().is_late = is_late;
    // The first is inside the poll; the second follows its wake-up, and the first is taken by another branch.
    let woken = told_second.count();
    assert!(told_second.poll(&mut second).is_pending());
    other.try_send(()).unwrap();
    gate.open();
    assert_eq!(polling.join().unwrap(), Poll::Ready("other"));
    until(|| told_second.count() > woken);
    assert_eq!(told_second.poll(&mut second), Poll::Ready("ready"));
}

#[test]
fn a_result_goes_to_one_of_two_synchronisations_and_the_other_goes_on_waiting() {
    for _ in 0..200 {
        let is_done = Arc::new(AtomicBool::new(false));
        let done = is_done.clone();
        let shared = from_future(std::future::poll_fn(move |context| {
            context.waker().wake_by_ref();
            if done.load(SeqCst) { Poll::Ready(7) } else { Poll::Pending }
        }));
        let stop = Signal::new();
        let event = shared.unless(&stop);
        let results = Arc::new(AtomicUsize::new(0));
        let waiting: Vec<_> = (0..2)
            .map(|_| {
                let (event, results) = (event.clone(), results.clone());
                thread::spawn(move || {
                    let result = event.sync();
                    results.fetch_add(1, SeqCst);
                    result
                })
            })
            .collect();
        is_done.store(true, SeqCst);
        until(|| results.load(SeqCst) == 1);
        stop.fire();
        let mut all: Vec<_> = waiting.into_iter().map(|thread| thread.join().unwrap()).collect();
        all.sort_unstable();
        assert_eq!(all, [None, Some(7)]);
    }
}

#[test]
fn a_future_whose_synchronisation_was_dropped_goes_on_in_the_next_one() {
    let ready = Arc::new(AtomicBool::new(false));
    let is_ready = ready.clone();
    let shared =
        from_future(std::future::poll_fn(move |_| if is_ready.load(SeqCst) { Poll::Ready(()) } else { Poll::Pending }));
    let mut first = shared.synchronise();
    assert!(poll_once(&mut first).is_pending());
    ready.store(true, SeqCst);
    drop(first);
    assert_eq!(shared.sync_timeout(TOO_LONG), Some(()));
    assert!(poll_once(&mut pin!(shared.synchronise())).is_pending(), "it takes effect once");
}
