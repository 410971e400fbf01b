//! Branches besides channels: time, a future, a signal; and an event as a branch of a future.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod common;

use common::{on_one_thread, poll_once, until};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};
use weir_events::*;

#[test]
fn a_timer_ends_a_choice_and_leaves_nothing_behind() {
    let channel = Channel::<u8>::rendezvous();
    let event = choose([channel.recv().wrap(Some), after(Duration::from_millis(10)).wrap(|()| None)]);
    let start = Instant::now();
    assert_eq!(event.sync(), None);
    assert!(start.elapsed() >= Duration::from_millis(10));
    assert_eq!(on_one_thread(async { event.await }), None);
    assert_eq!(channel.receivers_len(), 0);
}

#[test]
fn an_instant_that_has_passed_takes_effect_at_once() {
    assert_eq!(at(Instant::now()).poll(), Some(()));
    let later = at(Instant::now() + Duration::from_millis(10));
    assert_eq!(later.poll(), None);
    on_one_thread(async { later.synchronise().await });
    assert_eq!(later.poll(), Some(()));
}

#[test]
fn the_earlier_of_two_timers_takes_effect() {
    let timers = choose([after(Duration::from_secs(1000)).wrap(|()| 1), after(Duration::from_millis(5)).wrap(|()| 2)]);
    assert_eq!(timers.sync(), 2);
    assert_eq!(on_one_thread(async { timers.await }), 2);
}

#[test]
fn a_future_can_be_a_branch_and_keeps_its_place_when_it_loses() {
    let (tell, told) = tokio::sync::oneshot::channel();
    let other = Channel::bounded(1);
    let future = from_future(told).wrap(|told| told.unwrap());
    let event = choose([future.clone(), other.recv().wrap(|value| value.unwrap())]);
    other.send(1).sync().unwrap();
    assert_eq!(event.sync(), 1);
    let waiting = thread::spawn(move || event.sync());
    until(|| other.receivers_len() == 1);
    tell.send(2).unwrap();
    assert_eq!(waiting.join().unwrap(), 2);
    assert_eq!(future.poll(), None, "a future is ready once");
}

#[test]
fn a_future_wakes_every_synchronisation_that_waits_for_it() {
    let (tell, told) = tokio::sync::oneshot::channel::<u8>();
    let future = from_future(told).wrap(|told| Some(told.unwrap()));
    let stop = Signal::new();
    let event = choose([future, stop.fired().wrap(|()| None)]);
    let results = on_one_thread(async {
        let (a, b) = (event.synchronise(), event.synchronise());
        let end = async {
            tell.send(5).unwrap();
            tokio::task::yield_now().await;
            stop.fire();
        };
        let (a, b, ()) = tokio::join!(a, b, end);
        [a, b]
    });
    assert!(results == [Some(5), None] || results == [None, Some(5)], "{results:?}");
}

#[test]
fn an_event_can_be_a_branch_of_select_and_loses_nothing() {
    let channel = Channel::rendezvous();
    let receive = channel.recv();
    on_one_thread(async {
        for round in 0..100 {
            _ = channel.post(round);
            tokio::select! {
                value = receive.synchronise() => assert_eq!(value, Ok(round)),
                () = std::future::ready(()) => assert_eq!(receive.synchronise().await, Ok(round)),
            }
        }
    });
    assert!(channel.is_empty());
}

#[test]
fn a_task_may_be_polled_by_another_waker_each_time() {
    let channel = Channel::rendezvous();
    let mut future = channel.recv().synchronise();
    assert!(poll_once(&mut future).is_pending());
    let value = on_one_thread(async {
        let (value, _) = tokio::join!(future, async { channel.try_send(1).unwrap() });
        value
    });
    assert_eq!(value, Ok(1));
}

#[test]
fn shutdown_is_an_event_that_reaches_threads_and_tasks() {
    let stop = Signal::new();
    let jobs = Channel::<u8>::rendezvous();
    let work = choose_biased([stop.fired().wrap(|()| false), jobs.recv().wrap(|_| true)]);
    let in_a_thread = thread::spawn({
        let work = work.clone();
        move || work.sync()
    });
    until(|| jobs.receivers_len() == 1);
    let in_a_task = on_one_thread(async {
        let (work, _) = tokio::join!(work.synchronise(), async { stop.fire() });
        work
    });
    assert_eq!((in_a_thread.join().unwrap(), in_a_task, work.sync()), (false, false, false));
}

