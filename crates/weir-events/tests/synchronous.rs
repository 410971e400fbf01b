//! Synchronous events: groups 1 to 6, 11 and 13 of the behaviour that must hold.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod common;

use common::{TOO_LONG, on_one_thread, until};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use weir_events::*;

fn swap_with_anybody(channel: &Channel<usize>, own: usize) -> Event<Result<Option<usize>, Closed>> {
    choose([channel.send(own).wrap(|sent| sent.map(|()| None)), channel.recv().wrap(|received| received.map(Some))])
}

#[test]
fn sender_and_receiver_meet() {
    let channel = Channel::rendezvous();
    let sender = channel.clone();
    let sending = thread::spawn(move || sender.send(7).sync());
    assert_eq!(channel.recv().sync(), Ok(7));
    assert_eq!(sending.join().unwrap(), Ok(()));
}

#[test]
fn blocked_senders_are_served_first_come_first_served() {
    let channel = Channel::rendezvous();
    let senders: Vec<_> = (0..5)
        .map(|n| {
            let sender = channel.clone();
            let handle = thread::spawn(move || sender.send(n).sync());
            until(|| channel.len() == n + 1);
            handle
        })
        .collect();
    let received: Vec<_> = (0..5).map(|_| channel.recv().sync().unwrap()).collect();
    assert_eq!(received, [0, 1, 2, 3, 4]);
    senders.into_iter().for_each(|sender| assert_eq!(sender.join().unwrap(), Ok(())));
}

#[test]
fn blocked_receivers_are_served_first_come_first_served() {
    let channel = Channel::rendezvous();
    let receivers: Vec<_> = (0..5)
        .map(|n| {
            let receiver = channel.clone();
            let handle = thread::spawn(move || receiver.recv().sync());
            until(|| channel.receivers_len() == n + 1);
            handle
        })
        .collect();
    (0..5).for_each(|n| channel.send(n).sync().unwrap());
    for (n, receiver) in receivers.into_iter().enumerate() {
        assert_eq!(receiver.join().unwrap(), Ok(n));
    }
}

#[test]
fn a_synchronisation_never_pairs_with_itself() {
    let channel = Channel::rendezvous();
    assert_eq!(swap_with_anybody(&channel, 1).sync_timeout(Duration::from_millis(20)), None);
    assert!(channel.is_empty());
    assert_eq!(channel.receivers_len(), 0);
}

#[test]
fn two_symmetric_choices_of_threads_pair_with_each_other() {
    let channel = Channel::rendezvous();
    let other = channel.clone();
    let there = thread::spawn(move || swap_with_anybody(&other, 1).sync().unwrap());
    let here = swap_with_anybody(&channel, 2).sync().unwrap();
    let pair = (here, there.join().unwrap());
    assert!(pair == (Some(1), None) || pair == (None, Some(2)), "{pair:?}");
}

#[test]
fn two_symmetric_choices_of_tasks_of_one_thread_pair_with_each_other() {
    let channel = Channel::rendezvous();
    let (a, b) = (swap_with_anybody(&channel, 1), swap_with_anybody(&channel, 2));
    let pair = on_one_thread(async { tokio::join!(a.synchronise(), b.synchronise()) });
    assert!(pair == (Ok(Some(2)), Ok(None)) || pair == (Ok(None), Ok(Some(1))), "{pair:?}");
}

/// Everybody who received says from whom; returns how many never met anybody.
fn swap_among(parties: usize) -> usize {
    let channel = Channel::rendezvous();
    let met = Arc::new(Mutex::new(Vec::new()));
    let handles: Vec<_> = (0..parties)
        .map(|own| {
            let (channel, met) = (channel.clone(), met.clone());
            thread::spawn(move || match swap_with_anybody(&channel, own).sync() {
                Ok(Some(other)) => met.lock().unwrap().push((own, other)),
                Ok(None) => {}
                Err(Closed) => met.lock().unwrap().push((own, own)),
            })
        })
        .collect();
    until(|| handles.iter().filter(|handle| !handle.is_finished()).count() <= parties % 2);
    channel.close();
    handles.into_iter().for_each(|handle| handle.join().unwrap());
    assert!(channel.is_empty() && channel.receivers_len() == 0);
    let met = met.lock().unwrap();
    let mut seen: Vec<_> = met.iter().flat_map(|&(a, b)| if a == b { vec![a] } else { vec![a, b] }).collect();
    seen.sort_unstable();
    assert_eq!(seen, (0..parties).collect::<Vec<_>>(), "everybody meets somebody, or is left, exactly once");
    met.iter().filter(|(a, b)| a == b).count()
}

#[test]
fn forty_four_symmetric_waiters_all_pair_up() {
    assert_eq!(swap_among(44), 0);
}

