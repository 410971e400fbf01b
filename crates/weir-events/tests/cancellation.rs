//! Nacks, panics, drops and time limits: groups 7 to 10 of the behaviour that must hold.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod common;

use common::{poll_once, until};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::thread;
use std::time::Duration;
use weir_events::*;

/// An event that yields the channel's value, and the nacks that its synchronisations were given, in order.
fn with_noted_nack(channel: &Channel<u8>, nacks: &Arc<Mutex<Vec<Event<()>>>>) -> Event<u8> {
    let (channel, nacks) = (channel.clone(), nacks.clone());
    with_nack(move |nack| {
        nacks.lock().unwrap().push(nack);
        channel.recv().wrap(|value| value.unwrap())
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
    let event = choose([with_noted_nack(&channel, &nacks), other.recv().wrap(|value| value.unwrap())]);
    let waiting = thread::spawn(move || event.sync());
    until(|| other.receivers_len() == 1);
    assert!(!has_fired(&nacks, 0), "not before the choice is made");
    other.send(5).sync().unwrap();
    assert_eq!(waiting.join().unwrap(), 5);
    assert!(has_fired(&nacks, 0));
    assert_eq!(channel.receivers_len(), 0);
}

#[test]
fn the_nack_of_a_winner_stays_silent_after_a_wait_whichever_branch_wins() {
    for winner in 0..3 {
        let channels = [Channel::rendezvous(), Channel::rendezvous(), Channel::rendezvous()];
        let nacks: [Arc<Mutex<Vec<Event<()>>>>; 3] = Default::default();
        let branches = channels.iter().zip(&nacks).map(|(channel, nacks)| with_noted_nack(channel, nacks));
        let mut waiting = choose(branches).synchronise();
        assert!(poll_once(&mut waiting).is_pending());
        channels[winner].try_send(7).unwrap();
        assert_eq!(poll_once(&mut waiting), Poll::Ready(7));
        let fired: Vec<_> = (0..3).filter(|number| has_fired(&nacks[*number], 0)).collect();
        assert_eq!(fired, (0..3).filter(|number| *number != winner).collect::<Vec<_>>());
    }
}

#[test]
fn a_thread_that_waits_for_a_nack_is_woken_by_it() {
    let nacks: Arc<Mutex<Vec<Event<()>>>> = Arc::default();
    let (channel, other) = (Channel::rendezvous(), Channel::rendezvous());
    let event = choose([with_noted_nack(&channel, &nacks), other.recv().wrap(|value| value.unwrap())]);
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
        let winner = won.recv().wrap(|_: Result<u8, Closed>| panic!("in a wrap"));
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
    let event = choose([a.send_parcel(&parcel).wrap(|_| ()), b.recv().wrap(|_: Result<u8, _>| ())]);
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
        assert_eq!(channel.try_recv().map(|once| once.0), Ok(2));
        assert!(channels.iter().all(|channel| channel.try_recv().is_err()), "the other one has nothing to give");
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
    _ = channel.post(9);
    drop(future);
    assert!(!has_fired(&nacks, 0), "the commit stands");
    assert_eq!((channel.try_recv(), channel.try_recv()), (Ok(8), Ok(9)));
}

#[test]
fn a_value_that_comes_back_wakes_a_receiver_that_waits() {
    let channel = Channel::rendezvous();
    let mut future = channel.recv().synchronise();
    assert!(poll_once(&mut future).is_pending());
    channel.try_send(8).unwrap();
    let receiver = channel.clone();
    let waiting = thread::spawn(move || receiver.recv().sync());
    until(|| channel.receivers_len() == 1);
    drop(future);
    assert_eq!(waiting.join().unwrap(), Ok(8));
}

#[test]
fn a_direct_receive_that_is_dropped_gives_its_value_back_too() {
    let channel = Channel::rendezvous();
    let mut future = channel.recv_async();
    assert!(poll_once(&mut future).is_pending());
    channel.try_send(8).unwrap();
    drop(future);
    assert_eq!(channel.try_recv(), Ok(8));
    let mut future = channel.send_async(1);
    assert!(poll_once(&mut future).is_pending());
    drop(future);
    assert_eq!(channel.try_recv(), Err(TryRecvError::Empty));
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
    assert_eq!((channel.try_recv(), channel.try_recv()), (Ok(1), Err(TryRecvError::Closed)));
}

#[test]
fn threads_that_look_before_they_wait_still_find_the_end() {
    for capacity in [1, 3, 100] {
        let channel = Channel::bounded(capacity);
        let receiver = channel.clone();
        let receiving = std::thread::spawn(move || std::iter::from_fn(|| receiver.blocking_recv().ok()).sum::<u64>());
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
    assert_eq!(channel.try_recv(), Ok(4));
    drop(future);
    assert_eq!((parcel.take(), channel.try_recv()), (None, Err(TryRecvError::Empty)));
}

#[test]
fn a_limit_that_races_with_a_match_never_loses_the_match() {
    let channel = Channel::rendezvous();
    let (sender, rounds) = (channel.clone(), 2_000);
    let received = Arc::new(AtomicUsize::new(0));
    let counter = received.clone();
    let receiving = thread::spawn(move || {
        let event = channel.recv();
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