#[test]
fn an_event_within_a_limit_and_unless_a_signal() {
    let (channel, stop) = (Channel::rendezvous(), Signal::new());
    let event = channel.recv().within(Duration::from_millis(5)).unless(&stop);
    assert_eq!(event.sync(), Some(None));
    _ = channel.post(1);
    assert_eq!(on_one_thread(async { event.synchronise().await }), Some(Some(Ok(1))));
    _ = channel.post(2);
    assert_eq!(channel.recv().within(Duration::ZERO).sync(), Some(Ok(2)), "what is there is taken");
    stop.fire();
    assert_eq!(event.sync(), None);
    assert_eq!(channel.receivers_len(), 0);
}

#[test]
fn dropping_all_senders_or_all_receivers_closes_the_channel() {
    let (sender, receiver) = bounded(2);
    let second = sender.clone();
    sender.blocking_send(1).unwrap();
    drop(sender);
    assert_eq!((receiver.try_recv(), receiver.try_recv()), (Ok(1), Err(TryRecvError::Empty)));
    let waiting = thread::spawn(move || receiver.recv().sync());
    drop(second);
    assert_eq!(waiting.join().unwrap(), Err(Closed));

    let (sender, receiver) = rendezvous();
    let sending = thread::spawn(move || sender.send_parcel(&Parcel::new(String::from("to nobody"))).sync());
    drop(receiver);
    assert_eq!(sending.join().unwrap(), Err(Closed));
}

#[test]
fn a_future_is_given_up_when_the_event_takes_effect() {
    let (channel, held) = (Channel::rendezvous(), Arc::new(()));
    let end = channel.recv();
    on_one_thread(async {
        let (kept, sender) = (held.clone(), channel.clone());
        let waiting = async {
            let pending = async move {
                std::future::pending::<()>().await;
                drop(kept);
            };
            weir_events::until(pin!(pending), &end).await
        };
        let (ended, _) = tokio::join!(waiting, async { _ = sender.post(5) });
        assert_eq!((ended, Arc::strong_count(&held)), (Err(Ok(5)), 1), "the future was dropped where it waited");
    });
}

#[test]
fn a_future_that_is_ready_first_leaves_nothing_of_the_event_behind() {
    let channel = Channel::<u8>::rendezvous();
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let events = channel.clone();
    let end = guard(move || {
        counted.fetch_add(1, SeqCst);
        events.recv()
    });
    on_one_thread(async {
        assert_eq!(weir_events::until(std::future::ready(1), &end).await, Ok(1));
        assert_eq!(asked.load(SeqCst), 0, "what is ready at once needs no event");
        assert_eq!(weir_events::until(pin!(tokio::task::yield_now()), &end).await, Ok(()));
        assert_eq!((asked.load(SeqCst), channel.receivers_len()), (1, 0));
    });
}

#[test]
fn a_glance_tells_whether_a_synchronisation_still_waits() {
    let channel = Channel::rendezvous();
    let mut receiving = channel.recv().synchronise();
    assert!(!receiving.is_waiting(), "it has not begun");
    assert!(poll_once(&mut receiving).is_pending() && receiving.is_waiting());
    _ = channel.post(1);
    assert!(!receiving.is_waiting());
    assert_eq!(poll_once(&mut receiving), Poll::Ready(Ok(1)));
    let mut future = from_future(std::future::pending::<()>()).synchronise();
    assert!(poll_once(&mut future).is_pending() && !future.is_waiting(), "only a poll could tell");
}

#[test]
fn alarms_of_many_threads_ring_in_time_and_in_any_order() {
    let threads: Vec<_> = (0..40u64)
        .map(|number| {
            thread::spawn(move || {
                on_one_thread(async {
                    let long = after(Duration::from_secs(3600));
                    for round in 0..5 {
                        let limit = Duration::from_millis(1 + (number * 7 + round * 3) % 20);
                        let start = Instant::now();
                        assert!(weir_events::until(long.synchronise(), &after(limit)).await.is_err());
                        assert!(start.elapsed() >= limit && start.elapsed() < common::TOO_LONG);
                    }
                });
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}
