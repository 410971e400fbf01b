//! A value is consumed when it has left the channel to a receiver, for every capacity.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod common;

use common::{TOO_LONG, poll_once, until};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::Poll;
use std::thread;
use weir_events::*;

fn channels() -> [Channel<u32>; 4] {
    [Channel::rendezvous(), Channel::bounded(1), Channel::bounded(64), Channel::unbounded()]
}

/// An asynchronous send, and the number of its post-consumption actions that have run.
fn counted_send(channel: &Channel<u32>, value: u32) -> (AsyncEvent<(), ()>, Arc<AtomicUsize>) {
    let consumed = Arc::new(AtomicUsize::new(0));
    let counter = consumed.clone();
    (a_send(channel, value).a_wrap(move |_| _ = counter.fetch_add(1, SeqCst)), consumed)
}

#[test]
fn a_transformed_send_takes_effect_only_when_its_value_is_received() {
    for channel in channels() {
        let (send, consumed) = counted_send(&channel, 7);
        let mut sending = send.a_trans().synchronise();
        assert_eq!((send.a_trans().poll(), poll_once(&mut sending)), (None, Poll::Pending));
        assert_eq!((channel.len(), consumed.load(SeqCst)), (1, 0));
        assert_eq!(channel.try_recv(), Ok(7));
        assert_eq!(poll_once(&mut sending), Poll::Ready(()));
        until(|| consumed.load(SeqCst) == 1);
        assert!(channel.is_empty());
    }
}

#[test]
fn a_choice_that_may_start_anything_runs_actions_when_the_value_is_received() {
    for channel in channels() {
        let (send, consumed) = counted_send(&channel, 7);
        a_choose([send]).a_sync();
        assert_eq!((channel.len(), consumed.load(SeqCst)), (1, 0));
        assert_eq!(channel.try_recv(), Ok(7));
        until(|| consumed.load(SeqCst) == 1);
    }
}

#[test]
fn a_synchronous_choice_waits_for_the_receipt_and_not_for_the_buffer() {
    for channel in channels() {
        let (send, consumed) = counted_send(&channel, 7);
        let waiting = thread::spawn(move || s_choose([send]).a_sync());
        until(|| channel.len() == 1);
        assert_eq!((consumed.load(SeqCst), waiting.is_finished()), (0, false));
        assert_eq!(channel.try_recv(), Ok(7));
        waiting.join().unwrap();
        until(|| consumed.load(SeqCst) == 1);
    }
}

#[test]
fn a_transformed_send_of_a_parcel_waits_for_the_receipt_too() {
    for channel in channels() {
        let parcel = Parcel::new(7);
        let mut sending = a_send_parcel(&channel, &parcel).a_trans().synchronise();
        assert!(poll_once(&mut sending).is_pending());
        drop(sending);
        assert_eq!((channel.len(), parcel.take()), (0, Some(7)));
        parcel.fill(8);
        let mut sending = a_send_parcel(&channel, &parcel).a_trans().synchronise();
        assert!(poll_once(&mut sending).is_pending());
        assert_eq!(channel.blocking_recv(), Ok(8));
        assert!(poll_once(&mut sending).is_ready() && parcel.take().is_none());
    }
}

#[test]
fn an_offer_that_waits_for_its_receipt_keeps_its_place_among_buffered_values() {
    for channel in [Channel::bounded(64), Channel::unbounded()] {
        (0..3).for_each(|value| channel.blocking_send(value).unwrap());
        let mut sending = a_send(&channel, 3).a_trans().synchronise();
        assert!(poll_once(&mut sending).is_pending());
        (4..8).for_each(|value| channel.blocking_send(value).unwrap());
        assert_eq!(channel.len(), 8);
        let received: Vec<_> = (0..8).map(|_| channel.try_recv().unwrap()).collect();
        assert_eq!(received, (0..8).collect::<Vec<_>>());
        assert!(poll_once(&mut sending).is_ready());
    }
}

#[test]
fn a_returned_value_comes_before_an_offer_that_waits_for_its_receipt() {
    let channel = Channel::bounded(64);
    let mut receiving = channel.recv_async();
    assert!(poll_once(&mut receiving).is_pending());
    (0..3).for_each(|value| channel.try_send(value).unwrap());
    let mut sending = a_send(&channel, 3).a_trans().synchronise();
    assert!(poll_once(&mut sending).is_pending());
    channel.try_send(4).unwrap();
    drop(receiving);
    let received: Vec<_> = (0..5).map(|_| channel.try_recv().unwrap()).collect();
    assert_eq!(received, [0, 1, 2, 3, 4]);
}

#[test]
fn an_offer_that_waits_for_its_receipt_holds_up_no_other_sender() {
    let channel = Channel::bounded(2);
    let mut sending = a_send(&channel, 9).a_trans().synchronise();
    assert!(poll_once(&mut sending).is_pending());
    assert_eq!((channel.try_send(1), channel.try_send(2)), (Ok(()), Ok(())));
    assert_eq!(channel.try_send(3), Err(TrySendError::Full(3)));
    let received: Vec<_> = (0..3).map(|_| channel.try_recv().unwrap()).collect();
    assert_eq!(received, [9, 1, 2]);
}

#[test]
fn a_channel_that_closes_refuses_an_offer_that_waits_for_its_receipt() {
    for channel in channels() {
        let ended = Channel::unbounded();
        let into = ended.clone();
        let mut sending = a_send(&channel, 9).a_wrap(move |sent| _ = into.post(sent)).a_trans().synchronise();
        assert!(poll_once(&mut sending).is_pending());
        channel.close();
        assert!(poll_once(&mut sending).is_ready());
        assert_eq!(ended.recv().sync_timeout(TOO_LONG), Some(Ok(Err(Closed))));
        assert_eq!(channel.try_recv(), Err(TryRecvError::Closed));
    }
}

#[test]
fn many_offers_that_wait_for_their_receipt_are_received_once_each_beside_buffered_sends() {
    let channel = Channel::bounded(16);
    let senders: Vec<_> = (0..4)
        .map(|sender| {
            let channel = channel.clone();
            thread::spawn(move || {
                for value in (0..500).map(|number| sender * 500 + number) {
                    match value % 2 {
                        0 => a_send(&channel, value).a_trans().sync(),
                        _ => channel.blocking_send(value).unwrap(),
                    }
                }
            })
        })
        .collect();
    let mut received: Vec<u32> =
        (0..2000).map(|_| channel.recv().sync_timeout(TOO_LONG).expect("every value comes").unwrap()).collect();
    senders.into_iter().for_each(|sender| sender.join().unwrap());
    for sender in 0..4 {
        let own: Vec<_> = received.iter().filter(|value| **value / 500 == sender).copied().collect();
        assert!(own.is_sorted(), "each sender's values stay in order");
    }
    received.sort_unstable();
    assert!(received.into_iter().eq(0..2000) && channel.is_empty());
}
