//! Clients that read slowly, as those at the end of a long line do: a piece, a pause, and so on.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use bench_harness::BenchResult;
use socket2::{Domain, Socket, Type};

/// Bytes that a client reads at once; the system buffers about as much for it.
pub(crate) const PIECE_BYTES: usize = 16 * 1024;
/// Maximal segment size, as on Ethernet.
const SEGMENT_BYTES: u32 = 1460;
/// Pause after each piece.
pub(crate) const PAUSE: Duration = Duration::from_millis(20);

/// A server that sends nothing for so long, or does not take a connection, has failed.
const PATIENCE: Duration = Duration::from_secs(10);

/// Returns how many whole files these clients receive per second, each requesting again and again.
pub(crate) fn answers_per_second(port: u16, file: &str, clients: usize, time: Duration) -> BenchResult<f64> {
    let (begin, got) = (Instant::now(), AtomicUsize::new(0));
    let one_client = || -> io::Result<()> {
        while begin.elapsed() < time {
            one_answer(port, file)?;
            got.fetch_add(1, Relaxed);
        }
        Ok(())
    };
    thread::scope(|scope| {
        let all: Vec<_> = (0..clients).map(|_| scope.spawn(one_client)).collect();
        all.into_iter()
            .try_for_each(|client| client.join().unwrap_or_else(|_| Err(io::Error::other("a client panicked"))))
    })?;
    Ok(got.into_inner() as f64 / begin.elapsed().as_secs_f64())
}

/// Returns the bytes that a slow client receives of a file after the server's time limit has expired; then it reads as fast
/// as it can. They include those that the system had buffered.
pub(crate) fn bytes_after(port: u16, file: &str, time_limit: Duration) -> io::Result<usize> {
    let mut socket = request(port, file)?;
    let (begin, mut bytes, mut piece) = (Instant::now(), 0, vec![0; PIECE_BYTES]);
    loop {
        // The server breaks the answer off, and may reset the connection.
        let read = socket.read(&mut piece).unwrap_or(0);
        if read == 0 {
            return Ok(bytes);
        }
        if begin.elapsed() < time_limit {
            thread::sleep(PAUSE);
        } else {
            bytes += read;
        }
    }
}

fn one_answer(port: u16, file: &str) -> io::Result<()> {
    let mut socket = request(port, file)?;
    let mut piece = vec![0; PIECE_BYTES];
    while socket.read(&mut piece)? > 0 {
        thread::sleep(PAUSE);
    }
    Ok(())
}

/// Connects as a client with small buffers and requests a file.
fn request(port: u16, file: &str) -> io::Result<Socket> {
    let mut socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_recv_buffer_size(PIECE_BYTES)?;
    // As on a line: the segments of the loopback are so large that the system would take whole files at once.
    socket.set_tcp_mss(SEGMENT_BYTES)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)).into(), PATIENCE)?;
    socket.write_all(format!("GET /{file} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").as_bytes())?;
    Ok(socket)
}
