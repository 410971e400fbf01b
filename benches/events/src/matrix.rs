//! crossbeam-channel's own matrix of cases (its `benchmarks/`), for all channels of threads. Go's channels belong to
//! goroutines, which are tasks; they are compared there.

use crate::peers::{Crossbeam, Flume, Peer, Weir};
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

pub(crate) fn run(report: &mut Report) {
    for case in &CASES {
        for capacity in case.capacities {
            let name = format!("{} cap {}", case.name, capacity_name(*capacity));
            let mut contenders =
                vec![contender::<Weir>(case.name, *capacity), contender::<Crossbeam>(case.name, *capacity)];
            if !case.is_choice {
                contenders.push(contender::<Flume>(case.name, *capacity));
            }
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

fn contender<P: Peer>(case: &'static str, capacity: Option<usize>) -> Contender<'static> {
    let round = move |messages: usize| {
        let capacity = capacity.map(|capacity| capacity.min(messages));
        match case {
            "seq" => sequential::<P>(capacity, messages),
            "spsc" => many_to_many::<P>(capacity, messages, 1, 1),
            "mpsc" => many_to_many::<P>(capacity, messages, THREADS, 1),
            "mpmc" => many_to_many::<P>(capacity, messages, THREADS, THREADS),
            "select_rx" => select_receive::<P>(capacity, messages),
            _ => select_both::<P>(capacity, messages),
        }
    };
    here(P::NAME, round)
}

fn sequential<P: Peer>(capacity: Option<usize>, messages: usize) {
    let channel = P::make(capacity);
    (0..messages).for_each(|message| P::send(&channel, message));
    (0..messages).for_each(|_| _ = P::receive(&channel));
}

fn many_to_many<P: Peer>(capacity: Option<usize>, messages: usize, senders: usize, receivers: usize) {
    let channel = &P::make(capacity);
    thread::scope(|scope| {
        for _ in 0..senders {
            scope.spawn(move || (0..messages / senders).for_each(|message| P::send(channel, message)));
        }
        for _ in 0..receivers {
            scope.spawn(move || (0..messages / receivers).for_each(|_| _ = P::receive(channel)));
        }
    });
}

fn select_receive<P: Peer>(capacity: Option<usize>, messages: usize) {
    let channels: Vec<_> = (0..THREADS).map(|_| P::make(capacity)).collect();
    thread::scope(|scope| {
        for channel in &channels {
            scope.spawn(move || (0..messages / THREADS).for_each(|message| P::send(channel, message)));
        }
        P::receive_any(&channels, messages / THREADS * THREADS);
    });
}

fn select_both<P: Peer>(capacity: Option<usize>, messages: usize) {
    let channels: &Vec<_> = &(0..THREADS).map(|_| P::make(capacity)).collect();
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(move || P::send_any(channels, messages / THREADS));
            scope.spawn(move || P::receive_any(channels, messages / THREADS));
        }
    });
}
