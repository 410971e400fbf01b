//! User code (wakers, clones, drops of values, actions) never runs under a lock of the crate: here it uses the channels.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod common;

use common::TOO_LONG;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use weir_events::*;

/// The code that a waker or a value runs at each of its steps.
type Step = Arc<dyn Fn() + Send + Sync>;

/// Runs a test on a thread of its own, because a lock that is taken twice never returns.
fn ends(test: impl FnOnce() + Send + 'static) {
    let (done, ended) = mpsc::channel();
    let running = thread::spawn(move || {
        test();
        done.send(()).unwrap();
    });
    let result = ended.recv_timeout(TOO_LONG);
    assert!(result != Err(mpsc::RecvTimeoutError::Timeout), "user code ran under a lock");
    running.join().unwrap();
}

/// A waker that runs its step when it is woken, and when its last clone is dropped.
struct SteppingWaker(Step);

impl Wake for SteppingWaker {
    fn wake(self: Arc<Self>) {
        self.0();
    }
}

impl Drop for SteppingWaker {
    fn drop(&mut self) {
        self.0();
    }
}

fn poll_with<F: Future + Unpin>(waker: &Waker, future: &mut F) -> Poll<F::Output> {
    std::pin::Pin::new(future).poll(&mut Context::from_waker(waker))
}

/// Polls with a new waker, so that a future that keeps its clone drops the last one.
fn poll_stepping<F: Future + Unpin>(step: &Step, future: &mut F) -> Poll<F::Output> {
    poll_with(&Waker::from(Arc::new(SteppingWaker(step.clone()))), future)
}

/// A value that runs `step` when it is cloned and dropped.
struct SteppingValue(Step);

impl Clone for SteppingValue {
    fn clone(&self) -> Self {
        self.0();
        SteppingValue(self.0.clone())
    }
}

impl Drop for SteppingValue {
    fn drop(&mut self) {
        self.0();
    }
}

/// A step that takes the locks of a channel.
fn using<T: Send + 'static>(channel: &Channel<T>) -> Step {
    let channel = channel.clone();
    Arc::new(move || {
        let _ = (channel.len(), channel.receivers_len(), channel.is_closed());
    })
}

#[test]
fn a_waker_whose_drop_closes_the_channel_returns() {
    ends(|| {
        let channel = Channel::<u8>::rendezvous();
        let closed = channel.clone();
        let closing: Step = Arc::new(move || closed.close());
        let mut receiving = choose([channel.recv()]).synchronise();
        assert!(poll_stepping(&closing, &mut receiving).is_pending());
        // The next waker replaces the first one, whose drop closes the channel and thereby wakes the new one.
        let replaced = poll_with(Waker::noop(), &mut receiving);
        assert!(channel.is_closed());
        assert!(replaced == Poll::Ready(Err(Closed)) || poll_with(Waker::noop(), &mut receiving).is_ready());
    });
}

#[test]
fn wakers_use_the_channel_when_they_are_woken_and_dropped() {
    for capacity in [0, 1, 64] {
        ends(move || {
            let channel = Channel::<u8>::bounded(capacity);
            let step = using(&channel);
            let mut chosen = choose([channel.recv()]).synchronise();
            let mut direct = channel.recv_async();
            for _ in 0..2 {
                assert!(
                    poll_stepping(&step, &mut chosen).is_pending() && poll_stepping(&step, &mut direct).is_pending()
                );
            }
            _ = channel.post(1);
            _ = channel.post(2);
            assert_eq!(poll_stepping(&step, &mut chosen), Poll::Ready(Ok(1)));
            drop(direct);
            assert_eq!(channel.try_recv(), Ok(2));
            (0..capacity).for_each(|_| _ = channel.post(0));
            let mut sending = channel.send_async(3);
            let mut choosing = choose([channel.send(4)]).synchronise();
            for _ in 0..2 {
                assert!(poll_stepping(&step, &mut sending).is_pending());
                assert!(poll_stepping(&step, &mut choosing).is_pending());
            }
            channel.close();
            assert!(poll_stepping(&step, &mut sending).is_ready() && poll_stepping(&step, &mut choosing).is_ready());
        });
    }
}

#[test]
fn values_use_their_channel_when_they_are_cloned_and_dropped() {
    for capacity in [0, 1, 64] {
        ends(move || {
            let channel = Channel::<SteppingValue>::bounded(capacity);
            let step = using(&channel);
            let value = || SteppingValue(step.clone());
            let event = channel.send(value());
            let mut waiting = choose([event.clone(), event]).synchronise();
            let _ = poll_with(Waker::noop(), &mut waiting);
            drop(waiting);
            let _ = channel.try_recv();
            let mut received = channel.recv_async();
            assert!(poll_with(Waker::noop(), &mut received).is_pending());
            _ = channel.post(value());
            drop(received);
            drop(channel.try_recv());
            let parcel = Parcel::new(value());
            drop(parcel.fill(value()));
            let _ = channel.send_parcel(&parcel).poll();
            let _ = a_send(&channel, value()).a_trans().poll();
            let mut sending = channel.send_async(value());
            let _ = poll_with(Waker::noop(), &mut sending);
            channel.close();
            drop(sending);
            _ = channel.post(value());
            while channel.try_recv().is_ok() {}
        });
    }
}

#[test]
fn values_of_a_multicast_use_it_when_they_are_cloned_and_dropped() {
    ends(|| {
        let multicast = Multicast::<SteppingValue>::new();
        let port = multicast.port();
        let in_step = multicast.clone();
        let step: Step = Arc::new(move || drop(in_step.port()));
        _ = multicast.post(SteppingValue(step.clone()));
        let other = multicast.port();
        _ = multicast.post(SteppingValue(step.clone()));
        drop((port.recv().poll(), other));
        drop(port);
        _ = multicast.post(SteppingValue(step));
        multicast.close();
    });
}

#[test]
fn a_future_uses_its_event_while_it_is_polled() {
    ends(|| {
        let shared: Arc<Mutex<Option<Event<()>>>> = Arc::default();
        let inside = shared.clone();
        let event = from_future(std::future::poll_fn(move |_| {
            let event = inside.lock().unwrap().clone();
            assert!(event.is_none_or(|event| event.poll().is_none()));
            Poll::<()>::Pending
        }));
        *shared.lock().unwrap() = Some(event.clone());
        assert!(poll_with(Waker::noop(), &mut event.synchronise()).is_pending());
        shared.lock().unwrap().take();
    });
}
