//! Nacks, panics, drops and time limits: groups 7 to 10 of the behaviour that must hold.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod common;

use common::{on_one_thread, until};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};
use weir_events::*;

/// An event that yields the channel's value, and the nacks that its synchronisations were given, in order.
fn with_noted_nack(channel: &Channel<u8>, nacks: &Arc<Mutex<Vec<Event<()>>>>) -> Event<u8> {
    let (channel, nacks) = (channel.clone(), nacks.clone());
    with_nack(move |nack| {
        nacks.lock().unwrap().push(nack);
        channel.receive().wrap(|value| value.unwrap())
    })
}

fn has_fired(nacks: &Arc<Mutex<Vec<Event<()>>>>, number: usize) -> bool {
    nacks.lock().unwrap()[number].poll().is_some()
}

#[test]
fn a_nack_fires_when_another_branch_is_chosen_and_stays_fired() {
    let (channel, nacks) = (Channel::bounded(1), Arc::default());
    let event = choose([with_noted_nack(&channel, &nacks), always(7)]);
    assert_eq!(event.sync(), 7);
    assert!(has_fired(&nacks, 0) && has_fired(&nacks, 0));
}

#[test]
fn a_nack_does_not_fire_when_its_branch_is_chosen() {
    let (channel, nacks) = (Channel::bounded(1), Arc::default());
    channel.send(3).sync().unwrap();
    assert_eq!(choose([with_noted_nack(&channel, &nacks), never()]).sync(), 3);
    assert!(!has_fired(&nacks, 0));
}

#[test]
fn a_nack_fires_after_a_wait_that_another_branch_ended() {
    let (channel, other, nacks) = (Channel::rendezvous(), Channel::rendezvous(), Arc::default());
    let event = choose([with_noted_nack(&channel, &nacks), other.receive().wrap(|value| value.unwrap())]);
    let waiting = thread::spawn(move || event.sync());
    until(|| other.receivers_len() == 1);
    assert!(!has_fired(&nacks, 0), "not before the choice is made");
    other.send(5).sync().unwrap();
    assert_eq!(waiting.join().unwrap(), 5);
    assert!(has_fired(&nacks, 0));
    assert_eq!(channel.receivers_len(), 0);
}

#[test]
fn a_thread_that_waits_for_a_nack_is_woken_by_it() {
    let nacks: Arc<Mutex<Vec<Event<()>>>> = Arc::default();
    let (channel, other) = (Channel::rendezvous(), Channel::rendezvous());
    let event = choose([with_noted_nack(&channel, &nacks), other.receive().wrap(|value| value.unwrap())]);
    let waiting = thread::spawn(move || event.sync());
    until(|| other.receivers_len() == 1);
    let nack = nacks.lock().unwrap()[0].clone();
    let watching = thread::spawn(move || nack.sync());
    other.send(1).sync().unwrap();
    waiting.join().unwrap();
    watching.join().unwrap();
}

#[test]
fn an_outer_nack_does_not_fire_when_a_nested_branch_of_it_wins() {
    let (a, b, inner, outer) = (Channel::bounded(1), Channel::bounded(1), Arc::default(), Arc::default());
    let nested = {
        let (a, b) = (with_noted_nack(&a, &inner), with_noted_nack(&b, &inner));
        let outer: Arc<Mutex<Vec<Event<()>>>> = Arc::clone(&outer);
        with_nack(move |nack| {
            outer.lock().unwrap().push(nack);
            choose([a.clone(), b.clone()])
        })
    };
    b.send(2).sync().unwrap();
    assert_eq!(choose([never(), nested, never()]).sync(), 2);
    assert_eq!((has_fired(&inner, 0), has_fired(&inner, 1), has_fired(&outer, 0)), (true, false, false));
}

#[test]
fn a_nack_fires_when_the_synchronisation_is_given_up() {
    let (channel, nacks) = (Channel::rendezvous(), Arc::default());
    let event = with_noted_nack(&channel, &nacks);
    assert_eq!(event.poll(), None);
    assert_eq!(event.sync_timeout(Duration::from_millis(5)), None);
    let mut future = event.synchronise();
    assert!(poll_once(&mut future).is_pending());
    assert_eq!((has_fired(&nacks, 0), has_fired(&nacks, 1), has_fired(&nacks, 2)), (true, true, false));
    drop(future);
    assert!(has_fired(&nacks, 2));
}

fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    std::pin::Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn a_panic_in_a_guard_gives_the_synchronisation_up() {
    let (channel, nacks) = (Channel::rendezvous(), Arc::default());
    let event = choose([with_noted_nack(&channel, &nacks), guard(|| panic!("in a guard"))]);
    assert!(catch_unwind(AssertUnwindSafe(|| event.sync())).is_err());
    assert!(has_fired(&nacks, 0));
    assert_eq!(channel.receivers_len(), 0);
    assert!(matches!(channel.try_send(1), Err(TrySendError::Full(1))));
}

