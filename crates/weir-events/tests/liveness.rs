//! Liveness: random mixes of all ways to send and to receive, in which every value has a receiver, terminate.
//!
//! Other than in `stress.rs` nothing is cut off for good by a limit, so a wake-up that is lost is a round that does not
//! end. A few thousand values by default; `WEIR_EVENTS_ROUNDS=5000000` for more.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod common;

use common::TOO_LONG;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;
use weir_events::*;

/// Values that each sender of a round sends.
const VALUES: u64 = 120;
const CAPACITIES: [usize; 5] = [0, 1, 2, 7, usize::MAX];

fn rounds() -> u64 {
    let values: u64 = std::env::var("WEIR_EVENTS_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(30_000);
    values.div_ceil(VALUES * 4)
}

/// Random numbers that are the same for the same seed (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound
    }

    /// A wait of up to about the duration of a wake-up. It is not zero, because two threads that only poll never meet.
    fn moment(&mut self) -> Duration {
        Duration::from_micros(1 + self.below(60))
    }
}

/// One party of a round: the channel of the round, one on which nothing ever happens, and its own luck.
struct Party {
    channel: Channel<u64>,
    idle: Channel<u64>,
    random: Random,
}

/// Waits for a future in a thread.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return value;
        }
        thread::park();
    }
}

/// Polls a synchronisation this many times, and then drops it: it must lose no value.
async fn for_some_polls<T: 'static>(event: &Event<T>, polls: u64) -> Option<T> {
    let (mut synchronisation, mut left) = (event.synchronise(), polls);
    std::future::poll_fn(move |context| {
        let polled = std::pin::Pin::new(&mut synchronisation).poll(context);
        if polled.is_pending() && left > 0 {
            left -= 1;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(match polled {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        })
    })
    .await
}

impl Party {
    /// An event beside others that never take effect, and that are told so.
    fn among_others<T: Send + 'static>(&mut self, event: Event<T>) -> Event<Option<T>> {
        let idle = self.idle.recv().wrap(|_| None);
        let event = event.wrap(Some);
        match self.random.below(5) {
            0 => choose([event, idle]),
            1 => choose_biased([idle, never(), event]),
            2 => choose([after(TOO_LONG).wrap(|()| None), event, idle]),
            3 => with_nack(move |_| event.clone()).or(&idle),
            _ => {
                let inner = guard(move || event.clone());
                with_nack(move |nack| choose([inner.clone(), nack.wrap(|()| None)])).or(&idle)
            }
        }
    }

    fn send(&mut self, value: u64) {
        let parcel = Parcel::new(value);
        match self.random.below(7) {
            0 => self.channel.blocking_send(value).unwrap(),
            1 => _ = self.channel.post(value),
            2 => s_trans(&self.channel.send(value)).a_sync(),
            3 => {
                let event = self.channel.send_parcel(&parcel);
                while event.sync_timeout(self.random.moment()).is_none() {}
            }
            4 => _ = self.among_others(self.channel.send_parcel(&Parcel::new(value))).sync().unwrap(),
            5 => self.channel.send(value).sync().unwrap(),
            _ => block_on(self.send_as_task(value)),
        }
    }

    async fn send_as_task(&mut self, value: u64) {
        let parcel = Parcel::new(value);
        match self.random.below(5) {
            0 => self.channel.send_async(value).await.unwrap(),
            1 => {
                let event = self.channel.send_parcel(&parcel);
                while for_some_polls(&event, 1 + self.random.below(2)).await.is_none() {
                    // Nobody else has the parcel now; where it is empty, the value was sent as its sender went away.
                    let Some(value) = parcel.take() else { return };
                    parcel.fill(value);
                }
            }
            2 => _ = self.among_others(self.channel.send_parcel(&Parcel::new(value))).await.unwrap(),
            3 => {
                let event = self.channel.send_parcel(&parcel).within(self.random.moment());
                while event.synchronise().await.is_none() {
                    tokio::task::yield_now().await;
                }
            }
            _ => self.channel.send(value).await.unwrap(),
        }
    }

    fn recv(&mut self) -> u64 {
        let event = self.channel.recv();
        match self.random.below(7) {
            0 => self.channel.blocking_recv().unwrap(),
            1 => loop {
                if let Some(value) = event.sync_timeout(self.random.moment()) {
                    return value.unwrap();
                }
            },
            2 => self.among_others(event).sync().unwrap().unwrap(),
            3 => event.sync().unwrap(),
            4 => {
                let there = Channel::bounded(1);
                let hand_over = there.clone();
                a_recv(&self.channel).a_wrap(move |value| _ = hand_over.post(value.unwrap())).a_sync();
                there.blocking_recv().unwrap()
            }
            5 => loop {
                match self.channel.try_recv() {
                    Ok(value) => return value,
                    Err(_) => thread::yield_now(),
                }
            },
            _ => block_on(self.receive_as_task()),
        }
    }

    async fn receive_as_task(&mut self) -> u64 {
        let event = self.channel.recv();
        match self.random.below(5) {
            0 => self.channel.recv_async().await.unwrap(),
            1 => loop {
                if let Some(value) = for_some_polls(&event, 1 + self.random.below(2)).await {
                    return value.unwrap();
                }
            },
            2 => self.among_others(event).await.unwrap().unwrap(),
            3 => {
                let event = event.within(self.random.moment());
                loop {
                    if let Some(value) = event.synchronise().await {
                        return value.unwrap();
                    }
                    tokio::task::yield_now().await;
                }
            }
            _ => event.await.unwrap(),
        }
    }
}

