//! Asynchronous events: groups 15 to 23, 27 and 28 of the behaviour that must hold.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod common;

use common::{on_one_thread, until};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use weir_events::*;

type Log = Arc<Mutex<Vec<String>>>;

fn note(log: &Log, what: impl Into<String>) {
    log.lock().unwrap().push(what.into());
}

fn lines(log: &Log) -> Vec<String> {
    log.lock().unwrap().clone()
}

#[test]
fn asynchronous_sends_of_one_thread_are_received_in_order() {
    for channel in [Channel::rendezvous(), Channel::bounded(10), Channel::unbounded()] {
        (0..1000).for_each(|n| a_send(&channel, n).a_sync());
        let received: Vec<_> = (0..1000).map(|_| channel.recv().sync().unwrap()).collect();
        assert_eq!(received, (0..1000).collect::<Vec<_>>());
    }
}

#[test]
fn asynchronous_sends_of_two_threads_are_each_received_in_order() {
    let channel = Channel::rendezvous();
    let senders: Vec<_> = (0..2)
        .map(|sender| {
            let channel = channel.clone();
            thread::spawn(move || (0..1000).for_each(|n| a_send(&channel, (sender, n)).a_sync()))
        })
        .collect();
    let received: Vec<_> = (0..2000).map(|_| channel.recv().sync().unwrap()).collect();
    senders.into_iter().for_each(|sender| sender.join().unwrap());
    for sender in 0..2 {
        let own = received.iter().filter(|(from, _)| *from == sender).map(|(_, n)| *n);
        assert!(own.eq(0..1000));
    }
}

#[test]
fn asynchronous_and_synchronous_sends_keep_one_order() {
    let channel = Channel::rendezvous();
    a_send(&channel, 1).a_sync();
    let sender = channel.clone();
    let sending = thread::spawn(move || sender.send(2).sync());
    until(|| channel.len() == 2);
    a_send(&channel, 3).a_sync();
    let received: Vec<_> = (0..3).map(|_| channel.recv().sync().unwrap()).collect();
    assert_eq!(received, [1, 2, 3]);
    assert_eq!(sending.join().unwrap(), Ok(()));
}

#[test]
fn the_nth_asynchronous_receive_gets_the_nth_value() {
    let channel = Channel::rendezvous();
    let places: Vec<_> = (0..50)
        .map(|_| {
            let place = Channel::rendezvous();
            let into = place.clone();
            a_recv(&channel).a_wrap(move |value| _ = into.post(value.unwrap())).a_sync();
            place
        })
        .collect();
    (0..50).for_each(|n| channel.send(n).sync().unwrap());
    let received: Vec<_> = places.iter().map(|place| place.recv().sync().unwrap()).collect();
    assert_eq!(received, (0..50).collect::<Vec<_>>());
}

#[test]
fn an_asynchronous_send_and_a_receive_of_one_thread_never_wait() {
    let channel = Channel::rendezvous();
    let other = channel.clone();
    let sending = thread::spawn(move || other.send("v").sync());
    until(|| channel.len() == 1);
    a_send(&channel, "v'").a_sync();
    let mut received = [channel.recv().sync().unwrap(), channel.recv().sync().unwrap()];
    received.sort_unstable();
    assert_eq!((received, sending.join().unwrap()), (["v", "v'"], Ok(())));
}

#[test]
fn post_creation_actions_run_in_the_caller_before_it_goes_on() {
    let channel = Channel::rendezvous();
    let here = thread::current().id();
    let event = a_send(&channel, 1).s_wrap(move |()| thread::current().id() == here).s_wrap(|here| (here, "and more"));
    assert_eq!(event.a_sync(), (true, "and more"));
    assert_eq!(channel.try_recv(), Ok(1));
}

#[test]
fn post_consumption_actions_run_after_the_consumption_and_not_before() {
    let (channel, log) = (Channel::rendezvous(), Log::default());
    let (first, second) = (log.clone(), log.clone());
    a_send(&channel, 1)
        .a_wrap(move |sent| note(&first, format!("{sent:?}")))
        .a_wrap(move |()| note(&second, "and more"))
        .a_sync();
    assert_eq!(lines(&log), [""; 0]);
    assert_eq!(channel.recv().sync(), Ok(1));
    until(|| lines(&log).len() == 2);
    assert_eq!(lines(&log), ["Ok(())", "and more"]);
}

#[test]
fn post_consumption_actions_wait_for_the_receiver_of_a_buffered_channel() {
    let (channel, log) = (Channel::bounded(4), Log::default());
    let inner = log.clone();
    a_send(&channel, 1).a_wrap(move |_| note(&inner, "consumed")).a_sync();
    assert_eq!((channel.len(), lines(&log).len()), (1, 0));
    assert_eq!(channel.recv().sync(), Ok(1));
    until(|| !lines(&log).is_empty());
}

