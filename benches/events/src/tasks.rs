//! The same cases for tasks: tokio's channels, and Go's for its goroutines.

use crate::crew::Crew;
use crate::go::Go;
use crate::matrix::THREADS;
use crate::report::{Contender, Report, here};
use crate::wakes::{Executor, wakes};
use std::sync::Arc;
use tokio::runtime::Builder;
use tokio::sync::mpsc;
use weir_events::{Channel, choose};

/// Senders and receivers of a case; tokio's `mpsc` has one receiver.
const SHAPES: [(&str, usize, usize); 3] = [("spsc", 1, 1), ("mpsc", THREADS, 1), ("mpmc", THREADS, THREADS)];

const CAPACITIES: [(&str, usize); 3] = [("0", 0), ("1", 1), ("n", usize::MAX)];

pub(crate) fn run(report: &mut Report) {
    let one = Builder::new_current_thread().build().expect("the system gives a runtime");
    let many = Builder::new_multi_thread().worker_threads(2).build().expect("the system gives a runtime");
    let executors = [
        ("tasks", 1, Executor::Tokio(one)),
        ("tasks on 2 threads", 2, Executor::Tokio(many)),
        ("crew tasks", 1, Executor::Crew(Crew::new(1))),
        ("crew tasks on 2 threads", 2, Executor::Crew(Crew::new(2))),
    ];
    let go = [1, 2].map(|processors| Go::start(report, processors));
    for (label, threads, executor) in &executors {
        report.case(&format!("{label} bare wakes"), vec![here("wakes", |count| wakes(executor, count))]);
        compare(report, label, executor, go[threads - 1].as_ref());
    }
}

/// All cases on one executor, and in Go with as many processors as that has threads.
fn compare(report: &mut Report, label: &str, executor: &Executor, go: Option<&Go>) {
    for (shape, senders, receivers) in SHAPES {
        for (name, capacity) in CAPACITIES {
            let mut contenders = vec![weir(executor, capacity, senders, receivers)];
            if capacity > 0 && receivers == 1 {
                contenders.push(tokio_mpsc(executor, capacity, senders));
            }
            contenders.extend(go.map(|go| go.contender(shape, capacity)));
            report.case(&format!("{label} {shape} cap {name}"), contenders);
        }
    }
    for (name, capacity) in CAPACITIES {
        let mut contenders = vec![weir_select(executor, capacity)];
        if capacity > 0 {
            contenders.push(tokio_select(executor, capacity));
        }
        contenders.extend(go.map(|go| go.contender("select_rx", capacity)));
        report.case(&format!("{label} select_rx cap {name}"), contenders);
    }
}

fn weir(executor: &Executor, capacity: usize, senders: usize, receivers: usize) -> Contender<'_> {
    let round = move |messages: usize| {
        let channel = Channel::<usize>::bounded(capacity.min(messages));
        let mut tasks = Vec::new();
        for _ in 0..senders {
            let channel = channel.clone();
            tasks.push(Box::pin(async move {
                for message in 0..messages / senders {
                    channel.send_async(message).await.expect("the channel is open");
                }
            }) as _);
        }
        for _ in 0..receivers {
            let channel = channel.clone();
            tasks.push(Box::pin(async move {
                for _ in 0..messages / receivers {
                    channel.recv_async().await.expect("the channel is open");
                }
            }) as _);
        }
        executor.run(tasks);
    };
    here("weir", round)
}

fn tokio_mpsc(executor: &Executor, capacity: usize, senders: usize) -> Contender<'_> {
    let round = move |messages: usize| {
        let (sender, mut receiver) = mpsc::channel::<usize>(capacity.min(messages));
        let mut tasks = Vec::new();
        for _ in 0..senders {
            let sender = sender.clone();
            tasks.push(Box::pin(async move {
                for message in 0..messages / senders {
                    sender.send(message).await.expect("the channel is open");
                }
            }) as _);
        }
        tasks.push(Box::pin(async move {
            for _ in 0..messages / senders * senders {
                receiver.recv().await.expect("the channel is open");
            }
        }) as _);
        executor.run(tasks);
    };
    here("tokio", round)
}

fn weir_select(executor: &Executor, capacity: usize) -> Contender<'_> {
    let round = move |messages: usize| {
        let channels: Arc<Vec<_>> =
            Arc::new((0..THREADS).map(|_| Channel::<usize>::bounded(capacity.min(messages))).collect());
        let mut tasks = Vec::new();
        for number in 0..THREADS {
            let channels = channels.clone();
            tasks.push(Box::pin(async move {
                for message in 0..messages / THREADS {
                    channels[number].send_async(message).await.expect("the channel is open");
                }
            }) as _);
        }
        tasks.push(Box::pin(async move {
            let event = choose(channels.iter().map(Channel::recv));
            for _ in 0..messages / THREADS * THREADS {
                event.synchronise().await.expect("the channel is open");
            }
        }) as _);
        executor.run(tasks);
    };
    here("weir", round)
}

fn tokio_select(executor: &Executor, capacity: usize) -> Contender<'_> {
    let round = move |messages: usize| {
        let (senders, receivers): (Vec<_>, Vec<_>) =
            (0..THREADS).map(|_| mpsc::channel::<usize>(capacity.min(messages))).unzip();
        let mut tasks = Vec::new();
        for sender in senders {
            tasks.push(Box::pin(async move {
                for message in 0..messages / THREADS {
                    sender.send(message).await.expect("the channel is open");
                }
            }) as _);
        }
        tasks.push(Box::pin(async move {
            let Ok([mut a, mut b, mut c, mut d]) = <[_; THREADS]>::try_from(receivers) else { return };
            for _ in 0..messages / THREADS * THREADS {
                tokio::select! {
                    Some(_) = a.recv() => {}
                    Some(_) = b.recv() => {}
                    Some(_) = c.recv() => {}
                    Some(_) = d.recv() => {}
                }
            }
        }) as _);
        executor.run(tasks);
    };
    here("tokio", round)
}
