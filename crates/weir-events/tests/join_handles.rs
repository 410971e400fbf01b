//! Ends of threads and tasks as events; tasks with the feature `tokio`.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod common;

use common::on_one_thread;
use weir_events::*;

#[test]
fn the_end_of_a_thread_is_an_event() {
    let (go, gone) = rendezvous();
    let thread = spawn_thread("adds", move || gone.blocking_recv().map(|value: u32| value + 1)).unwrap();
    assert!(thread.joined().poll().is_none(), "it waits");
    assert_eq!(choose_biased([thread.joined().wrap(|_| "ended"), always("not yet")]).sync(), "not yet");
    go.blocking_send(1).unwrap();
    assert_eq!(thread.joined().sync().unwrap(), Ok(2));
    assert!(matches!(thread.joined().sync(), Err(JoinError::Taken)));
}

#[test]
fn a_thread_that_panics_says_so() {
    let thread = spawn_thread("panics", || -> () { std::panic::resume_unwind(Box::new("by design")) }).unwrap();
    let Err(JoinError::Panicked(payload)) = thread.joined().sync() else { panic!("it panicked") };
    assert_eq!(payload.downcast_ref(), Some(&"by design"));
}

#[test]
fn the_end_of_a_task_is_an_event() {
    on_one_thread(async {
        let (go, gone) = rendezvous();
        let task =
            EventJoinHandle::from(tokio::spawn(async move { gone.recv_async().await.map(|value: u32| value + 1) }));
        let early = choose_biased([task.joined().wrap(|_| "ended"), always("not yet")]);
        assert_eq!(early.synchronise().await, "not yet");
        go.send_async(1).await.unwrap();
        assert_eq!(task.joined().await.unwrap(), Ok(2));
        assert!(matches!(task.joined().await, Err(JoinError::Taken)));
    });
}

#[test]
fn a_task_that_is_cancelled_or_panics_says_so() {
    on_one_thread(async {
        let task = tokio::spawn(std::future::pending::<()>());
        task.abort();
        assert!(matches!(EventJoinHandle::from(task).joined().await, Err(JoinError::Cancelled)));
        let task = tokio::spawn(async { std::panic::resume_unwind(Box::new("by design")) });
        let task = EventJoinHandle::<()>::from(task);
        assert!(matches!(task.joined().await, Err(JoinError::Panicked(_))));
    });
}
