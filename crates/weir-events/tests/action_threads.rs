//! Actions that wait for another action never hang, however many there are: on threads, without an executor.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod common;

use common::{TOO_LONG, until};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use weir_events::*;

const WAITING: usize = 6_000;

#[test]
fn six_thousand_actions_wait_for_the_one_that_comes_last() {
    let (channel, open, done) = (Channel::rendezvous(), Signal::new(), Arc::new(AtomicUsize::new(0)));
    for _ in 0..WAITING {
        let (opened, done) = (open.fired(), done.clone());
        a_recv(&channel)
            .a_wrap(move |_: Result<(), Closed>| {
                opened.sync();
                done.fetch_add(1, SeqCst);
            })
            .a_sync();
    }
    let last = open.clone();
    a_recv(&channel).a_wrap(move |_| _ = last.fire()).a_sync();
    (0..=WAITING).for_each(|_| channel.try_send(()).unwrap());
    assert_eq!(open.fired().sync_timeout(TOO_LONG), Some(()));
    until(|| done.load(SeqCst) == WAITING);
}

#[test]
fn an_action_that_is_a_future_runs_without_an_executor_too() {
    let (channel, gate, ended) = (Channel::rendezvous(), Channel::rendezvous(), Channel::unbounded());
    let (opened, into) = (gate.clone(), ended.clone());
    a_recv(&channel)
        .a_wrap_async(move |value: Result<u8, Closed>| {
            let opened = opened.clone();
            async move { (value, opened.recv_async().await) }
        })
        .a_wrap(move |both| into.post(both).unwrap())
        .a_sync();
    channel.try_send(1).unwrap();
    assert_eq!(gate.send(2).sync_timeout(TOO_LONG), Some(Ok(())));
    assert_eq!(ended.recv().sync_timeout(TOO_LONG), Some(Ok((Ok(1), Ok(2)))));
}
