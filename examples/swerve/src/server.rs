//! The server: the four modules and their threads.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use socket2::SockRef;
use weir_events::{Channel, Event, Signal, never};

use crate::file_processor::{self, FileRequest};
use crate::listener;
use crate::log::{Log, OpenLog};
use crate::network_processor::NetworkProcessor;

/// Connections that the kernel completes before they are accepted; the same number as in apache2.
const BACKLOG: i32 = 511;

/// Kind of events that the modules use to communicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Synchronous events: a module waits until the other one has taken what it gives, and files are read in lock-step
    /// with the network.
    Synchronous,
    /// Synchronous events over buffers: modules hand over without waiting, and files are read ahead, but no asynchronous
    /// event is used. It shows what read-ahead alone gains.
    ReadAhead,
    /// Asynchronous events: the changes of the paper's §6.
    Asynchronous,
}

/// Configuration of a server.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The folder whose files are served.
    pub root: PathBuf,
    /// Address to listen on; port 0 chooses any.
    pub address: SocketAddr,
    /// Kind of communication between the modules.
    pub style: Style,
    /// Number of threads that serve connections, and thus of connections served at a time.
    pub connections: usize,
    /// Number of threads that read files.
    pub readers: usize,
    /// Maximum duration of a request.
    pub time_limit: Duration,
}

/// A running server.
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
    /// Fails if the address is not available.
    pub fn start(settings: &Settings) -> io::Result<Self> {
        Server::start_with_log(settings, Arc::new(|_| Ok(Box::new(io::sink()))), never())
    }

    /// Starts all modules, with a log that rolls to the next file whenever `rolls` takes effect.
    ///
    /// # Errors
    /// Fails if the address is not available or the log cannot be opened.
    pub fn start_with_log(settings: &Settings, open: OpenLog, rolls: Event<()>) -> io::Result<Self> {
        let socket = TcpListener::bind(settings.address)?;
        // The standard library sets a backlog of 128; clients beyond that would retry after a second.
        SockRef::from(&socket).listen(BACKLOG)?;
        let address = socket.local_addr()?;
        let stop = Signal::new();
        let log = Log::start(settings.style, open, rolls)?;
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

    /// Returns the address on which the server listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the number of lines logged so far.
    #[must_use]
    pub fn lines_logged(&self) -> usize {
        self.log.lines_written()
    }

    /// Stops the server: no further request is accepted, pending ones are aborted, and all threads are joined.
    pub fn stop(mut self) {
        self.end_modules();
        self.log.close();
    }

    /// Ends the server after a fatal error: logs it, stops the server, and runs `exit` when the log is written.
    pub fn fail(mut self, reason: &str, exit: impl Fn() + Send + Sync + 'static) {
        // The log has the error before the lines of the clean-up.
        let exit = self.log.fail(reason, exit);
        self.end_modules();
        exit.sync();
        self.log.close();
    }

    fn end_modules(&mut self) {
        self.stop.fire();
        // The listener is blocked in `accept`, where no event reaches it; a connection wakes it.
        drop(TcpStream::connect(self.address));
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
