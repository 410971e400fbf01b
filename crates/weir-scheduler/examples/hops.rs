//! Measures the nanoseconds per hop of an item through a chain of ports that do nothing.
//!
//! ```sh
//! cargo run --release -p weir-scheduler --example hops [PORTS] [THREADS]
//! ```
#![expect(clippy::print_stdout, reason = "an example prints what it measured")]

use std::time::{Duration, Instant};

use weir_scheduler::{
    Fusion, PortId, PortSettings, RunOutcome, Scheduler, StdPlatform, ThreadControl, ThreadPool, Work,
};

struct Chain(usize);

impl Work for Chain {
    type Item = Box<u64>;
    type WorkPlatform = StdPlatform;

    fn run(&self, PortId(port): PortId, mut item: Box<u64>, _: &mut impl Fusion) -> RunOutcome<Box<u64>> {
        *item += 1;
        (port + 1 < self.0).then_some((PortId(port + 1), item)).into()
    }

    fn platform(&self) -> &StdPlatform {
        &StdPlatform
    }
}

fn main() -> std::io::Result<()> {
    let argument = |index: usize, default: usize| {
        std::env::args().nth(index).and_then(|argument| argument.parse().ok()).unwrap_or(default)
    };
    let (ports, threads, items) = (argument(1, 100), argument(2, 1), 200_000);
    let pools = vec![ThreadPool { name: "hops".into(), control: ThreadControl::Fixed(threads) }];
    let ports_of = vec![PortSettings { capacity: 128, pool: 0, nonblocking: true }; ports];
    let scheduler = Scheduler::start(Chain(ports), &ports_of, pools, Duration::from_millis(100))?;
    let begin = Instant::now();
    for number in 0..items {
        let mut item = Box::new(number);
        while let Err(full) = scheduler.submit(PortId(0), item) {
            item = full.0;
            std::thread::yield_now();
        }
    }
    scheduler.drain();
    let nanos = begin.elapsed().as_nanos() as f64 / items as f64 / ports as f64;
    println!("{ports} ports, {threads} threads: {nanos:.1} ns for each hop");
    Ok(())
}
