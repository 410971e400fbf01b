//! The network processor: reads requests from connections and writes what the file processor sends.

use std::io::{self, BufReader, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Duration;

use weir_events::{Channel, Signal, choose_biased};

use crate::file_processor::{self, FileRequest};
use crate::http::{Request, answer_head, read_request};
use crate::log::{Line, Log};
use crate::packets::{End, Packet, Packets, packetize};
use crate::server::Style;
use crate::timeouts;

/// One thread of the network processor.
pub(crate) struct NetworkProcessor {
    pub(crate) connections: Channel<TcpStream>,
    pub(crate) requests: Channel<FileRequest>,
    pub(crate) style: Style,
    pub(crate) time_limit: Duration,
    pub(crate) log: Log,
    pub(crate) stop: Signal,
}

impl NetworkProcessor {
    /// Serves one connection after the other until the server stops.
    pub(crate) fn run(&self) {
        let stopped = self.stop.fired().wrap(|()| None);
        let next = choose_biased([stopped, self.connections.recv().wrap(Result::ok)]);
        while let Some(stream) = next.sync() {
            // An error concerns only the client of this connection.
            let _ = self.serve(stream);
        }
    }

    fn serve(&self, stream: TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(self.time_limit))?;
        stream.set_write_timeout(Some(self.time_limit))?;
        stream.set_nodelay(true)?;
        let (mut reader, mut writer) = (BufReader::new(stream.try_clone()?), stream);
        while !self.stop.is_fired()
            && let Some(Request { path, keeps_alive }) = read_request(&mut reader)?
        {
            self.log.write(Line::RequestStart(path.as_deref().unwrap_or(&PathBuf::new()).display().to_string()));
            let status = match path {
                None => refuse(&mut writer, 404, keeps_alive)?,
                Some(path) => self.answer(&mut writer, path, keeps_alive)?,
            };
            self.log.write(Line::RequestEnd(status));
            if !keeps_alive || status == 503 {
                break;
            }
        }
        Ok(())
    }

    /// Requests the file from the file processor, and writes the response.
    fn answer(&self, writer: &mut impl Write, path: PathBuf, keeps_alive: bool) -> io::Result<u16> {
        let request = FileRequest {
            path,
            transfers: file_processor::transfers(self.style),
            delivered: Channel::rendezvous(),
            abort: timeouts::abort(self.time_limit, &self.stop),
        };
        let (transfers, delivered) = (request.transfers.clone(), request.delivered.clone());
        let abort = request.abort.clone();
        match self.style {
            // Waits until a thread of the file processor is free.
            Style::Synchronous => drop(self.requests.blocking_send(request)),
            Style::ReadAhead | Style::Asynchronous => drop(self.requests.post(request)),
        }
        let status = match self.style {
            Style::Synchronous | Style::ReadAhead => {
                let delivered = delivered.send(()).wrap(drop).or(&abort);
                let (next, mut is_first) = (transfers.recv(), true);
                write_packets(writer, || {
                    if !std::mem::take(&mut is_first) && self.style == Style::Synchronous {
                        delivered.sync();
                    }
                    packetize(next.sync(), keeps_alive)
                })
            }
            Style::Asynchronous => {
                let mut packets = Packets::new(&transfers, keeps_alive);
                write_packets(writer, || packets.next())
            }
        };
        // Ends a file processor that still reads for this request.
        transfers.close();
        delivered.close();
        status
    }
}

/// Writes packets until the last; the head of the answer travels with the first bytes of the file.
fn write_packets(writer: &mut impl Write, mut next: impl FnMut() -> Packet) -> io::Result<u16> {
    let first = next();
    let mut unsent = match first.end {
        None => first.bytes,
        Some(End::Complete(status)) => return writer.write_all(&first.bytes).map(|()| status),
        Some(End::TimedOut) => return refuse(writer, 503, false),
    };
    loop {
        let Packet { bytes, end } = next();
        if unsent.is_empty() {
            writer.write_all(&bytes)?;
        } else {
            unsent.extend_from_slice(&bytes);
            writer.write_all(&std::mem::take(&mut unsent))?;
        }
        match end {
            None => {}
            Some(End::Complete(status)) => return Ok(status),
            Some(End::TimedOut) => return Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

fn refuse(writer: &mut impl Write, status: u16, keeps_alive: bool) -> io::Result<u16> {
    writer.write_all(answer_head(status, 0, keeps_alive).as_bytes())?;
    Ok(status)
}
