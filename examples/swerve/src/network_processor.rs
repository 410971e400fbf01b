//! The network processor: reads requests from connections and writes what the file processor sends.

use std::io::{self, BufReader, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Duration;

use weir_events::{Channel, Event, Mailbox, Signal, choose_biased};

use crate::file_processor::{FileRequest, READ_AHEAD_CHUNKS, Transfer};
use crate::http::{Request, answer_head, read_request};
use crate::log::{Line, Log};
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
        let next = choose_biased([stopped, self.connections.receive().wrap(Result::ok)]);
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
            transfers: Mailbox::bounded(READ_AHEAD_CHUNKS),
            delivered: Channel::rendezvous(),
            abort: timeouts::abort(self.time_limit, &self.stop),
        };
        let (transfers, delivered) = (request.transfers.clone(), request.delivered.clone());
        let abort = request.abort.clone();
        match self.style {
            // Waits until a thread of the file processor is free.
            Style::Synchronous => drop(self.requests.blocking_send(request)),
            Style::Asynchronous => self.requests.send_and_go(request),
        }
        let status = self.write_all(writer, &transfers, &delivered.send(()).wrap(drop).or(&abort), keeps_alive);
        // Ends a file processor that still reads for this request.
        transfers.close();
        delivered.close();
        status
    }

    fn write_all(
        &self,
        writer: &mut impl Write,
        transfers: &Mailbox<Transfer>,
        delivered: &Event<()>,
        keeps_alive: bool,
    ) -> io::Result<u16> {
        let next = transfers.receive();
        let mut is_begun = false;
        // Sent together with the first bytes of the file.
        let mut head = Vec::new();
        loop {
            match next.sync() {
                Ok(Transfer::Found(length)) => {
                    is_begun = true;
                    head = answer_head(200, length, keeps_alive).into_bytes();
                }
                Ok(Transfer::Chunk(chunk)) if head.is_empty() => writer.write_all(&chunk)?,
                Ok(Transfer::Chunk(chunk)) => {
                    head.extend_from_slice(&chunk);
                    writer.write_all(&std::mem::take(&mut head))?;
                }
                Ok(Transfer::Done) => return writer.write_all(&head).map(|()| 200),
                Ok(Transfer::NotFound) => return refuse(writer, 404, keeps_alive),
                Ok(Transfer::Timeout) | Err(_) if is_begun => return Err(io::ErrorKind::TimedOut.into()),
                Ok(Transfer::Timeout) | Err(_) => return refuse(writer, 503, false),
            }
            if self.style == Style::Synchronous {
                delivered.sync();
            }
        }
    }
}

fn refuse(writer: &mut impl Write, status: u16, keeps_alive: bool) -> io::Result<u16> {
    writer.write_all(answer_head(status, 0, keeps_alive).as_bytes())?;
    Ok(status)
}