#[test]
fn of_fifty_five_symmetric_waiters_exactly_one_is_left() {
    assert_eq!(swap_among(55), 1);
}

#[test]
fn exactly_one_branch_takes_effect_and_losers_keep_what_they_have() {
    let (a, b) = (Channel::rendezvous(), Channel::rendezvous());
    let parcel = Parcel::new(String::from("dear"));
    _ = b.post(5);
    let event = choose([a.send_parcel(&parcel).wrap(|_| 0), b.recv().wrap(|received| received.unwrap())]);
    assert_eq!(event.sync(), 5);
    assert_eq!(parcel.take().as_deref(), Some("dear"), "a losing send still owns its value");
    assert_eq!(a.try_recv(), Err(TryRecvError::Empty));
}

#[test]
fn a_losing_receive_took_nothing() {
    let (a, b) = (Channel::bounded(1), Channel::bounded(1));
    a.blocking_send(1).unwrap();
    b.blocking_send(2).unwrap();
    let first = choose([a.recv(), b.recv()]).sync().unwrap();
    let second = choose([a.recv(), b.recv()]).sync().unwrap();
    assert_eq!(first + second, 3);
}

#[test]
fn an_event_synchronised_twice_is_two_synchronisations() {
    let channel = Channel::bounded(4);
    let send = channel.send(String::from("again"));
    assert_eq!((send.sync(), send.sync()), (Ok(()), Ok(())));
    let receive = channel.recv();
    let values = on_one_thread(async { tokio::join!(receive.synchronise(), receive.synchronise()) });
    assert_eq!(values, (Ok("again".into()), Ok("again".into())));
}

#[test]
fn an_event_synchronised_by_two_threads_at_once_is_two_synchronisations() {
    let channel = Channel::rendezvous();
    let receive = channel.recv();
    let handles: Vec<_> = (0..2)
        .map(|_| {
            let receive = receive.clone();
            thread::spawn(move || receive.sync().unwrap())
        })
        .collect();
    channel.send(1).sync().unwrap();
    channel.send(2).sync().unwrap();
    assert_eq!(handles.into_iter().map(|handle| handle.join().unwrap()).sum::<i32>(), 3);
}

#[test]
fn guards_run_once_per_synchronisation_all_of_them_before_anything_is_tried() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let guarded = |name: &'static str| {
        let log = log.clone();
        guard(move || {
            log.lock().unwrap().push(name);
            let log = log.clone();
            always(name).wrap(move |name| log.lock().unwrap().push(if name == "a" { "took a" } else { "took b" }))
        })
    };
    let event = choose_biased([guarded("a"), guarded("b")]);
    assert!(log.lock().unwrap().is_empty(), "nothing runs when the event is built");
    event.sync();
    assert_eq!(*log.lock().unwrap(), ["a", "b", "took a"]);
    event.sync();
    assert_eq!(*log.lock().unwrap(), ["a", "b", "took a", "a", "b", "took a"]);
}

#[test]
fn guards_run_once_even_if_the_synchronisation_has_to_wait() {
    let runs = Arc::new(AtomicUsize::new(0));
    let channel = Channel::rendezvous();
    let (count, receiver) = (runs.clone(), channel.clone());
    let event = guard(move || {
        count.fetch_add(1, SeqCst);
        receiver.recv()
    });
    let waiting = thread::spawn(move || event.sync());
    until(|| channel.receivers_len() == 1);
    channel.send(3).sync().unwrap();
    assert_eq!((waiting.join().unwrap(), runs.load(SeqCst)), (Ok(3), 1));
}

#[test]
fn choosing_between_two_ready_branches_is_fair() {
    let event = choose([always(0), always(1)]);
    assert_fair((0..1000).map(|_| event.sync()).sum());
}

#[test]
fn choosing_is_fair_whatever_lies_between_the_ready_branches() {
    let mut branches: Vec<_> = (0..10).map(|_| Channel::rendezvous().recv().wrap(|_: Result<usize, _>| 9)).collect();
    branches[0] = always(0);
    branches[1] = always(1);
    let event = choose(branches);
    assert_fair((0..1000).map(|_| event.sync()).sum());
}

#[test]
fn a_choice_in_a_choice_counts_as_its_branches() {
    let event = choose([choose([always(0), always(0), always(0)]), always(1)]);
    let ones: usize = (0..4000).map(|_| event.sync()).sum();
    assert!((800..1200).contains(&ones), "one of four branches was taken {ones} of 4,000 times");
}

#[test]
fn a_biased_choice_takes_the_first_that_is_ready() {
    let event = choose_biased([never(), always(0), always(1)]);
    assert_eq!((0..1000).map(|_| event.sync()).sum::<usize>(), 0);
}

