//! Asynchronous sends against spawning a sender, and mailbox and multicast against hand-written ones.

use crate::report::{Contender, Report, here};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use weir_events::{Channel, Mailbox, Multicast, a_send};

const PORTS: usize = 4;

pub(crate) fn run(report: &mut Report) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("the system gives a runtime");
    report.case("asynchronous send", vec![post(), spawn_a_task(&runtime), spawn_a_thread()]);
    report.case("asynchronous send as an event", vec![a_send_event(), spawn_a_task(&runtime)]);
    report.case("mailbox", vec![mailbox(), hand_written_mailbox()]);
    report.case("multicast to 4", vec![multicast(), hand_written_multicast()]);
}

fn receive_all(channel: &Channel<usize>, messages: usize) {
    (0..messages).for_each(|_| _ = channel.blocking_recv().expect("the channel is open"));
}

fn post() -> Contender<'static> {
    let round = |messages| {
        let channel = Channel::rendezvous();
        (0..messages).for_each(|message| _ = channel.post(message));
        receive_all(&channel, messages);
    };
    here("weir", round)
}

fn a_send_event() -> Contender<'static> {
    let round = |messages| {
        let channel = Channel::rendezvous();
        (0..messages).for_each(|message| a_send(&channel, message).a_sync());
        receive_all(&channel, messages);
    };
    here("weir", round)
}

/// The usual alternative: a task that sends synchronously.
fn spawn_a_task(runtime: &tokio::runtime::Runtime) -> Contender<'_> {
    let round = move |messages: usize| {
        let channel = Channel::rendezvous();
        runtime.block_on(async {
            for message in 0..messages {
                let channel = channel.clone();
                tokio::spawn(async move { channel.send_async(message).await.expect("the channel is open") });
            }
            for _ in 0..messages {
                channel.recv_async().await.expect("the channel is open");
            }
        });
    };
    here("a task each", round)
}

/// A hundredth of the messages, counted as if it were all of them.
fn spawn_a_thread() -> Contender<'static> {
    let round = |messages: usize| {
        for _ in 0..10 {
            let channel = Channel::rendezvous();
            let senders: Vec<_> = (0..messages / 1_000)
                .map(|message| {
                    let channel = channel.clone();
                    thread::spawn(move || channel.blocking_send(message).expect("the channel is open"))
                })
                .collect();
            receive_all(&channel, senders.len());
            senders.into_iter().for_each(|sender| sender.join().expect("no sender panics"));
        }
    };
    here("a thread each, x100", round)
}

fn mailbox() -> Contender<'static> {
    let round = |messages| {
        let mailbox = Mailbox::unbounded();
        thread::scope(|scope| {
            scope.spawn(|| (0..messages).for_each(|message| mailbox.post(message).expect("the mailbox is open")));
            let receive = mailbox.recv();
            (0..messages).for_each(|_| _ = receive.sync().expect("the mailbox is open"));
        });
    };
    here("weir", round)
}

/// A queue with a lock and a condition.
#[derive(Default)]
struct Handmade {
    queue: Mutex<VecDeque<usize>>,
    filled: Condvar,
}

impl Handmade {
    fn post(&self, message: usize) {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).push_back(message);
        self.filled.notify_one();
    }

    fn receive(&self) -> usize {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match queue.pop_front() {
                Some(message) => return message,
                None => queue = self.filled.wait(queue).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

fn hand_written_mailbox() -> Contender<'static> {
    let round = |messages| {
        let mailbox = Handmade::default();
        thread::scope(|scope| {
            scope.spawn(|| (0..messages).for_each(|message| mailbox.post(message)));
            (0..messages).for_each(|_| _ = mailbox.receive());
        });
    };
    here("lock and condition", round)
}

fn multicast() -> Contender<'static> {
    let round = |messages: usize| {
        let multicast = Multicast::new();
        let ports: Vec<_> = (0..PORTS).map(|_| multicast.port()).collect();
        thread::scope(|scope| {
            for port in &ports {
                let receive = port.recv();
                scope.spawn(move || (0..messages / PORTS).for_each(|_| _ = receive.sync().expect("the port is open")));
            }
            (0..messages / PORTS).for_each(|message| _ = multicast.post(message));
        });
    };
    here("weir", round)
}

fn hand_written_multicast() -> Contender<'static> {
    let round = |messages: usize| {
        let ports: Vec<_> = (0..PORTS).map(|_| Arc::new(Handmade::default())).collect();
        thread::scope(|scope| {
            for port in &ports {
                scope.spawn(move || (0..messages / PORTS).for_each(|_| _ = port.receive()));
            }
            (0..messages / PORTS).for_each(|message| ports.iter().for_each(|port| port.post(message)));
        });
    };
    here("lock and condition", round)
}
