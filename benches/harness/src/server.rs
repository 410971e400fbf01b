//! Servers as child processes on the servers' core.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};

use crate::{Outcome, process};

/// The core of the servers; the load has the next one.
pub(crate) const SERVER_CORE: usize = 0;
/// Time limit for a server to start listening.
const START_MAX: Duration = Duration::from_secs(30);

/// A running server. It is killed when dropped.
pub struct Server {
    /// The name in the report.
    pub name: String,
    /// The port on 127.0.0.1.
    pub port: u16,
    process: Child,
}

impl Server {
    /// Starts a server, and waits until it listens.
    ///
    /// # Errors
    /// Fails where it ends or does not listen in time; says what the server said.
    pub fn start(name: &str, command: &mut Command, port: u16) -> Outcome<Server> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = on_core(SERVER_CORE, || command.spawn())?;
        let begin = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if process.try_wait()?.is_some() || begin.elapsed() > START_MAX {
                _ = process.kill();
                let said = process.stderr.take().map(|stderr| BufReader::new(stderr).lines().map_while(Result::ok));
                let said: Vec<String> = said.into_iter().flatten().collect();
                return Err(format!("the server {name} did not start: {}", said.join("\n")).into());
            }
            std::thread::yield_now();
        }
        // What the server logs from here on is thrown away.
        if let Some(stderr) = process.stderr.take() {
            std::thread::spawn(move || BufReader::new(stderr).lines().for_each(drop));
        }
        Ok(Server { name: name.into(), port, process })
    }

    /// The processor time that it and its children have used.
    #[must_use]
    pub fn cpu_time(&self) -> Duration {
        process::cpu_time(self.process.id()).unwrap_or_default()
    }

    /// The bytes of memory that it and its children have; 0 where the system does not say.
    #[must_use]
    pub fn memory(&self) -> u64 {
        process::memory(self.process.id()).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

/// A port that nobody listens at.
///
/// # Errors
/// Fails where the machine has none.
pub fn free_port() -> Outcome<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// Does something on a core, children included, on a thread of its own so that this one stays where it is.
fn on_core<T: Send>(core: usize, action: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            pin(core);
            action()
        });
        thread.join().expect("starting a child does not panic")
    })
}

/// Keeps this thread, and those that it will make, on one core; where there are fewer cores it stays where it is.
pub fn pin(core: usize) {
    let mut set = CpuSet::new();
    set.set(core);
    _ = sched_setaffinity(None, &set);
}

/// Lets this process, and the servers that it starts, open as many files as the system allows.
///
/// # Errors
/// Fails where the system does not let the limit be raised to what it says itself.
pub fn more_files() -> Outcome<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?)
}
