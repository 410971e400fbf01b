//! Stress test: no item is lost, duplicated or overtaken, for any ports, pools and numbers of threads.
//!
//! `WEIR_STRESS_ITEMS=1000000` sends more items. The test also runs under ThreadSanitizer:
//!
//! ```text
//! RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=thread CARGO_TARGET_DIR=target/tsan \
//!   cargo test -p weir-scheduler -Zbuild-std --target x86_64-unknown-linux-gnu --test order
//! ```

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use parking_lot::Mutex;
use weir_scheduler::{
    ElasticSettings, Full, Fusion, InlineOutcome, PortId, PortSettings, RunOutcome, Scheduler, StdPlatform,
    ThreadControl, ThreadPool, Work,
};

/// An item: the index of its source and its number there, from 1.
type Item = (usize, u64);

/// Work that sends each item from port to port along its route, and checks its number at every port.
struct Routes {
    /// For each source, the ports that its items visit.
    routes: Vec<Vec<usize>>,
    /// For each port and source, the last number that was seen. Never contended, because a port runs one item at a time.
    seen: Vec<Vec<Mutex<u64>>>,
    finished: AtomicU64,
}

impl Routes {
    fn new(routes: Vec<Vec<usize>>, ports: usize) -> Self {
        let seen = (0..ports).map(|_| routes.iter().map(|_| Mutex::new(0)).collect()).collect();
        Routes { routes, seen, finished: AtomicU64::new(0) }
    }
}

/// The number of visits that no item exceeds, unless its route is longer.
const VISITS: u64 = 8;

impl Work for Routes {
    type Item = (Item, u64);
    type WorkPlatform = StdPlatform;

    fn run(&self, port: PortId, ((source, number), visit): Self::Item, _: &mut impl Fusion) -> RunOutcome<Self::Item> {
        let route = &self.routes[source];
        assert_eq!(route[visit as usize], port.0, "an item is where it belongs");
        if !route[..visit as usize].contains(&port.0) {
            let mut last = self.seen[port.0][source].try_lock().expect("one item at a time");
            assert_eq!(*last + 1, number, "an item was lost, duplicated or overtaken at {port:?}");
            *last = number;
        }
        assert!(visit < VISITS || route.len() > VISITS as usize);
        match route.get(visit as usize + 1) {
            Some(&next) => RunOutcome::Next(PortId(next), ((source, number), visit + 1)),
            None => {
                self.finished.fetch_add(1, Ordering::Relaxed);
                RunOutcome::Finished
            }
        }
    }