#[test]
fn a_panic_in_a_winners_wrap_leaves_the_commit_standing_and_fires_the_losers_nacks() {
    for waits in [false, true] {
        let (channel, won, nacks) = (Channel::rendezvous(), Channel::rendezvous(), Arc::default());
        let winner = won.receive().wrap(|_: Result<u8, Closed>| panic!("in a wrap"));
        let event = choose([with_noted_nack(&channel, &nacks), winner]);
        let (sender, guest) = (won.clone(), channel.clone());
        let sending = thread::spawn(move || {
            until(|| !waits || guest.receivers_len() == 1);
            sender.send(1).sync()
        });
        until(|| waits || won.len() == 1);
        assert!(catch_unwind(AssertUnwindSafe(|| event.sync())).is_err());
        assert_eq!(sending.join().unwrap(), Ok(()), "the peer's side took effect");
        assert!(has_fired(&nacks, 0));
        assert_eq!((channel.receivers_len(), won.receivers_len()), (0, 0));
    }
}

#[test]
fn dropping_a_synchronisation_withdraws_every_offer() {
    let (a, b, parcel) = (Channel::rendezvous(), Channel::rendezvous(), Parcel::new(1));
    let event = choose([a.send_parcel(&parcel).wrap(|_| ()), b.receive().wrap(|_: Result<u8, _>| ())]);
    let mut future = event.synchronise();
    assert!(poll_once(&mut future).is_pending());
    assert_eq!((a.len(), b.receivers_len()), (1, 1));
    drop(future);
    assert_eq!((a.len(), b.receivers_len(), parcel.take()), (0, 0, Some(1)));
}

#[test]
fn one_parcel_is_offered_on_many_channels_and_received_once() {
    struct Once(u8);
    let channels = [Channel::rendezvous(), Channel::rendezvous(), Channel::rendezvous()];
    let parcel = Parcel::new(Once(1));
    let event = choose(channels.iter().map(|channel| channel.send_parcel(&parcel)));
    for channel in &channels {
        parcel.fill(Once(2));
        let (mut first, mut second) = (event.synchronise(), event.synchronise());
        assert!(poll_once(&mut first).is_pending() && poll_once(&mut second).is_pending());
        assert_eq!(channels.each_ref().map(Channel::len), [2, 2, 2]);
        assert_eq!(channel.try_receive().map(|once| once.0), Ok(2));
        assert!(channels.iter().all(|channel| channel.try_receive().is_err()), "the other one has nothing to give");
        assert_eq!((poll_once(&mut first).is_ready(), poll_once(&mut second).is_ready()), (true, false));
    }
    assert!(parcel.take().is_none());
}

#[test]
fn a_value_received_by_a_synchronisation_that_is_dropped_before_it_looks_goes_to_the_next() {
    let channel = Channel::rendezvous();
    let nacks = Arc::default();
    let mut future = with_noted_nack(&channel, &nacks).synchronise();
    assert!(poll_once(&mut future).is_pending());
    channel.try_send(8).unwrap();
    channel.send_and_go(9);
    drop(future);
    assert!(has_fired(&nacks, 0), "as if it had never been made");
    assert_eq!((channel.try_receive(), channel.try_receive()), (Ok(8), Ok(9)));
}

#[test]
fn a_value_that_comes_back_wakes_a_receiver_that_waits() {
    let channel = Channel::rendezvous();
    let mut future = channel.receive().synchronise();
    assert!(poll_once(&mut future).is_pending());
    channel.try_send(8).unwrap();
    let receiver = channel.clone();
    let waiting = thread::spawn(move || receiver.receive().sync());
    until(|| channel.receivers_len() == 1);
    drop(future);
    assert_eq!(waiting.join().unwrap(), Ok(8));
}

#[test]
fn a_direct_receive_that_is_dropped_gives_its_value_back_too() {
    let channel = Channel::rendezvous();
    let mut future = channel.receive_async();
    assert!(poll_once(&mut future).is_pending());
    channel.try_send(8).unwrap();
    drop(future);
    assert_eq!(channel.try_receive(), Ok(8));
    let mut future = channel.send_async(1);
    assert!(poll_once(&mut future).is_pending());
    drop(future);
    assert_eq!(channel.try_receive(), Err(TryReceiveError::Empty));
}

#[test]
fn a_task_that_sends_to_a_full_channel_gets_its_value_back_when_it_is_closed() {
    let channel = Channel::bounded(1);
    channel.try_send(1).unwrap();
    let (mut waits, mut comes_later) = (channel.send_async(2), channel.send_async(3));
    assert!(poll_once(&mut waits).is_pending());
    channel.close();
    assert_eq!(poll_once(&mut waits), Poll::Ready(Err(SendError(2))));
    assert_eq!(poll_once(&mut comes_later), Poll::Ready(Err(SendError(3))));
    assert_eq!((channel.try_receive(), channel.try_receive()), (Ok(1), Err(TryReceiveError::Closed)));
}

