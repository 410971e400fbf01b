//! The four modules put together.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::Duration;

use socket2::SockRef;
use weir_events::{Channel, Signal};

use crate::file_processor::{self, FileRequest};
use crate::listener;
use crate::log::Log;
use crate::network_processor::NetworkProcessor;

/// Connections that the system completes before they are accepted; apache2 has as many.
const BACKLOG: i32 = 511;

/// The kind of events that the modules communicate by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Synchronous ones: whoever gives waits until it is taken.
    Synchronous,
    /// Asynchronous ones: whoever gives goes on.
    Asynchronous,
}

/// The settings of a server.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The folder whose files are served.
    pub root: PathBuf,
    /// The address to listen on; port 0 takes any free one.
    pub address: SocketAddr,
    /// The kind of events that the modules communicate by.
    pub style: Style,
    /// Threads that serve connections: so many are served at once.
    pub connections: usize,
    /// Threads that read files.
    pub readers: usize,
    /// The longest that one request may take.
    pub time_limit: Duration,
}

/// A running server; it ends when it is stopped.
pub struct Server {
    address: SocketAddr,
    stop: Signal,
    log: Log,
    threads: Vec<JoinHandle<()>>,
}

impl Server {
    /// Starts all modules.
    ///
    /// # Errors
    /// If the address cannot be had.
    pub fn start(settings: &Settings) -> io::Result<Self> {
        let socket = TcpListener::bind(settings.address)?;
        // The standard library lets 128 wait, and the system makes further ones try again after a second.
        SockRef::from(&socket).listen(BACKLOG)?;
        let address = socket.local_addr()?;
        let stop = Signal::new();
        let log = Log::start(settings.style);
        let (connections, requests) = (Channel::<TcpStream>::rendezvous(), Channel::<FileRequest>::rendezvous());
        let mut threads = Vec::new();
        for _ in 0..settings.readers {
            let (requests, root, style) = (requests.clone(), settings.root.clone(), settings.style);
            threads.push(std::thread::spawn(move || file_processor::run(&requests, &root, style)));
        }
        for _ in 0..settings.connections {
            let network = NetworkProcessor {
                connections: connections.clone(),
                requests: requests.clone(),
                style: settings.style,
                time_limit: settings.time_limit,
                log: log.clone(),
                stop: stop.clone(),
            };
            threads.push(std::thread::spawn(move || network.run()));
        }
        let (listening, writing, style) = (stop.clone(), log.clone(), settings.style);
        threads.push(std::thread::spawn(move || {
            listener::run(&socket, &connections, style, &listening, &writing);
            connections.close();
            requests.close();
        }));
        Ok(Server { address, stop, log, threads })
    }

    /// Returns the address that it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the number of lines that it has logged.
    #[must_use]
    pub fn lines_logged(&self) -> usize {
        self.log.lines_written()
    }

    /// Stops: no new request is taken, those at work are ended, all threads are awaited.
    pub fn stop(self) {
        self.stop.fire();
        // The listener waits in the system, where no event reaches it; a connection does.
        drop(TcpStream::connect(self.address));
        for thread in self.threads {
            let _ = thread.join();
        }
        self.log.close();
    }
}
