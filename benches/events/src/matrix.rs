//! crossbeam-channel's own matrix of cases (its `benchmarks/`), for all channels of threads. Go's channels belong to
//! goroutines, which are tasks; they are compared there.

use crate::peers::{AsyncChannel, ChoosingPeer, Crossbeam, Flume, Kanal, Peer, Weir};
use crate::report::{Contender, Report, here};
use std::thread;

/// Threads on a side where there are several, and channels where there is a choice, as in the original.
pub(crate) const THREADS: usize = 4;

/// One case: its name, and whether a rendezvous makes sense in it.
struct Case {
    name: &'static str,
    capacities: &'static [Option<usize>],
    is_choice: bool,
}

/// `Some(MANY)` stands for a capacity that holds all messages.
const MANY: usize = usize::MAX;

const CASES: [Case; 6] = [
    Case { name: "seq", capacities: &[Some(MANY), None], is_choice: false },
    Case { name: "spsc", capacities: &[Some(0), Some(1), Some(MANY), None], is_choice: false },
    Case { name: "mpsc", capacities: &[Some(0), Some(1), Some(MANY), None], is_choice: false },
    Case { name: "mpmc", capacities: &[Some(0), Some(1), Some(MANY), None], is_choice: false },
    Case { name: "select_rx", capacities: &[Some(0), Some(1), Some(MANY), None], is_choice: true },
    Case { name: "select_both", capacities: &[Some(0), Some(1), Some(MANY), None], is_choice: true },
];

/// A value to send.
trait Payload: Send + 'static {
    fn of(number: usize) -> Self;
}

impl Payload for usize {
    fn of(number: usize) -> Self {
        number
    }
}

impl Payload for [u64; 3] {
    fn of(number: usize) -> Self {
        [number as u64; 3]
    }
}

impl Payload for [u64; 25] {
    fn of(number: usize) -> Self {
        [number as u64; 25]
    }
}

impl Payload for String {
    fn of(number: usize) -> Self {
        number.to_string()
    }
}

pub(crate) fn run(report: &mut Report) {
    run_cases(report);
    run_payloads::<[u64; 3]>(report, "24 bytes");
    run_payloads::<[u64; 25]>(report, "200 bytes");
    run_payloads::<String>(report, "String");
}

/// The cases without a choice, with other values than numbers.
fn run_payloads<V: Payload>(report: &mut Report, payload: &str) {
    for case in CASES.iter().filter(|case| !case.is_choice) {
        for capacity in case.capacities {
            let name = format!("{} cap {} {payload}", case.name, capacity_name(*capacity));
            report.case(&name, exchanging::<V>(case.name, *capacity));
        }
    }
}

fn run_cases(report: &mut Report) {
    for case in &CASES {
        for capacity in case.capacities {
            let name = format!("{} cap {}", case.name, capacity_name(*capacity));
            let contenders = if case.is_choice {
                vec![choosing::<Weir>(case.name, *capacity), choosing::<Crossbeam>(case.name, *capacity)]
            } else {
                exchanging::<usize>(case.name, *capacity)
            };
            report.case(&name, contenders);
        }
    }
}

fn capacity_name(capacity: Option<usize>) -> String {
    match capacity {
        None => "inf".into(),
        Some(MANY) => "n".into(),
        Some(capacity) => capacity.to_string(),
    }
}

/// All contenders of a case without a choice.
fn exchanging<V: Payload>(case: &'static str, capacity: Option<usize>) -> Vec<Contender<'static>> {
    let mut all = vec![
        contender::<V, Weir>(case, capacity),
        contender::<V, Crossbeam>(case, capacity),
        contender::<V, Flume>(case, capacity),
        contender::<V, Kanal>(case, capacity),
    ];
    if capacity != Some(0) {
        all.push(contender::<V, AsyncChannel>(case, capacity));
    }
    all
}

fn contender<V: Payload, P: Peer<V>>(case: &'static str, capacity: Option<usize>) -> Contender<'static> {
    let round = move |messages: usize| {
        let capacity = capacity.map(|capacity| capacity.min(messages));
        match case {
            "seq" => sequential::<V, P>(capacity, messages),
            "spsc" => many_to_many::<V, P>(capacity, messages, 1, 1),
            "mpsc" => many_to_many::<V, P>(capacity, messages, THREADS, 1),
            _ => many_to_many::<V, P>(capacity, messages, THREADS, THREADS),
        }
    };
    here(P::NAME, round)
}

fn choosing<P: ChoosingPeer>(case: &'static str, capacity: Option<usize>) -> Contender<'static> {
    let round = move |messages: usize| {
        let capacity = capacity.map(|capacity| capacity.min(messages));
        match case {
            "select_rx" => select_receive::<P>(capacity, messages),
            _ => select_both::<P>(capacity, messages),
        }
    };
    here(P::NAME, round)
}

fn sequential<V: Payload, P: Peer<V>>(capacity: Option<usize>, messages: usize) {
    let channel = P::make(capacity);
    (0..messages).for_each(|message| P::send(&channel, V::of(message)));
    (0..messages).for_each(|_| _ = P::receive(&channel));
}

fn many_to_many<V: Payload, P: Peer<V>>(capacity: Option<usize>, messages: usize, senders: usize, receivers: usize) {
    let channel = &P::make(capacity);
    thread::scope(|scope| {
        for _ in 0..senders {
            scope.spawn(move || (0..messages / senders).for_each(|message| P::send(channel, V::of(message))));
        }
        for _ in 0..receivers {
            scope.spawn(move || (0..messages / receivers).for_each(|_| _ = P::receive(channel)));
        }
    });
}

fn select_receive<P: ChoosingPeer>(capacity: Option<usize>, messages: usize) {
    let channels: Vec<_> = (0..THREADS).map(|_| P::make(capacity)).collect();
    thread::scope(|scope| {
        for channel in &channels {
            scope.spawn(move || (0..messages / THREADS).for_each(|message| P::send(channel, message)));
        }
        P::receive_any(&channels, messages / THREADS * THREADS);
    });
}

fn select_both<P: ChoosingPeer>(capacity: Option<usize>, messages: usize) {
    let channels: &Vec<_> = &(0..THREADS).map(|_| P::make(capacity)).collect();
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(move || P::send_any(channels, messages / THREADS));
            scope.spawn(move || P::receive_any(channels, messages / THREADS));
        }
    });
}