/// The senders and receivers of one round, and their results so far.
struct Round {
    channel: Channel<u64>,
    idle: Channel<u64>,
    runtime: Arc<tokio::runtime::Runtime>,
    /// Told once by each party that has done its part.
    done: mpsc::Sender<()>,
    /// Number of values to receive, and the number of those that are being or have been received.
    values: u64,
    taken: Arc<AtomicU64>,
    sum: Arc<AtomicU64>,
}

impl Round {
    /// Starts a sender, as a thread or as a task.
    fn send(&self, mut random: Random, first: u64) {
        let (is_thread, done) = (random.below(2) == 0, self.done.clone());
        let mut party = Party { channel: self.channel.clone(), idle: self.idle.clone(), random };
        if is_thread {
            thread::spawn(move || {
                (first..first + VALUES).for_each(|value| party.send(value));
                done.send(())
            });
        } else {
            self.runtime.spawn(async move {
                for value in first..first + VALUES {
                    party.send_as_task(value).await;
                }
                done.send(())
            });
        }
    }

    /// Starts a receiver, as a thread or as a task.
    fn recv(&self, mut random: Random) {
        let (is_thread, done) = (random.below(2) == 0, self.done.clone());
        let mut party = Party { channel: self.channel.clone(), idle: self.idle.clone(), random };
        let (taken, sum, values) = (self.taken.clone(), self.sum.clone(), self.values);
        if is_thread {
            thread::spawn(move || {
                while taken.fetch_add(1, Relaxed) < values {
                    sum.fetch_add(party.recv(), Relaxed);
                }
                done.send(())
            });
        } else {
            self.runtime.spawn(async move {
                while taken.fetch_add(1, Relaxed) < values {
                    sum.fetch_add(party.receive_as_task().await, Relaxed);
                }
                done.send(())
            });
        }
    }
}

fn one_round(number: u64, runtime: &Arc<tokio::runtime::Runtime>) {
    let mut random = Random(number);
    let capacity = CAPACITIES[random.below(CAPACITIES.len() as u64) as usize];
    let channel = if capacity == usize::MAX { Channel::unbounded() } else { Channel::bounded(capacity) };
    let (senders, receivers) = (1 + random.below(3), 1 + random.below(3));
    let (done, ended) = mpsc::channel();
    let (taken, sum) = (Arc::default(), Arc::default());
    let values = senders * VALUES;
    let idle = Channel::rendezvous();
    let round = Round { channel, idle, runtime: runtime.clone(), done, values, taken, sum };
    (0..senders).for_each(|sender| round.send(Random(random.below(u64::MAX)), sender * VALUES));
    (0..receivers).for_each(|_| round.recv(Random(random.below(u64::MAX))));
    for _ in 0..senders + receivers {
        let told = ended.recv_timeout(TOO_LONG);
        let came = round.sum.load(Relaxed);
        assert!(
            told.is_ok(),
            "round {number}: {senders} to {receivers} by {capacity}, {came} came: {:?}",
            round.channel.len()
        );
    }
    assert_eq!(round.sum.load(Relaxed), values * (values - 1) / 2, "round {number}");
    assert!(round.channel.is_empty() && round.channel.receivers_len() == 0 && round.idle.receivers_len() == 0);
}

#[test]
fn every_round_ends_whatever_ways_its_waiters_choose() {
    let runtime =
        Arc::new(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap());
    let first = std::env::var("WEIR_EVENTS_FIRST").ok().and_then(|first| first.parse().ok()).unwrap_or(0);
    (first..first + rounds()).for_each(|number| one_round(number, &runtime));
}
