//! Parallel packetising of the paper's §6: chunks become packets in parallel, and packets are sent in the chunks' order,
//! with no numbers in them and nobody sorting.
//!
//! An asynchronous receive takes its place in the stream when it is started; what it receives is made into a packet in
//! its implicit thread; the event that its start yields takes effect when that packet is there.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use weir_events::{AsyncEvent, Channel, Closed, Event, a_guard, a_recv};

/// Number of packets that are made at the same time.
const PARALLEL: usize = 8;

/// Starts one packet: yields the event of its being ready.
fn packet(
    stream: &Channel<String>,
    make: fn(String) -> String,
) -> AsyncEvent<Event<Result<String, Closed>>, Result<(), Closed>> {
    let stream = stream.clone();
    a_guard(move || {
        let ready = Channel::rendezvous();
        let into = ready.clone();
        a_recv(&stream).a_wrap(move |chunk| into.send(make(chunk?)).sync()).s_wrap(move |()| ready.recv())
    })
}

/// Takes `packets` chunks from the stream and hands their packets to `send` in order.
fn collate(stream: &Channel<String>, make: fn(String) -> String, packets: usize, mut send: impl FnMut(String)) {
    let packet = packet(stream, make);
    let mut started = std::collections::VecDeque::new();
    for _ in 0..packets {
        if started.len() == PARALLEL {
            finish(&mut started, &mut send);
        }
        started.push_back(packet.a_sync());
    }
    while !started.is_empty() {
        finish(&mut started, &mut send);
    }
}

fn finish(started: &mut std::collections::VecDeque<Event<Result<String, Closed>>>, send: &mut impl FnMut(String)) {
    if let Some(Ok(packet)) = started.pop_front().map(|ready| ready.sync()) {
        send(packet);
    }
}

fn main() {
    let stream = Channel::rendezvous();
    (0..20).for_each(|n| _ = stream.post(format!("chunk {n}")));
    collate(&stream, |chunk| format!("<{chunk}>"), 20, |packet| println!("{packet}"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    #[test]
    fn packets_are_sent_in_the_order_of_their_chunks() {
        let stream = Channel::rendezvous();
        (0..200).for_each(|n| _ = stream.post(n.to_string()));
        let mut sent = Vec::new();
        collate(&stream, |chunk| chunk + "!", 200, |packet| sent.push(packet));
        assert_eq!(sent, (0..200).map(|n| format!("{n}!")).collect::<Vec<_>>());
    }

    #[test]
    fn packets_are_made_in_parallel() {
        static ALL_AT_ONCE: Barrier = Barrier::new(PARALLEL);
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let stream = Channel::rendezvous();
        (0..PARALLEL).for_each(|n| _ = stream.post(n.to_string()));
        // Each packet waits until all of them are being made: one after the other would never end.
        let make = |chunk| {
            ALL_AT_ONCE.wait();
            MADE.fetch_add(1, SeqCst);
            chunk
        };
        let mut sent = Vec::new();
        collate(&stream, make, PARALLEL, |packet| sent.push(packet));
        assert_eq!((MADE.load(SeqCst), sent.len()), (PARALLEL, PARALLEL));
    }
}
