//! STARTTLS: a connection to a mail server that begins without TLS (RFC 3207).
//!
//! 1. The server greets, and the client says `EHLO`. A server that does not offer `STARTTLS` then gets no mail: somebody between
//!    the two could have removed the offer.
//! 2. After the answer to `STARTTLS`, both begin TLS. Nothing is read beyond the end of that answer, so that no bytes that came
//!    without TLS are taken for an answer that came over TLS.
//! 3. Everything that the server has said before is forgotten: the client says `EHLO` again. [`Greeted`] gives the library that
//!    does so the greeting that it waits for, which servers send only once.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use lettre::transport::smtp::client::AsyncTokioStream;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use weir::Failure;

use crate::network::Network;
use crate::tcp::{TcpTransport, with_tls};

/// Maximum length of an answer of the server before TLS.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// The greeting that stands for the one that has been read.
const GREETING: &[u8] = b"220 TLS\r\n";

/// A connection whose server has greeted already.
#[derive(Debug)]
pub(super) struct Greeted {
    greeting: &'static [u8],
    transport: TcpTransport,
}

/// Begins TLS on a connection to a mail server. `domain` is the one in whose name the client speaks.
///
/// # Errors
/// Fails if the server does not offer TLS, or its certificate is not trusted.
pub(super) async fn secured(
    network: &Network,
    (server, domain): (&str, &str),
    mut stream: TcpStream,
) -> Result<Greeted, Failure> {
    let refused = |said: String| Failure::function(format!("`{server}` has not begun TLS: {said}"));
    let unread = |error: io::Error| refused(error.to_string());
    expect_code(&answer(&mut stream).await.map_err(unread)?, "220").map_err(refused)?;
    stream.write_all(format!("EHLO {domain}\r\n").as_bytes()).await.map_err(unread)?;
    let offers = answer(&mut stream).await.map_err(unread)?;
    expect_code(&offers, "250").map_err(refused)?;
    if !offers.lines().skip(1).any(|line| line.get(4..).is_some_and(|offer| offer.eq_ignore_ascii_case("STARTTLS"))) {
        return Err(refused("it does not offer STARTTLS".to_owned()));
    }
    stream.write_all(b"STARTTLS\r\n").await.map_err(unread)?;
    expect_code(&answer(&mut stream).await.map_err(unread)?, "220").map_err(refused)?;
    Ok(Greeted { greeting: GREETING, transport: with_tls(network, server, stream).await? })
}

/// Returns what the server has said instead, if its answer has another code.
fn expect_code(answer: &str, code: &str) -> Result<(), String> {
    let is_expected = answer.lines().all(|line| line.get(..3) == Some(code));
    if is_expected { Ok(()) } else { Err(format!("it said {:?}", answer.trim_end())) }
}

/// Reads an answer of one or several lines, and nothing behind it.
async fn answer(stream: &mut TcpStream) -> io::Result<String> {
    let (mut answer, mut line_begin) = (Vec::new(), 0);
    while answer.len() < ANSWER_BYTES_MAX {
        answer.push(stream.read_u8().await?);
        if answer.ends_with(b"\n") {
            // The last line has no `-` behind its code.
            if answer.get(line_begin + 3) != Some(&b'-') {
                return Ok(String::from_utf8_lossy(&answer).into_owned());
            }
            line_begin = answer.len();
        }
    }
    Err(io::Error::other(format!("its answer has more than {ANSWER_BYTES_MAX} bytes")))
}

impl AsyncTokioStream for Greeted {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.transport.peer()
    }
}

impl AsyncRead for Greeted {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.greeting.is_empty() {
            return Pin::new(&mut this.transport).poll_read(cx, buffer);
        }
        let (now, later) = this.greeting.split_at(this.greeting.len().min(buffer.remaining()));
        buffer.put_slice(now);
        this.greeting = later;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Greeted {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().transport).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().transport).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().transport).poll_shutdown(cx)
    }
}
