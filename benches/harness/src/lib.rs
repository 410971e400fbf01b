//! Benchmark harness for servers: pins servers and load to cores of their own, and compares them by ratios within a
//! round.
//!
//! A *case* is one load against several *servers*, one of which is the *peer*. In each *round* every server is asked in
//! turn, beginning with another one each time; a ratio is taken between figures of the same round, and what is reported is
//! the median over rounds. So drift of the machine cancels out.

pub mod by_hand;
mod load;
pub mod peers;
mod process;
mod report;
pub mod results;
mod server;

pub use load::{Load, Request, Sample, Workload, random};
pub use report::{Case, Report};
pub use server::{Server, free_port, more_files, pin};

/// A benchmark's errors are for the person who runs it.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Options that the command lines of the benchmarks share: `--rounds`, `--seconds`, `--connections`.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Number of rounds.
    pub rounds: usize,
    /// Seconds of load on each server in a round.
    pub seconds: f64,
    /// Number of concurrent connections.
    pub connections: usize,
}

impl Options {
    /// Reads the arguments behind the program's name.
    ///
    /// # Errors
    /// Fails on an option that is not known, or a value that is no number.
    pub fn read(arguments: &[String]) -> Outcome<Options> {
        let mut options = Options { rounds: 20, seconds: 1.0, connections: 16 };
        for pair in arguments.chunks(2) {
            match pair {
                [name, value] if name == "--rounds" => options.rounds = value.parse()?,
                [name, value] if name == "--seconds" => options.seconds = value.parse()?,
                [name, value] if name == "--connections" => options.connections = value.parse()?,
                other => return Err(format!("unknown option {other:?}: see the first lines of main.rs").into()),
            }
        }
        Ok(options)
    }
}

/// The value of an option of one benchmark alone, which is taken out of the arguments.
pub fn taken(arguments: &mut Vec<String>, name: &str) -> Option<String> {
    let at = arguments.iter().position(|argument| argument == name)?;
    arguments.remove(at);
    (at < arguments.len()).then(|| arguments.remove(at))
}

/// Asks all servers in turn, round after round. The first server is the peer that ratios are taken to.
///
/// # Errors
/// Fails where a server does not answer 200.
pub fn measure(name: &str, servers: &[Server], options: Options, workload: &Workload) -> Outcome<Case> {
    let load = Load::new(options.connections)?;
    let mut case = Case::new(name, servers.iter().map(|server| server.name.clone()).collect());
    for round in 0..options.rounds {
        for turn in 0..servers.len() {
            let at = (round + turn) % servers.len();
            case.add(at, load.run(&servers[at], options.seconds, round as u64, workload)?);
        }
    }
    Ok(case)
}