    fn platform(&self) -> &StdPlatform {
        &StdPlatform
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn wait_for_room(scheduler: &Scheduler<Routes>, port: PortId) {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut room = pin!(poll_fn(|context| scheduler.poll_room(port, context)));
    while room.as_mut().poll(&mut Context::from_waker(&waker)) == Poll::Pending {
        std::thread::park();
    }
}

fn submit_all_items(scheduler: &Scheduler<Routes>, source: usize, first: usize, items: u64) {
    let mut items = (1..=items).map(|number| (PortId(first), ((source, number), 0)));
    while let Err(Full((port, item))) = scheduler.submit_all(&mut items) {
        let mut item = item;
        while let Err(Full(back)) = scheduler.submit(port, item) {
            item = back;
            wait_for_room(scheduler, port);
        }
    }
}

/// Executes items inline if it may, and submits the others.
fn run_all_inline(scheduler: &Scheduler<Routes>, source: usize, first: usize, items: u64) {
    let port = PortId(first);
    for number in 1..=items {
        let item = ((source, number), 0);
        let brought = scheduler.run_inline(port, |ahead| InlineOutcome {
            answer: (),
            remaining: scheduler.work().run(port, item, ahead).remaining(),
        });
        let mut waiting = brought.is_none().then_some(item);
        while let Some(item) = waiting.take() {
            if let Err(Full(back)) = scheduler.submit(port, item) {
                waiting = Some(back);
                wait_for_room(scheduler, port);
            }
        }
    }
}

/// Submits items from one thread per route, and waits until all are finished.
fn submit_and_drain(routes: Vec<Vec<usize>>, ports: Vec<PortSettings>, pools: Vec<ThreadPool>, items: u64) {
    submit_and_drain_by(submit_all_items, routes, ports, pools, items);
}

/// A way to submit items: by source, first port and number of items.
type SubmitItems = fn(&Scheduler<Routes>, usize, usize, u64);

/// Submits the items of the first route in the way of `first`, and those of the others by [`submit_all_items`].
fn submit_and_drain_by(
    first: SubmitItems,
    routes: Vec<Vec<usize>>,
    ports: Vec<PortSettings>,
    pools: Vec<ThreadPool>,
    items: u64,
) {
    let mut ways: Vec<SubmitItems> = vec![submit_all_items; routes.len()];
    ways[0] = first;
    let firsts: Vec<usize> = routes.iter().map(|route| route[0]).collect();
    let work = Routes::new(routes, ports.len());
    let scheduler = Scheduler::start(work, &ports, pools, Duration::from_millis(1)).expect("threads are to be had");
    std::thread::scope(|scope| {
        for (source, (&first, way)) in firsts.iter().zip(ways).enumerate() {
            let scheduler = &scheduler;
            scope.spawn(move || way(scheduler, source, first, items));
        }
    });
    scheduler.drain();
    assert_eq!(scheduler.work().finished.load(Ordering::Relaxed), items * firsts.len() as u64);
}

fn pool(name: &str, control: ThreadControl) -> ThreadPool {
    ThreadPool { name: name.into(), control }
}

fn fixed(threads: usize) -> Vec<ThreadPool> {
    vec![pool("fixed", ThreadControl::Fixed(threads))]
}

fn items() -> u64 {
    std::env::var("WEIR_STRESS_ITEMS").ok().and_then(|items| items.parse().ok()).unwrap_or(20_000)
}

#[test]
fn a_chain_on_one_thread_and_on_several() {
    for threads in 1..=4 {
        let ports = vec![PortSettings { capacity: 4, pool: 0, nonblocking: true }; 10];
        submit_and_drain(vec![(0..10).collect()], ports, fixed(threads), items());
    }
}

#[test]
fn a_chain_with_a_thread_for_every_port() {
    let ports: Vec<PortSettings> =
        (0..6).map(|port| PortSettings { capacity: 16, pool: port, nonblocking: true }).collect();
    let pools = (0..6).map(|port| pool(&port.to_string(), ThreadControl::Fixed(1))).collect();
    submit_and_drain(vec![(0..6).collect()], ports, pools, items());
}

#[test]
fn many_routes_that_meet() {
    let routes = vec![vec![0, 3, 4, 5], vec![1, 3, 5], vec![2, 4, 5]];
    submit_and_drain(routes, vec![PortSettings { capacity: 2, pool: 0, nonblocking: true }; 6], fixed(3), items());
}

#[test]
fn full_queues_in_a_ring() {
    let routes = vec![vec![0, 1, 2, 0, 1, 2], vec![2, 1, 0, 2, 1, 0]];
    let ports: Vec<PortSettings> =
        (0..3).map(|port| PortSettings { capacity: 1, pool: port, nonblocking: true }).collect();
    let pools = (0..3).map(|port| pool(&port.to_string(), ThreadControl::Fixed(1))).collect();
    submit_and_drain(routes.clone(), ports, pools, items() / 4);
    submit_and_drain(routes, vec![PortSettings { capacity: 1, pool: 0, nonblocking: true }; 3], fixed(2), items() / 4);
}

#[test]
fn threads_that_come_and_go() {
    let by_queue = ThreadControl::QueueLength { threads_min: 1, threads_max: 4, queue_length: 3 };
    let elastic = ThreadControl::Elastic(ElasticSettings { threads_min: 1, threads_max: 4, sensitivity: 0.01 });
    let random = ThreadControl::Random { like: Box::new(elastic.clone()), seed: 7 };
    let both = |control: &ThreadControl| [(control.clone(), 1), (control.clone(), 3)];
    for (control, brief_of) in [by_queue, elastic, random].iter().flat_map(both) {
        let port = |port| PortSettings { capacity: 8, pool: 0, nonblocking: port % brief_of == 0 };
        let ports = (0..12).map(port).collect();
        submit_and_drain(vec![(0..12).collect(), (0..12).collect()], ports, vec![pool("steered", control)], items());
    }
}

#[test]
fn a_caller_runs_items_inline_while_threads_and_another_source_come_and_go() {
    let elastic = ThreadControl::Elastic(ElasticSettings { threads_min: 1, threads_max: 3, sensitivity: 0.01 });
    let random = ThreadControl::Random { like: Box::new(elastic.clone()), seed: 3 };
    for (control, routes) in [(elastic, vec![vec![0, 2, 3]]), (random, vec![vec![0, 2, 3], vec![1, 2, 3]])] {
        let ports = vec![PortSettings { capacity: 8, pool: 0, nonblocking: true }; 4];
        submit_and_drain_by(run_all_inline, routes, ports, vec![pool("steered", control)], items());
    }
}

#[test]
fn one_thread_that_suffices_is_the_calling_one() {
    struct Notes(Mutex<Vec<std::thread::ThreadId>>);
    impl Work for Notes {
        type Item = ();
        type WorkPlatform = StdPlatform;
        fn run(&self, port: PortId, (): (), _: &mut impl Fusion) -> RunOutcome<()> {
            self.0.lock().push(std::thread::current().id());
            (port.0 < 2).then_some((PortId(port.0 + 1), ())).into()
        }

        fn platform(&self) -> &StdPlatform {
            &StdPlatform
        }
    }
    let control = ThreadControl::Elastic(ElasticSettings { threads_min: 1, threads_max: 1, sensitivity: 0.05 });
    let port = |nonblocking| PortSettings { capacity: 1, pool: 0, nonblocking };
    let ports = [port(true), port(true), port(false)];
    let work = Notes(Mutex::new(Vec::new()));
    let scheduler = Scheduler::start(work, &ports, vec![pool("elastic", control)], Duration::from_secs(1)).unwrap();
    assert_eq!(scheduler.submit_all(&mut std::iter::once((PortId(0), ()))), Ok(()));
    scheduler.drain();
    let here = std::thread::current().id();
    let ran: Vec<bool> = scheduler.work().0.lock().iter().map(|thread| *thread == here).collect();
    assert_eq!(ran, [true, true, false], "a port that may hold its thread up is left to the pool");
}

#[test]
fn a_thread_that_is_stuck_is_replaced() {
    /// Work that blocks at port 0 until an item has passed port 1.
    struct Blocks(Mutex<std::sync::mpsc::Receiver<()>>, std::sync::mpsc::Sender<()>);
    impl Work for Blocks {
        type Item = ();
        type WorkPlatform = StdPlatform;
        fn run(&self, port: PortId, (): (), _: &mut impl Fusion) -> RunOutcome<()> {
            if port == PortId(0) {
                self.0.lock().recv().unwrap();
            } else {
                self.1.send(()).unwrap();
            }
            RunOutcome::Finished
        }

        fn platform(&self) -> &StdPlatform {
            &StdPlatform
        }
    }
    let (sender, receiver) = std::sync::mpsc::channel();
    let work = Blocks(Mutex::new(receiver), sender);
    let pools =
        vec![pool("steered", ThreadControl::QueueLength { threads_min: 1, threads_max: 1, queue_length: usize::MAX })];
    let ports = [PortSettings { capacity: 1, pool: 0, nonblocking: false }; 2];
    let scheduler = Scheduler::start(work, &ports, pools, Duration::from_millis(1)).unwrap();
    scheduler.submit(PortId(0), ()).unwrap();
    scheduler.submit(PortId(1), ()).unwrap();
    scheduler.drain();
}
