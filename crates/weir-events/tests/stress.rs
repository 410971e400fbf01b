//! Many threads, many channels, mixed choices: group 14 of the behaviour that must hold.
//!
//! A few ten thousand rounds by default; `WEIR_EVENTS_ROUNDS=5000000` for more. It is also what runs under
//! ThreadSanitizer:
//!
//! ```text
//! RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=thread CARGO_TARGET_DIR=target/tsan \
//!   cargo test -p weir-events -Zbuild-std --target x86_64-unknown-linux-gnu --test stress
//! ```
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod common;

use common::on_one_thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;
use tokio::time::timeout;
use weir_events::*;

const CHANNELS: usize = 5;
const PARTIES: usize = 6;

fn rounds() -> usize {
    std::env::var("WEIR_EVENTS_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(30_000)
}

/// Counts, and sums of distinct values, of the sends and the receives.
#[derive(Default)]
struct Books {
    sent: AtomicUsize,
    sent_sum: AtomicU64,
    received: AtomicUsize,
    received_sum: AtomicU64,
}

impl Books {
    fn enter(&self, outcome: Option<Exchange>) {
        match outcome {
            None | Some(Exchange::Nothing) => {}
            Some(Exchange::Sent(value)) => {
                self.sent.fetch_add(1, Relaxed);
                self.sent_sum.fetch_add(value, Relaxed);
            }
            Some(Exchange::Received(value)) => {
                self.received.fetch_add(1, Relaxed);
                self.received_sum.fetch_add(value, Relaxed);
            }
        }
    }

    fn assert_balanced(&self) {
        assert_eq!(self.sent.load(Relaxed), self.received.load(Relaxed));
        assert_eq!(self.sent_sum.load(Relaxed), self.received_sum.load(Relaxed));
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exchange {
    Sent(u64),
    Received(u64),
    Nothing,
}

fn channels() -> Vec<Channel<u64>> {
    (0..CHANNELS)
        .map(|number| match number {
            3 => Channel::bounded(1),
            4 => Channel::bounded(7),
            _ => Channel::rendezvous(),
        })
        .collect()
}

/// Two or three branches, of all kinds, that depend on nothing but the number of the round.
fn mixed_choice(channels: &[Channel<u64>], party: usize, round: usize) -> Event<Exchange> {
    let value = (party * 1_000_000_000 + round) as u64;
    let pick = |salt: usize| &channels[(round.wrapping_mul(2_654_435_761) / 7 + salt * 31 + party) % CHANNELS];
    let send =
        |salt| pick(salt).send(value).wrap(move |sent| sent.map_or(Exchange::Nothing, |()| Exchange::Sent(value)));
    let receive = |salt| pick(salt).recv().wrap(|value| value.map_or(Exchange::Nothing, Exchange::Received));
    match (round + party) % 4 {
        0 => choose([send(0), receive(1)]),
        1 => choose([receive(0), send(0), receive(2)]),
        2 => choose_biased([receive(1), send(2)]),
        _ => choose([with_nack(move |_| always(()).wrap(|()| Exchange::Nothing)).or(&never()), send(1), receive(1)]),
    }
}

/// The ways of a task to wait in the queue of one channel.
async fn one_way(channels: &[Channel<u64>], party: usize, round: usize) -> Exchange {
    let (value, channel) = ((party * 1_000_000_000 + round) as u64, &channels[(round / 4 + party) % CHANNELS]);
    match round % 2 {
        0 => Exchange::Received(channel.recv_async().await.unwrap()),
        _ => channel.send_async(value).await.map(|()| Exchange::Sent(value)).unwrap(),
    }
}

/// Receives what is still buffered.
fn drain(channels: &[Channel<u64>], books: &Books) {
    for channel in channels {
        while let Ok(value) = channel.try_recv() {
            books.enter(Some(Exchange::Received(value)));
        }
        assert!(channel.is_empty() && channel.receivers_len() == 0, "nothing is left behind");
    }
}

#[test]
fn threads_receive_every_value_exactly_once() {
    let (channels, books) = (Arc::new(channels()), Arc::new(Books::default()));
    let threads: Vec<_> = (0..PARTIES)
        .map(|party| {
            let (channels, books) = (channels.clone(), books.clone());
            thread::spawn(move || {
                for round in 0..rounds() / PARTIES {
                    let event = mixed_choice(&channels, party, round);
                    books.enter(event.sync_timeout(Duration::from_micros(500)));
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    drain(&channels, &books);
    books.assert_balanced();
}

#[test]
fn tasks_and_threads_receive_every_value_exactly_once() {
    let (channels, books) = (Arc::new(channels()), Arc::new(Books::default()));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    let tasks: Vec<_> = (0..PARTIES)
        .map(|party| {
            let (channels, books) = (channels.clone(), books.clone());
            runtime.spawn(async move {
                for round in 0..rounds() / PARTIES / 2 {
                    let event = mixed_choice(&channels, party, round);
                    // Most rounds are cut off by a drop, some by a branch of time.
                    let limit = Duration::from_micros(500);
                    let outcome = match round % 4 {
                        0 => timeout(limit, event.synchronise()).await.ok(),
                        1 => Some(event.or(&after(limit).wrap(|()| Exchange::Nothing)).await),
                        _ => timeout(limit, one_way(&channels, party, round)).await.ok(),
                    };
                    books.enter(outcome);
                }
            })
        })
        .collect();
    for round in 0..rounds() / PARTIES / 2 {
        books.enter(mixed_choice(&channels, PARTIES, round).sync_timeout(Duration::from_micros(500)));
    }
    runtime.block_on(async {
        for task in tasks {
            task.await.unwrap();
        }
    });
    drain(&channels, &books);
    // A send that had been taken when its task was dropped counts as sent without anybody having noted it.
    assert!(books.received.load(Relaxed) >= books.sent.load(Relaxed));
}

#[test]
fn a_value_is_never_lost_between_dropped_receivers() {
    let channel = Channel::<u64>::rendezvous();
    let values = (rounds() / 10) as u64;
    let sender = channel.clone();
    let sending = thread::spawn(move || (1..=values).for_each(|value| sender.send(value).sync().unwrap()));
    let sum = on_one_thread(async {
        let (mut sum, receive) = (0, channel.recv());
        while sum < values * (values + 1) / 2 {
            tokio::select! {
                biased;
                value = receive.synchronise() => sum += value.unwrap(),
                () = tokio::task::yield_now() => {}
            }
        }
        sum
    });
    sending.join().unwrap();
    assert_eq!(sum, values * (values + 1) / 2);
}

#[test]
fn closing_in_the_middle_of_it_all_wakes_everybody() {
    for _ in 0..rounds() / 1000 {
        let channels = Arc::new(channels());
        let threads: Vec<_> = (0..PARTIES)
            .map(|party| {
                let channels = channels.clone();
                thread::spawn(move || {
                    (0..).find(|&round| mixed_choice(&channels, party, round).sync() == Exchange::Nothing)
                })
            })
            .collect();
        channels.iter().for_each(Channel::close);
        threads.into_iter().for_each(|thread| assert!(thread.join().unwrap().is_some()));
    }
}
