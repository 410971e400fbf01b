//! Load generator for both styles: local clients that each request one file after the other.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Measurements of a load.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Responses per second.
    pub answers_per_second: f64,
    /// Median time from a request to the end of its response.
    pub median: Duration,
    /// 99th percentile of that time.
    pub slowest_hundredth: Duration,
}

/// Loads a server with `clients` clients of `requests` requests each, with a new connection after every
/// `per_connection` requests.
///
/// # Errors
/// Fails if a request fails or is not answered with 200.
pub fn load(
    address: SocketAddr,
    path: &str,
    clients: usize,
    requests: usize,
    per_connection: usize,
) -> io::Result<Measured> {
    let start = Instant::now();
    let threads: Vec<_> = (0..clients)
        .map(|_| {
            let path = path.to_owned();
            std::thread::spawn(move || one_client(address, &path, requests, per_connection))
        })
        .collect();
    let mut times = Vec::new();
    for thread in threads {
        times.extend(thread.join().unwrap_or_else(|_| Err(io::Error::other("a client panicked")))?);
    }
    let taken = start.elapsed();
    times.sort_unstable();
    Ok(Measured {
        answers_per_second: times.len() as f64 / taken.as_secs_f64(),
        median: times.get(times.len() / 2).copied().unwrap_or_default(),
        slowest_hundredth: times.get(times.len() * 99 / 100).copied().unwrap_or_default(),
    })
}

fn one_client(address: SocketAddr, path: &str, requests: usize, per_connection: usize) -> io::Result<Vec<Duration>> {
    let mut times = Vec::with_capacity(requests);
    while times.len() < requests {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let (mut reader, mut writer) = (BufReader::new(stream.try_clone()?), stream);
        for number in 1..=per_connection.min(requests - times.len()) {
            let start = Instant::now();
            let end = if number == per_connection { "Connection: close\r\n" } else { "" };
            writer.write_all(format!("GET {path} HTTP/1.1\r\n{end}\r\n").as_bytes())?;
            read_answer(&mut reader)?;
            times.push(start.elapsed());
        }
    }
    Ok(times)
}

/// Reads a response; returns the length of its body.
///
/// # Errors
/// Fails if the status is not 200 or the response is truncated.
pub fn read_answer(reader: &mut impl BufRead) -> io::Result<u64> {
    let mut status = String::new();
    reader.read_line(&mut status)?;
    if !status.starts_with("HTTP/1.1 200") {
        return Err(io::Error::other(format!("answered {:?}", status.trim_end())));
    }
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        match line.trim_end().split_once(": ") {
            Some(("Content-Length", value)) => length = value.parse().map_err(io::Error::other)?,
            Some(_) => {}
            None => break,
        }
    }
    let read = io::copy(&mut reader.take(length), &mut io::sink())?;
    if read == length { Ok(length) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}
