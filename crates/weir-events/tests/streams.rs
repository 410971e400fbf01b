//! Channels as streams, with the feature `stream`.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod common;

use common::CountingWaker;
use futures_core::Stream;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use weir_events::*;

fn next<S: Stream + Unpin>(stream: &mut S) -> Poll<Option<S::Item>> {
    CountingWaker::new().poll(&mut poll_fn(|context| Pin::new(&mut *stream).poll_next(context)))
}

#[test]
fn a_stream_yields_the_values_of_its_channel_until_it_is_closed() {
    let (sender, receiver) = bounded(2);
    let mut stream = receiver.into_stream();
    assert!(next(&mut stream).is_pending());
    sender.try_send(1).unwrap();
    sender.try_send(2).unwrap();
    assert_eq!((next(&mut stream), next(&mut stream)), (Poll::Ready(Some(1)), Poll::Ready(Some(2))));
    assert!(next(&mut stream).is_pending() && !sender.is_closed(), "the stream keeps its side open");
    drop(sender);
    assert_eq!((next(&mut stream), next(&mut stream)), (Poll::Ready(None), Poll::Ready(None)));
}

#[test]
fn a_stream_that_is_dropped_leaves_its_values_in_the_channel() {
    let channel = Channel::rendezvous();
    let mut stream = channel.stream();
    assert!(next(&mut stream).is_pending());
    channel.try_send(1).unwrap();
    drop(stream);
    assert_eq!(channel.try_recv(), Ok(1));
}