#[test]
fn post_creation_and_post_consumption_actions_commute() {
    for creation_first in [true, false] {
        let (channel, log) = (Channel::rendezvous(), Log::default());
        let (s, a) = (log.clone(), log.clone());
        let created = move |()| note(&s, "created");
        let consumed = move |_| note(&a, "consumed");
        let base = a_send(&channel, 1);
        match creation_first {
            true => base.s_wrap(created).a_wrap(consumed).a_sync(),
            false => base.a_wrap(consumed).s_wrap(created).a_sync(),
        }
        assert_eq!(lines(&log), ["created"]);
        channel.recv().sync().unwrap();
        until(|| lines(&log).len() == 2);
        assert_eq!(lines(&log), ["created", "consumed"]);
    }
}

#[test]
fn the_barrier_of_section_4_1_orders_as_the_paper_says() {
    let (channel, local, log) = (Channel::rendezvous(), Channel::rendezvous(), Log::default());
    let signal = local.clone();
    a_send(&channel, "v").a_wrap(move |_| signal.send(()).sync()).a_sync();
    // g: v is on the channel, so a value placed now is consumed after it.
    a_send(&channel, "after v").a_sync();
    assert_eq!(local.recv().poll(), None, "v was not consumed yet");
    let (receiver, seen) = (channel.clone(), log.clone());
    let consumer = thread::spawn(move || (0..2).for_each(|_| note(&seen, receiver.recv().sync().unwrap())));
    local.recv().sync().unwrap();
    // h: v has been consumed.
    consumer.join().unwrap();
    assert_eq!(lines(&log), ["v", "after v"]);
}

#[test]
fn a_callback_waits_for_the_discharge_and_runs_in_the_thread_that_synchronises() {
    let channel = Channel::<u8>::rendezvous();
    let callback = a_recv(&channel).callback(|value| (value, thread::current().id()));
    let called = callback.a_sync();
    let mut early = called.synchronise();
    let polled = std::pin::Pin::new(&mut early).poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
    assert!(polled.is_pending());
    drop(early);
    channel.send(5).sync().unwrap();
    assert_eq!(called.sync(), (Ok(5), thread::current().id()));
}

#[test]
fn a_callback_that_nobody_synchronises_does_not_hold_up_the_other_actions() {
    let (channel, log) = (Channel::<u8>::rendezvous(), Log::default());
    let after = log.clone();
    let never_called = log.clone();
    let event = a_recv(&channel)
        .callback(move |_| note(&never_called, "called"))
        .a_wrap(move |value| note(&after, format!("{value:?}")));
    let _called_by_nobody = event.a_sync();
    channel.send(5).sync().unwrap();
    until(|| lines(&log) == ["Ok(5)"]);
}

#[test]
fn two_callbacks_do_not_cross() {
    let channel = Channel::rendezvous();
    let callback = a_recv(&channel).callback(|value| value.unwrap());
    let (first, second) = (callback.a_sync(), callback.a_sync());
    channel.send(1).sync().unwrap();
    channel.send(2).sync().unwrap();
    assert_eq!((second.sync(), first.sync()), (2, 1));
}

#[test]
fn a_guard_runs_once_each_time_it_is_started_and_not_when_it_is_built() {
    let (channel, runs) = (Channel::rendezvous(), Arc::new(AtomicUsize::new(0)));
    let (sender, count) = (channel.clone(), runs.clone());
    let guarded = a_guard(move || a_send(&sender, count.fetch_add(1, SeqCst)));
    let event = a_choose([guarded.s_wrap(|()| "only").a_wrap(|_| ())]);
    assert_eq!(runs.load(SeqCst), 0);
    assert_eq!((event.a_sync(), runs.load(SeqCst)), ("only", 1));
    assert_eq!((guarded.a_trans().poll(), runs.load(SeqCst)), (None, 2));
    guarded.a_sync();
    assert_eq!((channel.try_recv(), channel.try_recv()), (Ok(0), Ok(2)));
}

#[test]
fn a_transformed_event_that_loses_leaves_no_offer_and_runs_no_action() {
    let (a, b, log) = (Channel::rendezvous(), Channel::rendezvous(), Log::default());
    let (created, consumed) = (log.clone(), log.clone());
    let sending =
        a_send(&a, 1).s_wrap(move |()| note(&created, "created")).a_wrap(move |_| note(&consumed, "consumed"));
    let event = choose([sending.a_trans(), b.recv().wrap(|value: Result<(), Closed>| value.unwrap())]);
    let waiting = thread::spawn(move || event.sync());
    until(|| a.len() == 1 && b.receivers_len() == 1);
    b.send(()).sync().unwrap();
    waiting.join().unwrap();
    assert_eq!((a.len(), a.try_recv()), (0, Err(TryRecvError::Empty)));
    assert_eq!(lines(&log), [""; 0]);
}

#[test]
fn a_transformed_event_that_wins_runs_its_actions_each_in_its_thread() {
    let (channel, log, here) = (Channel::rendezvous(), Log::default(), thread::current().id());
    let consumed = log.clone();
    let receiving = a_recv(&channel)
        .a_wrap(move |value| note(&consumed, format!("{value:?} {}", thread::current().id() == here)))
        .s_wrap(move |()| thread::current().id() == here);
    _ = channel.post(3);
    assert!(choose([receiving.a_trans(), never()]).sync());
    until(|| lines(&log) == ["Ok(3) false"]);
}

