//! Packets for the network: made from the transfers of the file processor, in parallel with its reading (§6, "Parallel
//! Packetizing").
//!
//! An asynchronous receive takes its position in the stream when it is started; its post-consumption action makes the
//! packet; starting it yields the event of the packet. So packets are made in parallel and written in order, without
//! numbers in the transfers.

use std::collections::VecDeque;

use weir_events::{AsyncEvent, Channel, Closed, Event, a_guard, a_recv};

use crate::file_processor::Transfer;
use crate::http::answer_head;

/// Bytes for the network, and the end of the answer if they are the last.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) bytes: Vec<u8>,
    pub(crate) end: Option<End>,
}

/// The end of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The answer is complete, with this status.
    Complete(u16),
    /// The file processor has given up.
    TimedOut,
}

/// Number of packets that are made at the same time.
const PARALLEL_PACKETS: usize = 4;

/// Makes the packet of a transfer; a channel that was closed ends the answer as a timeout does.
pub(crate) fn packetize(transfer: Result<Transfer, Closed>, keeps_alive: bool) -> Packet {
    match transfer {
        Ok(Transfer::Found(length)) => Packet { bytes: answer_head(200, length, keeps_alive).into_bytes(), end: None },
        // The only owner of the chunk, unless a choice has lost it before.
        Ok(Transfer::Chunk(chunk)) => {
            Packet { bytes: std::sync::Arc::try_unwrap(chunk).unwrap_or_else(|shared| shared.to_vec()), end: None }
        }
        Ok(Transfer::Done) => Packet { bytes: Vec::new(), end: Some(End::Complete(200)) },
        Ok(Transfer::NotFound) => {
            Packet { bytes: answer_head(404, 0, keeps_alive).into_bytes(), end: Some(End::Complete(404)) }
        }
        Ok(Transfer::Timeout) | Err(Closed) => Packet { bytes: Vec::new(), end: Some(End::TimedOut) },
    }
}

/// Starts one packet: yields the event of its being ready (`packetEvt`).
fn packet(
    transfers: &Channel<Transfer>,
    keeps_alive: bool,
) -> AsyncEvent<Event<Result<Packet, Closed>>, Result<(), Closed>> {
    let transfers = transfers.clone();
    a_guard(move || {
        let ready = Channel::rendezvous();
        let into = ready.clone();
        let make = move |transfer| into.post(packetize(transfer, keeps_alive)).map_err(|_| Closed);
        a_recv(&transfers).a_wrap(make).s_wrap(move |()| ready.recv())
    })
}

/// The packets of one answer, in order (`collate`).
pub(crate) struct Packets {
    packet: AsyncEvent<Event<Result<Packet, Closed>>, Result<(), Closed>>,
    started: VecDeque<Event<Result<Packet, Closed>>>,
}

impl Packets {
    pub(crate) fn new(transfers: &Channel<Transfer>, keeps_alive: bool) -> Self {
        let packet = packet(transfers, keeps_alive);
        let started = (0..PARALLEL_PACKETS).map(|_| packet.a_sync()).collect();
        Packets { packet, started }
    }

    /// Waits for the next packet.
    pub(crate) fn next(&mut self) -> Packet {
        let first = self.started.pop_front();
        self.started.push_back(self.packet.a_sync());
        let ready = first.map_or(Err(Closed), |packet| packet.sync());
        ready.unwrap_or_else(|closed| packetize(Err(closed), false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn packets_keep_the_order_of_their_transfers() {
        let transfers = Channel::unbounded();
        let chunk = |number: u8| Transfer::Chunk(Arc::new(vec![number; 3]));
        let all = std::iter::once(Transfer::Found(300)).chain((0..100).map(chunk)).chain([Transfer::Done]);
        all.for_each(|transfer| transfers.post(transfer).unwrap_or_default());
        let mut packets = Packets::new(&transfers, true);
        assert!(packets.next().bytes.starts_with(b"HTTP/1.1 200 OK\r\nContent-Length: 300\r\n"));
        for number in 0..100 {
            assert_eq!(packets.next(), Packet { bytes: vec![number; 3], end: None });
        }
        assert_eq!(packets.next().end, Some(End::Complete(200)));
        transfers.close();
        assert_eq!(packets.next().end, Some(End::TimedOut));
    }
}
