//! Servers under measurement: child processes on a core of their own.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};

use crate::{BenchResult, process};

/// The core of the servers. The load generator has the next one.
pub(crate) const SERVER_CORE: usize = 0;
/// The time in which a server has to listen.
const START_MAX: Duration = Duration::from_secs(30);

/// A running server. It is killed when it is dropped.
pub struct ServerProcess {
    /// Its name in the report.
    pub name: String,
    /// Its port on 127.0.0.1.
    pub port: u16,
    process: Child,
}

impl ServerProcess {
    /// Starts a server, and waits until it listens.
    ///
    /// # Errors
    /// Fails if the server ends or does not listen in time, with its output.
    pub fn start(name: &str, command: &mut Command, port: u16) -> BenchResult<ServerProcess> {
        ServerProcess::start_on(&[SERVER_CORE], name, command, port)
    }

    /// Starts a server that may use two cores, that of the load generator among them, and waits until it listens.
    ///
    /// # Errors
    /// Fails if the server ends or does not listen in time, with its output.
    pub fn start_on_two_cores(name: &str, command: &mut Command, port: u16) -> BenchResult<ServerProcess> {
        ServerProcess::start_on(&[SERVER_CORE, SERVER_CORE + 1], name, command, port)
    }

    fn start_on(cores: &[usize], name: &str, command: &mut Command, port: u16) -> BenchResult<ServerProcess> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = on_cores(cores, || command.spawn())?;
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
        // Later output of the server is discarded.
        if let Some(stderr) = process.stderr.take() {
            std::thread::spawn(move || BufReader::new(stderr).lines().for_each(drop));
        }
        Ok(ServerProcess { name: name.into(), port, process })
    }

    /// Asks the server to end (SIGTERM), and returns the time that it took.
    ///
    /// # Errors
    /// Fails if there is no such process any more.
    pub fn terminate(mut self) -> BenchResult<Duration> {
        let begin = Instant::now();
        let id = i32::try_from(self.process.id())?;
        let id = rustix::process::Pid::from_raw(id).ok_or("a process has a positive number")?;
        rustix::process::kill_process(id, rustix::process::Signal::TERM)?;
        self.process.wait()?;
        Ok(begin.elapsed())
    }

    /// Returns the processor time that the server and its children have used.
    #[must_use]
    pub fn cpu_time(&self) -> Duration {
        process::cpu_time(self.process.id()).unwrap_or_default()
    }

    /// Returns the bytes of memory of the server and its children, or 0 if the system does not say.
    #[must_use]
    pub fn memory(&self) -> u64 {
        process::memory(self.process.id()).unwrap_or_default()
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // It may have ended before.
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

/// Returns a free port.
///
/// # Errors
/// Fails if the system has none.
pub fn free_port() -> BenchResult<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// Runs an action, with its child processes, on these cores. It uses a thread of its own, so that the calling thread
/// stays on its core.
fn on_cores<T: Send>(cores: &[usize], action: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            pin_to(cores);
            action()
        });
        thread.join().expect("starting a child does not panic")
    })
}

/// Pins this thread and those that it will start to a core. Does nothing if the core does not exist.
pub fn pin(core: usize) {
    pin_to(&[core]);
}

fn pin_to(cores: &[usize]) {
    let mut set = CpuSet::new();
    cores.iter().for_each(|core| set.set(*core));
    _ = sched_setaffinity(None, &set);
}

/// Raises the limit of open files of this process, and of the servers that it starts, to the maximum.
///
/// # Errors
/// Fails if the system does not allow its own maximum.
pub fn more_files() -> BenchResult<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?)
}