#[test]
fn a_choice_takes_what_can_be_consumed_now_and_else_anything() {
    let (a, b) = (Channel::rendezvous(), Channel::rendezvous());
    let event = a_choose([a_send(&a, 1), a_send(&b, 2)]);
    let receiver = b.clone();
    let receiving = thread::spawn(move || receiver.recv().sync());
    until(|| b.receivers_len() == 1);
    event.a_sync();
    assert_eq!(receiving.join().unwrap(), Ok(2));
    (0..1000).for_each(|_| event.a_sync());
    assert!((200..800).contains(&a.len()), "{} of 1,000 went to the first of two", a.len());
    assert_eq!(a.len() + b.len(), 1000);
}

#[test]
fn a_synchronous_choice_waits_until_one_branch_was_consumed() {
    let (a, b, log) = (Channel::rendezvous(), Channel::rendezvous(), Log::default());
    let created = |name: &'static str| {
        let log = log.clone();
        move |()| note(&log, name)
    };
    let event = s_choose([a_send(&a, 1).s_wrap(created("a")), a_send(&b, 2).s_wrap(created("b"))]);
    let waiting = thread::spawn(move || event.a_sync());
    until(|| a.len() == 1 && b.len() == 1);
    assert_eq!(lines(&log), [""; 0], "post-creation actions wait for the choice");
    assert_eq!(b.recv().sync(), Ok(2));
    waiting.join().unwrap();
    assert_eq!((lines(&log), a.len()), (vec!["b".to_owned()], 0));
}

#[test]
fn a_synchronous_choice_is_awaited_by_a_task() {
    let (a, b) = (Channel::rendezvous(), Channel::rendezvous());
    let event = s_choose([a_send(&a, 1), a_send(&b, 2)]).a_trans();
    let ((), value) = on_one_thread(async { tokio::join!(event.synchronise(), b.recv_async()) });
    assert_eq!((value, a.len()), (Ok(2), 0));
}

#[test]
fn a_synchronous_event_made_asynchronous_runs_its_wrap_in_the_implicit_thread() {
    let (channel, here) = (Channel::<u8>::rendezvous(), thread::current().id());
    let ran = Channel::rendezvous();
    let out = ran.clone();
    let wrapped = channel.recv().wrap(move |value| (value, thread::current().id() != here));
    let event = s_trans(&wrapped).a_wrap(move |result| _ = out.post(result));
    event.a_sync();
    assert_eq!(channel.receivers_len(), 1, "its offer is placed when it is started");
    channel.send(1).sync().unwrap();
    assert_eq!(ran.recv().sync(), Ok((Ok(1), true)));
    // The same when a value is there already, and when it is taken in a choice.
    _ = channel.post(2);
    event.a_sync();
    assert_eq!(ran.recv().sync(), Ok((Ok(2), true)));
    _ = channel.post(3);
    event.a_trans().sync();
    assert_eq!(ran.recv().sync(), Ok((Ok(3), true)));
}

#[test]
fn always_and_never_are_asynchronous_too() {
    let ran = Channel::rendezvous();
    let out = ran.clone();
    a_always(4).a_wrap(move |value| _ = out.post(value)).a_sync();
    assert_eq!(ran.recv().sync(), Ok(4));
    a_never::<u8>().a_wrap(|_| unreachable!()).a_sync();
}

#[test]
fn a_closed_channel_ends_what_was_started_on_it() {
    let (channel, ended) = (Channel::<u8>::rendezvous(), Channel::rendezvous());
    let (receiving, sending) = (ended.clone(), ended.clone());
    a_recv(&channel).a_wrap(move |value| _ = receiving.post(value.err())).a_sync();
    channel.close();
    assert_eq!(ended.recv().sync(), Ok(Some(Closed)));
    a_send(&channel, 1).a_wrap(move |sent| _ = sending.post(sent.err())).a_sync();
    assert_eq!(ended.recv().sync(), Ok(Some(Closed)));
}

#[test]
fn a_panic_in_a_post_consumption_action_neither_poisons_the_channel_nor_hides() {
    let channel = Channel::rendezvous();
    let before = action_panics();
    a_send(&channel, 1).a_wrap(|_| panic!("in an action")).a_sync();
    assert_eq!(channel.recv().sync(), Ok(1));
    until(|| action_panics() > before);
    a_send(&channel, 2).a_sync();
    assert_eq!(channel.recv().sync(), Ok(2));
}

#[test]
fn an_event_value_that_cannot_be_cloned_is_sent_asynchronously_once() {
    struct Once(u8);
    let channel = Channel::rendezvous();
    let event = a_send_parcel(&channel, &Parcel::new(Once(1)));
    event.a_sync();
    event.a_sync();
    assert_eq!(channel.len(), 1);
    assert_eq!(channel.recv().sync().unwrap().0, 1);
}