#[test]
fn threads_that_look_before_they_wait_still_find_the_end() {
    for capacity in [1, 3, 100] {
        let channel = Channel::bounded(capacity);
        let receiver = channel.clone();
        let receiving =
            std::thread::spawn(move || std::iter::from_fn(|| receiver.blocking_receive().ok()).sum::<u64>());
        (0..10_000).for_each(|value| channel.blocking_send(value).unwrap());
        channel.close();
        assert_eq!(channel.blocking_send(1), Err(SendError(1)));
        assert_eq!(receiving.join().unwrap(), 10_000 * 9_999 / 2);
    }
}

#[test]
fn a_send_that_was_received_stands_even_if_the_sender_is_dropped_before_it_looks() {
    let channel = Channel::rendezvous();
    let parcel = Parcel::new(4);
    let mut future = channel.send_parcel(&parcel).synchronise();
    assert!(poll_once(&mut future).is_pending());
    assert_eq!(channel.try_receive(), Ok(4));
    drop(future);
    assert_eq!((parcel.take(), channel.try_receive()), (None, Err(TryReceiveError::Empty)));
}

#[test]
fn a_limit_that_races_with_a_match_never_loses_the_match() {
    let channel = Channel::rendezvous();
    let (sender, rounds) = (channel.clone(), 2_000);
    let received = Arc::new(AtomicUsize::new(0));
    let counter = received.clone();
    let receiving = thread::spawn(move || {
        let event = channel.receive();
        loop {
            match event.sync_timeout(Duration::from_micros(20)) {
                Some(Ok(_)) => counter.fetch_add(1, SeqCst),
                Some(Err(Closed)) => return,
                None => continue,
            };
        }
    });
    let mut sent = 0;
    while sent < rounds {
        sent += usize::from(sender.send(sent).sync_timeout(Duration::from_micros(20)).is_some());
    }
    sender.close();
    receiving.join().unwrap();
    assert_eq!(received.load(SeqCst), rounds);
}

#[test]
fn a_timer_ends_a_choice_and_leaves_nothing_behind() {
    let channel = Channel::<u8>::rendezvous();
    let event = choose([channel.receive().wrap(Some), after(Duration::from_millis(10)).wrap(|()| None)]);
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
    let event = choose([future.clone(), other.receive().wrap(|value| value.unwrap())]);
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
    let receive = channel.receive();
    on_one_thread(async {
        for round in 0..100 {
            channel.send_and_go(round);
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
    let mut future = channel.receive().synchronise();
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
    let work = choose_biased([stop.fired().wrap(|()| false), jobs.receive().wrap(|_| true)]);
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
    let event = channel.receive().within(Duration::from_millis(5)).unless(&stop);
    assert_eq!(event.sync(), Some(None));
    channel.send_and_go(1);
    assert_eq!(on_one_thread(async { event.synchronise().await }), Some(Some(Ok(1))));
    channel.send_and_go(2);
    assert_eq!(channel.receive().within(Duration::ZERO).sync(), Some(Ok(2)), "what is there is taken");
    stop.fire();
    assert_eq!(event.sync(), None);
    assert_eq!(channel.receivers_len(), 0);
}

#[test]
fn dropping_all_senders_or_all_receivers_closes_the_channel() {
    let (sender, receiver) = halves(Channel::bounded(2));
    let second = sender.clone();
    sender.blocking_send(1).unwrap();
    drop(sender);
    assert_eq!((receiver.try_receive(), receiver.try_receive()), (Ok(1), Err(TryReceiveError::Empty)));
    let waiting = thread::spawn(move || receiver.receive().sync());
    drop(second);
    assert_eq!(waiting.join().unwrap(), Err(Closed));

    let (sender, receiver) = halves(Channel::rendezvous());
    let sending = thread::spawn(move || sender.send_once(String::from("to nobody")).sync());
    drop(receiver);
    assert_eq!(sending.join().unwrap(), Err(Closed));
}

#[test]
fn a_future_is_given_up_when_the_event_takes_effect() {
    let (channel, held) = (Channel::rendezvous(), Arc::new(()));
    let end = channel.receive();
    on_one_thread(async {
        let (kept, sender) = (held.clone(), channel.clone());
        let waiting = async {
            let pending = async move {
                std::future::pending::<()>().await;
                drop(kept);
            };
            weir_events::until(pin!(pending), &end).await
        };
        let (ended, _) = tokio::join!(waiting, async { sender.send_and_go(5) });
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
        events.receive()
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
    let mut receiving = channel.receive().synchronise();
    assert!(!receiving.is_waiting(), "it has not begun");
    assert!(poll_once(&mut receiving).is_pending() && receiving.is_waiting());
    channel.send_and_go(1);
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
