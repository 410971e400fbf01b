//! With the feature `tokio`, a task that always finds its channel ready lets the other tasks of its thread run.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

use std::cell::Cell;
use std::rc::Rc;
use weir_events::*;

/// Operations after which a busy task must have yielded; tokio's budget is 128 today.
const YIELDS_WITHIN: usize = 1000;
const OPERATIONS: usize = 20_000;

/// Runs a busy task beside another one on one thread; returns the number of operations before the other one ran.
fn operations_before_another_task<F: Future>(operation: impl Fn() -> F + 'static) -> usize {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (done, seen) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(OPERATIONS)));
    let (count, other) = (done.clone(), seen.clone());
    runtime.block_on(tokio::task::LocalSet::new().run_until(async move {
        let busy = tokio::task::spawn_local(async move {
            for _ in 0..OPERATIONS {
                operation().await;
                count.set(count.get() + 1);
            }
        });
        tokio::task::spawn_local(async move { other.set(done.get()) }).await.unwrap();
        busy.await.unwrap();
    }));
    seen.get()
}

fn filled() -> Channel<usize> {
    let channel = Channel::unbounded();
    (0..OPERATIONS).for_each(|value| channel.try_send(value).unwrap());
    channel
}

#[test]
fn a_busy_receiver_yields() {
    let channel = filled();
    let receive = move || {
        let channel = channel.clone();
        async move { channel.recv_async().await.unwrap() }
    };
    assert!(operations_before_another_task(receive) < YIELDS_WITHIN);
}

#[test]
fn a_busy_sender_yields() {
    let channel = Channel::unbounded();
    let send = move || {
        let channel = channel.clone();
        async move { channel.send_async(1).await.unwrap() }
    };
    assert!(operations_before_another_task(send) < YIELDS_WITHIN);
}

#[test]
fn a_busy_choice_yields() {
    let channel = filled();
    let event = choose([channel.recv(), never()]);
    assert!(operations_before_another_task(move || event.synchronise()) < YIELDS_WITHIN);
}
