//! A synchronisation that is dropped after its commit: the commit stands, and received values go back to their positions.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod common;

use common::poll_once;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use weir_events::*;

#[test]
fn values_of_dropped_receives_go_back_in_order_whatever_the_order_of_the_drops() {
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1], [1, 3, 0, 2]] {
        for capacity in [0, 1, 2, 100, usize::MAX] {
            let channel = if capacity == usize::MAX { Channel::unbounded() } else { Channel::bounded(capacity) };
            let mut receiving: Vec<_> = (0..4).map(|_| Some(channel.recv().synchronise())).collect();
            let mut directly: Vec<_> = (0..2).map(|_| channel.recv_async()).collect();
            receiving.iter_mut().flatten().for_each(|future| assert!(poll_once(future).is_pending()));
            directly.iter_mut().for_each(|future| assert!(poll_once(future).is_pending()));
            (0..8).for_each(|value| _ = channel.post(value));
            order.iter().for_each(|&number| receiving[number] = None);
            directly.drain(..).rev().for_each(drop);
            let all: Vec<_> = std::iter::from_fn(|| channel.try_recv().ok()).collect();
            assert_eq!(all, (0..8).collect::<Vec<_>>(), "capacity {capacity}, dropped in order {order:?}");
        }
    }
}

#[test]
fn a_returned_value_is_received_between_those_that_came_before_and_after_it() {
    let channel = Channel::rendezvous();
    let mut receiving: Vec<_> = (0..3).map(|_| channel.recv().synchronise()).collect();
    receiving.iter_mut().for_each(|future| assert!(poll_once(future).is_pending()));
    (0..3).for_each(|value| channel.try_send(value).unwrap());
    let (third, second, first) = (receiving.pop(), receiving.pop(), receiving.pop());
    drop(third);
    drop(first);
    assert_eq!(channel.try_recv(), Ok(0));
    drop(second);
    assert_eq!((channel.try_recv(), channel.try_recv()), (Ok(1), Ok(2)));
    assert_eq!((channel.len(), channel.try_recv()), (0, Err(TryRecvError::Empty)));
}

#[test]
fn a_full_channel_with_returned_values_takes_no_more_until_they_are_received() {
    let channel = Channel::bounded(1);
    let mut receiving: Vec<_> = (0..2).map(|_| channel.recv_async()).collect();
    receiving.iter_mut().for_each(|future| assert!(poll_once(future).is_pending()));
    (0..3).for_each(|value| channel.try_send(value).unwrap());
    drop(receiving);
    assert_eq!((channel.len(), channel.try_send(9)), (3, Err(TrySendError::Full(9))));
    let mut waits = channel.send_async(3);
    assert!(poll_once(&mut waits).is_pending());
    for value in 0..3 {
        assert_eq!(channel.try_recv(), Ok(value));
    }
    assert_eq!((poll_once(&mut waits), channel.try_recv()), (Poll::Ready(Ok(())), Ok(3)));
}

#[test]
fn a_returned_value_can_be_received_after_the_channel_was_closed() {
    let channel = Channel::rendezvous();
    let mut receiving = channel.recv().synchronise();
    assert!(poll_once(&mut receiving).is_pending());
    channel.try_send(1).unwrap();
    channel.close();
    drop(receiving);
    assert_eq!((channel.try_recv(), channel.try_recv()), (Ok(1), Err(TryRecvError::Closed)));
}

/// Client and server of one lock, by a reply and a nack.
struct LockServer {
    replies: Channel<()>,
    nack: Arc<Mutex<Option<Event<()>>>>,
    acquire: Event<()>,
}

fn lock_server() -> LockServer {
    let (replies, nack) = (Channel::rendezvous(), Arc::new(Mutex::new(None)));
    let (reply, seen) = (replies.clone(), nack.clone());
    let acquire = with_nack(move |gone| {
        *seen.lock().unwrap() = Some(gone);
        reply.recv().wrap(|granted| granted.unwrap())
    });
    LockServer { replies, nack, acquire }
}

#[test]
fn a_reply_and_a_nack_never_both_reach_the_server() {
    for is_committed in [false, true] {
        let LockServer { replies, nack, acquire } = lock_server();
        let mut client = acquire.synchronise();
        assert!(poll_once(&mut client).is_pending());
        let is_granted = is_committed && replies.try_send(()).is_ok();
        drop(client);
        let is_refused = nack.lock().unwrap().take().unwrap().poll().is_some();
        assert_eq!((is_granted, is_refused), (is_committed, !is_committed));
    }
}

#[test]
fn the_losers_of_a_dropped_commit_are_told() {
    let LockServer { replies, nack, acquire } = lock_server();
    let other = Channel::rendezvous();
    let mut client = choose([acquire, other.recv().wrap(|value: Result<(), Closed>| value.unwrap())]).synchronise();
    assert!(poll_once(&mut client).is_pending());
    other.try_send(()).unwrap();
    drop(client);
    assert!(nack.lock().unwrap().take().unwrap().poll().is_some());
    assert_eq!((replies.receivers_len(), other.try_recv()), (0, Ok(())));
}
