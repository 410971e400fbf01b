//! The file processor of the paper's §6 (Figure 10): reads ahead of a slow consumer, and still stops when it is told.
//!
//! The reader sends its chunks asynchronously; the consumption of each one starts an *arbitrator*, which delivers the
//! next chunk or, if an abort comes first, says so to the reader and to the consumer.
//!
//! Two things differ from the figure. Nothing in it consumes the first chunk, so a first arbitrator is started by hand.
//! And an arbitrator of chunk n+1 starts when that chunk is *received*, while the one of chunk n is still delivering
//! it; a turn that is passed on keeps the chunks in order.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;
use weir_events::{Channel, Closed, Event, a_always, a_send, after, always, choose, choose_biased};

/// A message to the consumer.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Transfer {
    Chunk(Vec<u8>),
    Done,
    Timeout,
}

/// State shared by the arbitrators.
struct Arbitration {
    input: Channel<Transfer>,
    stopped: Channel<()>,
    turn: Channel<()>,
    abort: Event<()>,
    consumer: Channel<Transfer>,
}

impl Arbitration {
    /// Delivers one transfer, or the abort. The turn is not given back after the last.
    fn arbitrate(&self) -> Result<(), Closed> {
        self.turn.recv().sync()?;
        let transfer = self.input.recv();
        let abort = self.abort.wrap(|()| Ok(Transfer::Timeout));
        let transfer = choose_biased([abort, transfer]).sync()?;
        match transfer {
            Transfer::Chunk(_) => {
                self.consumer.send(transfer).sync()?;
                _ = self.turn.post(());
            }
            Transfer::Done => self.consumer.send(transfer).sync()?,
            Transfer::Timeout => {
                _ = self.stopped.post(());
                self.turn.close();
                self.consumer.send(transfer).sync()?;
            }
        }
        Ok(())
    }
}

/// Reads `file` and sends it to `consumer` in chunks; returns how many chunks it read.
fn read_file(file: &mut dyn Read, abort: &Event<()>, consumer: &Channel<Transfer>) -> std::io::Result<usize> {
    let arbitration = Arc::new(Arbitration {
        input: Channel::rendezvous(),
        stopped: Channel::rendezvous(),
        turn: Channel::rendezvous(),
        abort: abort.clone(),
        consumer: consumer.clone(),
    });
    _ = arbitration.turn.post(());
    let kick_off = arbitration.clone();
    a_always(()).a_wrap(move |()| kick_off.arbitrate()).a_sync();
    let mut chunks = 0;
    let go_on = choose_biased([arbitration.stopped.recv().wrap(|_| false), always(true)]);
    while go_on.sync() {
        let mut chunk = vec![0; 4096];
        let length = file.read(&mut chunk)?;
        if length == 0 {
            a_send(&arbitration.input, Transfer::Done).a_sync();
            break;
        }
        chunk.truncate(length);
        chunks += 1;
        let next = arbitration.clone();
        a_send(&arbitration.input, Transfer::Chunk(chunk)).a_wrap(move |_| next.arbitrate()).a_sync();
    }
    Ok(chunks)
}

fn main() -> std::io::Result<()> {
    let (consumer, stop) = (Channel::rendezvous(), Channel::<()>::rendezvous());
    let limit = choose([after(Duration::from_secs(5)), stop.recv().wrap(drop)]);
    let reader = consumer.clone();
    let reading = std::thread::spawn(move || read_file(&mut std::io::repeat(7).take(20_000), &limit, &reader));
    loop {
        match consumer.recv().sync() {
            Ok(Transfer::Chunk(chunk)) => println!("{} bytes", chunk.len()),
            end => break println!("{end:?}"),
        }
    }
    println!("{:?} chunks were read", reading.join());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_events::Signal;

    /// A file whose nth chunk is full of n.
    struct Numbered(u8);

    impl Read for Numbered {
        fn read(&mut self, chunk: &mut [u8]) -> std::io::Result<usize> {
            if self.0 == 100 {
                return Ok(0);
            }
            self.0 += 1;
            chunk.fill(self.0);
            Ok(chunk.len())
        }
    }

    #[test]
    fn chunks_come_in_order_and_done_never_overtakes_one() {
        let consumer = Channel::rendezvous();
        assert_eq!(read_file(&mut Numbered(0), &Signal::new().fired(), &consumer).unwrap(), 100);
        for number in 1..=100 {
            assert_eq!(consumer.recv().sync(), Ok(Transfer::Chunk(vec![number; 4096])));
        }
        assert_eq!(consumer.recv().sync(), Ok(Transfer::Done));
    }

    #[test]
    fn an_abort_stops_reading_and_is_delivered() {
        let (consumer, abort) = (Channel::rendezvous(), Signal::new());
        let (sender, event) = (consumer.clone(), abort.fired());
        let reading = std::thread::spawn(move || read_file(&mut std::io::repeat(1), &event, &sender));
        for _ in 0..10 {
            assert!(matches!(consumer.recv().sync(), Ok(Transfer::Chunk(_))));
        }
        abort.fire();
        let rest: Vec<_> = std::iter::from_fn(|| match consumer.recv().sync().unwrap() {
            Transfer::Timeout => None,
            transfer => Some(transfer),
        })
        .collect();
        assert!(rest.len() <= 1, "at most the chunk that was being delivered: {}", rest.len());
        reading.join().unwrap().unwrap();
    }

    #[test]
    fn an_abort_before_the_first_chunk_is_delivered_alone() {
        let (consumer, abort) = (Channel::rendezvous(), Signal::new());
        abort.fire();
        read_file(&mut Numbered(0), &abort.fired(), &consumer).unwrap();
        assert_eq!(consumer.recv().sync(), Ok(Transfer::Timeout));
        assert_eq!(consumer.recv().sync_timeout(Duration::from_millis(20)), None);
    }
}
