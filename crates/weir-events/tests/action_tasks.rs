//! Actions as tasks of an executor: any number of them wait for each other on one thread.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod common;

use common::{TOO_LONG, until};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use weir_events::*;

const WAITING: usize = 6_000;

#[test]
fn actions_are_tasks_of_the_executor_that_was_set() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let handle = runtime.handle().clone();
    assert!(set_action_executor(move |action| drop(handle.spawn(action))));
    assert!(!set_action_executor(|_| unreachable!("the first one stays")));

    let (channel, open, done) = (Channel::rendezvous(), Signal::new(), Arc::new(AtomicUsize::new(0)));
    for _ in 0..WAITING {
        let (opened, done) = (open.fired(), done.clone());
        a_recv(&channel)
            .a_wrap_async(move |_: Result<(), Closed>| {
                let (opened, done) = (opened.clone(), done.clone());
                async move {
                    opened.await;
                    done.fetch_add(1, SeqCst);
                }
            })
            .a_sync();
    }
    let last = open.clone();
    a_recv(&channel)
        .a_wrap_async(move |_| {
            let last = last.clone();
            async move { last.fire() }
        })
        .a_sync();
    (0..=WAITING).for_each(|_| channel.try_send(()).unwrap());
    assert_eq!(open.fired().sync_timeout(TOO_LONG), Some(()));
    until(|| done.load(SeqCst) == WAITING);
    assert_eq!(action_threads(), 0, "no action needed a thread");

    let panics = action_panics();
    a_always(1).a_wrap_async(|_| async { panic!("in an action") }).a_sync();
    until(|| action_panics() == panics + 1);
    let ended = Channel::unbounded();
    let into = ended.clone();
    a_always(1).a_wrap_async(|value| async move { value + 1 }).a_wrap(move |value| into.post(value).unwrap()).a_sync();
    assert_eq!(ended.recv().sync_timeout(TOO_LONG), Some(Ok(2)), "a closure after a task runs on a thread");
}
