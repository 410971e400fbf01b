//! The scheduler of the Streams paper to the letter (§4.1, Figures 3 to 6), for comparison.
//!
//! It has single-producer single-consumer queues behind two try-locks, a lock-free list of all free ports that threads
//! search for work, `reschedule` into a full queue, thread-local stop flags, and back-off. It differs only where the
//! text cannot be run: `push` also unlocks the producer side when it succeeds, and waits with a time-out replace its
//! condition variables.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{Builder, yield_now};
use std::time::Duration;

use crossbeam_queue::ArrayQueue;
use parking_lot::Mutex;
use rtrb::{Consumer, Producer, RingBuffer};

use crate::family::{GraphCase, OPERATORS, Tuple, operate};
use crate::measure::{Meter, ModelRow};

/// The number of tuples that may wait at a port.
const CAPACITY: usize = 128;
/// The number of tuples that `reschedule` takes: a quarter of a queue (§4.1.4).
const RESCHEDULE_MAX: usize = CAPACITY / 4;
/// The longest wait for work, as in Streams.
const DELAY_MAX: Duration = Duration::from_millis(10);
/// The time to fill a thousand queues; before that, no tuple reaches the sink.
const SETTLE: Duration = Duration::from_secs(2);
/// The stack of a thread: `reschedule` nests one frame per port that it helps.
const STACK_BYTES: usize = 256 << 20;

/// `SPSCEnforcer` of Figure 3: a queue behind two try-locks.
struct PaperPort {
    producer: Mutex<Producer<Box<Tuple>>>,
    consumer: Mutex<Consumer<Box<Tuple>>>,
}

impl PaperPort {
    fn new() -> Self {
        let (producer, consumer) = RingBuffer::new(CAPACITY);
        PaperPort { producer: Mutex::new(producer), consumer: Mutex::new(consumer) }
    }

    fn try_push(&self, tuple: Box<Tuple>) -> Result<(), Box<Tuple>> {
        let Some(mut producer) = self.producer.try_lock() else { return Err(tuple) };
        producer.push(tuple).map_err(|rtrb::PushError::Full(tuple)| tuple)
    }
}

/// A processing element.
struct Element {
    case: GraphCase,
    ports: Vec<PaperPort>,
    free: ArrayQueue<usize>,
    shutdown: AtomicBool,
    sunk: AtomicU64,
}

/// Measures the case with `threads` scheduler threads beside the source's own.
pub(crate) fn run(case: GraphCase, threads: usize, span: Duration) -> ModelRow {
    let element = Element {
        case,
        ports: (0..=OPERATORS).map(|_| PaperPort::new()).collect(),
        free: ArrayQueue::new(OPERATORS + 1),
        shutdown: AtomicBool::new(false),
        sunk: AtomicU64::new(0),
    };
    (0..=OPERATORS).for_each(|port| element.free.push(port).expect("the list has room for all ports"));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let thread = Builder::new().stack_size(STACK_BYTES);
            thread.spawn_scoped(scope, || element.schedule()).expect("the machine gives threads");
        }
        let thread = Builder::new().stack_size(STACK_BYTES);
        thread.spawn_scoped(scope, || element.source()).expect("the machine gives threads");
        std::thread::park_timeout(SETTLE);
        let count = || element.sunk.load(Ordering::Relaxed);
        let meter = Meter::start(count());
        std::thread::park_timeout(span);
        let row = meter.row(case, format!("paper-{threads}"), count());
        element.shutdown.store(true, Ordering::Release);
        row
    })
}

impl Element {
    fn source(&self) {
        let family = self.case.family;
        for number in 0.. {
            if self.finished() {
                return;
            }
            let tuple = Box::new(Tuple::new(number, family.branches()));
            self.push(tuple.branch * family.depth(), tuple);
        }
    }

    fn finished(&self) -> bool {
        self.shutdown.load(Ordering::Acquire)
    }

    /// The thread's main loop (Figure 4).
    fn schedule(&self) {
        while let Some(port) = self.find_work_blocking() {
            while self.free.push(port).is_err() {}
        }
    }

    /// Runs the items of a port from the free list. Returns the port, which the caller gives back.
    fn find_work_blocking(&self) -> Option<usize> {
        let mut delay = Duration::from_nanos(1);
        while !self.finished() {
            if let Some(port) = self.find_work() {
                return Some(port);
            }
            std::thread::park_timeout(delay);
            delay = (delay * 10).min(DELAY_MAX);
        }
        None
    }

    /// Searches the free list for a port with items (Figure 5), and runs them (body of the loop of Figure 4).
    fn find_work(&self) -> Option<usize> {
        let first = self.free.pop()?;
        let mut port = first;
        loop {
            if self.work_off(port, usize::MAX) {
                return Some(port);
            }
            while self.free.push(port).is_err() {}
            port = self.free.pop()?;
            if port == first {
                while self.free.push(port).is_err() {}
                return None;
            }
        }
    }

    /// Runs at most `most` items of a port, unless another thread does. Returns whether there were any.
    fn work_off(&self, port: usize, most: usize) -> bool {
        let Some(mut consumer) = self.ports[port].consumer.try_lock() else { return false };
        let mut count = 0;
        while count <= most && !self.finished() {
            let Ok(tuple) = consumer.pop() else { break };
            self.execute(port, tuple);
            count += 1;
        }
        count > 0
    }

    fn execute(&self, port: usize, mut tuple: Box<Tuple>) {
        if port == OPERATORS {
            self.sunk.fetch_add(1, Ordering::Relaxed);
            return;
        }
        operate(&mut tuple, self.case.cost);
        let last = (port + 1).is_multiple_of(self.case.family.depth());
        self.push(if last { OPERATORS } else { port + 1 }, tuple);
    }

    /// Puts a tuple into a queue, with `reSchedule` if that is full (Figure 6).
    fn push(&self, port: usize, tuple: Box<Tuple>) {
        let mut waiting = self.ports[port].try_push(tuple);
        while let Err(tuple) = waiting {
            if self.finished() {
                return;
            }
            if !self.work_off(port, RESCHEDULE_MAX) {
                yield_now();
            }
            waiting = self.ports[port].try_push(tuple);
        }
    }
}