#[test]
fn a_biased_choice_inside_a_fair_one_keeps_its_order_and_the_others_stay_fair() {
    let event = choose([choose_biased([always(0), always(100_000)]), always(1)]);
    assert_fair((0..1000).map(|_| event.sync()).sum());
}

fn assert_fair(ones: usize) {
    assert!((200..800).contains(&ones), "one of two branches was taken {ones} of 1,000 times");
}

#[test]
fn two_channels_that_always_have_values_are_both_served() {
    let (a, b) = (Channel::unbounded(), Channel::unbounded());
    (0..1000).for_each(|_| {
        a.try_send(0).unwrap();
        b.try_send(1).unwrap();
    });
    let event = choose([a.recv(), b.recv()]);
    assert_fair((0..1000).map(|_| event.sync().unwrap()).sum());
}

#[test]
fn receiving_from_a_closed_channel_drains_it_and_then_reports_it() {
    let channel = Channel::bounded(2);
    channel.send(1).sync().unwrap();
    _ = channel.post(2);
    _ = channel.post(3);
    channel.close();
    let receive = channel.recv();
    let all: Vec<_> = (0..4).map(|_| receive.sync()).collect();
    assert_eq!(all, [Ok(1), Ok(2), Ok(3), Err(Closed)]);
    assert_eq!(channel.send(4).sync(), Err(Closed));
}

#[test]
fn an_offer_that_waits_on_a_channel_that_is_closed_is_woken() {
    let channel = Channel::<u8>::rendezvous();
    let (receiver, sender) = (channel.clone(), Channel::<u8>::rendezvous());
    let receiving = thread::spawn(move || receiver.recv().sync());
    let parcel = Parcel::new(9);
    let sending = thread::spawn({
        let (sender, parcel) = (sender.clone(), parcel.clone());
        move || sender.send_parcel(&parcel).sync()
    });
    until(|| channel.receivers_len() == 1 && sender.len() == 1);
    channel.close();
    sender.close();
    assert_eq!((receiving.join().unwrap(), sending.join().unwrap()), (Err(Closed), Err(Closed)));
    assert_eq!(parcel.take(), Some(9), "what a closed channel refused comes back");
}

#[test]
fn a_choice_of_fifty_thousand_branches_is_linear() {
    let time = |branches: usize| {
        let channels: Vec<_> = (0..branches).map(|_| Channel::<usize>::rendezvous()).collect();
        let last = channels[branches / 2].clone();
        let event = choose(channels.iter().map(Channel::recv));
        let start = Instant::now();
        let waiting = thread::spawn(move || event.sync());
        until(|| last.receivers_len() == 1);
        last.send(1).sync().unwrap();
        assert_eq!(waiting.join().unwrap(), Ok(1));
        assert!(channels.iter().all(|channel| channel.receivers_len() == 0));
        start.elapsed()
    };
    // Once is enough: what else the machine does makes one of them slower, and a square is one each time.
    let is_linear = |(small, large): (Duration, Duration)| large < TOO_LONG && large < small * 50;
    assert!((0..5).any(|_| is_linear((time(5_000), time(50_000)))));
}

#[test]
fn a_choice_of_fifty_thousand_branches_on_one_channel_is_linear_too() {
    let channel = Channel::<usize>::rendezvous();
    let event = choose((0..50_000).map(|_| channel.recv()));
    assert_eq!(event.sync_timeout(Duration::from_millis(5)), None);
    assert_eq!(channel.receivers_len(), 0);
}

#[test]
fn wraps_apply_inside_out_and_in_the_thread_that_synchronises() {
    let here = thread::current().id();
    let event = always(1).wrap(|n| n + 1).wrap(move |n| (n * 10, thread::current().id() == here));
    assert_eq!(event.sync(), (20, true));
}

#[test]
fn an_event_without_branches_never_takes_effect() {
    assert_eq!(choose::<()>([]).sync_timeout(Duration::from_millis(5)), None);
    assert_eq!(never::<()>().poll(), None);
}

#[test]
fn branches_without_base_events_hide_no_other_branch() {
    let (a, b) = (Channel::bounded(1), Channel::bounded(1));
    let nested = choose([never(), choose([a.recv(), b.recv()])]);
    let empty_first = choose([choose([]), choose([a.recv(), b.recv()]), never()]);
    for event in [nested, empty_first] {
        for (channel, value) in [(&a, 1), (&b, 2)] {
            channel.blocking_send(value).unwrap();
            assert_eq!(event.sync_timeout(TOO_LONG), Some(Ok(value)));
        }
    }
    assert_eq!(choose([choose::<()>([]), never()]).poll(), None);
}
