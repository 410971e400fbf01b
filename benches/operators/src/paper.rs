//! The Streams paper's scheduler taken plainly (§4.1, Figures 3 to 6), to measure against.
//!
//! Single-producer single-consumer queues behind two try-locks, a lock-free list of all free ports that threads walk for
//! work, `reschedule` into the queue that is full, local stop flags, back-off. Mended only where the text cannot be run:
//! `push` unlocks the producer side when it succeeds too, and blocks with a time-out stand for its condition variables.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{Builder, yield_now};
use std::time::Duration;

use crossbeam_queue::ArrayQueue;
use parking_lot::Mutex;
use rtrb::{Consumer, Producer, RingBuffer};

use crate::family::{Case, OPERATORS, Tuple, operate};
use crate::measure::{Meter, Row};

/// So many tuples may wait at a port.
const CAPACITY: usize = 128;
/// `reschedule` works off a quarter of a queue (§4.1.4).
const RESCHEDULE_MAX: usize = CAPACITY / 4;
/// The longest wait for work, as in Streams.
const DELAY_MAX: Duration = Duration::from_millis(10);
/// Warm-up, in which a thousand queues fill: before that, no tuple reaches the sink.
const SETTLE: Duration = Duration::from_secs(2);
/// `reschedule` nests a stack frame for each port that it helps.
const STACK_BYTES: usize = 256 << 20;

/// `SPSCEnforcer` of Figure 3: a queue behind two try-locks.
struct Port {
    producer: Mutex<Producer<Box<Tuple>>>,
    consumer: Mutex<Consumer<Box<Tuple>>>,
}

impl Port {
    fn new() -> Self {
        let (producer, consumer) = RingBuffer::new(CAPACITY);
        Port { producer: Mutex::new(producer), consumer: Mutex::new(consumer) }
    }

    fn push(&self, tuple: Box<Tuple>) -> Result<(), Box<Tuple>> {
        let Some(mut producer) = self.producer.try_lock() else { return Err(tuple) };
        producer.push(tuple).map_err(|rtrb::PushError::Full(tuple)| tuple)
    }
}

/// A processing element.
struct Element {
    case: Case,
    ports: Vec<Port>,
    free: ArrayQueue<usize>,
    shutdown: AtomicBool,
    sunk: AtomicU64,
}

/// Runs the case with so many scheduler threads, and the source's own.
pub(crate) fn run(case: Case, threads: usize, span: Duration) -> Row {
    let element = Element {
        case,
        ports: (0..=OPERATORS).map(|_| Port::new()).collect(),
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

    /// Figure 4.
    fn schedule(&self) {
        while let Some(port) = self.find_work_blocking() {
            while self.free.push(port).is_err() {}
        }
    }

    /// Works off one port that is found on the list, and gives it back.
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

    /// Figure 5's walk over the free list, with the body of Figure 4's loop where work is found.
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

    /// Executes what waits at a port, where nobody else does; whether there was something.
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

    /// Figure 6: `push` and `reSchedule`.
    fn push(&self, port: usize, tuple: Box<Tuple>) {
        let mut waiting = self.ports[port].push(tuple);
        while let Err(tuple) = waiting {
            if self.finished() {
                return;
            }
            if !self.work_off(port, RESCHEDULE_MAX) {
                yield_now();
            }
            waiting = self.ports[port].push(tuple);
        }
    }
}
