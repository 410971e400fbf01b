//! Hop between two sections with a thread each: latency one way, and cost per tuple in batches.
//!
//! *Latency*: one tuple goes to and fro between two ports, and no thread sleeps. *Batches*: many tuples do, so that
//! both threads are always busy; the cost is the thread time per tuple. *Flag*: two system threads with one word each,
//! which is the least that any hop takes on this machine.
//!
//! Every thread is pinned to a processor of its own: otherwise the system may leave both on one of them for long.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};
use serde_json::Value;
use weir_scheduler::{
    Full, Fusion, PortId, PortSettings, RunOutcome, Scheduler, StdPlatform, ThreadControl, ThreadPool, Work,
};

use crate::BenchResult;
use crate::family::Tuple;

/// The number of hops of the one tuple.
const HOPS: u64 = 100_000;
/// The number of tuples in batches.
const TUPLES: u64 = 200;
const HOPS_OF_EACH: u64 = 4_000;

/// The index of the tuple's word that counts the hops left.
const HOPS_LEFT: usize = 0;
/// The index of the tuple's word that counts the threads that it still has to pin.
const COMES_FIRST: usize = 1;

/// Two ports between which tuples go to and fro.
struct Sections;

impl Work for Sections {
    type Item = Box<Tuple>;
    type WorkPlatform = StdPlatform;

    fn run(&self, port: PortId, mut tuple: Box<Tuple>, _: &mut impl Fusion) -> RunOutcome<Box<Tuple>> {
        if tuple.payload[COMES_FIRST] > 0 {
            tuple.payload[COMES_FIRST] -= 1;
            keep_to(port.0);
        }
        tuple.payload[HOPS_LEFT] -= 1;
        (black_box(&tuple).payload[HOPS_LEFT] > 0).then_some((PortId(1 - port.0), tuple)).into()
    }

    fn platform(&self) -> &StdPlatform {
        &StdPlatform
    }
}

/// Pins this thread to a processor, if it exists.
fn keep_to(processor: usize) {
    let mut processors = CpuSet::new();
    processors.set(processor);
    _ = sched_setaffinity(None, &processors);
}

/// Measures hops in `rounds` rounds, prints the medians and returns them.
pub(crate) fn run(rounds: usize) -> BenchResult<Value> {
    let hops = (0..rounds).map(|_| round()).collect::<BenchResult<Vec<_>>>()?;
    let figures: [Figure; 4] = [
        ("ns of a hop between two sections, one way", "latency_ns", |hop| hop.latency_ns),
        ("ns of a hop in batches, for each tuple", "batched_ns", |hop| hop.batched_ns),
        ("ns of a flag alone, one way", "flag_ns", |hop| hop.flag_ns),
        ("flags in the time of a hop", "flags_of_hop", |hop| hop.latency_ns / hop.flag_ns),
    ];
    let mut json = serde_json::Map::from_iter([("rounds".to_owned(), rounds.into())]);
    for (what, name, of) in figures {
        let mut all: Vec<f64> = hops.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        let (least, median) = (all[0], all[all.len() / 2]);
        println!("{what}: {median:.1} (at least {least:.1})");
        json.insert(name.to_owned(), median.into());
        json.insert(format!("{name}_least"), least.into());
    }
    Ok(json.into())
}

/// A figure: its description, its name in JSON, and its field.
type Figure = (&'static str, &'static str, fn(&Hop) -> f64);

/// The figures of one round, in nanoseconds.
struct Hop {
    /// One way, with both threads awake.
    latency_ns: f64,
    /// Per tuple of many.
    batched_ns: f64,
    /// One way, for a word that another thread waits for.
    flag_ns: f64,
}

fn round() -> BenchResult<Hop> {
    let hops_of_thread = TUPLES * HOPS_OF_EACH / 2;
    Ok(Hop {
        latency_ns: time(1, HOPS)? / HOPS as f64,
        batched_ns: time(TUPLES, HOPS_OF_EACH)? / hops_of_thread as f64,
        flag_ns: flags() / HOPS as f64,
    })
}

/// A word on cache lines of its own: a processor fetches two of them at a time.
#[derive(Default)]
#[repr(align(128))]
struct HopFlag(AtomicU64);

impl HopFlag {
    fn wait_for(&self, number: u64) {
        while self.0.load(Ordering::Acquire) < number {
            std::hint::spin_loop();
        }
    }
}

/// Stores every second number, each after the other thread has stored the one before.
fn tell(first: u64, own: &HopFlag, other: &HopFlag) {
    keep_to(first as usize - 1);
    for number in (first..=HOPS).step_by(2) {
        other.wait_for(number - 1);
        own.0.store(number, Ordering::Release);
    }
}

/// Returns the nanoseconds that two threads take to store all numbers up to [`HOPS`] in turns.
fn flags() -> f64 {
    let flags = [HopFlag::default(), HopFlag::default()];
    let begin = Instant::now();
    let [one, other] = &flags;
    std::thread::scope(|scope| {
        scope.spawn(|| tell(1, one, other));
        scope.spawn(|| tell(2, other, one));
    });
    begin.elapsed().as_nanos() as f64
}

/// Returns the nanoseconds that `tuples` tuples take for `hops` hops each.
fn time(tuples: u64, hops: u64) -> BenchResult<f64> {
    let pools = ["one", "other"].map(|name| ThreadPool { name: name.into(), control: ThreadControl::Fixed(1) });
    let ports = [0, 1].map(|pool| PortSettings { capacity: 256, pool, nonblocking: true });
    let scheduler = Scheduler::start(Sections, &ports, pools.into(), Duration::from_millis(100))?;
    let mut all = (0..tuples).map(|number| {
        let mut tuple = Box::new(Tuple::new(number, 1));
        tuple.payload[HOPS_LEFT] = hops;
        tuple.payload[COMES_FIRST] = if number == 0 { 2 } else { 0 };
        (PortId(0), tuple)
    });
    let begin = Instant::now();
    if let Err(Full((port, tuple))) = scheduler.submit_all(&mut all) {
        return Err(format!("{port:?} has no room for {}", tuple.value).into());
    }
    scheduler.drain();
    Ok(begin.elapsed().as_nanos() as f64)
}
