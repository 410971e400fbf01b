//! Channels as sinks, with the feature `sink`.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod common;

use common::CountingWaker;
use futures_sink::Sink;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use weir_events::*;

type Step<S> = fn(Pin<&mut S>, &mut Context<'_>) -> Poll<Result<(), Closed>>;

fn step<S: Sink<u32, Error = Closed> + Unpin>(sink: &mut S, step: Step<S>) -> Poll<Result<(), Closed>> {
    step(Pin::new(sink), &mut Context::from_waker(Waker::noop()))
}

fn start<S: Sink<u32, Error = Closed> + Unpin>(sink: &mut S, value: u32) -> Result<(), Closed> {
    Pin::new(sink).start_send(value)
}

#[test]
fn a_sink_holds_one_value_until_there_is_room() {
    let (sender, receiver) = bounded(1);
    let mut sink = sender.into_sink();
    assert_eq!((start(&mut sink, 1), start(&mut sink, 2)), (Ok(()), Ok(())));
    let waker = CountingWaker::new();
    assert!(waker.poll(&mut poll_fn(|context| Pin::new(&mut sink).poll_ready(context))).is_pending());
    assert_eq!(receiver.try_recv(), Ok(1));
    assert_eq!(waker.count(), 1, "there is room");
    assert_eq!(step(&mut sink, Sink::poll_ready), Poll::Ready(Ok(())));
    assert_eq!(receiver.try_recv(), Ok(2));
}

#[test]
fn a_closed_sink_has_sent_everything_and_drops_its_sender() {
    let (sender, receiver) = bounded(1);
    let mut sink = sender.into_sink();
    assert_eq!((start(&mut sink, 1), start(&mut sink, 2)), (Ok(()), Ok(())));
    assert!(step(&mut sink, Sink::poll_close).is_pending());
    assert_eq!(receiver.recv().sync(), Ok(1));
    assert_eq!(step(&mut sink, Sink::poll_close), Poll::Ready(Ok(())));
    assert_eq!((receiver.recv().sync(), receiver.recv().sync()), (Ok(2), Err(Closed)));
}

#[test]
fn the_sink_of_a_channel_leaves_it_open() {
    let channel = Channel::unbounded();
    let mut sink = channel.sink();
    start(&mut sink, 1).unwrap();
    assert_eq!(step(&mut sink, Sink::poll_close), Poll::Ready(Ok(())));
    drop(sink);
    assert!(!channel.is_closed() && channel.try_recv() == Ok(1));
}

#[test]
fn a_refused_value_can_be_taken_back() {
    let (sender, receiver) = bounded(1);
    let mut sink = sender.into_sink();
    assert_eq!((start(&mut sink, 1), start(&mut sink, 2)), (Ok(()), Ok(())));
    assert!(step(&mut sink, Sink::poll_flush).is_pending());
    drop(receiver);
    assert_eq!(step(&mut sink, Sink::poll_flush), Poll::Ready(Err(Closed)));
    assert_eq!(sink.take_unsent(), Some(2));
    assert_eq!((start(&mut sink, 3), sink.take_unsent()), (Err(Closed), Some(3)));
}

#[test]
fn a_value_that_is_taken_back_while_it_waits_is_not_sent() {
    let channel = Channel::rendezvous();
    let mut sink = channel.sink();
    start(&mut sink, 1).unwrap();
    assert!(step(&mut sink, Sink::poll_flush).is_pending());
    assert_eq!(sink.take_unsent(), Some(1));
    assert_eq!(channel.try_recv(), Err(TryRecvError::Empty));
    start(&mut sink, 2).unwrap();
    assert!(step(&mut sink, Sink::poll_flush).is_pending());
    assert_eq!(channel.try_recv(), Ok(2));
    assert_eq!(step(&mut sink, Sink::poll_flush), Poll::Ready(Ok(())));
}
