//! Timers beside a busy channel: the delay of timers on the thread of a task that always finds its channel ready.
//!
//! ```text
//! cargo bench -p weir-events --features tokio --bench timers
//! ```
//!
//! The goal: at most a millisecond later than beside tokio's own channel, in the median of paired rounds. tokio's timers
//! have a resolution of a millisecond. Without the feature `tokio` a timer waits until the busy task has nothing to do.
#![cfg(not(loom))]
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement prints and may fail anywhere")]

use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::task::{LocalSet, spawn_local};
use weir_events::Channel;

/// Timers beside each channel, in turns.
const ROUNDS: usize = 60;
const PERIOD: Duration = Duration::from_millis(10);
/// Values that the busy task sends to itself and receives, without having to wait.
const BATCH: usize = 64;
const LATER_MAX: f64 = 1.0;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let (mut weir, mut tokio) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        weir.push(runtime.block_on(LocalSet::new().run_until(delay_ms(beside_weir))));
        tokio.push(runtime.block_on(LocalSet::new().run_until(delay_ms(beside_tokio))));
    }
    let mut later: Vec<f64> = weir.iter().zip(&tokio).map(|(weir, tokio)| weir - tokio).collect();
    for (name, delays) in [("weir-events", &mut weir), ("tokio::sync", &mut tokio), ("later", &mut later)] {
        delays.sort_unstable_by(f64::total_cmp);
        let [quarter, median, rest] = [1, 2, 3].map(|number| delays[ROUNDS * number / 4]);
        println!("{name:<12} median {median:6.3} ms, quartiles {quarter:6.3} to {rest:6.3} ms");
    }
    assert!(later[ROUNDS / 2] <= LATER_MAX, "a timer is more than {LATER_MAX} ms later than beside tokio's channel");
}

/// Returns the delay of one timer beside a busy task.
async fn delay_ms<F: Future<Output = ()> + 'static>(busy: fn(Rc<Cell<bool>>) -> F) -> f64 {
    let ended = Rc::new(Cell::new(false));
    let busy = spawn_local(busy(ended.clone()));
    let start = Instant::now();
    tokio::time::sleep(PERIOD).await;
    let delay = start.elapsed().saturating_sub(PERIOD);
    ended.set(true);
    busy.await.unwrap();
    delay.as_secs_f64() * 1e3
}

async fn beside_weir(ended: Rc<Cell<bool>>) {
    let channel = Channel::bounded(BATCH);
    while !ended.get() {
        for value in 0..BATCH {
            channel.send_async(value).await.unwrap();
        }
        for _ in 0..BATCH {
            channel.recv_async().await.unwrap();
        }
    }
}

async fn beside_tokio(ended: Rc<Cell<bool>>) {
    let (sender, mut receiver) = mpsc::channel(BATCH);
    while !ended.get() {
        for value in 0..BATCH {
            sender.send(value).await.unwrap();
        }
        for _ in 0..BATCH {
            receiver.recv().await.unwrap();
        }
    }
}
